"""Speed of a path beside plain Keras, and beside the machine's floor."""

import math
from dataclasses import asdict

from gar_keras.benchmarks import memory, roofline, timing, variants
from gar_keras.benchmarks.cases import Workload

# Stage 2 takes this many epochs, and the time of stage 1 is given for this
# many passes.
EPOCHS = 100
PASSES = 1000


def measure(case, deadline=math.inf):
    """Times a case in turns with the plain path.

    Args:
        case: A `cases.Case`.
        deadline: `time.monotonic()` at which to have stopped.

    Returns:
        A dict for a record: what `timing.compare` returns, with the plain path
        as the reference; `"speedup"`, how many times as fast as plain;
        `"images_per_second"`; `"seconds"` of 100 epochs of stage 2 or of
        1,000 passes of stage 1 (`None` for an evaluation), and
        `"reference_seconds"`, those of the plain path; `"peak"` memory of
        both; `"floor_ms"`, `"ceilings"` and `"floor_share"`, the floor over
        the median time. Milliseconds are those of a step, of a pass or of
        1,000 images.

    Raises:
        OutOfTime: if the deadline comes first.
        ValueError: if the path does not exist on the backend in use.
        FloatingPointError: if the network diverges.
    """
    reference = variants.stretch(case, variants.PLAIN)
    path = variants.stretch(case, case.path)
    times = timing.interleave(reference, path, case.pairs, deadline)
    result = timing.compare(times)
    work = Workload(case)
    ms = result["ms"]["median"]
    units = _units(work)
    return {
        **result,
        "speedup": timing.spread([a / b for a, b in times]),
        "images_per_second": 1000 * work.images_per_unit / ms,
        "seconds": units and units * ms / 1000,
        "reference_seconds": (
            units and units * result["reference_ms"]["median"] / 1000
        ),
        **_floor(work, ms),
        "peak": {
            "reference": memory.peak(variants.run_once, case, variants.PLAIN),
            "path": memory.peak(variants.run_once, case, case.path),
        },
    }


def _units(work):
    """Units of the whole that `"seconds"` is given for, or `None`."""
    if work.case.task == "regularize":
        return EPOCHS * work.sampler.steps
    return PASSES if work.case.task == "pretrain" else None


def _floor(work, ms):
    operations, units = work.operations()
    ceilings = roofline.measure_ceilings(roofline.product_dtypes(operations))
    least = roofline.floor_ms(operations, ceilings) / units
    return {
        "ceilings": asdict(ceilings),
        "floor_ms": least,
        "floor_share": least / ms,
    }


def describe(entry):
    """One line on a measured case."""
    c = entry["case"]
    unit = {"regularize": "step", "pretrain": "pass", "evaluate": "1,000"}
    low, high = entry["speedup"]["quartiles"]
    line = (
        f"{c['task']}, {c['network']}, {c['path']}, {c['precision']}: "
        f"{entry['ms']['median']:.4g} ms a {unit[c['task']]}, plain "
        f"{entry['reference_ms']['median']:.4g} ms; "
        f"{entry['speedup']['median']:.2f} times as fast ({low:.2f} to "
        f"{high:.2f}, {c['pairs']} pairs); "
        f"{entry['images_per_second']:,.0f} images/s; floor "
        f"{entry['floor_ms']:.4g} ms, {100 * entry['floor_share']:.0f} % of "
        f"the time; peak {memory.text(entry['peak']['path'])}, plain "
        f"{memory.text(entry['peak']['reference'])}"
    )
    if entry["seconds"] is None:
        return line
    whole = {
        "regularize": f"{EPOCHS} epochs", "pretrain": f"{PASSES:,} passes"
    }[c["task"]]  # fmt: skip
    return f"{line}; {whole} in {entry['seconds']:,.1f} s"
