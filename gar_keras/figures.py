"""Figures 1 and 2 of the paper, drawn from what a finished run kept.

A run keeps, beside its record, the logits of some test images at some epochs
of stage 2. Figure 1 shows the three graphs of `gar_keras.graphs` before and
after stage 2, Figure 2 the embedding `B` on its way. Keras is not needed.
"""

from dataclasses import dataclass
import io
from pathlib import Path
import zipfile
import zlib

import numpy as np

from gar_keras import graphs
from gar_keras.checks import check_labels
from gar_keras.experiments import records
from gar_keras.experiments.settings import stands_for_paper

# Ten colours chosen to be told apart with any colour vision (Petroff, 2021).
PALETTE = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)

# The cell of the paper's tables that the figures are about.
CELL = "mnist-100"

# Images in Figure 1, as in the paper.
GRAPH_IMAGES = 250

# All that is random here starts from it.
_SEED = 0

# Edges lighter than this cannot be seen. An example's edges in G* weigh 1 in
# all, its self-loop in G_M weighs 1.
_VISIBLE = 0.02

# Pull between any two examples, next to an edge of weight 1. It keeps parts
# that no edge holds together from drifting out of the picture.
_GRAVITY = 0.01


@dataclass(frozen=True)
class Run:
    """What a finished run kept for the figures; `load_run` reads one.

    Attributes:
        record: The run's record, a dict.
        labels: True class indices of the test images kept, int64 `(m,)`.
        snapshots: The rectified logits `B`, float32 `(m, n)`, by epoch of
            stage 2, in ascending order. Epoch 0 is the end of pretraining.
    """

    record: dict
    labels: np.ndarray
    snapshots: dict

    @property
    def title(self):
        """One line that says which run this is."""
        settings = self.record["experiment"]
        return (
            f"{self.record['data']['title']}, "
            f"m_L = {settings['num_labeled']}, "
            f"seed {self.record['seed']}, "
            f"{settings['pretrain_epochs']:,} epochs of pretraining, "
            f"{self.last_epoch} of GAR"
        )

    @property
    def curve(self):
        """The curves of stage 2: lists by name, among them `"epoch"`."""
        return self.record["regularization"]["curve"]

    @property
    def last_epoch(self):
        """The last epoch of stage 2."""
        return max(self.snapshots)


def load_run(path):
    """Reads a record and the logits beside it.

    Args:
        path: Path of the record, `<stem>.json`. The logits are in
            `<stem>.npz`.

    Returns:
        A `Run`.

    Raises:
        RecordError: if one of the files is missing, damaged or not of the
            other.

    Example:

    >>> run = load_run("results/mnist-100_seed0_1a2b3c4d.json")
    ... # doctest: +SKIP
    >>> list(run.snapshots)  # doctest: +SKIP
    [0, 1, 10, 50, 100, 200]
    """
    path = Path(path)
    record = records.read(path)
    logits = path.with_suffix(".npz")
    try:
        # From memory: NumPy leaves a file open that it cannot read.
        with np.load(io.BytesIO(logits.read_bytes())) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except FileNotFoundError:
        raise records.RecordError(
            f"{logits} is missing, which holds the logits that the run kept. "
            f"Delete {path.name} to run it again."
        ) from None
    except (
        OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error
    ) as e:  # fmt: skip
        raise records.RecordError(
            f"{logits} is not readable ({e}). Delete it and {path.name} to "
            "run it again."
        ) from e
    try:
        labels, snapshots = _unpack(arrays, record)
    except ValueError as e:
        raise records.RecordError(
            f"{logits} does not belong to {path.name}: {e}. Delete both to "
            "run it again."
        ) from e
    return Run(record, labels, snapshots)


