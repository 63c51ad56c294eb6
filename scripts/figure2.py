"""Figure 2 of the paper: t-SNE of B over stage 2, and the test accuracy.

    python scripts/figure2.py

draws a finished run and writes runs/figure2.png. It takes about a minute
on two cores and does not load Keras.
"""

from dataclasses import dataclass
from dataclasses import field
import sys

from gar_keras.experiments import folders
from gar_keras.report import plots
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    results: cli.Folder = field(default_factory=folders.own)
    """Folder of the run records."""
    record: cli.File = None
    """Record of the run to draw. By default the longest run of MNIST with 100
    labels, of the lowest seed; where the folder has none, the reference's."""
    output: cli.File = None
    """PNG to write. By default figure2.png in the results folder."""

    def __post_init__(self):
        cli.check_output("--output", self.output, (".png",))


def main(options):
    """Draws, writes and says what is written."""
    run = plots.load_run(
        options.record or plots.choose_run(options.results, folders.reference())
    )
    figure = plots.figure2(run.snapshots, run.labels, run.curve, run.title)
    output = options.output or options.results / "figure2.png"
    plots.save(figure, output)
    print(f"{run.title}\nWritten: {output}")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
