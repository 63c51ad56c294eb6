"""Table 3 of the paper: SVHN and NORB; and their stand-ins."""

from dataclasses import dataclass
from functools import partial
import sys
from typing import Literal

from gar_keras import report
from gar_keras.experiments.settings import NORB
from gar_keras.experiments.settings import NORB_JPEG
from gar_keras.experiments.settings import SVHN
from gar_keras.experiments.settings import SVHN_EXTRA
from gar_keras.experiments.settings import SVHN_GREY
from gar_keras.report.published import SVHN_GREY as SVHN_GREY_TABLE
from gar_keras.report.published import TABLE_3
from gar_keras.utils import cli

DATA = {
    "norb": NORB,
    "norb-jpeg": NORB_JPEG,
    "svhn": {1000: SVHN},
    "svhn-extra": {1000: SVHN_EXTRA},
    "svhn-grey": {1000: SVHN_GREY},
}


@dataclass(frozen=True)
class Options(cli.RunOptions):
    """Options of this script."""

    data: Literal["norb", "norb-jpeg", "svhn", "svhn-extra", "svhn-grey"] = (
        "norb"
    )
    """Data set. norb-jpeg is NORB after JPEG, svhn-grey a stand-in for SVHN."""
    labels: cli.Labels = (1000,)
    """Numbers of labelled images: 1000, for NORB also 300."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_labels(self.labels, DATA[self.data])


if __name__ == "__main__":
    options = cli.parse(Options, __doc__)
    experiments = [DATA[options.data][m] for m in options.labels]
    table = SVHN_GREY_TABLE if options.data == "svhn-grey" else TABLE_3
    show = partial(report.show, table)
    sys.exit(cli.run_table(options, experiments, show))
