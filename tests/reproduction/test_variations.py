"""What an experiment can change beside the paper's settings, in runs."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_runs

from reproduction import datasets, report, run
from reproduction import task as tasks
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


def test_a_random_split_has_the_shares_of_the_classes():
    y = np.repeat([0, 1], [900, 100])
    split = tasks.random_split(y, 500, seed=0, num_validation=500)
    assert sorted([*split.labeled, *split.validation]) == [*range(1000)]
    assert 25 < np.count_nonzero(y[split.labeled]) < 75


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_labeled": 0}, "num_labeled must be an integer from 1 to 1000"),
        ({"num_validation": 981}, "num_validation must be .* 0 to 980.*=981"),
        ({"num_validation": -1}, "num_validation=-1"),
        ({"seed": -1}, "seed must be an integer of at least 0.*seed=-1"),
    ],
)
def test_what_a_random_split_refuses(change, message):
    numbers = {"num_labeled": 20, "seed": 0, "num_validation": 2}
    with pytest.raises(ValueError, match=message):
        tasks.random_split(np.zeros(1000), **numbers | change)


def task_of(**changes):
    settings = DataSettings(**changes)
    experiment = replace(TINY, num_labeled=12, data_settings=settings)
    return tasks.Task(experiment, seed=0)


def test_out_of_class_images_are_a_share_of_all_unlabelled_images():
    data = tiny_runs.tiny_data()
    task = task_of(known_classes=2, out_of_class=0.2)
    known = len(task.data.x_train)
    assert known == 212
    assert task.data.num_classes == 2
    assert set(task.data.y_test) == {0, 1}
    out_of_class = task.unlabeled[known:]
    assert len(out_of_class) == round(known * 0.25)
    others = data.x_train[data.y_train == 2]
    assert (others == out_of_class[0]).all(axis=(1, 2, 3)).any()
    told = task.described["data"]["unlabeled"]
    assert told == "all training images and 53 of other classes"


def test_a_data_set_with_few_labels_runs_and_is_in_a_table(
    tmp_path, monkeypatch
):
    data = tiny_runs.tiny_data()
    y = np.where(np.arange(tiny_runs.TRAIN) < 30, data.y_train, -1)
    few = replace(data, name="few", title="Few labels", y_train=y)
    monkeypatch.setitem(datasets.DATASETS, "few", lambda: few)
    experiment = replace(
        TINY, dataset="few", num_labeled=12, num_validation=18, epochs=1
    )
    task = tasks.Task(experiment, seed=0)
    assert len(task.unlabeled) == tiny_runs.TRAIN
    assert np.bincount(task.y_labeled).tolist() == [4, 4, 4]
    assert sorted([*task.split.labeled, *task.split.validation]) == [*range(30)]
    run.run(experiment, 0, tmp_path)
    report.write(report.read_runs(tmp_path), tmp_path)
    table = (tmp_path / "README.md").read_text("utf-8")
    assert "| Few labels, 12 labels | gar |" in table


def test_more_out_of_class_images_than_there_are_are_refused():
    with pytest.raises(ValueError, match="at most 0.333"):
        task_of(known_classes=2, out_of_class=0.9)


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
        tiny_runs.network_run(replace(TINY, restart=number))
        for number in (0, 1)
    )
    assert (first.task.split.labeled == second.task.split.labeled).all()
    weights = [made.model.get_weights()[0] for made in (first, second)]
    assert (weights[0] != weights[1]).any()


def test_the_prior_of_the_labels_reaches_the_layer():
    changed = DataSettings(shares=(0.6, 0.3, 0.1), labels_drawn="random")
    experiment = replace(TINY, num_labeled=12, data_settings=changed)
    experiment = experiment.with_term(class_prior="labels")
    made = tiny_runs.network_run(experiment)
    counts = np.bincount(made.task.y_labeled, minlength=3) + 1
    prior = made.progress["class_prior"]
    assert prior == pytest.approx(counts / counts.sum())
    assert made.method[0].layer.get_config()["class_prior"] == prior
    without = experiment.with_term(class_prior=None)
    uniform = tiny_runs.network_run(without)
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


def test_the_folder_reaches_infimnist(monkeypatch):
    asked = []

    def load(data_dir):
        asked.append(data_dir)
        return [], "made"

    monkeypatch.setitem(datasets.UNLABELED, "infimnist", load)
    # The images that are deformed are the package's, which takes no folder.
    monkeypatch.setitem(datasets.DATASETS, "tiny", tiny_runs.tiny_data)
    tasks._load.cache_clear()
    task = tasks.Task(replace(TINY, unlabeled="infimnist"), 0, "files")
    assert asked == ["files"]
    assert task.described["data"]["unlabeled"] == "made"
