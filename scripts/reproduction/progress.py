"""How far a run has come: a bar in a terminal, lines in a file."""

import time
from dataclasses import dataclass
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

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


@dataclass(frozen=True)
class Place:
    """A run among those of a command.

    Attributes:
        number, total: Which of how many it is.
        behind: The experiments of the runs that begin after it.
        at_once: Runs that are made at once; `None` if that is not known.
    """

    number: int = 1
    total: int = 1
    behind: tuple = ()
    at_once: int | None = 1


class Reporter:
    """Shows the progress of one run: a line for each epoch.

    Within an epoch, a bar in a terminal, and elsewhere a line every 20 seconds,
    with the terms of the loss and the time that remains: in the stage, and of
    all runs, as if each image that is trained on took as long.
    """

    def __init__(self, name, console, place=None, clock=time.monotonic):
        self.name = name
        self._place = place or Place()
        self._clock = clock
        self._last_line = clock()
        self.console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            # All of it within 80 characters: a terminal cuts off the rest.
            BarColumn(bar_width=10),
            TextColumn("{task.fields[terms]}"),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
            get_time=clock,
            speed_estimate_period=SPEED_PERIOD,
        )
        self._tasks = {}
        # Of this run: images in an epoch and epochs, by stage.
        self._images = {}
        self._all = None

    def __enter__(self):
        self._progress.start()
        return self

    def __exit__(self, *_):
        self._progress.stop()

    def begin(self, experiment, num_unlabeled):
        """Before the training: of an `Experiment` with so many images in X_U.

        The other runs are taken to have as many.
        """
        place = self._place
        self._print(f"run {place.number} of {place.total}: {self.name}")
        self._images = experiment.images_of_epochs(num_unlabeled)
        if place.at_once is None or not self._images:
            return
        behind = sum(
            _whole(e.images_of_epochs(num_unlabeled)) for e in place.behind
        )
        total = _whole(self._images) + behind / place.at_once
        self._all = self._progress.add_task("all", total=total, visible=False)

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
            self._print(f"{self.name} {stage} {done:.2f}/{total}", terms, *left)

    def epoch(self, stage, row, total):
        """After an epoch: the newest row of the stage's curve."""
        errors = [f"{e} {100 * row[e]:.2f} %" for e in ERRORS if e in row]
        self._print(
            f"{self.name} {stage} {row['epoch']}/{total}",
            _text(row, EPOCH_TERMS, ".4g"),
            *errors,
            f"{row['seconds']:.1f} s",
            *self._move(stage, row["epoch"], total),
        )

    def _move(self, stage, done, total, terms=""):
        """Moves the bar; the times left in words, of those that are known."""
        if stage not in self._tasks:
            for earlier in self._tasks.values():
                self._progress.update(earlier, visible=False)
            self._tasks[stage] = self._progress.add_task(
                stage, total=total, terms="", left=""
            )
        bar = self._tasks[stage]
        self._progress.update(bar, completed=done, terms=terms)
        in_stage, in_all = self._left(bar), None
        if self._all is not None:
            trained = self._trained(stage, done)
            self._progress.update(self._all, completed=trained)
            in_all = self._left(self._all)
        self._progress.update(bar, left=in_all or in_stage or "")
        known = {"left": in_stage, "left of all": in_all}
        return [f"{left} {of}" for of, left in known.items() if left]

    def _left(self, task):
        """The time that remains of a task of the bar, if it is known."""
        seconds = self._progress.tasks[task].time_remaining
        return str(timedelta(seconds=seconds)) if seconds else None

    def _trained(self, stage, done):
        """Images that this run has trained on, after `done` epochs of a stage.

        Stage 1 is behind it in stage 2, whoever made it.
        """
        images, _ = self._images[stage]
        names = [*self._images]
        earlier = names[: names.index(stage)]
        before = _whole({name: self._images[name] for name in earlier})
        return before + images * done

    def _print(self, *parts):
        self.console.print("  ".join(filter(None, parts)))
        self._last_line = self._clock()


def _whole(images_of_epochs):
    """Images that all epochs of all stages train on."""
    return sum(images * epochs for images, epochs in images_of_epochs.values())


def _text(row, names, form):
    return "  ".join(f"{n} {row[n]:{form}}" for n in names if n in row)
