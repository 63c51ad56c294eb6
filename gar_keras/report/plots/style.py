"""Style of the figures: colours, labels, empty canvases and PNG files."""

import io

import numpy as np

from gar_keras.utils import files
from gar_keras.utils.validation import check_labels

# A colour for each of ten classes, to be told apart with any colour vision:
# those of Petroff (2021), of which three are darker here.
PALETTE = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#8d9c9a",
    "#7a24ad",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#454a5c",
    "#92dadd",
)

# Colours of lines and dots, further apart and dark enough for thin lines.
LINES = ("#3f90da", "#bd1f01", "#4a1486", "#d97a00")
# What went wrong, where the other colours do not stand for groups.
BAD = LINES[1]
INK = "#24292f"
# What is there to compare with.
MUTED = "#6e7781"
FAINT = "#c4c8cc"

# Pixels of a page between its margins, where a README is shown, and of a PNG
# for each of them, as screens have more of them than a page.
PAGE_WIDTH = 838
DENSITY = 1.5

# Of the ticks in a decade, the fewest that are enough.
_STEPS = (
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
    np.arange(1, 10, 0.1),
)

# What a ring around an example is.
WRONG = "given a wrong class"

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


def page_figure(height):
    """An empty figure as wide as a page: a point is 1.4 of its pixels.

    Args:
        height: In inches, of which the page is 8.4 wide.
    """
    return new_figure(8.4, height)


def save(figure, path):
    """Writes a figure as PNG of 256 colours for a page, whole or not at all.

    Args:
        figure: A Matplotlib `Figure`.
        path: Path of the PNG. Its folder is made if need be.
    """
    from PIL import Image

    drawn, content = io.BytesIO(), io.BytesIO()
    dpi = DENSITY * PAGE_WIDTH / figure.get_figwidth()
    figure.savefig(drawn, dpi=dpi, format="png")
    with Image.open(drawn) as full:
        few = full.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(content, "PNG", optimize=True)
    files.write_atomically(
        path, lambda file: file.write(content.getvalue()), mode="wb"
    )


def shown_size(text):
    """Size in pixels of the smallest part of a text, on a page.

    Args:
        text: A `matplotlib.text.Text` of a figure.
    """
    width = text.get_figure(root=True).get_figwidth()
    size = text.get_fontsize() / 72 * PAGE_WIDTH / width
    formulas = "".join(text.get_text().split("$")[1::2])
    # Indices and exponents.
    return 0.7 * size if {*"_^"} & {*formulas} else size


def plain_ticks(axis):
    """Ticks at round numbers, written out, for an axis of logarithms.

    Args:
        axis: `ax.xaxis` or `ax.yaxis`, with its limits set.
    """
    low, high = axis.get_view_interval()
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.log10(high))
    for steps in _STEPS:
        ticks = np.outer(decades, steps).ravel()
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) > 3:
            break
    fixed_ticks(axis, ticks)


def fixed_ticks(axis, ticks):
    """Ticks at some numbers, written out, and no others."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def clear_axes(ax):
    """Leaves of a panel's frame what can be read from."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(color=MUTED)
    ax.grid(color="0.92", lw=0.8)
    ax.set_axisbelow(True)


def spread(places, gap):
    """Places that are at least a gap apart, as near as can be to others.

    Args:
        places: Numbers.
        gap: The least distance.

    Returns:
        A list of numbers in the order of `places`.

    Example:

    >>> spread([5.0, 1.0, 1.5], gap=1)
    [5.0, 0.75, 1.75]
    """
    order = np.argsort(places, kind="stable")
    # Blocks of neighbours that touch: the sum of where their first ones would
    # have to be, and how many they are.
    blocks = []
    for place in np.asarray(places, float)[order]:
        blocks.append([place, 1])
        while len(blocks) > 1 and _end(blocks[-2], gap) > _start(blocks[-1]):
            total, size = blocks.pop()
            blocks[-1][0] += total - size * gap * blocks[-1][1]
            blocks[-1][1] += size
    found = [_start(b) + gap * k for b in blocks for k in range(b[1])]
    apart = np.empty(len(order))
    apart[order] = found
    return apart.tolist()


def _start(block):
    return block[0] / block[1]


def _end(block, gap):
    return _start(block) + gap * block[1]


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


def legend_above(figure, handles):
    """A legend in a line above the panels, from the left."""
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=len(handles),
        frameon=False,
        fontsize=9.5,
        handletextpad=0.4,
        columnspacing=1.4,
    )
