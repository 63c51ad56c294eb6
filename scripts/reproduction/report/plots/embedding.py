"""Figure 2: t-SNE of B over stage 2, and the test accuracy."""

import numpy as np
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from reproduction.report.plots import style

# Panels in a row.
_COLUMNS = 3


@style.styled
def figure2(run):
    """t-SNE of `B` over stage 2, and the test accuracy (paper, Figure 2).

    Where the rows of `B` have one entry each that is not 0, the aim of GAR, a
    class lies on a line, from its smallest logit to its largest. Examples with
    `B_i = 0` are left out; their number stands below the frame. Those that are
    given a wrong class have a ring.

    Args:
        run: A `Run`, of at most 10 classes. Of the second half of stage 2,
            where frames look the same, the last one is drawn.

    Returns:
        A Matplotlib `Figure`.
    """
    labels, snapshots, curve = run.labels, run.snapshots, run.curve
    last = max(snapshots)
    epochs = sorted(e for e in snapshots if e < last / 2 or e == last)
    accuracy = 100 * (1 - np.array(curve["test_error"]))
    at = [curve["epoch"].index(epoch) for epoch in epochs]
    frames = align([snapshots[epoch] for epoch in epochs])
    rows = len(epochs) // _COLUMNS + 1
    figure = Figure((12.5, 4.1 * rows + 0.9))
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    what = f"t-SNE of $B$ for {len(labels):,} test images"
    figure.suptitle(f"{what}; {run.title}", fontsize=12)
    grid = figure.add_gridspec(rows, _COLUMNS)
    for k, epoch in enumerate(epochs):
        ax = figure.add_subplot(grid[divmod(k, _COLUMNS)])
        _draw_frame(ax, frames[k], snapshots[epoch], labels)
        text = f"epoch {epoch}, accuracy {accuracy[at[k]]:.1f} %"
        ax.set_title(text, fontsize=12)
    # The curve has the rest of the last row to itself.
    ax = figure.add_subplot(grid[-1, len(epochs) % _COLUMNS :])
    ax.plot(curve["epoch"], accuracy, color="0.25", lw=1.5)
    marks = {"color": style.LINES[1], "ms": 7, "clip_on": False, "zorder": 3}
    ax.plot(epochs, accuracy[at], "o", label="shown as a frame", **marks)
    ax.set_title("accuracy on all test images, %", fontsize=12)
    ax.set_xlabel("epoch of GAR", fontsize=11)
    ax.legend(fontsize=10)
    style.class_legend(figure, labels)
    return figure


def align(matrices):
    """t-SNE of several `B` of the same examples, each from the one before.

    So clusters keep their positions as far as they can.

    Returns:
        A list of positions, float64 `(m, 2)`. They are NaN for examples with
        `B_i = 0`, which are not tied to any other.
    """
    positions = PCA(2).fit_transform(matrices[0]).astype("float64")
    frames = []
    for B in matrices:
        tied = B.any(axis=1)
        positions[tied] = _tsne(B[tied], positions[tied])
        frames.append(np.where(tied[:, None], positions, np.nan))
    return frames


def _tsne(B, start):
    """Positions `(m, 2)` of the rows, from others to start from."""
    rng = np.random.default_rng(style.SEED)
    start = start / start.std()
    # Rows that start from one point would stay together for ever.
    start += rng.normal(scale=0.01, size=start.shape)
    tsne = TSNE(
        perplexity=min(30, (len(B) - 1) / 3),
        # As small as scikit-learn makes its own start.
        init=(1e-4 * start).astype("float32"),
        random_state=style.SEED,
        angle=0.8,
    )
    # Its threads meet many times in each of 1,000 short steps, and spin while
    # they wait: beside any other load, more of them take longer.
    with threadpool_limits(1):
        return tsne.fit_transform(B)


def _draw_frame(ax, positions, B, labels):
    """Draws the examples that have a position, each class with its number."""
    shown = np.isfinite(positions).all(axis=1)
    if not shown.all():
        text = f"without {np.sum(~shown):,} of {len(B):,}, for which $B = 0$"
        ax.set_xlabel(text, fontsize=10)
    positions, B, labels = positions[shown], B[shown], labels[shown]
    colors = np.array(style.PALETTE)[labels]
    ax.scatter(*positions.T, s=5, c=colors, linewidths=0, alpha=0.85)
    wrong = B.argmax(axis=1) != labels
    ax.scatter(*positions[wrong].T, s=14, lw=0.5, **style.RING)
    for label in np.unique(labels):
        of_class = positions[labels == label]
        # The example in the middle: a mean can fall outside of the cluster.
        middle = np.median(of_class, axis=0)
        nearest = np.argmin(np.linalg.norm(of_class - middle, axis=1))
        style.write_class(ax, of_class[nearest], label, 13)
    style.hide_axes(ax, positions, 0.03)
