"""How far a run has come: a bar in a terminal, lines in a file."""

import time
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

TERMS = (
    *("loss", "affinity", "balance", "supervised"),
    # Of other methods and of additions to GAR.
    *("consistency", "lds", "entropy", "pseudo_label", "margin", "distances"),
)
# For the lines of epochs, which are not cut off.
EPOCH_TERMS = (*TERMS, "classes_in_use")
ERRORS = ("val_error", "test_error")

# Seconds without a word after which a file gets a line within an epoch.
INTERVAL = 20.0
# Seconds over which the speed is measured.
SPEED_PERIOD = 3600.0


def console(**options):
    """A `rich` console that prints text as it is.

    A folder may be called `a[/b]` or `:x:`, which `rich` would take for markup
    and for an emoji.
    """
    return Console(
        highlight=False, soft_wrap=True, markup=False, emoji=False, **options
    )


class Reporter:
    """Shows the progress of one run: a line for each epoch.

    Within an epoch, a bar in a terminal, and elsewhere a line every 20 seconds,
    with the time that remains in the stage and the terms of the loss.
    """

    def __init__(self, name, console, clock=time.monotonic):
        self.name = name
        self._clock = clock
        self._last_line = clock()
        self.console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            # All of it within 80 characters: a terminal cuts off the rest.
            BarColumn(bar_width=10),
            TextColumn("{task.fields[terms]}"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
            get_time=clock,
            speed_estimate_period=SPEED_PERIOD,
        )
        self._tasks = {}

    def __enter__(self):
        self._progress.start()
        return self

    def __exit__(self, *_):
        self._progress.stop()

    def end(self, text):
        """Takes the bar away for a last line, which is not of the run."""
        self._progress.stop()
        self.console.print(text)

    def say(self, text):
        """A line on the run."""
        self._print(f"{self.name}: {text}")

    def step(self, stage, done, total, logs):
        """After some steps: `done` epochs of `total`, with the terms so far.

        `done` counts the part of the epoch that goes on; `logs` may be `None`.
        """
        terms = _text(logs or {}, TERMS, ".3g")
        left = self._move(stage, done, total, terms)
        silent = self._clock() - self._last_line
        if silent >= INTERVAL and not self.console.is_terminal:
            self._print(f"{self.name} {stage} {done:.2f}/{total}", terms, left)

    def epoch(self, stage, row, total):
        """After an epoch: the newest row of the stage's curve."""
        errors = [f"{e} {100 * row[e]:.2f} %" for e in ERRORS if e in row]
        self._print(
            f"{self.name} {stage} {row['epoch']}/{total}",
            _text(row, EPOCH_TERMS, ".4g"),
            *errors,
            f"{row['seconds']:.1f} s",
            self._move(stage, row["epoch"], total),
        )

    def _move(self, stage, done, total, terms=""):
        """Moves the bar, and gives the time left in words if it is known."""
        if stage not in self._tasks:
            for earlier in self._tasks.values():
                self._progress.update(earlier, visible=False)
            self._tasks[stage] = self._progress.add_task(
                stage, total=total, terms=""
            )
        place = self._tasks[stage]
        self._progress.update(place, completed=done, terms=terms)
        left = self._progress.tasks[place].time_remaining
        return f"{timedelta(seconds=left)} left" if left else ""

    def _print(self, *parts):
        self.console.print("  ".join(filter(None, parts)))
        self._last_line = self._clock()


def _text(row, names, form):
    return "  ".join(f"{n} {row[n]:{form}}" for n in names if n in row)
