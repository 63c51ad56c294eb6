"""Experiments: each setting counts, and impossible ones are refused."""

import json
from dataclasses import asdict, fields, replace

import pytest

from reproduction import studies
from reproduction.experiment_command import RunOptions
from reproduction.settings import (
    FREE,
    NORB,
    PAPER,
    SMALL,
    TABLE_1,
    DataSettings,
    Experiment,
    Extensions,
    as_recorded,
    changes,
)

MNIST_100 = TABLE_1[100]


def test_an_experiment_steps_as_the_authors():
    extensions = MNIST_100.extensions
    assert (extensions.global_clipnorm, extensions.warmup_steps) == (0, 0)
    assert extensions.rate == "inverse-time"


OTHER_VALUES = {
    "dataset": "norb",
    "num_labeled": 110,
    "preprocessing": "none",
    "labeled_per_batch": 15,
    "unlabeled_per_batch": 111,
    "unlabeled": "infimnist",
    "images_per_epoch": 1000,
    "num_validation": 999,
    "batch_size": 127,
    "pretrain_epochs": 1999,
    "epochs": 201,
    "affinity": 3.5,
    "balance": 0.0,
    "frobenius": 0.0,
    "frobenius_of": "Z",
    "balance_of": "column sums",
    "learning_rate": 0.02,
    "momentum": 0.9,
    "decay": 0.0,
    "precision": "bfloat16",
    "backend": "jax",
    "method": "vat",
    "class_prior": "labels",
    "data_settings": DataSettings(wrong_labels=0.1),
    "extensions": Extensions(shift=1),
    "restart": 1,
    "pretrain_shift": 1,
    "pretrain_affine": 0.1,
    "stage_2_rate": 0.1,
    "ablation": "softmax",
}


def test_the_fingerprint_changes_with_every_setting():
    changed = [
        replace(MNIST_100, **{name: value})
        for name, value in OTHER_VALUES.items()
    ]
    cnn9 = replace(MNIST_100, network="cnn9", filters=32)
    infinite = replace(MNIST_100, unlabeled="infimnist")
    safe = replace(MNIST_100, method="safe-gar")
    others = [
        safe,
        replace(safe, protects_rare_classes=False),
        cnn9,
        replace(cnn9, filters=64),
        replace(infinite, field_strength=2.0),
        replace(MNIST_100, dataset="norb", camera_stretch=True),
    ]
    elsewhere = {"network", "filters", "field_strength", "camera_stretch"}
    elsewhere |= {"protects_rare_classes"}
    assert {*OTHER_VALUES, *elsewhere} == {f.name for f in fields(Experiment)}
    everything = [MNIST_100, *changed, *others, *PAPER.values()]
    different = {e.fingerprint(): e for e in everything}
    assert len(different) == len({*everything})
    assert all(e.cell == cell for cell, e in PAPER.items())


def test_a_record_of_before_rare_classes_were_protected_is_told_apart():
    for method, protects in (("safe-gar", False), ("gar", True)):
        now = replace(MNIST_100, method=method)
        then = asdict(now)
        del then["protects_rare_classes"]
        assert as_recorded(**then).protects_rare_classes is protects
        assert as_recorded(**asdict(now)) == now
    # As in the folders of the records from then.
    assert as_recorded(**then).fingerprint() == MNIST_100.fingerprint()
    of_digits = replace(
        SMALL["digits"], method="safe-gar", protects_rare_classes=False
    )
    assert of_digits.fingerprint() == "237b4e5c"


def test_equal_numbers_are_equal_settings():
    one = replace(MNIST_100, affinity=2, num_labeled=600)
    two = replace(MNIST_100, affinity=2.0, num_labeled=600)
    assert one == two and one.fingerprint() == two.fingerprint()


