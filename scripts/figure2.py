"""Figure 2 of the paper: t-SNE of B over stage 2, and the test accuracy.

    python scripts/figure2.py

draws a finished run and writes runs/figure2.png. It takes about a minute
on two cores and does not load Keras.
"""

from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Annotated

import tyro

from gar_keras import cli
from gar_keras import figures
from gar_keras.experiments import folders

File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    results: Path = field(default_factory=folders.own)
    """Folder of the run records."""
    record: File = None
    """Record of the run to draw. By default the longest run of MNIST with 100
    labels, of the lowest seed; where the folder has none, the reference's."""
    output: File = None
    """PNG to write. By default figure2.png in the results folder."""


def main(options):
    """Draws, writes and says what is written."""
    run = figures.load_run(
        options.record
        or figures.choose_run(options.results, folders.reference())
    )
    figure = figures.figure2(run.snapshots, run.labels, run.curve, run.title)
    output = options.output or options.results / "figure2.png"
    figures.save(figure, output)
    print(f"{run.title}\nWritten: {output}")


if __name__ == "__main__":
    options = cli.parse(Options, __doc__)
    try:
        main(options)
    except (ValueError, OSError, ImportError) as e:
        cli.fail(e)
