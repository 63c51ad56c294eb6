"""Speed of both stages and of the evaluation, beside plain Keras.

Each case is timed in turns with what a Keras user would write for the same
network in float32, stretch by stretch. Measure on a machine that does nothing
else. By default stage 2 of the 6-layer CNN; --all for every case. Cases that
are in the record are not measured again.
"""

import sys

from reproduction import commands

# Images to train on or to evaluate, as in the paper.
IMAGES = {
    "regularize": {"cnn6": 60_000, "cnn9": 24_300},
    "pretrain": {"cnn6": 100, "cnn9": 1000},
    "evaluate": {"cnn6": 10_000, "cnn9": 24_300},
}

# What is timed in one go: steps of stage 2, passes of stage 1 over the
# labelled images, evaluations. Short enough for the machine to stay the same.
STRETCH = {
    "cpu": {"regularize": 67, "pretrain": 100, "evaluate": 1},
    "gpu": {"regularize": 536, "pretrain": 1000, "evaluate": 10},
}


def parser():
    made = commands.benchmark_parser(__doc__)
    made.add_argument(
        "--tasks",
        nargs="+",
        choices=[*IMAGES],
        help="stage 2, stage 1, the error of the test images",
    )
    made.add_argument("--networks", nargs="+", choices=["cnn6", "cnn9"])
    made.add_argument(
        "--precisions",
        nargs="+",
        choices=["float32", "bfloat16"],
        help="between the layers; by default the one that the hardware is made "
        "for, with --all float32 too",
    )
    made.add_argument(
        "--all",
        action="store_true",
        help="every task, network and precision that is not named otherwise",
    )
    return made


def main(options):
    """Measures the cases of the options."""
    with commands.loading(options.backend):
        from gar_keras.engine import hardware
        from reproduction.benchmarks import benchmark_command, speed
        from reproduction.benchmarks.benchmark_records import SpeedSettings

    end = None if options.all else 1
    # A device without units for bfloat16 only loses by it.
    precisions = dict.fromkeys([hardware.fast_precision(), "float32"])
    path = "compiled" if hardware.loops_on_device() else "fit"
    cases = [
        SpeedSettings(
            task=task,
            network=network,
            path="error_rate" if task == "evaluate" else path,
            precision=precision,
            images=IMAGES[task][network],
            stretch=STRETCH[hardware.device_kind()][task],
            pairs=options.pairs,
        )
        for task in options.tasks or [*IMAGES][:end]
        for network in options.networks or ["cnn6", "cnn9"][:end]
        for precision in options.precisions or [*precisions][:end]
    ]
    benchmark_command.run(options.results, "benchmark", cases, speed.measure)
    return 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
