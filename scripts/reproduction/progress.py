"""How far a run has come: a bar in a terminal, lines in a file."""

import sys
import time
from datetime import timedelta

TERMS = (
    *("loss", "affinity", "balance", "supervised"),
    # Of other methods and of terms beside GAR.
    *("consistency", "lds", "entropy", "pseudo_label", "margin", "distances"),
)
ERRORS = ("val_error", "test_error")

# Seconds without a word after which a file gets a line within an epoch.
INTERVAL = 20.0


class Reporter:
    """Shows the progress of one run: a line for each epoch.

    Within an epoch, a bar in a terminal, and elsewhere a line every 20 seconds,
    with the terms of the loss and the time that remains of the stage.
    """

    def __init__(self, name, number=1, total=1, stream=None, clock=None):
        self.name = name
        self.place = f"run {number} of {total}"
        self._stream = stream or sys.stdout
        self._clock = clock or time.monotonic
        self._stage = None
        self._bar = None

    def begin(self):
        """Before the training."""
        self.print(f"{self.place}: {self.name}")

    def end(self):
        """After it, and where it is broken off: takes the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def say(self, text):
        """A line on the run."""
        self.print(f"{self.name}: {text}")

    def step(self, stage, done, total, logs):
        """After some steps: `done` epochs of `total`, with the terms so far.

        `done` counts the part of the epoch that goes on; `logs` may be `None`.
        """
        self._go_to(stage, done, total)
        if self._bar is not None:
            self._bar.set_postfix_str(_in_words(logs or {}, ".3g"), False)
            self._bar.update(done - self._bar.n)
        elif self._clock() - self._last_line >= INTERVAL:
            self.print(
                f"{self.name} {stage} {done:.2f}/{total}",
                _in_words(logs or {}, ".3g"),
                self._left(done, total),
            )

    def epoch(self, stage, row, total):
        """After an epoch: the newest row of the stage's curve."""
        self._go_to(stage, row["epoch"], total)
        if self._bar is not None:
            self._bar.update(row["epoch"] - self._bar.n)
        errors = [f"{e} {100 * row[e]:.2f} %" for e in ERRORS if e in row]
        self.print(
            f"{self.name} {stage} {row['epoch']}/{total}",
            _in_words(row, ".4g", (*TERMS, "classes_in_use")),
            *errors,
            f"{row['seconds']:.1f} s",
            self._left(row["epoch"], total),
        )

    def print(self, *parts):
        text = "  ".join(filter(None, parts))
        if self._bar is not None:
            self._bar.write(text, self._stream)
        else:
            print(text, file=self._stream, flush=True)
        self._last_line = self._clock()

    def _go_to(self, stage, done, total):
        """Begins to measure a stage, at its first word."""
        if stage == self._stage:
            return
        self.end()
        self._stage, self._first = stage, (self._clock(), done)
        if self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                initial=done,
                desc=f"{self.place} {stage}",
                bar_format="{desc} |{bar:10}| {postfix} {remaining} left",
                file=self._stream,
                dynamic_ncols=True,
                leave=False,
            )

    def _left(self, done, total):
        """The time that remains of the stage, by the epochs of this process."""
        start, first = self._first
        if done <= first or done >= total:
            return None
        seconds = (self._clock() - start) / (done - first) * (total - done)
        return f"{timedelta(seconds=round(seconds))} left"


class Silent(Reporter):
    """One that says nothing."""

    def print(self, *parts):
        pass

    def step(self, *args):
        pass

    def epoch(self, *args):
        pass


def _in_words(row, form, names=TERMS):
    return "  ".join(f"{n} {row[n]:{form}}" for n in names if n in row)
