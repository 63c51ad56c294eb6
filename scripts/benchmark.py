"""Speed of both stages and of the evaluation, beside plain Keras.

Each case is timed in turns with what a Keras user would write for the same
network in float32, stretch by stretch. Measure on a machine that does nothing
else. By default stage 2 of the 6-layer CNN; --all for every case. Cases that
are in the record are not measured again.
"""

import sys
from dataclasses import dataclass
from typing import Literal

from gar_keras.engine.hardware import fast_precision
from gar_keras.experiments.benchmarks import command, speed
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options(command.Options):
    """Options of this script."""

    tasks: tuple[Literal[tuple(speed.WAYS)], ...] = ()
    """Stage 2, stage 1, the error of the test images."""
    networks: tuple[Literal[tuple(speed.NETWORKS)], ...] = ()
    """Networks."""
    precisions: tuple[Literal["float32", "bfloat16"], ...] = ()
    """Precisions between the layers. By default the one that the hardware is
    made for; with --all float32 too."""
    all: bool = False
    """Every task, network and precision that is not named otherwise."""


def main(options):
    """Measures the cases of the options."""
    cli.choose_backend(options.backend)
    end = None if options.all else 1
    # A device without units for bfloat16 only loses by it.
    precisions = dict.fromkeys([fast_precision(), "float32"])
    cases = speed.cases(
        options.tasks or [*speed.WAYS][:end],
        options.networks or [*speed.NETWORKS][:end],
        options.precisions or [*precisions][:end],
        options.pairs,
        options.steps,
    )
    return command.run(options, "benchmark", cases, speed.measure)


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
