"""Speed of stage 2 beside plain Keras, and what GAR's terms cost.

Two ways to do the same take turns in one process, stretch by stretch, and the
ratio of each pair counts. Stage 2 is timed beside what a Keras user would write
for the 6-layer CNN in float32; and, as in the paper's timing experiment (830 s
and 882 s for 100 epochs there), supervised training with GAR's terms beside
that without, and the latter beside itself: what the way of measuring adds.
Measure on a machine that does nothing else. What a record has of the same case
is replaced.
"""

import sys

from reproduction import commands


def parser():
    made = commands.parser(__doc__)
    commands.add_common(made)
    return made


def main(options):
    with commands.loading(options.backend):
        from reproduction import benchmarks

    for kind, case in benchmarks.cases():
        benchmarks.run(options.results, kind, case)
    return 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
