"""Draws InfiMNIST digits beside their originals.

    python scripts/infimnist_sheet.py

writes runs/infimnist.png.
"""

import sys
from dataclasses import dataclass

import numpy as np

from reproduction import cli, paths
from reproduction.datasets.infimnist import NUM_TRAIN, InfiMNIST
from reproduction.report.plots import style

ROWS_PER_CLASS = 2
DEFORMATIONS = 16


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    data_dir: cli.OptionalFolder = None
    """Folder with the original InfiMNIST files, if at hand."""
    out: cli.File = None
    """PNG to write. By default runs/infimnist.png."""

    def __post_init__(self):
        cli.check_data_dir(self.data_dir)
        cli.check_png("--out", self.out)


def sheet_indices(y_train, length):
    """Indices `(rows, 1 + DEFORMATIONS)`: an original, then its copies."""
    originals = [
        np.flatnonzero(y_train == label)[row]
        for label in range(10)
        for row in range(ROWS_PER_CLASS)
    ]
    rounds = np.linspace(1, length // NUM_TRAIN - 1, DEFORMATIONS).astype(int)
    rounds = np.concatenate([[0], rounds])
    return np.array(originals)[:, None] + NUM_TRAIN * rounds


def sheet(source, indices):
    """The contact sheet, a Matplotlib `Figure`."""
    rows, columns = indices.shape
    tiles = source.take(indices.ravel())[..., 0]
    tiles = np.pad(tiles, ((0, 0), (1, 1), (1, 1)), constant_values=80)
    tiles = tiles.reshape(rows, columns, 30, 30).swapaxes(1, 2)
    figure = style.page_figure(rows * 0.6 + 0.5, columns * 0.6)
    axes = figure.subplots()
    mosaic = tiles.reshape(rows * 30, columns * 30)
    axes.imshow(mosaic, cmap="gray_r", interpolation="nearest")
    axes.axvline(29.5, color=style.BAD)
    axes.set_title(
        f"{source.source}\nleft of the line: MNIST training images; "
        "right of it: images derived from them"
    )
    axes.set_axis_off()
    return figure


def main(options):
    """Draws the contact sheet."""
    # Not above: for --help, `reproduction` loads Keras in a quicker way.
    from gar_keras.datasets.mnist import load_mnist

    out = options.out or paths.own() / "infimnist.png"
    source = InfiMNIST(options.data_dir)
    indices = sheet_indices(load_mnist().y_train, len(source))
    style.save(sheet(source, indices), out)
    print(f"{out}: {source.source}")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
