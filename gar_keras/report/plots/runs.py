"""Finished runs with the logits that they kept for the figures."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gar_keras.experiments import records
from gar_keras.experiments.placement import path_of_record
from gar_keras.experiments.settings import stands_for_paper
from gar_keras.utils.files import NPZ_DAMAGE
from gar_keras.utils.validation import check_labels

# The cell of the paper's tables that the figures are about.
CELL = "mnist-100"


@dataclass(frozen=True)
class Run:
    """A finished run with what it kept for the figures; see `load_run`.

    Attributes:
        record: The run's record, a dict.
        labels: True class indices of the test images kept, int64 `(m,)`.
        snapshots: The rectified logits `B`, float32 `(m, n)`, by epoch of
            stage 2, in ascending order. Epoch 0 is the end of pretraining.
    """

    record: dict
    labels: np.ndarray
    snapshots: dict

    @property
    def title(self):
        """One line that says which run this is."""
        settings = self.record["experiment"]
        return (
            f"{self.record['data']['title']}, "
            f"m_L = {settings['num_labeled']}, "
            f"seed {self.record['seed']}, "
            f"{settings['pretrain_epochs']:,} epochs of pretraining, "
            f"{self.last_epoch} of GAR"
        )

    @property
    def curve(self):
        """The curves of stage 2: lists by name, among them `"epoch"`."""
        return self.record["regularization"]["curve"]

    @property
    def last_epoch(self):
        """The last epoch of stage 2."""
        return max(self.snapshots)


def load_run(path):
    """Reads a record and the logits beside it.

    Args:
        path: Path of the record, `<stem>.json`. The logits are in
            `<stem>.npz`.

    Returns:
        A `Run`.

    Raises:
        RecordError: if one of the files is missing, damaged or not of the
            other.

    Example:

    >>> run = load_run("runs/mnist-100/.../seed0.json")
    ... # doctest: +SKIP
    >>> list(run.snapshots)  # doctest: +SKIP
    [0, 1, 10, 50, 100, 200]
    """
    path = Path(path)
    record = records.read(path)
    logits = path.with_suffix(".npz")
    try:
        # From memory: NumPy leaves a file open that it cannot read.
        with np.load(io.BytesIO(logits.read_bytes())) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except FileNotFoundError:
        raise records.RecordError(
            f"{logits} is missing, which holds the logits that the run kept. "
            f"Delete {path.name} to run it again."
        ) from None
    except NPZ_DAMAGE as e:
        raise records.RecordError(
            f"{logits} is not readable ({e}). Delete it and {path.name} to "
            "run it again."
        ) from e
    try:
        labels, snapshots = _unpack(arrays, record)
    except ValueError as e:
        raise records.RecordError(
            f"{logits} does not belong to {path.name}: {e}. Delete both to "
            "run it again."
        ) from e
    return Run(record, labels, snapshots)


def choose_run(*folders):
    """The run that the figures show by default.

    Of the finished runs on MNIST with m_L = 100 and the paper's settings: the
    one with the most epochs of stage 2, then the one with the lowest seed.

    Args:
        *folders: Folders of run records. The first one that has such a run
            counts; `None` is none.

    Returns:
        The path of its record.

    Raises:
        RecordError: if there is no such run, or if there is a file among the
            records that is not a record.
    """
    for folder in filter(None, folders):
        found = [
            record
            for record in records.read_all(folder)
            if record["cell"] == CELL
            and stands_for_paper(record["experiment"], CELL)
        ]
        if found:
            return path_of_record(_longest(found), folder)
    raise records.RecordError(
        f"no finished run of {CELL} in {folders[0]}. This makes one: python "
        "scripts/table1.py --labels 100 --seeds 0"
    )


def _longest(found):
    """The record of the longest run, of the lowest seed."""
    return min(
        found,
        key=lambda r: (
            -r["experiment"]["epochs"], r["seed"], r["fingerprint"]
        ),
    )  # fmt: skip


def _unpack(arrays, record):
    """Labels and rectified logits from the arrays of a run's file."""
    last = record["experiment"]["epochs"]
    for key in ("labels", "epoch_0", f"epoch_{last}"):
        if key not in arrays:
            raise ValueError(f"it has no {key}")
    snapshots = {}
    for key, Z in arrays.items():
        if key.startswith("epoch_"):
            if Z.dtype.kind != "f" or Z.ndim != 2 or not np.isfinite(Z).all():
                raise ValueError(
                    f"{key} is not a matrix of finite numbers, but {Z.dtype} "
                    f"{Z.shape}"
                )
            snapshots[int(key.removeprefix("epoch_"))] = np.maximum(Z, 0)
    if len({B.shape for B in snapshots.values()}) > 1:
        raise ValueError("its epochs differ in shape")
    labels = check_labels("labels", arrays["labels"], len(snapshots[0]))
    return labels, dict(sorted(snapshots.items()))
