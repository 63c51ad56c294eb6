"""The figures of the paper's tables, as published (test errors in percent)."""

from dataclasses import dataclass, replace
from itertools import compress

from gar_keras.report.estimates import Estimate

# Runs that a figure of the paper's own method is the mean of.
RUNS = 10


@dataclass(frozen=True)
class Published:
    """A figure of the paper.

    Attributes:
        error: Test error in percent.
        spread: Its standard deviation, or `None` where the paper gives none.
    """

    error: float
    spread: float | None = None

    @property
    def estimate(self):
        """The figure as an `Estimate`, if it is of the paper's own method."""
        return Estimate(self.error, self.spread, RUNS)

    def __str__(self):
        spread = "" if self.spread is None else f" ± {self.spread:.2f}"
        return f"{self.error:.2f}{spread}"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        cell: Our name of its cell, e.g. `"norb-1000"`.
        heading: Its heading.
        stand_in: Cell to show, under its own data's name, where there is
            nothing for `cell`, or `None`.
    """

    cell: str
    heading: str
    stand_in: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Attributes:
        name: Key, e.g. `"table1"`.
        title: What the table shows.
        columns: Its columns.
        rows: Published figures by method, one for each column (`None` where
            the paper has none). The last two rows are the paper's own method.
    """

    name: str
    title: str
    columns: tuple
    rows: dict

    @property
    def cells(self):
        """Names of the cells that it shows, those of stand-ins among them."""
        columns = self.columns
        return {c.cell for c in columns} | {c.stand_in for c in columns}

    def only(self, keep):
        """The table with the columns for which `keep(column)` is true."""
        kept = [keep(column) for column in self.columns]
        rows = {
            method: tuple(compress(figures, kept))
            for method, figures in self.rows.items()
        }
        # Methods without a figure in these columns say nothing here.
        return replace(
            self,
            columns=tuple(compress(self.columns, kept)),
            rows={m: f for m, f in rows.items() if any(f)},
        )


BASELINE = "Pretraining (baseline)"
GAR = "Pretraining + GAR"

TABLE_1 = Table(
    name="table1",
    title="Table 1: test error on MNIST, in percent",
    columns=(
        Column("mnist-100", "m_L = 100"),
        Column("mnist-600", "m_L = 600"),
        Column("mnist-1000", "m_L = 1000"),
        Column("mnist-3000", "m_L = 3000"),
    ),
    rows={
        "M1+M2": (
            Published(3.33, 0.14),
            Published(2.59, 0.05),
            Published(2.40, 0.02),
            Published(2.18, 0.04),
        ),
        "Ladder Network": (
            Published(1.06, 0.37),
            None,
            Published(0.84, 0.08),
            None,
        ),
        "AGDM": (Published(0.96, 0.02), None, None, None),
        "VAT": (
            Published(2.12),
            Published(1.39),
            Published(1.36),
            Published(1.25),
        ),
        "Extended VAT": (Published(1.36), None, Published(1.27), None),
        "Improved GAN": (Published(0.93, 0.07), None, None, None),
        "EmbedCNN": (
            Published(7.75),
            Published(3.82),
            Published(2.73),
            Published(2.07),
        ),
        "HAGR": (Published(11.34, 1.23), None, None, None),
        BASELINE: (
            Published(14.82, 1.03),
            Published(4.16, 0.26),
            Published(3.25, 0.11),
            Published(1.73, 0.08),
        ),
        GAR: (
            Published(1.56, 0.09),
            Published(1.15, 0.07),
            Published(1.10, 0.07),
            Published(0.93, 0.05),
        ),
    },
)

TABLE_2 = Table(
    name="table2",
    title="Table 2: test error on InfiMNIST, in percent",
    columns=(Column("infimnist-100", "m_L = 100"),),
    rows={
        "HAGR": (Published(8.64, 0.70),),
        GAR: (Published(1.00, 0.09),),
    },
)

TABLE_3 = Table(
    name="table3",
    title="Table 3: test error on SVHN and NORB, in percent",
    columns=(
        Column("svhn-1000", "SVHN m_L = 1000, without extra"),
        Column("svhn-extra-1000", "SVHN m_L = 1000, with extra"),
        Column("norb-300", "NORB m_L = 300", "norb-jpeg-300"),
        Column("norb-1000", "NORB m_L = 1000", "norb-jpeg-1000"),
    ),
    rows={
        "M1+TSVM": (Published(55.33, 0.11), None, None, Published(18.79, 0.05)),
        "M1+M2": (Published(36.02, 0.10), None, None, None),
        "SGDM": (
            Published(29.82),
            Published(16.61, 0.24),
            None,
            Published(9.40, 0.04),
        ),
        "VAT": (Published(24.63), None, None, Published(9.88)),
        "Extended VAT": (Published(5.77), None, None, None),
        "Extended VAT+EntMin": (Published(4.28), None, None, None),
        "Improved GAN": (Published(8.11, 1.30), None, None, None),
        "ALI": (None, Published(7.42, 0.65), None, None),
        "Π Model": (Published(5.43, 0.25), None, None, None),
        BASELINE: (
            Published(19.11, 1.09),
            Published(19.11, 1.09),
            Published(17.93, 1.07),
            Published(10.22, 1.00),
        ),
        GAR: (
            Published(8.67, 0.65),
            Published(6.98, 0.82),
            Published(12.19, 1.46),
            Published(7.10, 0.57),
        ),
    },
)

# Not in the paper: a check of the path that SVHN takes, on real digits.
SVHN_GREY = Table(
    name="svhn_grey",
    title="SVHN-grey, a stand-in that is not in the paper: test error, percent",
    columns=(Column("svhn-grey-1000", "m_L = 1000"),),
    rows={},
)

TABLES = {t.name: t for t in (TABLE_1, TABLE_2, TABLE_3, SVHN_GREY)}


def published_error(cell):
    """The paper's `Published` error of GAR in a cell, or `None`.

    Example:

    >>> str(published_error("mnist-100"))
    '1.56 ± 0.09'
    """
    for table in TABLES.values():
        for i, column in enumerate(table.columns):
            if column.cell == cell and GAR in table.rows:
                return table.rows[GAR][i]
    return None


def column_of(cell):
    """The `Column` that a cell is shown in, as a stand-in too, or `None`.

    Example:

    >>> column_of("norb-jpeg-300").cell
    'norb-300'
    """
    columns = [c for table in TABLES.values() for c in table.columns]
    for column in columns:
        if cell in (column.cell, column.stand_in):
            return column
    return None
