"""Figure 1: the graphs G*, G_M and G_N before and after stage 2."""

import networkx as nx
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure

from reproduction.report.plots import graph_statistics, style

# Edges of G* with a smaller share of an example's weight cannot be seen.
_VISIBLE = 0.02

# Pull between any two examples, next to an edge of weight 1. It keeps parts
# that no edge holds together from drifting out of the picture.
_GRAVITY = 0.01

_COLORS = np.array(style.PALETTE)
_EXAMPLES = {"ec": "white", "lw": 0.3, "zorder": 3}


@style.styled
def figure1(before, after, labels, title=""):
    """The graphs G*, G_M and G_N before and after stage 2 (paper, Figure 1).

    - G*: the examples on a ring, ordered by true class, around the output
      nodes. An edge is as opaque as its share of the example's weight.
    - G_M: see `graph_pair`.
    - G_N: edges are as wide as `N_ij`, nodes as large as `N_ii`, both next to
      the mean of the diagonal. Self-loops are left out, as in the paper.

    Below each panel stand its numbers, from `graph_statistics`.

    Args:
        before: `B` after pretraining, `(m, n)`, not negative, of a few hundred
            examples at most.
        after: `B` after stage 2, likewise, of the same examples.
        labels: Their true class indices `(m,)`, below 10.
        title: Which run this is.

    Returns:
        A Matplotlib `Figure`.
    """
    labels = np.asarray(labels)
    figure = Figure((12.5, 9.6))
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    figure.suptitle(f"{len(labels):,} test images; {title}", fontsize=12)
    axes = figure.subplots(2, 3)
    headings = (
        r"$\mathcal{G}^*$: examples and output nodes, $B$",
        r"$\mathcal{G}_\mathcal{M}$: examples, cosines of rows of $B$ ≥ "
        f"{graph_statistics.THRESHOLD}",
        r"$\mathcal{G}_\mathcal{N}$: output nodes, $N = B^\mathsf{T}B$",
    )
    for ax, heading in zip(axes[0], headings, strict=True):
        ax.set_title(heading, fontsize=14, pad=10)
    rows = (("after pretraining", before), ("after GAR", after))
    for row, (name, B) in zip(axes, rows, strict=True):
        _draw_bipartite(row[0], B, labels)
        edges = _draw_examples(row[1], B, labels)
        _draw_outputs(row[2], B)
        g = graph_statistics.graph_numbers(B, labels)
        captions = (
            f"strongest edge: {100 * g['strongest_share']:.1f} % of an "
            f"example's weight\nexamples without edges: {g['isolated']}",
            f"{edges}\n{100 * g['within_class_share']:.1f} % of the weight of "
            "$M$ within classes",
            rf"affinity $\alpha$ = {g['affinity']:.4f}, balance $\beta$ = "
            f"{g['balance']:.3f}\n$N$ from a scaled identity: "
            f"{100 * g['identity_distance']:.1f} %",
        )
        for ax, text in zip(row, captions, strict=True):
            ax.set_xlabel(text, fontsize=10.5, linespacing=1.4)
        row[0].set_ylabel(name, fontsize=13, labelpad=10)
    style.class_legend(figure, labels, "middle column: between classes")
    return figure


@style.styled
def graph_pair(before, after, labels, title=""):
    """G_M of Figure 1 alone, before and after stage 2, in plain words.

    The examples are in a force-directed layout. An edge joins two whose rows of
    `B` have a cosine of at least `graph_statistics.THRESHOLD`: the entry of
    `M = BBᵀ` for rows of length 1. It has the colour of its class, or is black
    between classes. Examples that are given a wrong class have a ring.

    Args and what is returned are as for `figure1`.
    """
    labels = np.asarray(labels)
    figure = Figure((style.WIDTH, 5.1))
    figure.suptitle(
        f"{title}\nan edge joins two test images whose outputs $B$ are alike: "
        f"cosine ≥ {graph_statistics.THRESHOLD}",
        fontsize=10.5,
    )
    names = ("after pretraining on the labels", "after GAR, without labels")
    panels = figure.subplots(1, 2)
    for ax, name, B in zip(panels, names, (before, after), strict=True):
        ax.set_title(name, fontsize=12)
        ax.set_xlabel(_draw_examples(ax, B, labels), fontsize=11)
    style.class_legend(figure, labels, "edge between classes")
    return figure


