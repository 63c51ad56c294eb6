"""Figures 1 and 2: which run, what is drawn, and what is refused."""

import importlib.util
import json
import subprocess
import sys
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from made_records import make_record
from matplotlib import image

from gar_keras.experiments import folders, records
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.records import RecordError
from gar_keras.experiments.settings import TABLE_1
from gar_keras.report import plots
from gar_keras.report.plots import embedding, graph_statistics

SCRIPTS = Path(__file__).parents[2] / "scripts"
M = 40
N = 4

LABELS = np.arange(M) % N


def logits(noise, seed=0):
    """One-hot logits with noise, unrectified."""
    rng = np.random.default_rng(seed)
    Z = 4 * np.eye(N)[LABELS] - 1 + noise * rng.normal(size=(M, N))
    return Z.astype("float32")


def write_run(folder, seed=0, arrays=None, **changes):
    """Writes a record with its logits and returns the path."""
    e = replace(TABLE_1[100], **{"epochs": 2, **changes})
    path = path_of(e, seed, folder)
    record = make_record(e, seed)
    curve = record["regularization"]["curve"]
    for name in ("val_error", "test_error"):
        curve[name] = [0.25 / (i + 1) for i in range(e.epochs + 1)]
    record["result"] = records.result_of(curve)
    records.write(path, record)
    if arrays is None:
        arrays = {
            "labels": LABELS,
            "epoch_0": logits(1),
            f"epoch_{e.epochs}": logits(0.1),
        }
    np.savez_compressed(path.with_suffix(".npz"), **arrays)
    return path


def texts(figure):
    """All text of a figure, below and above its panels too."""
    found = [figure.get_suptitle()]
    for ax in figure.axes:
        found += [ax.get_title(), ax.get_xlabel(), ax.get_ylabel()]
        found += [text.get_text() for text in ax.texts]
    return "\n".join(found)


def edges(ax):
    """How many lines a panel has between its nodes."""
    from matplotlib.collections import LineCollection

    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    return sum(len(c.get_segments()) for c in lines)