def choose_run(results):
    """The run of a folder that the figures show by default.

    Of the finished runs on MNIST with m_L = 100 and the paper's settings: the
    one with the most epochs of stage 2, then the one with the lowest seed.

    Args:
        results: Folder of the run records.

    Returns:
        The path of its record.

    Raises:
        RecordError: if there is no such run, or if there is a file among the
            records that is none.
    """
    found = [
        record
        for record in records.read_all(results)
        if record["cell"] == CELL
        and stands_for_paper(record["experiment"], CELL)
    ]
    if not found:
        raise records.RecordError(
            f"no finished run of {CELL} in {results}. This makes one: python "
            "scripts/table1.py --labels 100 --seeds 0"
        )
    chosen = min(
        found,
        key=lambda r: (
            -r["experiment"]["epochs"], r["seed"], r["fingerprint"]
        ),
    )  # fmt: skip
    name = records.file_name(CELL, chosen["seed"], chosen["fingerprint"])
    return Path(results) / name


def figure1(before, after, labels, title=""):
    """The graphs G*, G_M and G_N before and after stage 2 (paper, Figure 1).

    - G*: the examples on a ring, ordered by true class, around the output
      nodes. An edge is as opaque as its share of the example's weight.
    - G_M: the examples where a force-directed layout puts them that starts
      from the output nodes in a ring. Edges within a class have its colour,
      edges between classes are black.
    - G_N: edges are as wide as `N_ij`, nodes as large as `N_ii`, both next to
      the mean of the diagonal. Self-loops are left out, as in the paper.

    Below each panel stand its numbers, from `gar_keras.graphs`.

    Args:
        before: `B` after pretraining, `(m, n)`, not negative. Few hundred
            examples can be drawn.
        after: `B` after stage 2, likewise, of the same examples.
        labels: Their true class indices `(m,)`, below 10.
        title: Which run this is; see `Run.title`.

    Returns:
        A Matplotlib `Figure`.

    Raises:
        ValueError: if an argument is not as described.
        ImportError: if NetworkX or SciPy is not installed.

    Example:

    >>> run = load_run("results/mnist-100_seed0_1a2b3c4d.json")
    ... # doctest: +SKIP
    >>> figure1(
    ...     run.snapshots[0][:250],
    ...     run.snapshots[run.last_epoch][:250],
    ...     run.labels[:250],
    ...     run.title,
    ... )  # doctest: +SKIP
    """
    if np.shape(before) != np.shape(after):
        raise ValueError(
            "before and after must be of the same examples. Received: shapes "
            f"{np.shape(before)} and {np.shape(after)}"
        )
    labels = _drawable(labels, len(before), np.shape(before)[1])
    figure = _figure(12.5, 10)
    _title(figure, f"{len(labels):,} test images", title)
    headings = (
        r"$\mathcal{G}^*$: examples and output nodes, $B$",
        r"$\mathcal{G}_\mathcal{M}$: examples, $M = BB^\mathsf{T}$",
        r"$\mathcal{G}_\mathcal{N}$: output nodes, $N = B^\mathsf{T}B$",
    )
    rows = (("after pretraining", before), ("after GAR", after))
    axes = figure.subplots(2, 3)
    for ax, heading in zip(axes[0], headings, strict=True):
        ax.set_title(heading, fontsize=13, pad=10)
    for row, (name, B) in zip(axes, rows, strict=True):
        measured = graphs.graph_numbers(B, labels)
        drawers = (_draw_bipartite, _draw_examples, _draw_outputs)
        texts = _captions(measured)
        for ax, draw, text in zip(row, drawers, texts, strict=True):
            draw(ax, B, labels)
            ax.set_xlabel(text, fontsize=10.5, linespacing=1.4)
        row[0].set_ylabel(name, fontsize=13, labelpad=10)
    _legend(figure, labels, "edge between classes")
    return figure


