"""Figure 2: t-SNE of B over stage 2, and the test accuracy."""

import numpy as np

from gar_keras.report.plots import graph_statistics, style
from gar_keras.utils.optional import optional


def figure2(snapshots, labels, curve, title=""):
    """t-SNE of `B` over stage 2, and the test accuracy (paper, Figure 2).

    The first frame starts from the two principal components, each further one
    from the frame before it, so that clusters keep their places as far as
    they can. Where the rows of `B` have one entry each that is not 0, the aim
    of GAR, a class lies on a line, from its smallest logit to its largest.
    Examples with `B_i = 0` are left out; their number stands below the frame.
    Those that are given a wrong class have a ring.

    Args:
        snapshots: Dict of `B`, `(m, n)`, not negative, by epoch of stage 2.
        labels: True class indices `(m,)` of the examples, below 10.
        curve: Dict with the lists `"epoch"` and `"test_error"` (a share from
            0 to 1), one entry for each epoch of stage 2 from epoch 0.
        title: Which run this is; see `Run.title`.

    Returns:
        A Matplotlib `Figure`.

    Raises:
        ValueError: if an argument is not as described.
        ImportError: if scikit-learn is not installed.

    Example:

    >>> run = load_run("runs/mnist-100/.../seed0.json")
    ... # doctest: +SKIP
    >>> figure2(run.snapshots, run.labels, run.curve, run.title)
    ... # doctest: +SKIP
    """
    epochs = sorted(snapshots)
    accuracy = _accuracy(curve)
    missing = [epoch for epoch in epochs if epoch not in accuracy]
    if missing or not epochs:
        raise ValueError(
            "snapshots must hold at least one epoch, and curve the test error "
            f"of each. Received: snapshots of epochs {epochs}, and no test "
            f"error for {missing}"
        )
    first = np.shape(snapshots[epochs[0]])
    labels = style.drawable(labels, first[0], first[-1])
    frames = align([snapshots[epoch] for epoch in epochs])
    columns = 3
    rows = len(epochs) // columns + 1
    figure = style.wide_figure(12.5, 4.1 * rows + 0.9)
    style.title(figure, f"t-SNE of $B$ for {first[0]:,} test images", title)
    grid = figure.add_gridspec(rows, columns)
    for k, epoch in enumerate(epochs):
        ax = figure.add_subplot(grid[divmod(k, columns)])
        _draw_frame(ax, frames[k], snapshots[epoch], labels)
        ax.set_title(
            f"epoch {epoch}, accuracy {style.percent(accuracy[epoch])}",
            fontsize=12,
        )
    # The curve has the rest of the last row to itself.
    ax = figure.add_subplot(grid[-1, len(epochs) % columns :])
    _draw_accuracy(ax, accuracy, epochs)
    style.legend(figure, labels, ring=style.WRONG)
    return figure


def align(matrices):
    """t-SNE of several matrices of the same examples, each from the one before.

    An example with `B_i = 0` is not tied to any other and has no position. So
    it is with all of them where fewer than four are left or all rows left are
    the same: such a frame would show nothing.

    Args:
        matrices: List of `B`, `(m, n)`, not negative.

    Returns:
        A list of positions, float64 `(m, 2)`, NaN for examples without one.

    Raises:
        ValueError: if a matrix is not as described, or not of the same shape
            as the first.
        ImportError: if scikit-learn is not installed.
    """
    matrices = [graph_statistics.unit_scale(B) for B in matrices]
    shapes = {B.shape for B in matrices}
    if len(shapes) != 1:
        raise ValueError(
            "All B must be of the same examples and classes. Received: shapes "
            f"{', '.join(map(str, sorted(shapes))) or 'none'}"
        )
    places = _principal_plane(matrices[0])
    frames = []
    for B in matrices:
        tied = B.any(axis=1)
        frame = np.full((len(B), 2), np.nan)
        if tied.sum() >= 4 and (B[tied] != B[tied][0]).any():
            frame[tied] = places[tied] = _tsne(B[tied], places[tied])
        frames.append(frame)
    return frames


def _draw_frame(ax, positions, B, labels):
    shown = np.isfinite(positions).all(axis=1)
    untied = len(B) - np.count_nonzero(np.any(B, axis=1))
    if untied:
        ax.set_xlabel(
            f"without {untied:,} of {len(B):,}, for which $B = 0$", fontsize=10
        )
    if not shown.any():
        ax.text(0, 0, "nothing to embed", ha="center", fontsize=12)
        style.bare(ax, np.zeros((1, 2)), 0)
        return
    positions, B, labels = positions[shown], B[shown], labels[shown]
    ax.scatter(
        *positions.T,
        s=5,
        c=[style.PALETTE[label] for label in labels],
        linewidths=0,
        alpha=0.85,
    )
    wrong = B.argmax(axis=1) != labels
    ax.scatter(
        *positions[wrong].T,
        s=14,
        facecolors="none",
        edgecolors="black",
        linewidths=0.5,
    )
    for label in np.unique(labels):
        own = positions[labels == label]
        # The example in the middle: a mean can fall outside of the cluster.
        middle = np.median(own, axis=0)
        nearest = np.argmin(np.linalg.norm(own - middle, axis=1))
        style.name(ax, *own[nearest], label, 13)
    style.bare(ax, positions, 0.03)


def _draw_accuracy(ax, accuracy, epochs):
    xs = sorted(accuracy)
    ys = [100 * accuracy[x] for x in xs]
    ax.plot(xs, ys, color="0.25", lw=1.5)
    ax.plot(
        epochs,
        [100 * accuracy[epoch] for epoch in epochs],
        "o",
        color=style.BAD,
        ms=7,
        clip_on=False,
        zorder=3,
        label="shown as a frame",
    )
    ax.set_title("accuracy on all test images", fontsize=12)
    ax.set_xlabel("epoch of GAR", fontsize=11)
    ax.set_ylabel("test accuracy, %", fontsize=11)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize=10)


def _accuracy(curve):
    """Test accuracy by epoch."""
    for name in ("epoch", "test_error"):
        if name not in curve:
            raise ValueError(
                f"curve must hold the list {name!r}. Received: "
                f"{', '.join(map(repr, curve)) or 'nothing'}"
            )
    pairs = zip(curve["epoch"], curve["test_error"], strict=True)
    return {epoch: 1 - error for epoch, error in pairs}


def _principal_plane(B):
    """The rows of `B` on their two principal components, `(m, 2)`."""
    U, lengths, _ = np.linalg.svd(B - B.mean(axis=0), full_matrices=False)
    plane = (U * lengths)[:, :2]
    return np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))


def _tsne(B, start):
    """Positions `(m, 2)` of the rows, from others to start from."""
    rng = np.random.default_rng(style.SEED)
    start = start / (start.std() or 1.0)
    # Rows that start in one place would stay together for ever.
    start += rng.normal(scale=0.01, size=start.shape)
    manifold = optional("sklearn.manifold", "Figure 2", extra="experiments")
    # scikit-learn depends on it.
    threads = optional("threadpoolctl", "Figure 2", extra="experiments")
    tsne = manifold.TSNE(
        perplexity=min(30, (len(B) - 1) / 3),
        # As small as scikit-learn makes its own start.
        init=(1e-4 * start).astype("float32"),
        random_state=style.SEED,
        angle=0.8,
    )
    # Its threads meet many times in each of 1,000 short steps, and spin while
    # they wait: beside any other load, more of them take longer.
    with threads.threadpool_limits(1):
        return tsne.fit_transform(B)