def test_settings_survive_json():
    experiment = replace(
        MNIST_100,
        class_prior=(0.5, 0.25, 0.25),
        data_settings=DataSettings(shares=(0.5, 0.25, 0.25)),
        extensions=Extensions(shift=2, consistency=1.0),
    )
    text = json.dumps(experiment.as_json())
    # The name that records have.
    assert '"world": {"shares": [0.5, 0.25, 0.25]' in text
    again = Experiment(**json.loads(text))
    assert again == experiment
    assert again.fingerprint() == experiment.fingerprint()
    assert changes(again) == {
        "class_prior": (0.5, 0.25, 0.25),
        "shares": (0.5, 0.25, 0.25),
        "shift": 2,
        "consistency": 1.0,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": "cnn7"}, "network must be 'cnn6', 'cnn9' or 'mlp'"),
        ({"network": "cnn9"}, "filters is of network"),
        ({"num_labeled": 0}, "num_labeled must be greater"),
        ({"batch_size": 1.5}, "batch_size must be a valid"),
        ({"pretrain_epochs": True}, "pretrain_epochs must be a valid"),
        ({"affinity": -1.0}, "affinity must be a finite number of at least 0"),
        ({"balance": float("nan")}, "balance must be a finite"),
        ({"learning_rate": "0.1"}, "learning_rate must be a valid"),
        ({"stage_2_rate": 0.0}, "stage_2_rate must be greater"),
        ({"class_prior": (0.5, 0.6)}, "sum to 1"),
        ({"class_prior": "even"}, "class_prior must be an array"),
        ({"data_settings": {"out_of_class": 2}}, "out_of_class must be less"),
        ({"data_settings": {"out_of_class": 0.5}}, "Set known_classes"),
        ({"data_settings": {"shares": (0.5, 0.6)}}, "sum to 1"),
        (
            {"data_settings": {"shares": (0.5, 0.5), "known_classes": 2}},
            "together",
        ),
        ({"data_settings": 3}, "must be an instance of DataSettings"),
        ({"extensions": {"consistency": 1.0}}, "both views"),
        ({"extensions": {"rate": "linear"}}, "cosine"),
        ({"extensions": {"nosuch": 1}}, "nosuch Unexpected keyword"),
        ({"method": "vat", "class_prior": "labels"}, "are of method="),
        ({"ablation": "softmax", "method": "vat"}, "changes one thing"),
        (
            {"unlabeled": "infimnist", "data_settings": {"wrong_labels": 0.1}},
            "X_U",
        ),
        ({"protects_rare_classes": False}, "is of method='safe-gar'"),
        ({"camera_stretch": True}, "Received: .*camera_stretch=True"),
        ({"field_strength": 0.5}, "Received: .*field_strength=0.5"),
    ],
)
def test_an_impossible_setting_is_refused_at_once(change, message):
    with pytest.raises(ValueError, match=message) as error:
        replace(MNIST_100, **change)
    assert "\n" not in str(error.value)


def test_what_stage_1_depends_on():
    same = "affinity", "epochs", "stage_2_rate", "method", "labeled_per_batch"
    same += "extensions", "class_prior", "unlabeled", "images_per_epoch"
    other = (
        "num_labeled",
        "pretrain_epochs",
        "precision",
        "data_settings",
        "restart",
    )
    for name in (*same, *other):
        changed = replace(MNIST_100, **{name: OTHER_VALUES[name]})
        alike = changed.stage_1() == MNIST_100.stage_1()
        assert alike == (name in same)
    norb = NORB[1000]
    assert replace(norb, camera_stretch=True).stage_1() != norb.stage_1()


def test_a_run_stands_for_the_paper_whatever_its_length_and_device():
    for name, value in OTHER_VALUES.items():
        e = replace(MNIST_100, **{name: value})
        stands = e.cell == "mnist-100" and not changes(e)
        assert stands == (name in FREE)


def test_what_is_not_in_the_paper_is_set_against_its_nearest_cell():
    fewer = replace(MNIST_100, num_labeled=10, labeled_per_batch=10)
    fewer = replace(fewer, unlabeled_per_batch=118, balance=0.0, epochs=4)
    assert changes(fewer) == {"balance": 0.0}
    assert changes(replace(TABLE_1[100], dataset="digits")) == {}


@pytest.mark.parametrize("study", studies.STUDIES.values())
def test_arms_are_different_experiments(study):
    assert len({*study.arms.values()}) == len(study.arms)
    assert {c.against for c in study.claims.values()} <= study.arms.keys()


def test_options_that_are_not_given_leave_an_arm_as_it_is():
    arm = studies.BALANCE.arms["column sums of B"]
    assert RunOptions().apply(arm).balance_of == "column sums"
    options = RunOptions(balance_of="diagonal")
    assert options.apply(arm).balance_of == "diagonal"


def test_settings_of_a_study_can_be_changed():
    study = studies.LIMITS.with_settings(
        epochs=2, pretrain_epochs=100, frobenius_of="Z", batch_size=None
    )
    arms = study.arms.values()
    assert {arm.epochs for arm in arms} == {2}
    assert {arm.frobenius_of for arm in arms} == {"Z"}
    assert {arm.batch_size for arm in arms} == {128}
    # What has a stage 1 of its own keeps it.
    assert {arm.pretrain_epochs for arm in arms} == {100, 20, 200}
    assert len(studies.FIRST_EPOCH.experiments) == 36
