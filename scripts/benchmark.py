"""Speed of both stages and of the evaluation, beside plain Keras.

Each case is timed in turns with what a Keras user would write for the same
network in float32, stretch by stretch. Measure on a machine that does nothing
else. By default stage 2 of the 6-layer CNN; --all for every case. Cases that
are in the record are not measured again.
"""

import sys
from dataclasses import dataclass
from typing import Literal, get_args

from reproduction import cli
from reproduction.benchmarks import benchmark_command, speed
from reproduction.benchmarks.benchmark_records import SpeedSettings
from reproduction.settings import Precision

PRECISIONS = get_args(Precision)


@dataclass(frozen=True)
class Options(benchmark_command.Options):
    """Options of this script."""

    tasks: tuple[Literal[tuple(speed.WAYS)], ...] | None = None
    """Stage 2, stage 1, the error of the test images."""
    networks: tuple[Literal[tuple(speed.NETWORKS)], ...] | None = None
    """Networks."""
    precisions: tuple[Literal[PRECISIONS], ...] | None = None
    """Precisions between the layers. By default the one that the hardware is
    made for; with --all float32 too."""
    all: bool = False
    """Every task, network and precision that is not named otherwise."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_values("--tasks", self.tasks, speed.WAYS)
        cli.check_values("--networks", self.networks, speed.NETWORKS)
        cli.check_values("--precisions", self.precisions, PRECISIONS)


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


def main(options):
    """Measures the cases of the options."""
    cli.choose_backend(options.backend)
    # Not above: for --help, `reproduction` loads Keras in a quicker way.
    from gar_keras.engine import hardware

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
        for task in options.tasks or [*speed.WAYS][:end]
        for network in options.networks or [*speed.NETWORKS][:end]
        for precision in options.precisions or [*precisions][:end]
    ]
    return benchmark_command.run(options, "benchmark", cases, speed.measure)


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
