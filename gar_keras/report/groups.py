"""Run records by experiment, each with its seeds."""

import json
import statistics
from dataclasses import dataclass

from gar_keras.datasets.registry import UNLABELED
from gar_keras.experiments.settings import changes
from gar_keras.report.estimates import Estimate
from gar_keras.report.layout import MISSING

# Settings in the words of the tables; the others go by their names.
_WORDS = {
    "frobenius_of": "Frobenius term of {}",
    "balance_of": "balance of {}",
    "shares": "class imbalance {}",
    "wrong_labels": "label noise {}",
    "strangers": "out-of-class images {} of X_U",
    "camera_stretch": "each camera's image stretched",
    "field_strength": "deformation fields times {}",
}


# Settings of how a run is computed, not of what.
HARDWARE = ("precision", "backend")

# Epochs of stage 2 whose mean error is told beside that of the last.
LATE = 20


@dataclass(frozen=True)
class Group:
    """The records of one experiment, over its seeds."""

    records: tuple

    @property
    def settings(self):
        return self.records[0]["experiment"]

    @property
    def method(self):
        return self.settings["method"]

    @property
    def data(self):
        title = self.records[0]["data"]["title"]
        unlabeled = self.settings["unlabeled"]
        return f"{title}{UNLABELED[unlabeled].suffix}"

    @property
    def seeds(self):
        return sorted(record["seed"] for record in self.records)

    def error(self, key):
        """Estimate of one of the results, e.g. `"chosen_error"`."""
        return Estimate.of([r["result"][key] for r in self.records])

    def late_error(self):
        """Estimate of the mean error of the last epochs.

        Returns:
            `None` if there are fewer than `LATE` epochs.
        """
        if self.records[0]["result"]["last_epoch"] < LATE:
            return None
        curves = [r["regularization"]["curve"] for r in self.records]
        return Estimate.of(
            [statistics.mean(curve["test_error"][-LATE:]) for curve in curves]
        )

    def by_seed(self, key):
        """One of the results of each seed, as a dict."""
        return {r["seed"]: r["result"][key] for r in self.records}

    def validation_error(self, epoch):
        """Estimate of the validation error after an epoch of stage 2.

        Args:
            epoch: 0 for the end of stage 1, -1 for the last epoch.
        """
        curves = [r["regularization"]["curve"] for r in self.records]
        return Estimate.of([curve["val_error"][epoch] for curve in curves])

    def last(self, term):
        """Mean of a term of the loss in the last epoch, as text."""
        curves = [r["regularization"]["curve"] for r in self.records]
        if any(term not in curve for curve in curves):
            return MISSING
        return f"{statistics.mean(curve[term][-1] for curve in curves):.3f}"

    def warned(self):
        """In how many runs a warning came, of those that noted it, as text."""
        noted = [r["warnings"] for r in self.records if "warnings" in r]
        return f"{sum(map(bool, noted))} of {len(noted)}" if noted else MISSING

    def seconds(self, *stages):
        """Mean seconds of training in some stages."""
        return statistics.mean(
            sum(r[stage]["seconds"] for stage in stages) for r in self.records
        )

    def seed_text(self):
        """The seeds in words, e.g. `seed 0`, `seeds 0-9` or `seeds 0,2,7`."""
        first, last = self.seeds[0], self.seeds[-1]
        if first == last:
            return f"seed {first}"
        if self.seeds == [*range(first, last + 1)]:
            return f"seeds {first}-{last}"
        return f"seeds {','.join(map(str, self.seeds))}"

    @property
    def changes(self):
        """Settings that differ from the paper's, as `{name: value}`.

        The data, the number of labels, epochs, precision and backend are no
        part of it.
        """
        return changes(self.settings)

    def changes_text(self):
        """Settings that differ from the paper's, in words."""
        return "".join(
            ", "
            + _WORDS.get(name, f"{name.replace('_', ' ')} {{}}").format(
                _short(value)
            )
            for name, value in self.changes.items()
        )

    def device_text(self):
        """Devices that the runs were made on, in words.

        Runs on a part of the cores say so: `Some CPU (1 of 2 cores)`.
        """
        where = self._hardware()
        devices = sorted({device for device, _ in where})
        cores = sorted({cores for _, cores in where})
        return f"{'/'.join(devices)} ({' or '.join(cores)} cores)"

    def minutes_text(self):
        """Minutes of training a run, e.g. `12`, or `60 to 112`.

        Of runs on several devices, or numbers of cores, it is the range: their
        mean would be the time of none.
        """
        minutes = [
            (r["pretraining"]["seconds"] + r["regularization"]["seconds"]) / 60
            for r in self.records
        ]
        digits = 0 if min(minutes) >= 10 else 1
        if len(self._hardware()) == 1:
            return f"{statistics.mean(minutes):.{digits}f}"
        ends = (f"{end:.{digits}f}" for end in (min(minutes), max(minutes)))
        return " to ".join(dict.fromkeys(ends))

    def _hardware(self):
        """Device and cores of each process that had a part in the runs."""
        return {
            (environment["device"], _cores(environment))
            for r in self.records
            for environment in (r["environment"], *r.get("resumed_in", ()))
        }

    def epochs_text(self):
        """Epochs of both stages, e.g. `2000 + 60`."""
        return f"{self.settings['pretrain_epochs']} + {self.settings['epochs']}"

    def describe(self):
        """One line: what was run, on what, how often and for how long."""
        s = self.settings
        return (
            f"{self.data}, m_L = {s['num_labeled']}: n = {len(self.records)} "
            f"({self.seed_text()}), "
            f"{self.epochs_text()} epochs, "
            f"{s['precision']}, {s['backend']}{self.changes_text()}, "
            f"{self.device_text()}, "
            f"{self.minutes_text()} min a run"
        )


def group(records):
    """Groups records by experiment, in the order of their first appearance."""
    found = {}
    for record in records:
        found.setdefault(record["fingerprint"], []).append(record)
    return [Group(tuple(members)) for members in found.values()]


def size(g):
    """Sort key of groups: epochs of all runs together, of each, of stage 1.

    One seed that was trained longer does not take the place of several.
    """
    s = g.settings
    epochs = s["epochs"]
    return epochs * len(g.records), epochs, s["pretrain_epochs"]


def but_for(g, names):
    """The settings but for some, as a key."""
    settings = g.settings
    rest = {k: v for k, v in settings.items() if k not in names}
    return json.dumps(rest, sort_keys=True)


def _cores(environment):
    """The cores of a machine, with the threads of a run that took fewer."""
    cores = environment["cores"]
    threads = environment.get("threads", cores)
    if environment.get("device_kind") != "cpu" or threads >= cores:
        return str(cores)
    return f"{threads} of {cores}"


def _short(value):
    """A setting as text; of a list its ends."""
    if isinstance(value, list):
        return f"{value[0]:.3g} to {value[-1]:.3g}"
    return str(value)
