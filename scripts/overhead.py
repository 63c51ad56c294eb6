"""The paper's timing experiment: training with and without GAR's terms.

The paper took 830 s and 882 s for 100 epochs. Here the two take turns in one
process, stretch by stretch, and the ratio of each pair counts. Measure on a
machine that does nothing else. Cases that are in the record are not measured
again.
"""

import sys

from reproduction import commands

# In a stretch.
STEPS = {"cpu": 40, "gpu": 400}
SWEEPS = {
    "batch": [{"batch_size": b} for b in (32, 64, 256, 512)],
    "classes": [{"num_classes": n} for n in (100, 1000, 10_000)],
    "images": [{"num_images": m} for m in (600_000, 8_000_000)],
}


def parser():
    made = commands.benchmark_parser(__doc__)
    commands.add_precision(made)
    made.add_argument(
        "--sweep",
        choices=["none", *SWEEPS, "all"],
        default="none",
        help="what else to vary: batch size, number of classes, number of "
        "images",
    )
    return made


def main(options):
    """Measures the paper's case, and those of the sweeps."""
    with commands.loading(options.backend):
        from gar_keras.engine import hardware
        from gar_keras.engine.batches import BATCH_SIZE
        from reproduction.benchmarks import benchmark_command, layer_overhead
        from reproduction.benchmarks.benchmark_records import OverheadSettings

    auto = options.precision == "auto"
    precision = hardware.fast_precision() if auto else options.precision
    usual = {
        "batch_size": BATCH_SIZE,
        "num_classes": 10,
        "num_images": 60_000,
        "precision": precision,
        "steps": STEPS[hardware.device_kind()],
        "pairs": options.pairs,
    }
    names = SWEEPS if options.sweep == "all" else [options.sweep]
    changes = [{}, *(c for name in names for c in SWEEPS.get(name, []))]
    cases = [OverheadSettings(**usual | change) for change in changes]
    benchmark_command.run(
        options.results, "overhead", cases, layer_overhead.measure
    )
    return 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
