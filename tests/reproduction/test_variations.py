"""What an experiment can change beside the paper's settings, in runs."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_runs

from reproduction import datasets
from reproduction import run as runner
from reproduction import task as tasks
from reproduction.datasets import registry
from reproduction.datasets.norb import NorbPreprocessing
from reproduction.methods import terms
from reproduction.settings import DataSettings

TINY = tiny_runs.TINY

pytestmark = pytest.mark.usefixtures("tiny")


def test_shares_by_hand():
    y = np.repeat([0, 1, 2], [60, 60, 60])
    kept = tasks.with_imbalance(y, (0.6, 0.3, 0.1), seed=0)
    # 100 images: the most of which 60 are of class 0.
    assert np.bincount(y[kept]).tolist() == [60, 30, 10]
    assert (np.diff(kept) > 0).all()


def test_wrong_labels_are_others():
    y = np.arange(1000) % 10
    told = tasks.with_label_noise(y, 0.2, 10, seed=3)
    wrong = told != y
    assert wrong.sum() == 200
    assert set(told[wrong]) == set(range(10))
    assert (tasks.with_label_noise(y, 0.0, 10, seed=3) == y).all()


def test_out_of_class_images_are_a_share_of_all_unlabelled_images():
    data = tiny_runs.tiny_data()
    conditions = DataSettings(known_classes=2, out_of_class=0.2)
    task = tasks.make_task(conditions, data, 12, 60, seed=0)
    known = len(task.data.x_train)
    assert known == 212
    assert task.data.num_classes == 2
    assert set(task.data.y_test) == {0, 1}
    assert len(task.out_of_class) == round(known * 0.25)
    others = data.x_train[data.y_train == 2]
    drawn = task.out_of_class[0]
    assert (others == drawn).all(axis=(1, 2, 3)).any()


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"known_classes": 2, "out_of_class": 0.9}, "at most 0.333"),
        ({"shares": (0.5, 0.5)}, "2 shares for 3 classes"),
    ],
)
def test_conditions_that_the_data_do_not_allow_are_refused(conditions, message):
    data = tiny_runs.tiny_data()
    with pytest.raises(ValueError, match=message):
        tasks.make_task(DataSettings(**conditions), data, 12, 60, seed=0)


EVERYTHING = replace(
    TINY,
    images_per_epoch=30,
    shift=1,
    affine=0.2,
    warmup_steps=3,
    global_clipnorm=1.0,
    method=(
        *TINY.method,
        terms.CrossEntropy(),
        terms.Consistency(1.0, ramp=0.0),
        terms.VAT(0.5),
    ),
)


@pytest.mark.slow
def test_a_killed_run_with_all_variations_ends_as_an_unbroken_one(tmp_path):
    tiny_runs.ends_as_unbroken(
        tmp_path,
        EVERYTHING,
        ("step", "pretraining", 1),
        ("epoch", "regularization", 2),
    )


def test_a_restart_has_the_same_labels_and_other_weights():
    first, second = (
        runner.NetworkRun(replace(TINY, restart=number), 0, "nowhere")
        for number in (0, 1)
    )
    assert (first.task.split.labeled == second.task.split.labeled).all()
    weights = [made.model.get_weights()[0] for made in (first, second)]
    assert (weights[0] != weights[1]).any()


def test_the_prior_of_the_labels_reaches_the_layer():
    changed = DataSettings(shares=(0.6, 0.3, 0.1), labels_drawn="random")
    experiment = replace(TINY, num_labeled=12, data_settings=changed)
    experiment = experiment.with_term(class_prior="labels")
    made = runner.NetworkRun(experiment, 0, "nowhere")
    counts = np.bincount(made.task.y_labeled, minlength=3) + 1
    prior = made.progress["class_prior"]
    assert prior == pytest.approx(counts / counts.sum())
    assert made.method[0].layer.get_config()["class_prior"] == prior
    without = experiment.with_term(class_prior=None)
    uniform = runner.NetworkRun(without, 0, "nowhere")
    assert uniform.progress["class_prior"] is None
    assert "class_prior" not in uniform.method[0].layer.get_config()


@pytest.mark.slow
def test_a_killed_run_names_a_lost_class_as_an_unbroken_one(tmp_path):
    experiment = TINY.with_term(balance=0.0, affinity=30.0)
    experiment = replace(experiment, stage_2_rate=0.05)
    # The state is saved before the epoch's other warnings come.
    whole = tiny_runs.ends_as_unbroken(
        tmp_path, experiment, ("epoch", "regularization", 1)
    )
    assert any("is without class" in text for text in whole["warnings"])
    curve = whole["regularization"]["curve"]["classes_in_use"]
    assert curve[0] is None and curve[1] < 3
    first, *_, last = tiny_runs.predictions(tmp_path / "whole", experiment)
    lost = sorted({*first} - {*last})
    assert whole["lost_classes"] == lost and lost


@pytest.mark.slow
def test_a_killed_run_is_taken_back_to_stage_1_as_an_unbroken_one(tmp_path):
    experiment = replace(
        TINY.with_method("safe-gar"), stage_2_rate=3.0, images_per_epoch=60
    )
    whole = tiny_runs.ends_as_unbroken(
        tmp_path, experiment, ("epoch", "regularization", 2)
    )
    assert any("that it began with" in text for text in whole["warnings"])
    curve = whole["regularization"]["curve"]["test_error"]
    assert curve[0] == curve[3] != curve[2]


@pytest.mark.slow
def test_a_run_on_norb_measures_the_test_images_without_their_own_mean(
    tmp_path, monkeypatch
):
    asked = []

    def load(data_dir, preprocessing):
        asked.append(preprocessing)
        data = replace(tiny_runs.tiny_data(), name="norb-jpeg")
        own = preprocessing.test_mean == "own"
        return replace(data, x_test=255 - data.x_test) if own else data

    monkeypatch.setitem(datasets.DATASETS, "norb-jpeg", load)
    experiment = replace(TINY, dataset="norb-jpeg", pretrain_epochs=2, epochs=2)
    record = runner.run(experiment, 0, tmp_path)
    curve = record["regularization"]["curve"]
    own = curve["test_error_own_mean"]
    assert len(own) == 3 and None not in own
    assert own != curve["test_error"]
    # It is of no use in stage 1, but for its end.
    assert "test_error_own_mean" not in record["pretraining"]["curve"]
    assert {p.test_mean for p in asked} == {"training", "own"}
    asked.clear()
    changed = DataSettings(known_classes=2)
    runner.NetworkRun(replace(experiment, data_settings=changed), 0, "none")
    assert NorbPreprocessing(test_mean="own") not in asked


def test_the_folder_reaches_infimnist(monkeypatch):
    asked, of_mnist = [], []

    class Images(list):
        source = "made"

    def load(data_dir):
        asked.append(data_dir)
        return Images()

    def tiny(data_dir):
        of_mnist.append(data_dir)
        return tiny_runs.tiny_data()

    found = replace(registry.UNLABELED["infimnist"], loader=load)
    monkeypatch.setitem(registry.UNLABELED, "infimnist", found)
    for name in ("stage_2_sampler", "check_stage_2"):
        monkeypatch.setattr(runner, name, lambda *given: None)
    monkeypatch.setitem(datasets.DATASETS, "tiny", tiny)
    tasks._load.cache_clear()
    experiment = replace(TINY, unlabeled="infimnist")
    runner.NetworkRun(experiment, 0, "nowhere", "files")
    assert asked == ["files"]
    # The images that are deformed are the package's own.
    assert of_mnist == [None]