def _draw_bipartite(ax, B, labels):
    """Draws G* with the examples on a ring around the output nodes."""
    S = graph_statistics.edge_shares(B)
    m, n = S.shape
    outputs = 0.62 * _ring(n)
    examples = np.empty((m, 2))
    # So each class is about beside its output node.
    examples[np.argsort(labels, kind="stable")] = _ring(m)
    i, j = np.nonzero(S > _VISIBLE)
    lines = np.stack([examples[i], outputs[j]], axis=1)
    look = to_rgba_array([*_COLORS[labels[i]]], 0.8 * S[i, j])
    ax.add_collection(LineCollection(lines, colors=look, lw=0.7))
    ax.scatter(*examples.T, s=9, c=_COLORS[labels], **_EXAMPLES)
    _draw_output_nodes(ax, outputs, 210)
    style.hide_axes(ax, examples, 0.02)


def _draw_examples(ax, B, labels):
    """Draws G_M, and says how many edges it has, and within classes."""
    S = graph_statistics.edge_shares(B)
    U = graph_statistics.unit_rows(B)
    W = np.triu(U @ U.T, 1)
    # Starting between their output nodes, examples need not pass through one
    # another; those at one point must not start from the same point.
    rng = np.random.default_rng(style.SEED)
    noise = rng.normal(scale=0.05, size=(len(B), 2))
    found = nx.spring_layout(
        nx.from_numpy_array(np.triu(W + _GRAVITY, 1)),
        pos=dict(enumerate(S @ _ring(S.shape[1]) + noise)),
        k=0.9,
        iterations=100,
        method="force",
        seed=style.SEED,
    )
    positions = np.array([found[i] for i in range(len(B))])
    i, j = np.nonzero(W > graph_statistics.THRESHOLD)
    within = labels[i] == labels[j]
    # Those between classes below, where they hide no others.
    order = np.argsort(within, kind="stable")
    colors = np.where(within, _COLORS[labels[i]], "black")[order]
    lines = np.stack([positions[i], positions[j]], axis=1)[order]
    look = {"colors": [*colors], "lw": 0.35, "alpha": 0.3}
    ax.add_collection(LineCollection(lines, **look))
    wrong = B.any(axis=1) & (B.argmax(axis=1) != labels)
    ax.scatter(*positions[wrong].T, s=52, lw=1.1, **style.RING)
    ax.scatter(*positions.T, s=16, c=_COLORS[labels], **_EXAMPLES)
    style.hide_axes(ax, positions, 0.04)
    share = f"{100 * within.mean():.1f} %" if len(i) else "none"
    return f"{len(i):,} edges, {share} within a class"


def _draw_outputs(ax, B):
    """Draws G_N, its nodes on a ring."""
    N = B.T @ B
    scale = np.trace(N) / len(N) or 1.0
    positions = _ring(len(N))
    i, j = np.nonzero(np.triu(N, 1))
    lines = np.stack([positions[i], positions[j]], axis=1)
    widths = 12 * N[i, j] / scale
    ax.add_collection(LineCollection(lines, color="0.35", lw=widths))
    _draw_output_nodes(ax, positions, 500 * N.diagonal() / scale)
    style.hide_axes(ax, positions, 0.14)


def _ring(size):
    """Positions on the unit circle, clockwise from the top, `(size, 2)`."""
    turn = 2 * np.pi * (np.arange(size) + 0.5) / size
    return np.stack([np.sin(turn), np.cos(turn)], axis=1)


def _draw_output_nodes(ax, positions, sizes):
    """Draws output nodes with their number."""
    look = {"ec": "black", "lw": 0.8, "zorder": 4, "clip_on": False}
    colors = style.PALETTE[: len(positions)]
    ax.scatter(*positions.T, s=sizes, c=colors, **look)
    for j, position in enumerate(positions):
        style.write_class(ax, position, j, 10)
