"""Draws InfiMNIST digits beside their originals and times the generator.

    python scripts/infimnist_sheet.py

writes runs/infimnist.png and prints images per second on one core.
"""

from pathlib import Path
import statistics
import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import tyro

from gar_keras.datasets.infimnist import NUM_TRAIN
from gar_keras.datasets.infimnist import load_infimnist
from gar_keras.datasets.mnist import load_mnist
from gar_keras.experiments import folders

ROWS_PER_CLASS = 2
DEFORMATIONS = 16
BATCH = 128


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


def draw(source, indices, path):
    """Writes the contact sheet as a PNG."""
    rows, columns = indices.shape
    tiles = source.take(indices.ravel())[..., 0]
    tiles = np.pad(tiles, ((0, 0), (1, 1), (1, 1)), constant_values=80)
    tiles = tiles.reshape(rows, columns, 30, 30).swapaxes(1, 2)
    figure, axes = plt.subplots(
        figsize=(columns * 0.6, rows * 0.6 + 0.5), layout="constrained"
    )
    mosaic = tiles.reshape(rows * 30, columns * 30)
    axes.imshow(mosaic, cmap="gray_r", interpolation="nearest")
    axes.axvline(29.5, color="tab:red")
    axes.set_title(
        f"{source.source}\nleft of the line: MNIST training images; "
        "right of it: images derived from them"
    )
    axes.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def images_per_second(source, repeats=15, batches=100):
    """Median and extremes over batches of 128 random deformed images."""
    rng = np.random.default_rng(0)
    size = (batches, BATCH)
    rates = []
    for _ in range(repeats):
        indices = rng.integers(NUM_TRAIN, len(source), size)
        start = time.perf_counter()
        for batch in indices:
            source.take(batch)
        rates.append(indices.size / (time.perf_counter() - start))
    return statistics.median(rates), min(rates), max(rates)


def main(data_dir: Path | None = None, out: Path | None = None):
    """Draws the contact sheet and times `take`.

    Args:
        data_dir: Folder with the original InfiMNIST files, if at hand.
        out: Where the picture goes; by default runs/infimnist.png.
    """
    out = out or folders.own() / "infimnist.png"
    source = load_infimnist(data_dir)
    draw(source, sheet_indices(load_mnist().y_train, len(source)), out)
    print(f"{out}: {source.source}")
    # NumPy's element-wise operations run on the calling thread alone.
    median, low, high = images_per_second(source)
    print(
        f"{median:,.0f} images/s on one core in batches of {BATCH} "
        f"(median; {low:,.0f} to {high:,.0f})"
    )


if __name__ == "__main__":
    tyro.cli(main)
