"""Experiments: each setting counts, and impossible ones are refused."""

import json
from dataclasses import fields, replace

import pytest

from reproduction import studies
from reproduction.methods import METHODS, terms
from reproduction.settings import (
    EXPERIMENTS,
    FREE,
    PAPER,
    TABLE_1,
    DataSettings,
    Experiment,
    changes,
)

MNIST_100 = TABLE_1[100]


# Section 4 of the paper: network, b_L and b_U of each m_L. f and the epochs are
# those of the authors' code; the paper has neither.
SECTION_4 = {
    "mnist": dict.fromkeys(
        (100, 600, 1000, 3000), ("cnn6", None, 16, 112, 200)
    ),
    # 60,000 new images in each of 133 epochs are the 8 million.
    "infimnist": {100: ("cnn6", None, 16, 112, 133)},
    "svhn": {1000: ("cnn9", 64, 96, 32, 100)},
    "svhn-extra": {1000: ("cnn9", 64, 96, 32, 100)},
    "norb": dict.fromkeys((300, 1000), ("cnn9", 32, 32, 96, 200)),
}


@pytest.mark.parametrize("name", SECTION_4)
def test_the_settings_are_those_of_the_paper(name):
    by_labels = EXPERIMENTS[name]
    assert by_labels.keys() == SECTION_4[name].keys()
    for m_L, expected in SECTION_4[name].items():
        e = by_labels[m_L]
        batch = e.labeled_per_batch, e.unlabeled_per_batch
        assert (e.network, e.filters, *batch, e.epochs) == expected
        assert sum(batch) == 128
        (gar,) = e.method
        coefficients = gar.affinity, gar.balance, gar.frobenius
        assert coefficients == (3, 1, 0.000001)
        # U(B) as it is written, of equal classes.
        assert type(gar) is terms.GAR and gar.class_prior is None
        assert (gar.frobenius_of, gar.balance_of) == ("B", "diagonal")
        # "Chosen randomly but distributed evenly across classes", and a
        # validation set.
        assert e.data_settings == DataSettings(labels_drawn="even")
        assert (e.num_labeled, e.num_validation) == (m_L, 1000)
        assert e.pretrain_epochs == 2000 and not (e.shift or e.affine)
        assert (e.global_clipnorm, e.warmup_steps) == (0, 0)
        of_others = {"infimnist": "mnist", "svhn-extra": "svhn"}
        assert e.dataset == of_others.get(name, name)
        assert e.unlabeled == (name if name in of_others else "train")
        images = 60_000 if name == "infimnist" else None
        assert e.images_per_epoch == images


OTHER_VALUES = {
    "dataset": "norb",
    "num_labeled": 110,
    "preprocessing": "none",
    "shift": 1,
    "affine": 0.1,
    "labeled_per_batch": 15,
    "unlabeled_per_batch": 111,
    "unlabeled": "infimnist",
    "images_per_epoch": 1000,
    "num_validation": 999,
    "pretrain_epochs": 1999,
    "epochs": 201,
    "precision": "bfloat16",
    "backend": "jax",
    "data_settings": DataSettings(wrong_labels=0.1),
    "warmup_steps": 10,
    "global_clipnorm": 0.5,
    "stage_2_rate": 0.1,
    "restart": 1,
    "method": METHODS["vat"].terms,
}
OF_GAR = {
    "affinity": 3.5,
    "balance": 0.0,
    "frobenius": 0.0,
    "frobenius_of": "Z",
    "balance_of": "column sums",
    "class_prior": "labels",
}


def with_terms(*others, gar=None):
    """MNIST with other terms, GAR's first where none is given."""
    gar = [gar or terms.GAR()]
    return replace(MNIST_100, method=(*gar, *others))


METHODS_APART = [
    *(with_terms(gar=terms.GAR(**{k: v})) for k, v in OF_GAR.items()),
    *(with_terms(gar=kind()) for kind in terms.ABLATIONS.values()),
    with_terms(terms.CrossEntropy()),
    with_terms(terms.CrossEntropy(0.5)),
    with_terms(terms.CrossEntropy(), terms.VAT()),
    with_terms(terms.CrossEntropy(), terms.VAT(xi=0.5)),
    *(MNIST_100.with_method(name) for name in METHODS),
    MNIST_100.with_method("safe-gar").with_term(protects_rare_classes=False),
]


