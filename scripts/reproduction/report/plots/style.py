"""Style of the pictures: colours, ticks, signs of classes and PNG files."""

import io

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, NullLocator
from PIL import Image

from gar_keras.utils import files

# A colour for each of ten classes, to be told apart with any colour vision:
# those of Petroff (2021), two of them darker, and a pink for the grey.
PALETTE = (
    "#3f90da", "#ffa90e", "#bd1f01", "#8d9c9a", "#7a24ad",
    "#a96b59", "#e76300", "#b9ac70", "#e377c2", "#92dadd",
)  # fmt: skip

# Colours of lines and dots, further apart and dark enough for thin lines.
LINES = ("#3f90da", "#bd1f01", "#4a1486", "#d97a00")
# As many as there are methods.
MANY_LINES = (
    *LINES, "#24292f", "#2e8b57", "#e377c2", "#a96b59",
    "#00a0b0", "#8a8f00", "#8d9c9a", "#6a5acd",
)  # fmt: skip
# What went wrong, where the other colours do not stand for groups.
BAD = LINES[1]
INK = "#24292f"
# What is there to compare with.
MUTED = "#6e7781"

# Pixels of a page between its margins, where a README is shown, and of a PNG
# for each of them, as screens have more of them than a page.
PAGE_WIDTH = 838
DENSITY = 1.5

# All that is random here starts from it.
SEED = 0

# Of the ticks in a decade, the fewest that are enough.
_STEPS = (
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
    np.arange(1, 10, 0.1),
)


def page_figure(height, width=8.4):
    """An empty Matplotlib `Figure`, in inches; a wider one is shown smaller."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure, path):
    """Writes a figure as PNG of 256 colours for a page, whole or not at all."""
    drawn = io.BytesIO()
    dpi = DENSITY * PAGE_WIDTH / figure.get_figwidth()
    figure.savefig(drawn, dpi=dpi, format="png")
    with Image.open(drawn) as full:
        few = full.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    files.write_atomically(
        path, lambda file: few.save(file, "PNG", optimize=True), mode="wb"
    )


def log_ticks(axis):
    """Ticks at round numbers, written out, for an axis of logarithms."""
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


def legend_below(figure, ncols, title=None):
    """Puts what has a label, once each, below the panels."""
    found = {}
    for ax in figure.axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= zip(labels, handles, strict=True)
    figure.legend(
        handles=[*found.values()],
        loc="outside lower center",
        ncols=ncols,
        frameon=False,
        fontsize=9.5,
        title=title,
        title_fontsize=9.5,
    )


def percent(share):
    """A share of 1 as text in percent."""
    return f"{100 * share:.1f} %"


def write_class(ax, place, label, size):
    """Writes a class number that can be read on any colour."""
    edge = withStroke(linewidth=2.2, foreground="white")
    look = {"ha": "center", "va": "center_baseline", "fontsize": size}
    look |= {"fontweight": "bold", "zorder": 5, "path_effects": [edge]}
    ax.text(*place, str(label), **look)


def draw_rings(ax, positions, **look):
    """Draws rings around examples that are given a wrong class."""
    ax.scatter(*positions.T, fc="none", ec="black", zorder=3, **look)


def class_legend(figure, labels, line=None):
    """Puts the colours of the classes below, and what a black line is."""
    dot = {"ls": "", "marker": "o", "ms": 8}
    looks = {str(j): {"color": PALETTE[j], **dot} for j in np.unique(labels)}
    if line is not None:
        looks[line] = {"color": "black", "lw": 1}
    looks["given a wrong class"] = {"color": "black", "mfc": "none", **dot}
    handles = [Line2D([], [], label=x, **look) for x, look in looks.items()]
    figure.legend(
        handles=handles,
        title="true class",
        loc="outside lower center",
        ncols=12 if figure.get_figwidth() > 10 else 6,
        frameon=False,
        handletextpad=0.4,
        columnspacing=1.4,
        fontsize=11,
    )


def hide_axes(ax, positions, margin):
    """Makes a panel a square without axes that holds all the positions."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    half = (0.5 + margin) * (high - low).max() or 1.0
    (left, bottom), (right, top) = (low + high) / 2 + [[-half], [half]]
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
