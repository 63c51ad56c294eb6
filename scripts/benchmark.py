"""Speed of stage 2 beside plain Keras, and what GAR's terms cost.

Two ways to do the same take turns in one process, stretch by stretch, and the
ratio of each pair counts. The task regularize is stage 2, beside what a Keras
user would write for the 6-layer CNN in float32. The task layer is the paper's
timing experiment, supervised training with and without GAR's terms (830 s and
882 s for 100 epochs there), with a row that compares the training without them
with itself: what the way of measuring adds. Measure on a machine that does
nothing else. Cases that are in the record are not measured again.
"""

import sys
from functools import partial

from reproduction import commands

# X_U, MNIST's training images.
IMAGES = 60_000

# Steps in one go: few enough for the machine to stay the same.
STEPS = {
    "cpu": {"regularize": 67, "layer": 40},
    "gpu": {"regularize": 536, "layer": 400},
}


def parser():
    made = commands.parser(__doc__)
    commands.add_common(made)
    add = made.add_argument
    add(
        "--tasks",
        nargs="+",
        choices=["regularize", "layer"],
        default=["regularize"],
        help="what to time (default: regularize)",
    )
    add(
        "--precisions",
        nargs="+",
        choices=["float32", "bfloat16"],
        help="between the layers; by default the one that the hardware is made "
        "for",
    )
    add(
        "--pairs",
        type=partial(commands.count, least=2),
        default=10,
        help="timed pairs of stretches (default: %(default)s)",
    )
    return made


def main(options):
    """Measures the cases of the options."""
    with commands.loading(options.backend):
        from gar_keras.engine import hardware
        from reproduction import benchmarks

    steps = STEPS[hardware.device_kind()]
    precisions = options.precisions or [hardware.fast_precision()]
    path = "compiled" if hardware.loops_on_device() else "fit"
    speed, overhead = [], []
    for precision in precisions:
        common = {"precision": precision, "pairs": options.pairs}
        case = {
            "task": "regularize",
            "network": "cnn6",
            "path": path,
            "images": IMAGES,
            "stretch": steps["regularize"],
        }
        speed.append(case | common)
        case = {
            "batch_size": 128,
            "num_classes": 10,
            "num_images": IMAGES,
            "steps": steps["layer"],
            **common,
        }
        overhead += [case | {"second": "without"}, case]
    if "regularize" in options.tasks:
        benchmarks.run(options.results, "benchmark", speed)
    if "layer" in options.tasks:
        benchmarks.run(options.results, "overhead", overhead)
    return 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
