"""GAR and other methods on features, without augmentation.

    python scripts/other_data.py

trains on data sets that come with scikit-learn and writes a record for each
into other_data, in a few minutes where nothing else runs. Those that are there
are skipped.
"""

import sys
from dataclasses import dataclass, field
from typing import Literal

from gar_keras.experiments import folders, other_data
from gar_keras.report import other_data as shown
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    data: tuple[Literal[other_data.DATA], ...] = other_data.DATA
    """Data sets to train on."""
    equal: Literal[other_data.EQUAL] = "steps"
    """What all methods that train a network have as much of."""
    results: cli.Folder = field(default_factory=folders.own)
    """Folder of the records."""


def main(options):
    """Trains on each data set without a record, and prints the table."""
    for data in options.data:
        settings = other_data.Settings(data, equal=options.equal)
        other_data.run(settings, options.results)
    print(shown.on_page((), options.results), end="")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
