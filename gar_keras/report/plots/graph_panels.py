"""Figure 1: the graphs G*, G_M and G_N before and after stage 2."""

import numpy as np

from gar_keras.report.plots import graph_statistics, style
from gar_keras.utils.optional import optional

# Images in Figure 1, as in the paper.
GRAPH_IMAGES = 250

# Edges lighter than this cannot be seen. An example's edges in G* weigh 1 in
# all, its self-loop in G_M weighs 1.
_VISIBLE = 0.02

# Pull between any two examples, next to an edge of weight 1. It keeps parts
# that no edge holds together from drifting out of the picture.
_GRAVITY = 0.01


def figure1(before, after, labels, title="", drawn=None):
    """The graphs G*, G_M and G_N before and after stage 2 (paper, Figure 1).

    - G*: the examples on a ring, ordered by true class, around the output
      nodes. An edge is as opaque as its share of the example's weight.
    - G_M: the examples where a force-directed layout puts them that starts
      from the output nodes in a ring. An edge is as opaque as the cosine
      between two rows of `B`, which is the entry of `M = BBᵀ` for rows of
      length 1: that of `M` itself grows with the strength of both. Edges
      within a class have its colour, edges between classes are black, and
      examples that are given a wrong class have a ring.
    - G_N: edges are as wide as `N_ij`, nodes as large as `N_ii`, both next to
      the mean of the diagonal. Self-loops are left out, as in the paper.

    Below each panel stand its numbers, from `graph_statistics`, of all
    examples. Components depend on how many examples there are: those of the
    examples drawn stand beside them.

    Args:
        before: `B` after pretraining, `(m, n)`, not negative.
        after: `B` after stage 2, likewise, of the same examples.
        labels: Their true class indices `(m,)`, below 10.
        title: Which run this is; see `Run.title`.
        drawn: How many examples to draw, the first ones; `None` for all. Few
            hundred can be drawn.

    Returns:
        A Matplotlib `Figure`.

    Raises:
        ValueError: if an argument is not as described.
        ImportError: if NetworkX or SciPy is not installed.

    Example:

    >>> run = load_run("runs/mnist-100/.../seed0.json")
    ... # doctest: +SKIP
    >>> figure1(
    ...     run.snapshots[0],
    ...     run.snapshots[run.last_epoch],
    ...     run.labels,
    ...     run.title,
    ...     drawn=250,
    ... )  # doctest: +SKIP
    """
    if np.shape(before) != np.shape(after):
        raise ValueError(
            "before and after must be of the same examples. Received: shapes "
            f"{np.shape(before)} and {np.shape(after)}"
        )
    labels = style.drawable(labels, len(before), np.shape(before)[1])
    figure = style.wide_figure(12.5, 10)
    m = len(labels)
    some = m if drawn is None else min(drawn, m)
    what = f"{m:,} test images"
    if some < m:
        what = f"{some:,} of {what} drawn, numbers of all of them"
    style.title(figure, what, title)
    headings = (
        r"$\mathcal{G}^*$: examples and output nodes, $B$",
        r"$\mathcal{G}_\mathcal{M}$: examples, cosines of the rows of $B$",
        r"$\mathcal{G}_\mathcal{N}$: output nodes, $N = B^\mathsf{T}B$",
    )
    rows = (("after pretraining", before), ("after GAR", after))
    axes = figure.subplots(2, 3)
    for ax, heading in zip(axes[0], headings, strict=True):
        ax.set_title(heading, fontsize=14, pad=10)
    for row, (name, B) in zip(axes, rows, strict=True):
        measured = graph_statistics.graph_numbers(B, labels)
        shown = graph_statistics.graph_numbers(B[:some], labels[:some])
        drawers = (_draw_bipartite, _draw_examples, _draw_outputs)
        texts = _captions(measured, shown)
        # G_N has all examples in it, however many are drawn.
        counts = (some, some, m)
        for ax, draw, count, text in zip(
            row, drawers, counts, texts, strict=True
        ):
            draw(ax, B[:count], labels[:count])
            ax.set_xlabel(text, fontsize=10.5, linespacing=1.4)
        row[0].set_ylabel(name, fontsize=13, labelpad=10)
    style.legend(
        figure,
        labels,
        "edge between classes, in the middle",
        style.WRONG,
    )
    return figure


def graph_pair(before, after, labels, title="", drawn=None):
    """G_M of Figure 1 alone, before and after stage 2, in plain words.

    Args:
        before: As in `figure1`.
        after: As in `figure1`.
        labels: As in `figure1`.
        title: As in `figure1`.
        drawn: As in `figure1`.

    Returns:
        A Matplotlib `Figure`, for a page as wide as a README is shown.

    Raises:
        ValueError: as `figure1`.
        ImportError: as `figure1`.
    """
    labels = style.drawable(labels, len(before), np.shape(before)[1])
    figure = style.new_figure(8.4, 4.9)
    figure.suptitle(title, fontsize=10)
    names = ("after pretraining on the labels", "after GAR, without labels")
    panels = figure.subplots(1, 2)
    for ax, name, B in zip(panels, names, (before, after), strict=True):
        measured = graph_statistics.graph_numbers(B, labels)
        share = style.percent(measured.within_class_share)
        ax.set_title(name, fontsize=12)
        _draw_examples(ax, B[:drawn], labels[:drawn])
        ax.set_xlabel(f"{share} of the edge weight within classes", fontsize=11)
    style.legend(figure, labels, "edge between classes", style.WRONG)
    return figure


