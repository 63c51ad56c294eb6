"""How far a run has come: a bar in a terminal, lines in a file."""

import time

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gar_keras.utils import terminal

TERMS = ("loss", "affinity", "balance", "supervised", "unsupervised")
# For lines, which are not cut off.
MORE_TERMS = (*TERMS, "classes_in_use")
ERRORS = ("val_error", "test_error")

# Seconds without a word after which a file gets a line within an epoch.
INTERVAL = 20.0


class Reporter:
    """Shows the progress of one run: a line for each epoch.

    Within an epoch, a bar in a terminal, and elsewhere a line every 20 seconds,
    with the time that remains in the stage and the terms of the loss.

    Args:
        name: Name of the run.
        console: A `rich` console. Standard output by default.
        clock: Function that returns the time in seconds.
    """

    def __init__(self, name, console=None, clock=time.monotonic):
        self.name = name
        self._clock = clock
        self._last_line = clock()
        # Time and epochs done at the first sign of each stage.
        self._starts = {}
        self.console = console or terminal.console()
        self._bar = Progress(
            TextColumn("{task.description}"),
            # All of it within 80 characters: a terminal cuts off the rest.
            BarColumn(bar_width=10),
            TextColumn("{task.fields[terms]}"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._tasks = {}

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def say(self, text):
        """A line on the run."""
        self._print(f"{self.name}: {text}")

    def step(self, stage, done, total, logs, steps=1):
        """After some steps: `done` epochs of `total`, with the terms so far.

        Args:
            stage: Name of the stage.
            done: Epochs done, with the part of the one that goes on.
            total: Epochs of the stage.
            logs: Terms of the loss, or `None`.
            steps: Steps of an epoch.
        """
        left = self._time_left(stage, done, total)
        if self.console.is_terminal:
            self._move_bar(stage, done, total, _text(logs or {}, TERMS, ".3g"))
        elif self._clock() - self._last_line >= INTERVAL:
            place, terms = _place(done, total, steps), _text(logs or {})
            self._print(f"{self.name} {stage} {place}", terms, left)

    def _move_bar(self, stage, done, total, terms):
        if stage not in self._tasks:
            for earlier in self._tasks.values():
                self._bar.update(earlier, visible=False)
            self._tasks[stage] = self._bar.add_task(
                stage, total=total, terms=""
            )
        self._bar.update(self._tasks[stage], completed=done, terms=terms)

    def epoch(self, stage, row, total):
        """After an epoch: the newest row of the stage's curve."""
        errors = {name: row[name] for name in ERRORS if name in row}
        self._print(
            f"{self.name} {stage} {row['epoch']}/{total}",
            _text(row),
            "  ".join(f"{name} {100 * e:.2f} %" for name, e in errors.items()),
            f"{row['seconds']:.1f} s",
            self._time_left(stage, row["epoch"], total),
        )

    def _print(self, *parts):
        self.console.print("  ".join(filter(None, parts)))
        self._last_line = self._clock()

    def _time_left(self, stage, done, total):
        """The time that remains in the stage, in words; empty if unknown."""
        now = self._clock()
        start, before = self._starts.setdefault(stage, (now, done))
        if not before < done < total:
            return ""
        left = (now - start) / (done - before) * (total - done)
        return f"{_duration(left)} left"


def _place(done, total, steps):
    """Epoch and step, e.g. `2/60 step 134/536`."""
    epoch, part = divmod(done, 1)
    k = round(part * steps)
    if not k:
        return f"{epoch:.0f}/{total}"
    return f"{epoch + 1:.0f}/{total} step {k}/{steps}"


def _duration(seconds):
    """A time in words, to the minute from two minutes on.

    Example:

    >>> _duration(50.2), _duration(130), _duration(3 * 3600 + 119)
    ('50 s', '2 min', '3 h 2 min')
    """
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def _text(row, names=MORE_TERMS, form=".4g"):
    return "  ".join(f"{n} {row[n]:{form}}" for n in names if n in row)