def figure2(snapshots, labels, curve, title=""):
    """t-SNE of `B` over stage 2, and the test accuracy (paper, Figure 2).

    The first frame starts from the two principal components, each further one
    from the frame before it, so that clusters keep their places as far as
    they can. Where the rows of `B` have one entry each that is not 0, the aim
    of GAR, a class lies on a line, from its smallest logit to its largest.
    Examples with `B_i = 0` are left out; their number stands below the frame.

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

    >>> run = load_run("results/mnist-100_seed0_1a2b3c4d.json")
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
    labels = _drawable(labels, first[0], first[-1])
    frames = align([snapshots[epoch] for epoch in epochs])
    columns = 3
    rows = len(epochs) // columns + 1
    figure = _figure(12.5, 4.1 * rows + 0.9)
    _title(figure, f"t-SNE of $B$ for {first[0]:,} test images", title)
    grid = figure.add_gridspec(rows, columns)
    for k, epoch in enumerate(epochs):
        ax = figure.add_subplot(grid[divmod(k, columns)])
        _draw_frame(ax, frames[k], snapshots[epoch], labels)
        ax.set_title(
            f"epoch {epoch}, accuracy {_percent(accuracy[epoch])}", fontsize=12
        )
    # The curve has the rest of the last row to itself.
    ax = figure.add_subplot(grid[-1, len(epochs) % columns :])
    _draw_accuracy(ax, accuracy, epochs)
    _legend(figure, labels)
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
    matrices = [graphs.unit_scale(B) for B in matrices]
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


def save(figure, path):
    """Writes a figure as PNG, whole or not at all.

    Args:
        figure: A Matplotlib `Figure`.
        path: Path of the PNG. Its folder is made if need be.
    """
    records.write_atomically(
        path,
        lambda file: figure.savefig(file, dpi=150, format="png"),
        mode="wb",
    )


def _unpack(arrays, record):
    """Labels and rectified logits from the arrays of a run's file."""
    last = record["experiment"]["epochs"]
    for key in ("labels", "epoch_0", f"epoch_{last}"):
        if key not in arrays:
            raise ValueError(f"it has no {key}")
    snapshots = {}
    for key, Z in arrays.items():
        if key.startswith("epoch_"):
            if Z.dtype.kind != "f" or Z.ndim != 2 or not np.isfinite(Z).all():
                raise ValueError(
                    f"{key} is no matrix of finite numbers, but {Z.dtype} "
                    f"{Z.shape}"
                )
            snapshots[int(key.removeprefix("epoch_"))] = np.maximum(Z, 0)
    if len({B.shape for B in snapshots.values()}) > 1:
        raise ValueError("its epochs differ in shape")
    labels = check_labels("labels", arrays["labels"], len(snapshots[0]))
    return labels, dict(sorted(snapshots.items()))


def _drawable(labels, m, n):
    """`labels` as int64 `(m,)`, if there is a colour for each class."""
    labels = check_labels("labels", labels, m)
    if n > len(PALETTE) or labels.max() >= n:
        raise ValueError(
            f"At most {len(PALETTE)} classes can be told apart by colour, and "
            "labels must be below their number. Received: B of "
            f"{n} classes, largest label={labels.max()}"
        )
    return labels


def _captions(g):
    """The lines of numbers under the panels of G*, G_M and G_N."""
    if g.isolated == g.examples:
        none = "no edges: $B = 0$ for all examples"
        return none, none, none
    alone = f"\nexamples without edges: {g.isolated}" if g.isolated else ""
    parts = "component" if g.components == 1 else "components"
    return (
        f"strongest edge: {_percent(g.strongest_share)} of an example's "
        f"weight\ndegrees off $m/n$ by {_percent(g.degree_deviation)} "
        f"(true classes: {_percent(g.class_deviation)}){alone}",
        f"{_percent(g.within_class_share)} of edge weight within classes\n"
        f"{g.components} {parts} over {g.threshold:g}, the largest "
        f"{_percent(g.largest_component)} of all",
        rf"affinity $\alpha$ = {g.affinity:.4f}, "
        rf"balance $\beta$ = {g.balance:.3f}"
        "\n"
        f"$N$ off a scaled identity by {_percent(g.identity_distance)}",
    )


def _percent(share):
    return f"{100 * share:.1f} %"


