"""Style of the figures: colours, labels, empty canvases and PNG files."""

import numpy as np

from gar_keras.utils import files
from gar_keras.utils.validation import check_labels

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

# All that is random here starts from it.
SEED = 0


def new_figure(width, height):
    """An empty figure that lays itself out, drawn by Agg.

    Args:
        width, height: Size in inches.

    Returns:
        A Matplotlib `Figure`, which no window belongs to.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure, path):
    """Writes a figure as PNG, whole or not at all.

    Args:
        figure: A Matplotlib `Figure`.
        path: Path of the PNG. Its folder is made if need be.
    """
    files.write_atomically(
        path,
        lambda file: figure.savefig(file, dpi=150, format="png"),
        mode="wb",
    )


def drawable(labels, m, n):
    """`labels` as int64 `(m,)`, if there is a colour for each class."""
    labels = check_labels("labels", labels, m)
    if n > len(PALETTE) or labels.max() >= n:
        raise ValueError(
            f"At most {len(PALETTE)} classes can be told apart by colour, and "
            "labels must be below their number. Received: B of "
            f"{n} classes, largest label={labels.max()}"
        )
    return labels


def percent(share):
    """A share of 1 as text in percent."""
    return f"{100 * share:.1f} %"


def name(ax, x, y, text, size):
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


def legend(figure, labels, black=None, ring=None):
    """Puts the colours of the classes below a figure, and other signs.

    Args:
        figure: A Matplotlib `Figure`.
        labels: The true classes that are shown.
        black: What a black line is, if there is one.
        ring: What a black ring is, if there is one.
    """
    from matplotlib.lines import Line2D

    present = np.unique(labels)
    handles = [
        Line2D([], [], ls="", marker="o", ms=8, color=PALETTE[j], label=str(j))
        for j in present
    ]
    if black is not None:
        handles.append(Line2D([], [], lw=1, color="black", label=black))
    if ring is not None:
        open_dot = {"ls": "", "marker": "o", "ms": 8, "mfc": "none"}
        handles.append(Line2D([], [], color="black", label=ring, **open_dot))
    figure.legend(
        handles=handles,
        title="true class",
        loc="outside lower center",
        ncols=min(len(handles), 12 if figure.get_figwidth() > 10 else 6),
        frameon=False,
        handletextpad=0.4,
        columnspacing=1.4,
        fontsize=11,
    )


def title(figure, *parts):
    """Puts the parts that are not empty above a figure."""
    figure.suptitle("; ".join(part for part in parts if part), fontsize=12)


def wide_figure(width, height):
    """A figure with more room between its panels than others."""
    figure = new_figure(width, height)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    return figure


def bare(ax, positions, margin):
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
