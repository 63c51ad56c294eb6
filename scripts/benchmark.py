"""Speed of both stages and of the evaluation, beside plain Keras.

Each case is timed in turns with what a Keras user would write for the same
network in float32, stretch by stretch, and set against the machine's floor:
the least time that its arithmetic and its memory allow. Measure on a machine
that does nothing else. By default stage 2 of the 6-layer CNN; --all for every
case. Cases that are in the record are not measured again.
"""

import sys
from dataclasses import dataclass
from typing import Literal

from gar_keras.benchmarks import command
from gar_keras.utils import cli

TASKS = ("regularize", "pretrain", "evaluate")
NETWORKS = ("cnn6", "cnn9")


@dataclass(frozen=True)
class Options(command.Options):
    """Options of this script."""

    tasks: tuple[Literal["regularize", "pretrain", "evaluate"], ...] = ()
    """Stage 2, stage 1, the error of the test images."""
    networks: tuple[Literal["cnn6", "cnn9"], ...] = ()
    """Networks."""
    precisions: tuple[Literal["float32", "bfloat16"], ...] = ()
    """Precisions between the layers. By default the one that the hardware is
    made for; with --all float32 too."""
    paths: tuple[Literal["fit", "compiled", "error_rate"], ...] = ()
    """Ways to do it: steps in fit, whole epochs in one program (JAX on a GPU)
    or, of an evaluation, ErrorRate. All that there are by default."""
    all: bool = False
    """Every task, network and precision that is not named otherwise."""


def prepare(options):
    """The cases, and the module that measures them."""
    from gar_keras.benchmarks import speed, variants
    from gar_keras.engine.hardware import fast_precision

    every = options.all
    fast = fast_precision()
    # A device without units for bfloat16 only loses by it.
    precisions = tuple(dict.fromkeys(["float32", fast])) if every else (fast,)
    cases = variants.cases(
        options.tasks or (TASKS if every else TASKS[:1]),
        options.networks or (NETWORKS if every else NETWORKS[:1]),
        options.precisions or precisions,
        options.paths,
        pairs=options.pairs,
        steps=options.steps,
    )
    return cases, speed


if __name__ == "__main__":
    options = cli.parse(Options, __doc__)
    sys.exit(command.run(options, "benchmark", prepare))
