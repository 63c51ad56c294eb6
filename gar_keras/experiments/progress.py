"""How far a run has come: a bar in a terminal, lines in a file."""

from rich.progress import BarColumn
from rich.progress import Progress
from rich.progress import TextColumn
from rich.progress import TimeRemainingColumn

from gar_keras import terminal

TERMS = ("loss", "affinity", "balance", "supervised", "unsupervised")
ERRORS = ("val_error", "test_error")


class Reporter:
    """Shows the progress of one run.

    In a terminal, a bar with the time that remains in the stage and the terms
    of the loss, batch by batch. In a terminal and in a file alike, a line for
    each epoch.

    Args:
        name: Name of the run.
        console: A `rich` console. Standard output by default.
    """

    def __init__(self, name, console=None):
        self.name = name
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
        self.console.print(f"{self.name}: {text}")

    def step(self, stage, done, total, logs):
        """After some steps: `done` epochs of `total`, with the terms so far."""
        if stage not in self._tasks:
            for earlier in self._tasks.values():
                self._bar.update(earlier, visible=False)
            self._tasks[stage] = self._bar.add_task(
                stage, total=total, terms=""
            )
        self._bar.update(
            self._tasks[stage],
            completed=done,
            terms=_text(logs or {}, TERMS, ".3g"),
        )

    def epoch(self, stage, row, total):
        """After an epoch: the newest row of the stage's curve."""
        self.console.print(
            f"{self.name} {stage} {row['epoch']}/{total}  "
            f"{_text(row, TERMS)}  {_percent(row, ERRORS)}  "
            f"{row['seconds']:.1f} s"
        )


def _text(row, names, form=".4g"):
    return "  ".join(f"{n} {row[n]:{form}}" for n in names if n in row)


def _percent(row, names):
    return "  ".join(f"{n} {100 * row[n]:.2f} %" for n in names if n in row)