def _draw_bipartite(ax, B, labels):
    nx = _networkx()
    S = graphs.edge_shares(B)
    m, n = S.shape
    order = np.argsort(labels, kind="stable")
    ring = _ring(m)
    examples = np.empty((m, 2))
    examples[order] = ring
    # Each output node faces the examples of its class.
    ends = np.searchsorted(labels[order], np.arange(n), side="right")
    starts = np.searchsorted(labels[order], np.arange(n))
    outputs = 0.62 * _ring(m, (starts + ends - 1) / 2)
    graph = nx.Graph()
    graph.add_nodes_from(range(m + n))
    graph.add_weighted_edges_from(
        (i, m + j, S[i, j]) for i, j in np.argwhere(S > _VISIBLE)
    )
    _draw_edges(
        ax,
        graph,
        np.concatenate([examples, outputs]),
        lambda i, j: PALETTE[labels[i]],
        width=0.7,
        opacity=0.8,
    )
    _draw_nodes(ax, examples, labels, 9)
    _draw_named_nodes(ax, outputs, 210)
    _bare(ax, examples, 0.02)


def _draw_examples(ax, B, labels):
    U = graphs.unit_rows(B)
    W = np.triu(U @ U.T, 1)
    graph = _networkx().from_numpy_array(np.where(W > _VISIBLE, W, 0))
    positions = _layout(W, B)
    _draw_edges(
        ax,
        graph,
        positions,
        lambda i, j: PALETTE[labels[i]] if labels[i] == labels[j] else "black",
        width=0.35,
        opacity=0.35,
    )
    _draw_nodes(ax, positions, labels, 16)
    _bare(ax, positions, 0.04)


def _draw_outputs(ax, B, labels):
    N = graphs.output_edges(B)
    n = len(N)
    scale = np.trace(N) / n or 1.0
    sizes = 500 * N.diagonal() / scale
    graph = _networkx().from_numpy_array(np.triu(N / scale, 1))
    positions = _ring(n)
    _networkx().draw_networkx_edges(
        graph,
        positions,
        ax=ax,
        node_size=0,
        edge_color="0.35",
        width=[12 * weight for *_, weight in graph.edges(data="weight")],
    )
    _draw_named_nodes(ax, positions, sizes)
    _bare(ax, positions, 0.14)


def _layout(W, B):
    """Positions of the examples, pulled together by the edges `W` of G_M."""
    S = graphs.edge_shares(B)
    m, n = S.shape
    rng = np.random.default_rng(_SEED)
    # Starting between their output nodes, examples need not pass through one
    # another; those of the same place must not start from the same place.
    start = S @ _ring(n) + rng.normal(scale=0.05, size=(m, 2))
    positions = _networkx().spring_layout(
        _networkx().from_numpy_array(np.triu(W + _GRAVITY, 1)),
        pos=dict(enumerate(start)),
        k=0.9,
        iterations=100,
        method="force",
        seed=_SEED,
    )
    return np.array([positions[i] for i in range(m)])


def _ring(size, places=None):
    """Places on the unit circle, clockwise from the top, `(k, 2)`."""
    places = np.arange(size) if places is None else places
    turn = 2 * np.pi * (places + 0.5) / size
    return np.stack([np.sin(turn), np.cos(turn)], axis=1)


def _draw_edges(ax, graph, positions, color, width, opacity):
    """Draws edges as opaque as they are heavy, the heaviest on top."""
    from matplotlib.colors import to_rgba

    edges = sorted(graph.edges(data="weight"), key=lambda edge: edge[2])
    _networkx().draw_networkx_edges(
        graph,
        positions,
        ax=ax,
        edgelist=[(i, j) for i, j, _ in edges],
        edge_color=[
            to_rgba(color(i, j), opacity * min(weight, 1.0))
            for i, j, weight in edges
        ],
        width=width,
        node_size=0,
    )


def _draw_nodes(ax, positions, labels, size):
    ax.scatter(
        *positions.T,
        s=size,
        c=[PALETTE[label] for label in labels],
        edgecolors="white",
        linewidths=0.3,
        zorder=3,
    )


def _draw_named_nodes(ax, positions, sizes):
    """Draws output nodes with their number."""
    ax.scatter(
        *positions.T,
        s=sizes,
        c=PALETTE[: len(positions)],
        edgecolors="black",
        linewidths=0.8,
        zorder=4,
        clip_on=False,
    )
    for j, (x, y) in enumerate(positions):
        _name(ax, x, y, j, 10)


