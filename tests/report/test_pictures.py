"""The pictures of the report: colours, sizes, and what they show."""

import itertools
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_records import make_record, write_record
from matplotlib.text import Text
from PIL import Image

from gar_keras import report
from gar_keras.experiments.settings import NORB_JPEG, TABLE_1
from gar_keras.report import comparison, gains, plots, summary
from gar_keras.report.estimates import Estimate
from gar_keras.report.plots import embedding, labels, style
from gar_keras.report.plots.curves import Curve, learning_curves
from gar_keras.report.plots.first_epoch import anatomy
from gar_keras.report.plots.forest import Cell, ours_beside_paper
from gar_keras.report.plots.gains import Point, before_and_after
from gar_keras.report.plots.methods import error_over_time
from gar_keras.report.published import Published

SCRIPTS = Path(__file__).parents[2] / "scripts"
MNIST_100 = replace(TABLE_1[100], epochs=4)

# How linear RGB is seen: Machado, Oliveira and Fernandes (2009), of full
# severity.
VISION = {
    "normal": np.eye(3),
    "protanope": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranope": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
XYZ = np.array(
    [
        [0.412456, 0.357576, 0.180437],
        [0.212673, 0.715152, 0.072175],
        [0.019334, 0.119192, 0.950304],
    ]
)


def linear(color):
    """Linear RGB of a colour written as `#rrggbb`."""
    c = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE Lab of linear RGB, under D65."""
    x = XYZ @ rgb / XYZ.sum(axis=1)
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_lab_of_known_colours():
    np.testing.assert_allclose(lab(linear("#ffffff")), [100, 0, 0], atol=0.01)
    np.testing.assert_allclose(
        lab(linear("#ff0000")), [53.24, 80.09, 67.20], atol=0.01
    )


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(
    "colors, limit", [(style.PALETTE, 19), (style.LINES, 23)]
)
def test_colours_can_be_told_apart(colors, limit, vision):
    seen = [
        lab(np.clip(VISION[vision] @ linear(color), 0, 1)) for color in colors
    ]
    distances = {
        (a, b): np.linalg.norm(seen[i] - seen[j])
        for (i, a), (j, b) in itertools.combinations(enumerate(colors), 2)
    }
    nearest = min(distances, key=distances.get)
    assert distances[nearest] >= limit, nearest


def test_thin_lines_and_text_stand_out_from_the_page():
    for color in (*style.LINES, style.INK, style.MUTED):
        luminance = XYZ[1] @ linear(color)
        assert 1.05 / (luminance + 0.05) >= 3, color


# A small drawing of each kind.

M, N = 40, 4
CLASSES = np.arange(M) % N
B = (4 * np.eye(N)[CLASSES] + np.random.default_rng(0).random((M, N))).clip(0)


def made(experiment, seeds=(0,), **results):
    return [make_record(experiment, seed, **results) for seed in seeds]


def groups_of_table_1():
    found = [
        *made(MNIST_100, range(3)),
        *made(replace(TABLE_1[600], epochs=30)),
        *made(replace(TABLE_1[1000], epochs=1)),
        *made(replace(NORB_JPEG[300], epochs=4), title="small NORB (JPEG)"),
    ]
    return report.group(found)


def groups_of_methods(*names):
    found = []
    for i, name in enumerate(names or ("gar", "pi", "vat", "entropy", "hagr")):
        e = replace(MNIST_100, method=name)
        errors = {"chosen_error": 0.02 * (i + 1), "last_error": 0.03 * (i + 1)}
        found += made(e, range(2 - (name == "vat")), **errors)
    return report.group(found)


def some_points():
    return [
        Point("MNIST", "100 labels", 14.0, 2.0),
        Point("MNIST", "100 labels", 13.0, 9.0, gains.BRIEF),
        Point("MNIST", "100 labels", 13.0, 13.9, gains.LOST),
        Point("other data", "SVHN-grey, 1,000 labels", 20.0, 14.5),
        Point("MNIST, altered", "imbalanced classes", 30.0, 40.0),
        Point("MNIST", "10 labels", 90.3, 89.9, gains.COLLAPSED),
    ]


def some_cells():
    paper = Published(14.8, 1.0), Published(1.56, 0.09)
    few, one = Estimate(2.0, 0.3, 2), Estimate(1.9, None, 1)
    before = Estimate(14.0, 1.0, 2)
    return [
        Cell("MNIST, 100 labels", paper, (before, few), "2 seeds"),
        Cell("MNIST, 600 labels", paper, (before, one), "1 seed"),
        Cell(
            "SVHN, 1000 labels, without extra",
            (None, paper[1]),
            None,
            "no data",
        ),
    ]


def drawn_anatomy():
    record = make_record(replace(MNIST_100, epochs=1, pretrain_epochs=200))
    steps = [0, 20, 500]
    record["first_epoch"] = {
        "step": steps,
        "v": [[9.0, 8.0, 7.0], [9.0, 1e-9, 8.0], [9.0, 0.0, 8.0]],
        "top_logit": [20.0, 5.0, 3.0],
        "gradient_norm": [2.0, 3.0, 1.0],
        "balance": [0.9, 0.6, 0.6],
        "affinity": [0.2, 0.1, 0.01],
        "error_step": steps,
        "test_error": [0.15, 0.2, 0.18],
    }
    return anatomy(record, record)


def drawn_sheet():
    class Source:
        source = "InfiMNIST with generated fields and tangents"

        def take(self, indices):
            return np.zeros((len(indices), 28, 28, 1), "uint8")

    script = runpy.run_path(str(SCRIPTS / "infimnist_sheet.py"))
    indices = script["sheet_indices"](np.arange(40) % 10, 8_000_000)
    return script["sheet"](Source(), indices)


def drawn_figure2():
    curve = {"epoch": [0, 1], "test_error": [0.2, 0.1]}
    return plots.figure2({0: B, 1: B}, CLASSES, curve, "a run")


FIGURES = {
    "table": lambda: learning_curves(groups_of_table_1()),
    "methods": lambda: error_over_time(groups_of_methods()),
    "summary": lambda: ours_beside_paper(some_cells()),
    "gains": lambda: before_and_after(some_points()),
    "first epoch": drawn_anatomy,
    "figure 1": lambda: plots.figure1(B, B, CLASSES, "a run", drawn=20),
    "pair of graphs": lambda: plots.graph_pair(B, B, CLASSES, "a run"),
    "figure 2": drawn_figure2,
    "InfiMNIST": drawn_sheet,
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_too_small_to_read_on_a_page(name, monkeypatch):
    monkeypatch.setattr(
        embedding, "align", lambda Bs: [np.eye(M, 2) for _ in Bs]
    )
    figure = FIGURES[name]()
    figure.draw_without_rendering()
    sizes = {
        text.get_text(): style.shown_size(text)
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text()
    }
    assert len(sizes) > 1
    assert {text: s for text, s in sizes.items() if s < 9} == {}


def test_a_png_has_few_colours_and_one_and_a_half_pixels_for_one(tmp_path):
    path = tmp_path / "a.png"
    plots.save(FIGURES["summary"](), path)
    with Image.open(path) as image:
        assert image.mode == "P"
        assert image.width == 1257


def test_indices_of_formulas_are_smaller():
    figure = style.page_figure(1)
    plain, formula, beside = (
        style.shown_size(figure.text(0, 0, text))
        for text in ("a", "$a_1$", "$a$ of m_L")
    )
    assert formula == pytest.approx(0.7 * plain)
    assert beside == plain


# Where names go.


def test_names_lie_apart_and_hide_no_dots():
    figure = style.page_figure(3)
    ax = figure.subplots()
    places = [(0.5, 0.5), (0.52, 0.5), (0.5, 0.56), (1.0, 1.0)]
    ax.plot(*zip(*places, strict=True), "o")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    names = [(f"name {i}", [place], "black") for i, place in enumerate(places)]
    labels.name_places(figure, ax, names, places, [[(0, 0.5), (1, 0.5)]])
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    for a, b in itertools.combinations(boxes, 2):
        assert not a.overlaps(b)
    for x, y in ax.transData.transform(places):
        assert not any(box.contains(x, y) for box in boxes)
    # At the edge too a name stays in the panel.
    assert boxes[-1].x1 <= ax.bbox.x1 and boxes[-1].y1 <= ax.bbox.y1


@pytest.mark.parametrize("gap", [0.1, 1, 5])
def test_spread_keeps_the_order_and_the_gap(gap):
    places = [3.0, 1.0, 1.0, 1.05, 9.0]
    found = style.spread(places, gap)
    order = np.argsort(places, kind="stable")
    assert np.diff(np.array(found)[order]).min() >= gap - 1e-9
    assert np.mean(found) == pytest.approx(np.mean(places))


# What the pictures show.


def texts(figure):
    return [t.get_text() for t in figure.findobj(Text) if t.get_text()]


def lines_of(ax, color, dashes):
    """The lines of a colour and of a style, without the paper's bars."""
    return [
        line
        for line in ax.lines
        if (line.get_color(), line.get_linestyle()) == (color, dashes)
        and line.get_marker() == "None"
    ]


def test_a_learning_curve_is_the_mean_and_a_single_seed_is_dashed():
    errors = (0.01, 0.03)
    found = [
        make_record(MNIST_100, i, chosen_error=e) for i, e in enumerate(errors)
    ]
    found += made(TABLE_1[600], chosen_error=0.04)
    (ax,) = learning_curves(report.group(found)).axes
    (mean,) = lines_of(ax, style.LINES[0], "-")
    np.testing.assert_allclose(mean.get_ydata(), [10, 2, 2, 2, 3])
    np.testing.assert_array_equal(mean.get_xdata(), range(5))
    (band,) = [c for c in ax.collections if len(c.get_paths()[0]) > 6]
    ys = band.get_paths()[0].vertices[:, 1]
    assert (ys.min(), ys.max()) == (pytest.approx(1), pytest.approx(10))
    (dashed,) = lines_of(ax, style.LINES[1], "--")
    assert len(dashed.get_xdata()) == 201


def test_the_paper_s_figures_are_at_the_last_epoch_of_its_runs():
    (ax,) = learning_curves(report.group(made(MNIST_100))).axes
    (bar,) = [line for line in ax.lines if line.get_marker() == "_"]
    (x,), (y,) = bar.get_data()
    assert x == pytest.approx(200, rel=0.1)
    assert y == 1.56


def test_a_stand_in_says_that_the_paper_s_figure_is_of_other_data():
    copy = replace(NORB_JPEG[1000], epochs=4)
    found = report.group(made(copy, title="small NORB (JPEG copy)"))
    figure = learning_curves(found)
    assert figure.axes[0].get_title("left") == "small NORB (JPEG copy)"
    assert "the paper's, on the original data" in texts(figure)


def test_smoothing_leaves_the_first_epochs_and_the_last():
    errors = np.random.default_rng(0).random((1, 61))
    curve = Curve(None, np.arange(61), errors)
    smooth = curve.smooth()
    np.testing.assert_array_equal(smooth[:16], errors[0, :16])
    assert smooth[-1] == errors[0, -1]
    assert smooth[40] == pytest.approx(errors[0, 38:43].mean())


def test_the_best_methods_and_gar_have_colours():
    groups = groups_of_methods("gar", "supervised", "pi", "vat", "embed-cnn")
    (ax,) = error_over_time(groups).axes
    ends = [line.get_color() for line in ax.lines if line.get_marker() == "o"]
    assert sorted(ends) == sorted([*style.LINES, style.MUTED])
    assert ends[0] == style.LINES[0] and ends[-1] == style.MUTED


def test_the_end_is_hollow_where_the_last_epoch_is_far_worse():
    good = made(MNIST_100, chosen_error=0.04, last_error=0.041)
    vat = replace(MNIST_100, method="vat")
    bad = made(vat, chosen_error=0.04, last_error=0.4)
    (ax,) = error_over_time(report.group(good + bad)).axes
    fills = [
        line.get_markerfacecolor()
        for line in ax.lines
        if line.get_marker() == "o"
    ]
    assert fills == [style.LINES[0], "white"]


def test_methods_are_drawn_by_their_longest_runs_on_the_same_cores():
    short, vat = made(MNIST_100), made(replace(MNIST_100, method="vat"))
    long = made(replace(MNIST_100, epochs=9))
    elsewhere = made(replace(MNIST_100, epochs=50))
    elsewhere[0]["environment"]["device"] = "A GPU"
    one_core = made(replace(MNIST_100, epochs=70))
    one_core[0]["environment"] |= {"device_kind": "cpu", "threads": 1}
    other = made(replace(MNIST_100, epochs=99, precision="bfloat16"))
    everything = [*short, *vat, *long, *elsewhere, *one_core, *other]
    (compared, *_) = report.compare(everything)
    gar = comparison.longest(compared.groups[0], report.group(everything))
    assert gar.records == tuple(long)


def test_only_methods_of_one_machine_are_drawn(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        comparison, "error_over_time", lambda groups: drawn.append(groups)
    )
    monkeypatch.setattr(comparison, "save", lambda figure, path: None)
    found = [
        r
        for method in ("gar", "vat", "pi")
        for r in made(replace(MNIST_100, method=method))
    ]
    found[1]["environment"]["device"] = "A GPU"
    report.plot_rivals(report.compare(found), tmp_path / "rivals.png", found)
    assert [[g.method for g in groups] for groups in drawn] == [["gar", "pi"]]


def test_an_interval_that_leaves_the_panel_ends_in_an_arrow():
    wide = Estimate(2.0, 0.3, 2)
    paper = None, Published(1.56, 0.09)
    cell = Cell("a", paper, (Estimate(14.0, 1.0, 2), wide), "2 seeds")
    assert wide.interval().low < 0
    (ax,) = ours_beside_paper([cell]).axes
    markers = [line.get_marker() for line in ax.lines]
    assert "<" in markers and ">" not in markers


def test_each_cell_of_the_paper_has_a_row(tmp_path):
    write_record(tmp_path, TABLE_1[100], 0)
    summary.draw_summary([], tmp_path)
    assert (tmp_path / "summary.png").exists()
    cells = [
        summary._drawn_cell(made(TABLE_1[100]), None, *cell)
        for cell in summary._cells()
    ]
    assert [cell.runs for cell in cells] == [
        "1 seed, 200 of 200 epochs", *["not run"] * 8
    ]  # fmt: skip
    assert cells[0].difference == "+0.44"
    assert "MNIST, 100 labels" in texts(ours_beside_paper(cells))


def test_runs_of_plain_gar_are_points():
    lost = made(MNIST_100, last_error=0.2)
    lost[0]["regularization"]["curve"]["balance"][-1] = 0.5
    world = {"known_classes": 5}
    subset = replace(MNIST_100, world=replace(MNIST_100.world, **world))
    brief = replace(MNIST_100, epochs=1)
    found = [
        *lost,
        *made(MNIST_100, last_error=0.9),
        *made(subset, chosen_error=0.01, last_error=0.01),
        *made(brief, baseline_error=0.12),
        # The first epoch of a run that is there already.
        *made(brief, baseline_error=0.1),
        *made(replace(MNIST_100, frobenius_of="Z")),
        *made(replace(MNIST_100, method="vat")),
        *made(replace(TABLE_1[600], stage_2_rate=0.1)),
    ]
    assert gains.gains(found) == [
        Point("MNIST", "100 labels", 10.0, 20.0, gains.LOST),
        Point("MNIST", "100 labels", 10.0, 90.0, gains.COLLAPSED),
        Point("MNIST, altered", "digits 0 to 4", 10.0, 1.0),
        Point("MNIST", "100 labels", 12.0, 2.0, gains.BRIEF),
    ]
    assert gains.gains_rows(found) == [
        ["MNIST, 100 labels", "3", "1", "1", "1", "1"],
        ["MNIST, digits 0 to 4", "1", "1", "0", "0", "0"],
    ]
    assert gains.gains_markdown(found[-2:]) == ""
