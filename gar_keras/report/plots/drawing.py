"""Matplotlib figures without a display, and their files."""

from gar_keras.experiments import records


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
    records.write_atomically(
        path,
        lambda file: figure.savefig(file, dpi=150, format="png"),
        mode="wb",
    )