def _name(ax, x, y, text, size):
    """Writes a class number that can be read on any colour."""
    from matplotlib.patheffects import withStroke

    ax.text(
        x,
        y,
        str(text),
        ha="center",
        va="center_baseline",
        fontsize=size,
        fontweight="bold",
        zorder=5,
        path_effects=[withStroke(linewidth=2.2, foreground="white")],
    )


def _draw_frame(ax, positions, B, labels):
    shown = np.isfinite(positions).all(axis=1)
    untied = len(B) - np.count_nonzero(np.any(B, axis=1))
    if untied:
        ax.set_xlabel(
            f"without {untied:,} of {len(B):,}, for which $B = 0$", fontsize=10
        )
    if not shown.any():
        ax.text(0, 0, "nothing to embed", ha="center", fontsize=12)
        _bare(ax, np.zeros((1, 2)), 0)
        return
    positions, labels = positions[shown], labels[shown]
    ax.scatter(
        *positions.T,
        s=5,
        c=[PALETTE[label] for label in labels],
        linewidths=0,
        alpha=0.85,
    )
    for label in np.unique(labels):
        own = positions[labels == label]
        # The example in the middle: a mean can fall outside of the cluster.
        middle = np.median(own, axis=0)
        nearest = np.argmin(np.linalg.norm(own - middle, axis=1))
        _name(ax, *own[nearest], label, 13)
    _bare(ax, positions, 0.03)


def _draw_accuracy(ax, accuracy, epochs):
    xs = sorted(accuracy)
    ys = [100 * accuracy[x] for x in xs]
    ax.plot(xs, ys, color="0.25", lw=1.5)
    ax.plot(
        epochs,
        [100 * accuracy[epoch] for epoch in epochs],
        "o",
        color="#bd1f01",
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
    rng = np.random.default_rng(_SEED)
    start = start / (start.std() or 1.0)
    # Rows that start in one place would stay together for ever.
    start += rng.normal(scale=0.01, size=start.shape)
    manifold, threadpool_limits = _sklearn()
    tsne = manifold.TSNE(
        perplexity=min(30, (len(B) - 1) / 3),
        # As small as scikit-learn makes its own start.
        init=(1e-4 * start).astype("float32"),
        random_state=_SEED,
        angle=0.8,
    )
    # Its threads meet many times in each of 1,000 short steps, and spin while
    # they wait: beside any other load, more of them take longer.
    with threadpool_limits(1):
        return tsne.fit_transform(B)


def _legend(figure, labels, black=None):
    """Puts the colours of the classes below a figure, and what is black."""
    from matplotlib.lines import Line2D

    present = np.unique(labels)
    handles = [
        Line2D([], [], ls="", marker="o", ms=8, color=PALETTE[j], label=str(j))
        for j in present
    ]
    if black is not None:
        handles.append(Line2D([], [], lw=1, color="black", label=black))
    figure.legend(
        handles=handles,
        title="true class",
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
        handletextpad=0.4,
        columnspacing=1.4,
        fontsize=11,
    )


def _title(figure, *parts):
    figure.suptitle("; ".join(part for part in parts if part), fontsize=12)


def _figure(width, height):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    return figure


def _bare(ax, positions, margin):
    """Makes a panel a square without axes that holds all the positions."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    half = (0.5 + margin) * (high - low).max() or 1.0
    (left, bottom), (right, top) = (low + high) / 2 + [[-half], [half]]
    ax.set(
        xlim=(left, right),
        ylim=(bottom, top),
        xticks=[],
        yticks=[],
        aspect="equal",
    )
    ax.spines[:].set_visible(False)


def _networkx():
    try:
        import networkx
    except ImportError as error:
        raise ImportError(
            "Graphs are drawn with NetworkX, which is not installed. Run "
            "pip install gar_keras[figures]."
        ) from error
    return networkx


def _sklearn():
    try:
        from sklearn import manifold

        # scikit-learn depends on it.
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise ImportError(
            "t-SNE is computed with scikit-learn, which is not installed. Run "
            "pip install gar_keras[figures]."
        ) from error
    return manifold, threadpool_limits
