"""Some of MNIST in place of all, where only what is done with it counts."""

from dataclasses import replace

from gar_keras import datasets

load_all = datasets.load_mnist


def load_few():
    """100 labels and 1,000 validation images can be drawn from them."""
    data = load_all()
    return replace(
        data,
        x_train=data.x_train[:2000],
        y_train=data.y_train[:2000],
        x_test=data.x_test[:500],
        y_test=data.y_test[:500],
    )