def test_the_fingerprint_changes_with_every_setting():
    changed = [
        replace(MNIST_100, **{name: value})
        for name, value in OTHER_VALUES.items()
    ]
    cnn9 = replace(MNIST_100, network="cnn9", filters=32)
    others = [cnn9, replace(cnn9, filters=64), *METHODS_APART]
    elsewhere = {"network", "filters"}
    assert {*OTHER_VALUES, *elsewhere} == {f.name for f in fields(Experiment)}
    assert OF_GAR.keys() == vars(terms.GAR()).keys()
    everything = [MNIST_100, *changed, *others, *PAPER.values()]
    different = {e.fingerprint(): e for e in everything}
    assert len(different) == len({*everything})
    assert all(e.cell == cell for cell, e in PAPER.items())


def test_equal_numbers_are_equal_settings():
    one, two = (MNIST_100.with_term(affinity=n) for n in (2, 2.0))
    assert one == two and one.fingerprint() == two.fingerprint()


@pytest.mark.parametrize("experiment", METHODS_APART)
def test_settings_survive_json(experiment):
    shares = (0.5, 0.25, 0.25)
    e = replace(experiment, data_settings=DataSettings(shares=shares))
    again = Experiment.from_json(json.loads(json.dumps(e.as_json())))
    assert again == e and again.fingerprint() == e.fingerprint()


@pytest.mark.parametrize(
    ("experiment", "expected"),
    [
        (MNIST_100, {}),
        (MNIST_100.with_term(balance=0.0), {"balance": 0.0}),
        (with_terms(terms.CrossEntropy()), {"supervised": 1.0}),
        (with_terms(gar=terms.Softmax()), {"ablation": "softmax"}),
        (MNIST_100.with_method("safe-gar"), {"method": "safe-gar"}),
        (
            replace(MNIST_100.with_method("vat"), stage_2_rate=0.1),
            {"method": "vat", "stage_2_rate": 0.1},
        ),
        (
            MNIST_100.with_method("safe-gar").with_term(top_logit=1.0),
            {"method": "safe-gar", "top_logit": 1.0},
        ),
    ],
)
def test_what_an_experiment_changes(experiment, expected):
    assert changes(experiment) == expected


@pytest.mark.parametrize(
    ("values", "received"),
    [
        ({"shares": (0.5, 0.5), "known_classes": 5}, "known_classes=5"),
        ({"out_of_class": 0.2}, "out_of_class=0.2"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(values, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        DataSettings(**values)


def test_names_of_methods():
    for name, entry in METHODS.items():
        assert MNIST_100.with_method(name).method_name == name
        assert MNIST_100.with_method(name).trains_network == entry.network
    assert MNIST_100.with_method("safe-gar").with_method("gar") == MNIST_100
    # Without GAR, and of GAR with more.
    assert with_terms(terms.CrossEntropy(), terms.VAT()).cell == "mnist-100"
    e = replace(MNIST_100, method=(terms.Entropy(), terms.VAT()))
    assert e.cell == "mnist-100-entropy-vat"


def test_what_stage_1_depends_on():
    other = {
        *("dataset", "num_labeled", "preprocessing", "shift", "affine"),
        *("num_validation", "pretrain_epochs", "precision", "backend"),
        *("data_settings", "restart"),
    }
    for name, value in OTHER_VALUES.items():
        alike = replace(MNIST_100, **{name: value}).stage_1()
        assert (alike == MNIST_100.stage_1()) == (name not in other), name


def test_a_run_stands_for_the_paper_whatever_its_length_and_device():
    for name, value in OTHER_VALUES.items():
        e = replace(MNIST_100, **{name: value})
        stands = e.cell == "mnist-100" and not changes(e)
        assert stands == (name in FREE)


def test_what_is_not_in_the_paper_is_set_against_its_nearest_cell():
    fewer = replace(MNIST_100, num_labeled=10, labeled_per_batch=10)
    fewer = replace(fewer, unlabeled_per_batch=118, epochs=4)
    fewer = fewer.with_term(balance=0.0)
    assert changes(fewer) == {"balance": 0.0}
    assert changes(replace(TABLE_1[100], dataset="digits")) == {}


@pytest.mark.parametrize("study", studies.STUDIES.values())
def test_arms_are_different_experiments(study):
    assert len({*study.arms.values()}) == len(study.arms)
    assert {c.against for c in study.claims.values()} <= study.arms.keys()


def test_a_study_has_its_restarts():
    assert len(studies.FIRST_EPOCH.experiments) == 24
