"""Methods without a network, by hand, and runs of all methods."""

from dataclasses import replace

import numpy as np
import oracle
import pytest
import tiny_runs
from tiny_runs import TINY

from gar_keras import methods
from reproduction import records
from reproduction import run as runner
from reproduction.methods import METHODS, graph, terms
from reproduction.methods.library import for_library


def points(*values):
    return np.array(values, "float64").reshape(-1, 1, 1)


def test_label_spreading_on_five_points():
    # With itself and two neighbours, nobody takes anything from 4.6: the
    # label of 0 goes along the chain, to points that are nearer to 4.6.
    classes = graph.fit_predict(
        terms.LabelSpreading(neighbors=3),
        points(0, 4.6),
        np.array([0, 1]),
        points(1, 1.9, 2.7),
        points(0.2, 2.9, 4.6),
    )
    # The neighbours of 4.6 itself are 4.6, 2.7 and 1.9: two to one.
    assert classes.tolist() == [0, 0, 0]
    assert classes.dtype == "int64"


def test_hagr_on_five_points():
    # Two anchors, each point on one of them: a cluster has its label's class.
    classes = graph.fit_predict(
        terms.HAGR(anchors=(2,), nearest=1),
        points(0, 20),
        np.array([1, 0]),
        points(1, 22, 23),
        points(2, 14, 30),
    )
    assert classes.tolist() == [1, 0, 0]


def test_soft_labels_have_the_least_cost():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    y = np.arange(6) % 3
    finest, levels = graph.hierarchy(terms.HAGR(anchors=(8, 4)), x)
    assert finest.shape == (8, 4)
    assert [level.shape for level in levels] == [(30, 8), (8, 4)]
    A = graph.soft_labels(levels, y, weight=0.1)
    Z1, Z2 = (level.toarray() for level in levels)
    for Z in (Z1, Z2):
        np.testing.assert_allclose(Z.sum(1), 1)
        assert ((Z > 0).sum(1) == 3).all()
    L = np.eye(30) - Z1 @ np.diag(1 / Z1.sum(0)) @ Z1.T

    def cost(A):
        F = Z1 @ Z2 @ A
        return ((F[:6] - np.eye(3)[y]) ** 2).sum() + 0.1 * np.trace(F.T @ L @ F)

    np.testing.assert_allclose(oracle.differences(cost, A), 0, atol=1e-8)


# Runs and records


@pytest.mark.slow
def test_a_killed_mean_teacher_ends_as_an_unbroken_one(tiny, tmp_path):
    experiment = TINY.with_method("mean-teacher")
    experiment = replace(experiment, pretrain_epochs=1, images_per_epoch=30)
    record = tiny_runs.ends_as_unbroken(
        tmp_path, experiment, ("epoch", "regularization", 2)
    )
    assert record["path"].startswith("tiny-132-mean-teacher/")
    # The teacher's classes, whose error the curve has.
    kept = tiny_runs.snapshots(tmp_path / "whole", experiment)
    error = np.mean(kept["predicted"][:, -1] != kept["labels"])
    last = record["regularization"]["curve"]["test_error"][-1]
    assert error == pytest.approx(last)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["label-spreading", "self-training", "hagr"])
def test_a_run_without_a_network(name, tiny, tmp_path):
    record = runner.run(TINY.with_method(name), 0, tmp_path)
    assert [*records.read_all(tmp_path).values()] == [record]
    curve = record["regularization"]["curve"]
    assert curve["epoch"] == [0, 1]
    assert curve["test_error"][0] is None and curve["test_error"][1] < 0.4
    assert records.chosen_epoch(curve) == 1
    assert record["pretraining"] == {"seconds": 0.0, "curve": {}}
    assert not list(tmp_path.glob("*.npz"))


# What the library makes of terms.


def test_each_method_of_the_library_has_its_settings():
    for name, method in methods.METHODS.items():
        made = for_library(METHODS[name].terms, None)
        assert [*map(type, made)] == [*map(type, method)]
        if name != "gar":
            assert made == method


def test_settings_reach_the_library():
    gar = terms.GAR(affinity=2.0, balance_of="column sums", frobenius_of="Z")
    others = terms.CrossEntropy(0.5), terms.Consistency(10.0, ramp=0.0)
    made = for_library((gar, *others), [0.5, 0.5])
    told = vars(gar) | {"class_prior": [0.5, 0.5]}
    assert told.items() <= made[0].layer.get_config().items()
    assert (made[1].weight, made[2].weight, made[2].ramp) == (0.5, 10.0, 0.0)
    safe = terms.SafeGAR(top_logit=5.0, protects_rare_classes=False)
    [made] = for_library((safe,), None)
    assert made.top_logit == 5.0 and not made.protects_rare_classes
