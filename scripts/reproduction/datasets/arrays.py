"""A data set of four arrays."""

from gar_keras.datasets import Dataset

NAMES = ("x_train", "y_train", "x_test", "y_test")


def dataset(name, title, arrays, num_classes, source):
    """A `Dataset` of the arrays in `NAMES`, in their order."""
    x_train, y_train, x_test, y_test = arrays
    return Dataset(
        name=name,
        title=title,
        x_train=x_train,
        y_train=y_train.astype("int64"),
        x_test=x_test,
        y_test=y_test.astype("int64"),
        num_classes=num_classes,
        source=source,
    )
