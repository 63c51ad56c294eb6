"""The records of benchmarks, checked against the times in them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from reproduction import paths, records
from reproduction.benchmarks import timing

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class OverheadSettings:
    """What the costs of the regularizer were measured with."""

    batch_size: int
    num_classes: int
    num_images: int
    precision: str
    steps: int
    pairs: int


@dataclass(frozen=True, kw_only=True)
class SpeedSettings:
    """What a speed was measured with: "regularize", "pretrain", "evaluate"."""

    task: str
    network: str
    path: str
    precision: str
    images: int
    stretch: int
    pairs: int


SETTINGS = {"overhead": OverheadSettings, "benchmark": SpeedSettings}


def write(path, kind, entries):
    """Writes the record of the benchmarks of a kind on a machine."""
    content = {"format": FORMAT, "kind": kind, "cases": entries}
    records.write(path, content)


def read(path):
    """The entries of such a record, a dict for each case.

    Raises:
        RecordError: if the file is not a sound record, or lies where another
            one belongs.
    """
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        records.check("format", record["format"], FORMAT)
        kind = record["kind"]
        cases = [SETTINGS[kind](**entry["case"]) for entry in record["cases"]]
        records.check("number of cases", len({*cases}), len(cases))
        for case, entry in zip(cases, record["cases"], strict=True):
            _check_times(kind, case, entry)
            place = paths.path_of_benchmark(kind, entry["environment"], "")
            records.check("name", path.name, place.name)
    except records.NOT_A_RECORD as e:
        reason = next(iter(str(e).splitlines()), type(e).__name__)
        raise records.RecordError(
            f"{path} is not a whole record of this version: {reason}. If it is "
            "damaged, delete it and make it again."
        ) from e
    return record["cases"]


def _check_times(kind, case, entry):
    """Raises unless all follows from the times of the pairs."""
    pairs = [
        *zip(entry["reference_ms"]["all"], entry["ms"]["all"], strict=True)
    ]
    records.check("number of pairs", len(pairs), case.pairs)
    if not min(min(pair) for pair in pairs) > 0:
        raise ValueError("times are above 0")
    wanted = timing.spreads(pairs)
    if kind == "benchmark":
        wanted["speedup"] = timing.spread([a / b for a, b in pairs])
        # In a step, in a pass over all images, or in 1,000 of them.
        images = entry["images_per_second"] * entry["ms"]["median"] / 1000
        if not 0 < images < max(case.images, 1000) + 1:
            raise ValueError(f"images_per_second: {images} in a median time")
    for name, spread in wanted.items():
        for part, value in spread.items():
            if not np.allclose(entry[name][part], value, rtol=1e-9, atol=0):
                raise ValueError(
                    f"{name}.{part} does not follow from the times"
                )


def entry_of(case, environment, measured):
    """The entry of a case in a record."""
    return {"case": asdict(case), "environment": environment, **measured}
