"""Speed of stage 2 beside plain Keras, and what GAR's terms cost.

Two ways to do the same take turns in one process, stretch by stretch, and the
ratio of each pair counts. The task regularize is stage 2, beside what a Keras
user would write for the 6-layer CNN in float32. The task layer is the paper's
timing experiment, supervised training with and without GAR's terms (830 s and
882 s for 100 epochs there), with a row that compares the training without them
with itself: what the way of measuring adds. Measure on a machine that does
nothing else. What a record has of the same case is replaced.
"""

import sys

from reproduction import commands


def parser():
    made = commands.parser(__doc__)
    commands.add_common(made)
    made.add_argument(
        "--tasks",
        nargs="+",
        choices=["regularize", "layer"],
        default=["regularize"],
        help="what to time (default: regularize)",
    )
    return made


def main(options):
    """Measures the cases of the tasks."""
    commands.choose_backend(options.backend)
    from reproduction import benchmarks

    for task in options.tasks:
        kind, cases = benchmarks.cases(task)
        benchmarks.run(options.results, kind, cases)
    return 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