class TestLoadRun:
    def test_rectified_in_order_of_epochs(self, tmp_path):
        Z = {10: logits(1), 0: logits(1), 12: logits(0.5), 1: logits(3)}
        arrays = {f"epoch_{epoch}": z for epoch, z in Z.items()}
        path = write_run(tmp_path, 0, {"labels": LABELS, **arrays}, epochs=12)
        run = plots.load_run(path)
        assert list(run.snapshots) == [0, 1, 10, 12]
        assert run.last_epoch == 12
        for epoch, B in run.snapshots.items():
            np.testing.assert_array_equal(B, Z[epoch].clip(0))
        np.testing.assert_array_equal(run.labels, LABELS)
        assert run.curve["epoch"] == list(range(13))
        assert run.title == (
            "MNIST, m_L = 100, seed 0, 2,000 epochs of pretraining, 12 of GAR"
        )

    def test_no_logits(self, tmp_path):
        path = write_run(tmp_path)
        path.with_suffix(".npz").unlink()
        with pytest.raises(RecordError, match=r"npz is missing.*run it again"):
            plots.load_run(path)

    @pytest.mark.parametrize("part", [0, 0.3, 0.6, 0.99])
    def test_truncated_logits(self, tmp_path, part):
        path = write_run(tmp_path)
        npz = path.with_suffix(".npz")
        data = npz.read_bytes()
        npz.write_bytes(data[: int(part * len(data))])
        with pytest.raises(RecordError, match="not readable"):
            plots.load_run(path)

    def test_one_array_instead_of_an_archive(self, tmp_path):
        path = write_run(tmp_path)
        with open(path.with_suffix(".npz"), "wb") as file:
            np.save(file, logits(1))
        with pytest.raises(RecordError, match="not readable"):
            plots.load_run(path)

    def test_altered_logits(self, tmp_path):
        path = write_run(tmp_path)
        npz = path.with_suffix(".npz")
        data = bytearray(npz.read_bytes())
        with zipfile.ZipFile(npz) as archive:
            member = archive.getinfo("epoch_0.npy")
        # Past the header, in the middle of the compressed numbers.
        data[member.header_offset + member.compress_size // 2 + 60] ^= 0xFF
        npz.write_bytes(data)
        with pytest.raises(RecordError, match="not readable"):
            plots.load_run(path)

    @pytest.mark.parametrize(
        "changes, message",
        [
            ({"labels": None}, "no labels"),
            ({"epoch_0": None}, "no epoch_0"),
            ({"epoch_2": None}, "no epoch_2"),
            ({"epoch_0": logits(1)[:, 0]}, r"epoch_0 is not a matrix.*\(40,\)"),
            ({"epoch_0": logits(1) * np.nan}, "epoch_0 is not a matrix of fin"),
            ({"epoch_1": logits(1)[:-1]}, "differ in shape"),
            ({"epoch_x": logits(1)}, "belong"),
            ({"labels": LABELS[:-1]}, "each of the 40 examples"),
            ({"labels": LABELS / 2}, "dtype=float64"),
        ],
    )
    def test_logits_of_another_form(self, tmp_path, changes, message):
        whole = {"labels": LABELS, "epoch_0": logits(1), "epoch_2": logits(1)}
        arrays = {k: v for k, v in {**whole, **changes}.items()}
        arrays = {k: v for k, v in arrays.items() if v is not None}
        path = write_run(tmp_path, 0, arrays)
        with pytest.raises(RecordError, match=message):
            plots.load_run(path)

    def test_no_record(self, tmp_path):
        with pytest.raises(RecordError, match="not readable JSON"):
            plots.load_run(tmp_path / "mnist-100_seed0_00000000.json")


class TestChooseRun:
    def test_most_epochs_then_lowest_seed(self, tmp_path):
        write_run(tmp_path, 0, epochs=3)
        write_run(tmp_path, 7, epochs=5)
        expected = write_run(tmp_path, 4, epochs=5)
        assert plots.choose_run(tmp_path) == expected

    def test_of_the_papers_settings_alone(self, tmp_path):
        expected = write_run(tmp_path, 9, precision="bfloat16")
        write_run(tmp_path, 0, epochs=9, frobenius_of="Z")
        write_run(tmp_path, 0, epochs=9, affinity=0.0)
        write_run(tmp_path, 0, epochs=9, num_labeled=600)
        assert plots.choose_run(tmp_path) == expected

    def test_the_first_folder_that_has_one_counts(self, tmp_path):
        own, reference = tmp_path / "runs", tmp_path / "results"
        own.mkdir()
        longer = write_run(reference, 0, epochs=9)
        assert plots.choose_run(own, reference) == longer
        mine = write_run(own, 3, epochs=2)
        assert plots.choose_run(own, reference) == mine
        assert plots.choose_run(own, None) == mine

    def test_none(self, tmp_path):
        write_run(tmp_path, 0, num_labeled=600)
        with pytest.raises(RecordError, match=r"table1\.py --labels 100"):
            plots.choose_run(tmp_path)


class TestFigure1:
    def test_panels_and_numbers(self):
        before, after = logits(1).clip(0), np.eye(N)[LABELS]
        figure = plots.figure1(before, after, LABELS, "a run")
        assert len(figure.axes) == 6
        text = texts(figure)
        g = graph_statistics.graph_numbers(before, LABELS)
        assert g.strongest_share < 1
        for number in (
            "40 test images; a run",
            f"{100 * g.strongest_share:.1f} %",
            f"{100 * g.within_class_share:.1f} %",
            rf"$\alpha$ = {g.affinity:.4f}",
            rf"$\beta$ = {g.balance:.3f}",
            "strongest edge: 100.0 %",
            "100.0 % of the weight of $M$ within classes",
            "4 components at cosine ≥ 0.75, the largest 25.0 %",
            r"$\alpha$ = 0.0000",
        ):
            assert number in text

    def test_the_numbers_are_of_all_examples(self):
        B = np.eye(N)[LABELS]
        B[N:] += 0.2
        figure = plots.figure1(B, B, LABELS, "a run", drawn=N)
        assert [edges(ax) for ax in figure.axes[3:5]] == [N, 0]
        text = texts(figure)
        g = graph_statistics.graph_numbers(B, LABELS)
        assert g.affinity > 0 and g.strongest_share < 1
        assert "4 of 40 test images drawn, numbers of all of them" in text
        for number in (
            f"{100 * g.strongest_share:.1f} %",
            rf"$\alpha$ = {g.affinity:.4f}",
            "(of the 4 drawn: 4, the largest 25.0 %)",
        ):
            assert number in text
        # The output nodes have the edges of all, drawn or not.
        assert edges(figure.axes[5]) == N * (N - 1) // 2

    def test_edges_at_the_optimum(self):
        B = np.eye(N)[LABELS]
        figure = plots.figure1(B, B, LABELS)
        size = M // N
        pairs = N * size * (size - 1) // 2
        assert [edges(ax) for ax in figure.axes] == [M, pairs, 0] * 2

    def test_wrong_classes_have_a_ring(self):
        B = np.eye(N)[LABELS]
        B[0] = 0
        B[1] = np.roll(B[1], 1)
        for figure in (
            plots.figure1(B, B, LABELS),
            plots.graph_pair(B, B, LABELS),
        ):
            panel = figure.axes[1]
            *_, rings, nodes = panel.collections
            # What has no output has no class either.
            np.testing.assert_array_equal(
                rings.get_offsets(), nodes.get_offsets()[[1]]
            )

    def test_the_pair_in_plain_words(self):
        before, after = logits(1).clip(0), np.eye(N)[LABELS]
        figure = plots.graph_pair(before, after, LABELS, "a run", drawn=N)
        g = graph_statistics.graph_numbers(before, LABELS)
        below = [ax.get_xlabel() for ax in figure.axes]
        share = f"{100 * g.within_class_share:.1f} %"
        assert [text.partition(" of ")[0] for text in below] == [
            share, "100.0 %"
        ]  # fmt: skip
        assert "a run" in texts(figure)
        assert edges(figure.axes[1]) == 0

    def test_edges_where_all_are_tied(self):
        figure = plots.figure1(np.ones((M, N)), np.ones((M, N)), LABELS)
        pairs = M * (M - 1) // 2
        expected = [M * N, pairs, N * (N - 1) // 2] * 2
        assert [edges(ax) for ax in figure.axes] == expected

    def test_components_do_not_overlap(self):
        B = 3 * np.eye(N)[LABELS]
        B[0] = 0
        figure = plots.figure1(B, B, LABELS)
        nodes = figure.axes[4].collections[-1].get_offsets()
        distance = np.linalg.norm(nodes[:, None] - nodes, axis=2)
        same = LABELS[:, None] == LABELS
        alone = np.arange(M) == 0
        within = distance[same & ~alone & ~alone[:, None]].max()
        assert within < distance[~same].min()
        # The example without edges is in the picture all the same.
        (left, right), (bottom, top) = (
            figure.axes[4].get_xlim(), figure.axes[4].get_ylim()
        )  # fmt: skip
        assert (nodes > [left, bottom]).all() and (nodes < [right, top]).all()

    def test_collapsed_run(self, tmp_path):
        before, after = logits(1).clip(0), np.zeros((M, N))
        figure = plots.figure1(before, after, LABELS)
        assert [edges(ax) for ax in figure.axes[3:]] == [0, 0, 0]
        for ax in figure.axes[3:]:
            assert "no edges" in ax.get_xlabel()
        assert "nan" not in texts(figure)
        plots.save(figure, tmp_path / "figure.png")
        assert image.imread(tmp_path / "figure.png").shape[1] == 1257

    @pytest.mark.slow
    def test_same_picture_each_time(self, tmp_path):
        for name in ("a", "b"):
            figure = plots.figure1(
                logits(1).clip(0), logits(0.1).clip(0), LABELS
            )
            plots.save(figure, tmp_path / name)
        first, second = ((tmp_path / name).read_bytes() for name in "ab")
        assert first == second

    @pytest.mark.parametrize(
        "before, labels, message",
        [
            (np.ones((M, N + 1)), LABELS, r"shapes \(40, 5\) and \(40, 4\)"),
            (-np.ones((M, N)), LABELS, r"max\(0, Z\)"),
            (np.ones((M, N)), LABELS[:-1], "each of the 40 examples"),
            (np.ones((M, N)), LABELS + 1, "largest label=4"),
        ],
    )
    def test_bad_input(self, before, labels, message):
        with pytest.raises(ValueError, match=message):
            plots.figure1(before, np.ones((M, N)), labels)

    def test_more_classes_than_colours(self):
        B = np.eye(11)
        with pytest.raises(ValueError, match="At most 10 classes.*of 11"):
            plots.figure1(B, B, np.arange(11))

    def test_without_networkx(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "networkx", None)
        B = np.eye(N)[LABELS]
        with pytest.raises(ImportError, match=r"gar_keras\[experiments\]"):
            plots.figure1(B, B, LABELS)


CURVE = {"epoch": [0, 1, 2], "test_error": [0.5, 0.25, 0.125]}


class TestFigure2:
    @pytest.mark.slow
    def test_frames_and_curve(self):
        snapshots = {2: logits(0.1).clip(0), 0: logits(1).clip(0)}
        snapshots[0][0] = np.roll(snapshots[0][0], 1)
        figure = plots.figure2(snapshots, LABELS, CURVE, "a run")
        *frames, curve = figure.axes
        assert [ax.get_title() for ax in frames] == [
            "epoch 0, accuracy 50.0 %",
            "epoch 2, accuracy 87.5 %",
        ]
        assert [len(ax.collections[0].get_offsets()) for ax in frames] == [M, M]
        line, marks = curve.lines
        assert line.get_ydata().tolist() == [50, 75, 87.5]
        assert list(marks.get_xdata()) == [0, 2]
        assert "for 40 test images; a run" in texts(figure)
        # Rings around what is given a wrong class.
        rings = [len(ax.collections[1].get_offsets()) for ax in frames]
        assert rings == [1, 0]

    @pytest.mark.parametrize("count, rows", [(2, 1), (3, 2), (5, 2), (6, 3)])
    def test_curve_fills_the_last_row(self, monkeypatch, count, rows):
        monkeypatch.setattr(
            embedding, "align", lambda Bs: [np.eye(M, 2) for _ in Bs]
        )
        epochs = list(range(count))
        curve = {"epoch": epochs, "test_error": [0.5] * count}
        B = logits(1).clip(0)
        figure = plots.figure2(dict.fromkeys(epochs, B), LABELS, curve)
        place = figure.axes[-1].get_subplotspec()
        assert len(figure.axes) == count + 1
        assert place.get_gridspec().nrows == rows
        assert place.rowspan.start == rows - 1
        assert len(place.colspan) == 3 * rows - count

    @pytest.mark.slow
    def test_collapsed_run(self, tmp_path):
        B = logits(1).clip(0)
        some = B.copy()
        some[: M // 2] = 0
        snapshots = {0: B, 1: some, 2: np.zeros_like(B)}
        figure = plots.figure2(snapshots, LABELS, CURVE)
        frames = figure.axes[:3]
        assert len(frames[1].collections[0].get_offsets()) == M // 2
        assert "without 20 of 40" in frames[1].get_xlabel()
        assert "without 40 of 40" in frames[2].get_xlabel()
        assert frames[2].texts[0].get_text() == "nothing to embed"
        plots.save(figure, tmp_path / "figure.png")

    @pytest.mark.parametrize(
        "snapshots, curve, message",
        [
            ({}, CURVE, "at least one epoch"),
            ({5: np.ones((M, N))}, CURVE, r"no test error for \[5\]"),
            ({0: np.ones((M, N))}, {"epoch": [0]}, "'test_error'.*'epoch'"),
            ({0: np.ones((M, N)), 1: np.ones((M, 3))}, CURVE, "same examples"),
            ({0: -np.ones((M, N))}, CURVE, r"max\(0, Z\)"),
        ],
    )
    def test_bad_input(self, snapshots, curve, message):
        with pytest.raises(ValueError, match=message):
            plots.figure2(snapshots, LABELS, curve)

    def test_without_scikit_learn(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
        B = logits(1).clip(0)
        with pytest.raises(ImportError, match=r"gar_keras\[experiments\]"):
            plots.figure2({0: B}, LABELS, CURVE)


class TestAlign:
    def test_clusters_are_apart(self):
        (frame,) = plots.align([logits(0.1).clip(0)])
        distance = np.linalg.norm(frame[:, None] - frame, axis=2)
        np.fill_diagonal(distance, np.inf)
        nearest = distance.argmin(axis=1)
        assert (LABELS[nearest] == LABELS).all()

    def test_each_starts_from_the_one_before(self, monkeypatch):
        starts = []

        def step(B, start):
            starts.append(start.copy())
            return start + 1

        monkeypatch.setattr(embedding, "_tsne", step)
        B = np.eye(3)[[0, 0, 1, 1, 2, 2]]
        some = B.copy()
        some[0] = 0
        frames = plots.align([B, some, np.zeros_like(B), B])
        # On the plane: a triangle with sides as in space.
        corners = starts[0][[0, 2, 4]]
        sides = np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1)
        np.testing.assert_allclose(sides, np.sqrt(2))
        np.testing.assert_array_equal(starts[1], frames[0][1:])
        # What had no position goes on from its last one.
        np.testing.assert_array_equal(starts[2][0], frames[0][0])
        np.testing.assert_array_equal(starts[2][1:], frames[1][1:])
        shown = [np.isfinite(frame).all(axis=1).sum() for frame in frames]
        assert shown == [6, 5, 0, 6]

    @pytest.mark.parametrize(
        "B",
        [
            np.ones((9, 2)),
            np.concatenate([np.eye(3), np.zeros((9, 3))]),
            np.concatenate([np.full((7, 3), 2.0), np.zeros((2, 3))]),
        ],
        ids=["all the same", "three left", "all left the same"],
    )
    def test_nothing_to_embed(self, B):
        (frame,) = plots.align([B])
        assert frame.shape == (len(B), 2)
        assert np.isnan(frame).all()

    def test_none(self):
        with pytest.raises(ValueError, match="Received: shapes none"):
            plots.align([])


class TestScripts:
    @staticmethod
    def load(name):
        path = SCRIPTS / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        return script

    @pytest.mark.slow
    def test_figure1(self, tmp_path, capsys):
        path = write_run(tmp_path)
        script = self.load("figure1")
        script.main(script.Options(results=tmp_path))
        assert image.imread(tmp_path / "figure1.png").shape[1] == 1257
        numbers = json.loads((tmp_path / "figure1.json").read_text())
        assert numbers["record"] == path.name
        assert numbers["run"].startswith("MNIST, m_L = 100, seed 0")
        # The images kept are fewer than those of the paper's figure: the two
        # rows of an epoch are of the same images.
        B = logits(0.1).clip(0)
        expected = {
            "epoch": 2,
            **asdict(graph_statistics.graph_numbers(B, LABELS)),
        }
        assert numbers["graphs"][2:] == [expected, expected]
        assert str(tmp_path / "figure1.png") in capsys.readouterr().out

    @pytest.mark.slow
    def test_figure1_as_a_pair(self, tmp_path):
        write_run(tmp_path)
        script = self.load("figure1")
        script.main(script.Options(results=tmp_path, pair=True))
        picture = image.imread(tmp_path / "graph_pair.png")
        assert picture.shape[1] == 1257
        assert not (tmp_path / "figure1.png").exists()

    @pytest.mark.slow
    def test_figure2_of_a_named_record(self, tmp_path):
        write_run(tmp_path, 0, epochs=5)
        named = write_run(tmp_path, 1, num_labeled=600)
        output = tmp_path / "picture.png"
        script = self.load("figure2")
        script.main(script.Options(record=named, output=output))
        assert image.imread(output).shape[1] == 1257
        assert not (tmp_path / "figure2.png").exists()

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["figure1", "figure2"])
    def test_without_a_run_of_ones_own_the_reference_is_drawn(
        self, name, tmp_path, capsys, monkeypatch
    ):
        own, reference = tmp_path / "runs", tmp_path / "results"
        write_run(reference, 3)
        monkeypatch.setattr(folders, "reference", lambda: reference)
        script = self.load(name)
        script.main(script.Options(results=own))
        assert "seed 3" in capsys.readouterr().out
        # The reference is left as it is.
        assert (own / f"{name}.png").exists()
        assert not (reference / f"{name}.png").exists()

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["figure1", "figure2"])
    def test_no_run(self, tmp_path, name):
        # Exits before it draws; a failed import of keras would show here too.
        program = (
            "import runpy, sys\n"
            "sys.modules['keras'] = sys.modules['tensorflow'] = None\n"
            "from gar_keras.experiments import folders\n"
            "folders.reference = lambda: None\n"
            f"sys.argv = ['{name}.py', '--results', {str(tmp_path)!r}]\n"
            f"runpy.run_path({str(SCRIPTS / name)!r} + '.py', "
            "run_name='__main__')\n"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("error: no finished run of mnist-100")
        assert "scripts/table1.py --labels 100 --seeds 0" in done.stderr
        assert not list(tmp_path.iterdir())
