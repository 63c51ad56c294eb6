"""How far a run has come: a bar in a terminal, and a line for each epoch."""

import contextlib
import sys
import threading
import time
import warnings
from datetime import timedelta

from tqdm import tqdm

from gar_keras.utils.warnings import GARWarning

# The default is a semaphore, which a killed process leaves behind.
tqdm.set_lock(threading.RLock())

ERRORS = ("val_error", "test_error")


class Reporter:
    """Shows the progress of one run, with its place, e.g. `run 3 of 40`."""

    def __init__(self, name, place="run 1 of 1", stream=None):
        self.name, self.place = name, place
        self.stream = stream or sys.stdout
        self.bar = None

    def begin(self):
        """Before the training."""
        self._write(f"{self.place}: {self.name}")

    def say(self, text):
        """A line on the run."""
        self._write(f"{self.name}: {text}")

    def _write(self, line):
        # In one go, as other processes may write to the same stream.
        tqdm.write(f"{line}\n", self.stream, end="")
        self.stream.flush()

    def stage(self, stage, done, total):
        """Before the epochs of a stage, of which some are done."""
        self.end()
        self.title, self.first, self.start = stage, done, time.monotonic()
        self.errors = []
        self.bar = tqdm(
            desc=f"{self.place} {stage}",
            initial=done,
            total=total,
            bar_format="{desc} |{bar:10}| {postfix} {remaining} left",
            file=self.stream,
            # The bar is shown in a terminal alone.
            disable=None,
            dynamic_ncols=True,
            leave=False,
        )

    def step(self, done, logs):
        """After some steps: so many epochs are done, with a part of one."""
        if not self.bar.disable:
            loss = [f"loss {logs['loss']:.3g}"] if logs else []
            # The errors are those of the epoch before.
            self.bar.set_postfix_str("  ".join(loss + self.errors), False)
            self.bar.update(done - self.bar.n)

    def epoch(self, row):
        """After an epoch: the newest row of the stage's curve."""
        done, total = row["epoch"], self.bar.total
        self.errors = [f"{e} {100 * row[e]:.2f} %" for e in ERRORS if e in row]
        apart = {"epoch", "seconds", *ERRORS}
        words = [f"{k} {v:.4g}" for k, v in row.items() if k not in apart]
        words += [*self.errors, f"{row['seconds']:.1f} s"]
        if done < total:
            of_one = (time.monotonic() - self.start) / (done - self.first)
            left = timedelta(seconds=round(of_one * (total - done)))
            words.append(f"{left} left")
        self.say("  ".join([f"{self.title} {done}/{total}", *words]))

    def end(self):
        """After the training, and where it is broken off."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


@contextlib.contextmanager
def shown_by(show):
    """Within it, each `GARWarning` is given to a function, as a string.

    Example:

    >>> with shown_by(print):
    ...     warnings.warn("Classes are being lost.", GARWarning)
    Classes are being lost.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", GARWarning)
        otherwise = warnings.showwarning

        def showwarning(message, category, *where, **options):
            if issubclass(category, GARWarning):
                show(str(message))
            else:
                otherwise(message, category, *where, **options)

        warnings.showwarning = showwarning
        yield
