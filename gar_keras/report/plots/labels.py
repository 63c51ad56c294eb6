"""Names written into a panel beside what they name."""

import numpy as np

from gar_keras.report.plots import style

# How far a name may lie from its place, in points: the nearer the better.
_DISTANCES = (5, 9, 14, 20, 28, 38, 50, 64, 80, 100)

# Directions to try, the first ones first: to the right, to the left and so on.
_DIRECTIONS = (0, 30, -30, 180, 90, -90, 60, -60, 150, -150, 120, -120)

# From here on a line leads from the name to its place.
_LEADER = 14

# Room around a name, in points.
_MARGIN = 2

# What it costs to hide a dot, and to hide a name or leave the panel, next to
# hiding a point's length of a line.
_DOT = 30
_NAME = 10_000


def name_places(figure, ax, names, dots, lines):
    """Writes names beside places of a panel, clear of one another.

    Args:
        figure: A Matplotlib `Figure`, of which all else is drawn.
        ax: Panel.
        names: List of `(text, places, color)`, the places `(x, y)` of which
            one will do. The first names have the choice.
        dots: Places of dots, which are to stay free.
        lines: List of the places that lines go through, likewise.
    """
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    to_pixels = ax.transData.transform
    dots = to_pixels(dots)
    drawn = np.concatenate([_along(to_pixels(p), scale) for p in lines])
    taken = []
    for text, places, color in names:
        label = _label(ax, text, places[0], color)
        extent = label.get_window_extent()
        size = np.array([extent.width, extent.height]) + 2 * _MARGIN * scale
        tried = [
            (_cost(_box(centre + offset, size), dots, drawn, taken, ax.bbox)
             + distance / _DISTANCES[-1], k, offset, distance)
            for k, centre in enumerate(to_pixels(places))
            for offset, distance in _offsets(size, scale)
        ]  # fmt: skip
        _, k, offset, distance = min(tried, key=lambda one: one[0])
        label.xy, label.xyann = places[k], offset / scale
        label.arrow_patch.set_visible(distance >= _LEADER)
        taken.append(_box(to_pixels(places[k]) + offset, size))


def _label(ax, text, place, color):
    """A name on the very place that it is to lie beside."""
    plain = color in (style.INK, style.MUTED)
    return ax.annotate(
        text,
        place,
        (0, 0),
        textcoords="offset points",
        color=color,
        fontsize=9.5,
        weight="normal" if plain else "bold",
        ha="center",
        va="center",
        zorder=6,
        arrowprops={
            "arrowstyle": "-",
            "color": color,
            "lw": 0.8,
            "shrinkA": 0,
            "shrinkB": 4,
        },
    )


def _along(corners, step):
    """Points along a line, in equal steps: `(k, 2)`."""
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    places = np.concatenate([[0], np.cumsum(lengths)])
    steps = np.arange(0, places[-1], step)
    return np.stack([np.interp(steps, places, v) for v in corners.T], axis=1)


def _offsets(size, scale):
    """Offsets of a name's centre from its place, with their distances."""
    for distance in _DISTANCES:
        for degrees in _DIRECTIONS:
            turn = np.radians(degrees)
            direction = np.array([np.cos(turn), np.sin(turn)])
            # As far as half of the text reaches in this direction.
            reach = size / 2 * np.sign(direction.round(6))
            yield reach + distance * scale * direction, distance


def _box(centre, size):
    return np.concatenate([centre - size / 2, centre + size / 2])


def _cost(box, dots, drawn, taken, panel):
    """How much a name in a box hides, or hangs out of the panel."""
    left, bottom, right, top = box
    outside = (
        left < panel.x0
        or right > panel.x1
        or bottom < panel.y0
        or top > panel.y1
    )
    names = sum(
        left < x1 and right > x0 and bottom < y1 and top > y0
        for x0, y0, x1, y1 in taken
    )
    hidden = _inside(drawn, box) + _DOT * _inside(dots, box)
    return hidden + _NAME * (names + outside)


def _inside(points, box):
    """How many points are in a box."""
    return np.sum((points > box[:2]).all(1) & (points < box[2:]).all(1))
