"""Methods without a network, by hand, and runs of all methods."""

from dataclasses import asdict, replace

import numpy as np
import oracle
import pytest
import tiny_runs
from sources import Source
from tiny_runs import TINY

from gar_keras import methods
from gar_keras.methods.mean_teacher import MeanTeacher
from reproduction import records, settings
from reproduction import run as runner
from reproduction.methods import METHODS, hagr


def points(*values):
    return np.array(values, "float64").reshape(-1, 1, 1)


def test_label_spreading_on_five_points():
    # With itself and two neighbours, nobody takes anything from 4.6: the
    # label of 0 goes along the chain, to points that are nearer to 4.6.
    method = METHODS["label-spreading"].method(neighbors=3)
    classes = method.fit_predict(
        points(0, 4.6), np.array([0, 1]), points(1, 1.9, 2.7),
        points(0.2, 2.9, 4.6),
    )  # fmt: skip
    # The neighbours of 4.6 itself are 4.6, 2.7 and 1.9: two to one.
    assert classes.tolist() == [0, 0, 0]
    assert classes.dtype == "int64"


def test_hagr_on_five_points():
    # Two anchors, each point on one of them: a cluster has its label's class.
    method = METHODS["hagr"].method(anchors=(2,), nearest=1)
    classes = method.fit_predict(
        points(0, 20), np.array([1, 0]), points(1, 22, 23), points(2, 14, 30)
    )
    assert classes.tolist() == [1, 0, 0]


def test_soft_labels_have_the_least_cost():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    y = np.arange(6) % 3
    finest, levels = METHODS["hagr"].method(anchors=(8, 4)).hierarchy(x)
    assert finest.shape == (8, 4)
    assert [level.shape for level in levels] == [(30, 8), (8, 4)]
    A = hagr.soft_labels(levels, y, weight=0.1)
    Z1, Z2 = (level.toarray() for level in levels)
    for Z in (Z1, Z2):
        np.testing.assert_allclose(Z.sum(1), 1)
        assert ((Z > 0).sum(1) == 3).all()
    L = np.eye(30) - Z1 @ np.diag(1 / Z1.sum(0)) @ Z1.T

    def cost(A):
        F = Z1 @ Z2 @ A
        return ((F[:6] - np.eye(3)[y]) ** 2).sum() + 0.1 * np.trace(F.T @ L @ F)

    np.testing.assert_allclose(oracle.differences(cost, A), 0, atol=1e-8)


def test_graph_methods_need_images_in_memory_and_labels():
    source = Source(points(1, 2, 3))
    for name in settings.GRAPH_BASELINES:
        method = METHODS[name].method()
        with pytest.raises(ValueError, match="x_unlabeled must be a NumPy"):
            method.fit_predict(points(0), np.array([0]), source, points(1))
        with pytest.raises(ValueError, match="y_labeled must be integer"):
            method.fit_predict(points(0), np.zeros(1), points(2), points(1))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("label-spreading", {"alpha": 1.0}),
        ("hagr", {"anchors": ()}),
        ("hagr", {"anchors": (5, 5)}),
    ],
)
def test_impossible_settings_are_refused(name, wrong):
    with pytest.raises(ValueError, match="Received: "):
        METHODS[name].method(**wrong)


# Runs and records


@pytest.mark.slow
def test_a_killed_mean_teacher_ends_as_an_unbroken_one(tiny, tmp_path):
    experiment = replace(
        TINY, method="mean-teacher", pretrain_epochs=1, images_per_epoch=30
    )
    record = tiny_runs.ends_as_unbroken(
        tmp_path, experiment, ("epoch", "regularization", 2)
    )
    assert record["cell"] == "tiny-12-mean-teacher"
    assert record["method_settings"] == asdict(MeanTeacher())
    # The teacher's logits, whose error the curve has.
    kept = tiny_runs.snapshots(tmp_path / "whole", experiment)
    error = np.mean(kept["epoch_3"].argmax(1) != kept["labels"])
    assert error == pytest.approx(record["result"]["last_error"])


@pytest.mark.slow
@pytest.mark.parametrize("name", settings.GRAPH_BASELINES)
def test_a_run_without_a_network(name, tiny, tmp_path):
    experiment = replace(TINY, method=name)
    record = runner.run(experiment, 0, tmp_path)
    assert [*records.read_all(tmp_path).values()] == [record]
    curve, result = record["regularization"]["curve"], record["result"]
    assert curve["epoch"] == [0, 1]
    assert result["baseline_error"] is None
    assert result["chosen_epoch"] == result["last_epoch"] == 1
    assert result["last_error"] == curve["test_error"][1] < 0.4
    assert record["pretraining"] == {"seconds": 0.0, "curve": {}}
    assert not list(tmp_path.glob("*.npz"))


def test_the_list_has_all_methods_of_the_library():
    trains_a_network = {n for n, entry in METHODS.items() if entry.network}
    assert trains_a_network == set(methods.METHODS)
    assert all(
        METHODS[n].method is methods.METHODS[n] for n in trains_a_network
    )