def _captions(g, shown):
    """The lines of numbers under the panels of G*, G_M and G_N.

    Args:
        g: The `GraphNumbers` of all examples.
        shown: Those of the examples drawn.
    """
    if g.isolated == g.examples:
        none = "no edges: $B = 0$ for all examples"
        return none, none, none
    alone = f"\nexamples without edges: {g.isolated}" if g.isolated else ""
    parts = "component" if g.components == 1 else "components"
    parts = (
        f"{g.components} {parts} at cosine ≥ {g.threshold:g}, the largest "
        f"{style.percent(g.largest_component)}"
    )
    if shown.examples < g.examples:
        parts += (
            f"\n(of the {shown.examples:,} drawn: {shown.components}, the "
            f"largest {style.percent(shown.largest_component)})"
        )
    return (
        f"strongest edge: {style.percent(g.strongest_share)} of an example's "
        f"weight\ndegrees off $m/n$ by {style.percent(g.degree_deviation)} "
        f"(true classes: {style.percent(g.class_deviation)}){alone}",
        f"{style.percent(g.within_class_share)} of the weight of $M$ within "
        f"classes\n{parts}",
        rf"affinity $\alpha$ = {g.affinity:.4f}, "
        rf"balance $\beta$ = {g.balance:.3f}"
        "\n"
        f"$N$ off a scaled identity by {style.percent(g.identity_distance)}",
    )


def _draw_bipartite(ax, B, labels):
    nx = _networkx()
    S = graph_statistics.edge_shares(B)
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
        lambda i, j: style.PALETTE[labels[i]],
        width=0.7,
        opacity=0.8,
    )
    _draw_nodes(ax, examples, labels, 9)
    _draw_named_nodes(ax, outputs, 210)
    style.bare(ax, examples, 0.02)


def _draw_examples(ax, B, labels):
    U = graph_statistics.unit_rows(B)
    W = np.triu(U @ U.T, 1)
    positions = _layout(W, B)
    # Those between classes below, where they hide no others.
    between = labels[:, None] != labels
    for edges in (between, ~between):
        _draw_edges(
            ax,
            _networkx().from_numpy_array(
                np.where(edges & (W > _VISIBLE), W, 0)
            ),
            positions,
            lambda i, j: (
                style.PALETTE[labels[i]] if labels[i] == labels[j] else "black"
            ),
            width=0.35,
            opacity=0.35,
        )
    wrong = B.any(axis=1) & (B.argmax(axis=1) != labels)
    ax.scatter(
        *positions[wrong].T, s=52, facecolors="none", edgecolors="black",
        linewidths=1.1, zorder=3,
    )  # fmt: skip
    _draw_nodes(ax, positions, labels, 16)
    style.bare(ax, positions, 0.04)


def _draw_outputs(ax, B, labels):
    N = graph_statistics.output_edges(B)
    n = len(N)
    scale = np.trace(N) / n or 1.0
    sizes = 500 * N.diagonal() / scale
    graph = optional(
        "networkx", "Figure 1", extra="experiments"
    ).from_numpy_array(np.triu(N / scale, 1))
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
    style.bare(ax, positions, 0.14)


def _layout(W, B):
    """Positions of the examples, pulled together by the edges `W` of G_M."""
    S = graph_statistics.edge_shares(B)
    m, n = S.shape
    rng = np.random.default_rng(style.SEED)
    # Starting between their output nodes, examples need not pass through one
    # another; those of the same place must not start from the same place.
    start = S @ _ring(n) + rng.normal(scale=0.05, size=(m, 2))
    positions = optional(
        "networkx", "Figure 1", extra="experiments"
    ).spring_layout(
        _networkx().from_numpy_array(np.triu(W + _GRAVITY, 1)),
        pos=dict(enumerate(start)),
        k=0.9,
        iterations=100,
        method="force",
        seed=style.SEED,
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
        c=[style.PALETTE[label] for label in labels],
        edgecolors="white",
        linewidths=0.3,
        zorder=3,
    )


def _draw_named_nodes(ax, positions, sizes):
    """Draws output nodes with their number."""
    ax.scatter(
        *positions.T,
        s=sizes,
        c=style.PALETTE[: len(positions)],
        edgecolors="black",
        linewidths=0.8,
        zorder=4,
        clip_on=False,
    )
    for j, (x, y) in enumerate(positions):
        style.name(ax, x, y, j, 10)


def _networkx():
    return optional("networkx", "Figure 1", extra="experiments")
