"""What the pictures share: style, colours, signs of classes, PNG files."""

import io
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, NullLocator
from PIL import Image

from reproduction import files

# The style sheet, as a decorator of what draws a figure.
styled = matplotlib.style.context(Path(__file__).with_name("pictures.mplstyle"))

# A colour for each of ten classes, to be told apart with any colour vision:
# those of Petroff (2021), two of them darker, and a pink for the grey.
PALETTE = (
    "#3f90da", "#ffa90e", "#bd1f01", "#8d9c9a", "#7a24ad",
    "#a96b59", "#e76300", "#b9ac70", "#e377c2", "#92dadd",
)  # fmt: skip

# Colours of lines and dots, further apart and dark enough for thin lines.
LINES = ("#3f90da", "#bd1f01", "#4a1486", "#d97a00")
INK = "#24292f"

# Around an example that is given a wrong class.
RING = {"fc": "none", "ec": "black", "zorder": 3}

# Inches and pixels of a page between its margins, where a README is shown. A
# wider figure is shown smaller.
WIDTH = 8.4
PAGE_WIDTH = 838
# Pixels of a PNG to a pixel of a page: screens have more than pages.
DENSITY = 1.5

# All that is random here starts from it.
SEED = 0


def save(figure, path):
    """Writes a figure as PNG of 256 colours for a page, whole or not at all."""
    drawn = io.BytesIO()
    dpi = DENSITY * PAGE_WIDTH / figure.get_figwidth()
    figure.savefig(drawn, dpi=dpi, format="png")
    with Image.open(drawn) as full:
        few = full.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    with files.writing(path, "wb") as file:
        few.save(file, "PNG", optimize=True)


def log_ticks(axis):
    """Ticks at round numbers, written out, for an axis of logarithms."""
    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def legend_below(figure, ncols):
    """Puts what has a label, once each, below the panels."""
    found = {}
    for ax in figure.axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= zip(labels, handles, strict=True)
    handles = [*found.values()]
    figure.legend(handles=handles, loc="outside lower center", ncols=ncols)


def class_legend(figure, labels, line=None):
    """Puts the colours of the classes below, and what a black line is."""
    dot = {"ls": "", "marker": "o", "ms": 8}
    looks = {str(j): {"color": PALETTE[j], **dot} for j in np.unique(labels)}
    if line is not None:
        looks[line] = {"color": "black", "lw": 1}
    looks["given a wrong class"] = {"color": "black", "mfc": "none", **dot}
    figure.legend(
        handles=[Line2D([], [], label=x, **look) for x, look in looks.items()],
        title="true class",
        loc="outside lower center",
        ncols=12 if figure.get_figwidth() > WIDTH else 6,
        handletextpad=0.4,
        columnspacing=1.4,
        fontsize=11,
    )


def write_class(ax, position, label, size):
    """Writes a class number that can be read on any colour."""
    ax.text(
        *position,
        str(label),
        ha="center",
        va="center_baseline",
        fontsize=size,
        fontweight="bold",
        zorder=5,
        path_effects=[withStroke(linewidth=2.2, foreground="white")],
    )


def hide_axes(ax, positions, margin):
    """Makes a panel a square without axes that holds all the positions."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    half = (0.5 + margin) * (high - low).max() or 1.0
    (left, bottom), (right, top) = (low + high) / 2 + [[-half], [half]]
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
