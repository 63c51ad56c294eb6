"""Figures 1 and 2: which run, and what is drawn."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_records import write_record
from matplotlib.collections import LineCollection
from PIL import Image

from reproduction import records
from reproduction.records import RecordError
from reproduction.report import plots
from reproduction.report.plots import embedding, graph_statistics
from reproduction.report.plots.results import Run
from reproduction.settings import TABLE_1

SCRIPTS = Path(__file__).parents[3] / "scripts"
M, N = 40, 4
LABELS = np.arange(M) % N


def logits(noise):
    """One-hot logits with noise, unrectified."""
    rng = np.random.default_rng(0)
    Z = 4 * np.eye(N)[LABELS] - 1 + noise * rng.normal(size=(M, N))
    return Z.astype("float32")


def write_run(folder, seed=0, epochs=2, with_logits=True, **changes):
    """Writes a record with its logits and returns the path."""
    e = replace(TABLE_1[100], epochs=epochs, **changes)
    also = {"snapshot_epochs": [0, epochs]}
    path = write_record(folder, e, seed, also=also)
    found = {0: logits(1), epochs: logits(0.1)}
    predicted = {epoch: Z.argmax(axis=1) for epoch, Z in found.items()}
    # All images have a class, and some logits.
    few = np.arange(M)[::-1]
    kept = {epoch: Z[few] for epoch, Z in found.items()} if with_logits else {}
    arrays = records.Arrays(np.arange(M), LABELS, predicted, few, kept)
    owner = e.fingerprint(), seed
    records.write_arrays(path.with_suffix(".npz"), owner, arrays)
    return path


def edges(ax):
    """How many lines a panel has between its nodes."""
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    return sum(len(c.get_segments()) for c in lines)


def test_a_run_is_rectified_and_in_the_order_of_its_epochs(tmp_path):
    path = write_run(tmp_path, epochs=12)
    run = plots.load_run(path)
    assert list(run.snapshots) == [0, 12]
    np.testing.assert_array_equal(run.snapshots[0], logits(1)[::-1].clip(0))
    np.testing.assert_array_equal(run.labels, LABELS[::-1])
    assert run.curve["epoch"] == list(range(13))
    assert run.title == (
        "MNIST, 100 labels, seed 0, 2,000 epochs of pretraining, 12 of GAR"
    )
    path.with_suffix(".npz").unlink()
    for other in (path, write_run(tmp_path, 1, with_logits=False)):
        with pytest.raises(RecordError, match="no logits beside"):
            plots.load_run(other)


def test_the_longest_run_of_the_lowest_seed_is_drawn(tmp_path):
    own, reference = tmp_path / "runs", tmp_path / "results"
    own.mkdir()
    theirs = write_run(reference, 4, epochs=5)
    write_run(reference, 0, epochs=3)
    write_run(reference, 7, epochs=5)
    # Not with the paper's settings, or of another cell.
    write_run(reference, 0, epochs=9, stage_2_rate=0.1)
    write_run(reference, 0, epochs=9, num_labeled=600)
    assert plots.choose_run(own, reference) == theirs
    mine = write_run(own, 3)
    assert plots.choose_run(own, reference) == mine
    with pytest.raises(RecordError, match=r"table1\.py --labels 100"):
        plots.choose_run(tmp_path / "none")


def test_figure1_draws_edges_and_has_their_numbers():
    B = np.eye(N)[LABELS]
    B[N:] += 0.2
    figure = plots.figure1(B, B, LABELS, "a run")
    weights = N * 1 + (M - N) * N, N * 10 * 9 // 2, N * (N - 1) // 2
    assert tuple(edges(ax) for ax in figure.axes[3:]) == weights
    assert figure.get_suptitle() == "40 test images; a run"
    g = graph_statistics.graph_numbers(B, LABELS)
    below = "\n".join(ax.get_xlabel() for ax in figure.axes)
    assert f"{100 * g['strongest_share']:.1f} %" in below
    assert rf"$\alpha$ = {g['affinity']:.4f}" in below
    assert "180 edges, 100.0 % within a class\n" in below


def test_the_pair_counts_the_edges_that_it_draws():
    B = np.eye(N)[LABELS]
    B[0] = 0
    # Its ten edges lead to the next class.
    B[1] = np.roll(B[1], 1)
    left, right = plots.graph_pair(B, np.zeros((M, N)), LABELS).axes
    pairs = 9 * 8 // 2 + 9 * 8 // 2 + 2 * 10 * 9 // 2
    assert edges(left) == pairs + 10
    share = f"{100 * pairs / (pairs + 10):.1f} %"
    assert left.get_xlabel() == f"{pairs + 10} edges, {share} within a class"
    assert right.get_xlabel() == "0 edges, none within a class"
    # What has no output has no class either, and so no ring.
    *_, rings, nodes = left.collections
    np.testing.assert_array_equal(rings.get_offsets(), nodes.get_offsets()[[1]])


@pytest.mark.slow
def test_figure2_has_frames_and_the_curve():
    B = logits(1).clip(0)
    some = B.copy()
    some[: M // 2] = 0
    snapshots = {3: B, 0: np.roll(B, 1, axis=0), 1: some, 2: B}
    curve = {"epoch": [0, 1, 2, 3], "test_error": [0.5, 0.25, 0.2, 0.125]}
    run = Run("a run", LABELS, snapshots, curve)
    *frames, accuracy = plots.figure2(run).axes
    assert frames[1].get_title() == "epoch 1, accuracy 75.0 %"
    shown = [len(c.get_offsets()) for ax in frames for c in ax.collections]
    # All are given a wrong class in the first frame, and have a ring.
    assert shown[:3] == [M, M, M // 2]
    assert "without 20 of 40" in frames[1].get_xlabel()
    assert frames[2].get_xlabel() == ""
    line, marks = accuracy.lines
    assert line.get_ydata().tolist() == [50, 75, 80, 87.5]
    # The second half has a frame of its end alone.
    assert list(marks.get_xdata()) == [0, 1, 3]


def test_each_frame_starts_from_the_one_before(monkeypatch):
    starts = []

    def step(B, start):
        starts.append(start.copy())
        return start + 1

    monkeypatch.setattr(embedding, "_tsne", step)
    B = np.eye(3)[[0, 0, 1, 1, 2, 2]]
    some = B.copy()
    some[0] = 0
    frames = embedding.align([B, some, B])
    # On the plane: a triangle with sides as in space.
    corners = starts[0][[0, 2, 4]]
    sides = np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1)
    np.testing.assert_allclose(sides, np.sqrt(2))
    np.testing.assert_array_equal(starts[1], frames[0][1:])
    # What had no position goes on from its last one.
    np.testing.assert_array_equal(starts[2][0], frames[0][0])
    np.testing.assert_array_equal(starts[2][1:], frames[1][1:])
    counts = [np.isfinite(frame).all(axis=1).sum() for frame in frames]
    assert counts == [6, 5, 6]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "name", "words"),
    [
        ("figure1.py", "figure1", []),
        ("figure1.py", "graph_pair", ["--pair"]),
        ("figure2.py", "figure2", []),
    ],
)
def test_a_script_draws_a_png_of_a_page_s_width(script, name, words, tmp_path):
    write_run(tmp_path)
    script = runpy.run_path(str(SCRIPTS / script))
    words = ["--results", str(tmp_path), *words]
    script["main"](script["parser"]().parse_args(words))
    with Image.open(tmp_path / f"{name}.png") as picture:
        assert (picture.mode, picture.width) == ("P", 1257)
    if name == "figure1":
        numbers = json.loads((tmp_path / "figure1.json").read_text())
        assert numbers["run"].startswith("MNIST, 100 labels, seed 0")
        g = graph_statistics.graph_numbers(logits(0.1).clip(0), LABELS)
        # Fewer images are kept than drawn: two rows of the same images.
        assert numbers["graphs"][2:] == 2 * [{"epoch": 2, **g}]
