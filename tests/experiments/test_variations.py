"""What an experiment can change beside the paper's settings."""

import json
from dataclasses import asdict, replace

import hypothesis
import keras
import made_records
import numpy as np
import pytest
import tiny_runs
from hypothesis import strategies as st
from pages import without_links
from scipy import ndimage

from gar_keras import (
    ExtendedGAR,
    GARWarning,
    GraphActivityRegularization,
    RandomAffine,
    RandomShift,
    attach,
    datasets,
    pretrain,
    random_augmentation,
    regularize,
    report,
    without_dropout,
)
from gar_keras.datasets import registry
from gar_keras.datasets.norb import NorbPreprocessing
from gar_keras.experiments import data as worlds
from gar_keras.experiments import records, runner, settings, setup, studies
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.settings import DataConditions, Extensions
from gar_keras.methods.base import Learner

TINY = tiny_runs.TINY


@pytest.fixture(scope="module", autouse=True)
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        tiny_runs.install(patch)
        yield


def run(folder, experiment, seed=0, reporter=None, **options):
    return runner.run(
        experiment, seed, folder, RunnerOptions(**options), reporter=reporter
    )


def unchanged(record):
    """What two runs with the same numbers share."""
    numbers = tiny_runs.numbers(record)
    numbers["pretraining"].pop("environment", None)
    return numbers


# DataConditions


def test_shares_by_hand():
    y = np.repeat([0, 1, 2], [60, 60, 60])
    kept = worlds.with_imbalance(y, (0.6, 0.3, 0.1), seed=0)
    # 100 images: the most of which 60 are of class 0.
    assert np.bincount(y[kept]).tolist() == [60, 30, 10]
    assert (np.diff(kept) > 0).all()


def test_shares_of_another_number_of_classes_are_refused():
    with pytest.raises(ValueError, match="2 shares for 3 classes"):
        worlds.with_imbalance(np.arange(3), (0.5, 0.5), seed=0)


def test_wrong_labels_are_others():
    y = np.arange(1000) % 10
    told = worlds.with_label_noise(y, 0.2, 10, seed=3)
    wrong = told != y
    assert wrong.sum() == 200
    assert set(told[wrong]) == set(range(10))
    assert (worlds.with_label_noise(y, 0.0, 10, seed=3) == y).all()


def test_strangers_are_a_share_of_all_unlabelled_images():
    data = tiny_runs.tiny_data()
    world = DataConditions(known_classes=2, strangers=0.2)
    task = worlds.make_task(world, data, 12, 60, seed=0)
    known = len(task.data.x_train)
    assert known == 212
    assert task.data.num_classes == 2
    assert set(task.data.y_test) == {0, 1}
    assert len(task.out_of_class) == round(known * 0.25)
    others = data.x_train[data.y_train == 2]
    stranger = task.out_of_class[0]
    assert (others == stranger).all(axis=(1, 2, 3)).any()


def test_more_strangers_than_there_are_are_refused():
    world = DataConditions(known_classes=2, strangers=0.9)
    with pytest.raises(ValueError, match="at most 0.333"):
        worlds.make_task(world, tiny_runs.tiny_data(), 12, 60, seed=0)


def test_known_classes_are_fewer_than_all():
    with pytest.raises(ValueError, match="known_classes=3 of 3"):
        worlds.make_task(
            DataConditions(known_classes=3), tiny_runs.tiny_data(), 12, 60, 0
        )


def test_labels_drawn_at_random_have_no_even_number_in_each_class():
    y = np.repeat([0, 1], [900, 100])
    split = datasets.splits.draw_split(y, 200, seed=0, num_validation=300)
    drawn = np.bincount(y[split.labeled])
    # 180 and 20 are expected; the standard deviation is 3.8.
    assert 165 <= drawn[0] <= 195
    assert not set(split.labeled) & set(split.validation)
    assert len(split.validation) == 300


def test_the_paper_s_world_leaves_the_data_as_they_are():
    data = tiny_runs.tiny_data()
    task = worlds.make_task(DataConditions(), data, 12, 60, seed=0)
    assert task.data is data
    expected = datasets.make_split(data.y_train, 12, 0, 60)
    assert (task.split.labeled == expected.labeled).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrong_labels": 1.5}, "wrong_labels must be at most 1"),
        ({"strangers": 0.5}, "Set known_classes"),
        ({"shares": (0.5, 0.6)}, "sum to 1"),
        ({"labels_drawn": "odd"}, "'even' or 'random'"),
        ({"known_classes": 1}, "at least 2"),
        ({"shares": (0.5, 0.5), "known_classes": 2}, "together"),
    ],
)
def test_impossible_worlds_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DataConditions(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consistency": 1.0}, "both views"),
        ({"average": 1.0}, "below 1"),
        ({"supervised": -1.0}, "at least 0"),
        ({"vat": float("nan")}, "finite"),
        ({"shift": 1.5}, "integer"),
        ({"rate": "linear"}, "cosine"),
    ],
)
def test_impossible_extensions_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Extensions(**options)


# Settings


def test_the_settings_of_old_records_keep_their_fingerprint():
    """As it was before there were variations."""
    record = settings.TABLE_1[100]
    bfloat16 = replace(record, precision="bfloat16", epochs=60)
    assert bfloat16.fingerprint() == "f9c7d9ca"


def test_a_variation_changes_the_fingerprint():
    prints = {
        replace(TINY, **change).fingerprint()
        for change in (
            {},
            {"world": DataConditions(wrong_labels=0.1)},
            {"world": DataConditions(wrong_labels=0.2)},
            {"extensions": Extensions(shift=1)},
            {"class_prior": (0.5, 0.25, 0.25)},
            {"class_prior": "labels"},
            {"restart": 1},
        )
    }
    assert len(prints) == 7


def test_settings_survive_json():
    experiment = replace(
        TINY,
        class_prior=(0.5, 0.25, 0.25),
        world=DataConditions(shares=(0.5, 0.25, 0.25)),
        extensions=Extensions(shift=2, consistency=1.0),
    )
    text = json.dumps(asdict(experiment))
    again = settings.Experiment(**json.loads(text))
    assert again == experiment
    assert again.fingerprint() == experiment.fingerprint()
    assert settings.differences(json.loads(text), TINY) == {
        "class_prior": [0.5, 0.25, 0.25],
        "shares": [0.5, 0.25, 0.25],
        "shift": 2,
        "consistency": 1.0,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_prior": (0.5, 0.6)}, "sum to 1"),
        ({"world": {"strangers": 2}}, "at most 1"),
        ({"world": 3}, "must be an instance of DataConditions"),
        ({"method": "vat", "extensions": Extensions(shift=1)}, "are of GAR"),
        (
            {
                "unlabeled": "infimnist",
                "world": DataConditions(wrong_labels=0.1),
            },
            "must be made",
        ),
        ({"restart": -1}, "at least 0"),
        ({"camera_stretch": True}, "Received: camera_stretch=True, dataset="),
        ({"field_strength": 0.5}, "Received: field_strength=0.5, unlabeled="),
        (
            {"affinity": 0, "extensions": Extensions(affinity_warmup=2)},
            "affinity=0.0, extensions=",
        ),
    ],
)
def test_impossible_variations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **change)


def test_what_stage_1_depends_on():
    same = (
        {"epochs": 7},
        {"stage_2_rate": 0.1},
        {"affinity": 1.0},
        {"method": "vat"},
        {"labeled_per_batch": 2},
        {"extensions": Extensions(shift=1)},
        {"class_prior": "labels"},
        {"unlabeled": "infimnist"},
        {"unlabeled": "infimnist", "field_strength": 0.5},
    )
    other = (
        {"num_labeled": 15},
        {"pretrain_epochs": 7},
        {"precision": "bfloat16"},
        {"world": DataConditions(wrong_labels=0.1)},
        {"restart": 1},
        {"pretrain_shift": 1},
        {"pretrain_affine": 0.1},
    )
    for change in same:
        assert replace(TINY, **change).stage_1() == TINY.stage_1()
    for change in other:
        assert replace(TINY, **change).stage_1() != TINY.stage_1()
    norb = settings.NORB[1000]
    assert replace(norb, camera_stretch=True).stage_1() != norb.stage_1()


# Layers and methods


def test_images_are_shifted_as_a_whole():
    image = np.arange(25, dtype="uint8").reshape(1, 5, 5, 1)
    x = np.repeat(image, 200, axis=0)
    shifted = np.array(RandomShift(1, seed=0)(x, training=True))
    assert shifted.dtype == np.uint8
    edge = np.pad(image[0, ..., 0], 1, mode="edge")
    allowed = {
        edge[i : i + 5, j : j + 5].tobytes() for i in range(3) for j in range(3)
    }
    seen = {y.tobytes() for y in shifted[..., 0]}
    assert seen == allowed


def test_images_are_not_shifted_in_evaluation():
    x = np.random.default_rng(0).random((4, 6, 6, 2)).astype("float32")
    layer = RandomShift(2, seed=0)
    assert (np.array(layer(x)) == x).all()
    assert (np.array(layer(x, training=False)) == x).all()


def test_a_shift_layer_is_saved(tmp_path):
    inputs = keras.Input((6, 6, 1))
    model = keras.Model(inputs, RandomShift(2, seed=3)(inputs))
    model.save(tmp_path / "shift.keras")
    layer = keras.models.load_model(tmp_path / "shift.keras").layers[-1]
    assert (layer.pixels, layer.seed) == (2, 3)


def test_images_are_mapped_about_their_centre():
    x = np.random.default_rng(0).random((3, 7, 9, 2)).astype("float32")
    layer = RandomAffine(0.3, seed=0)
    moved = np.array(layer(x, training=True))
    drawn = np.array(RandomAffine(0.3, seed=0)._transforms(x), "float64")
    assert len(np.unique(drawn[:, [0, 1, 3, 4]])) == 12
    center = np.array([3.0, 4.0])
    for image, result, row in zip(x, moved, drawn, strict=True):
        # Rows and columns, where Keras has x and y.
        matrix = np.array([[row[4], row[3]], [row[1], row[0]]])
        for channel in range(2):
            expected = ndimage.affine_transform(
                image[..., channel].astype("float64"),
                matrix,
                offset=center - matrix @ center,
                order=1,
                mode="nearest",
            )
            np.testing.assert_allclose(
                result[..., channel], expected, atol=1e-5
            )


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(strength=st.floats(0, 0.5), seed=st.integers(0, 99))
def test_an_affine_map_keeps_range_and_type(strength, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(40, 256, (2, 6, 5, 1), "uint8")
    moved = np.array(RandomAffine(strength, seed)(x, training=True))
    assert moved.dtype == np.uint8
    assert moved.min() >= x.min()
    assert moved.max() <= x.max()
    if not strength:
        assert (moved == x).all()


def test_images_are_not_mapped_in_evaluation():
    x = np.random.default_rng(0).random((4, 6, 6, 2)).astype("float32")
    assert (np.array(RandomAffine(0.2, seed=0)(x)) == x).all()


def test_an_affine_layer_is_saved(tmp_path):
    inputs = keras.Input((6, 6, 1))
    model = keras.Model(inputs, RandomAffine(0.2, seed=3)(inputs))
    model.save(tmp_path / "affine.keras")
    layer = keras.models.load_model(tmp_path / "affine.keras").layers[-1]
    assert (layer.strength, layer.seed) == (0.2, 3)


def task():
    data = tiny_runs.tiny_data()
    return data.x_train[:12], data.y_train[:12], data.x_train


def network(seed=0):
    keras.utils.set_random_seed(seed)
    return tiny_runs.tiny_model(TINY, (6, 6, 1), 3)


OPTIONS = {
    "epochs": 2,
    "labeled_per_batch": 6,
    "unlabeled_per_batch": 60,
    "verbose": 0,
}


@pytest.mark.slow
def test_without_extensions_it_is_gar():
    x, y, x_unlabeled = task()
    plain, extended = network(), network()
    expected = regularize(plain, x, x_unlabeled, **OPTIONS)
    history = ExtendedGAR().train(extended, x, y, x_unlabeled, **OPTIONS)
    for name in ("loss", "affinity", "balance"):
        np.testing.assert_allclose(
            history.history[name], expected.history[name], rtol=1e-5
        )
    for a, b in zip(extended.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def loss_of(method, x, y):
    """The loss of one batch, and the network."""
    learner = Learner(method, without_dropout(network()), 10, 0)
    logits = learner(x, training=True)
    loss = learner.compute_loss(x, y, logits)
    return float(loss), learner


def softmax(Z):
    Z = np.array(Z, "float64")
    p = np.exp(Z - Z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def test_the_log_loss_is_added():
    x, y, _ = task()
    gar, _ = loss_of(ExtendedGAR(), x, y)
    both, learner = loss_of(ExtendedGAR(supervised=2.0), x, y)
    p = softmax(learner.network(x, training=False))
    log_loss = -np.log(p[np.arange(len(y)), y]).mean()
    assert both - gar == pytest.approx(2 * log_loss, rel=1e-5)


@pytest.mark.parametrize("moves", [{"shift": 1}, {"affine": 0.2}])
def test_consistency_is_of_two_views(moves):
    x, y, _ = task()
    method = ExtendedGAR(
        GraphActivityRegularization(0.0, 0.0, 0.0), consistency=2.0, **moves
    )
    loss, learner = loss_of(method, x, y)
    views = []
    for seed in (0, 1):
        view = x
        for layer in random_augmentation(
            moves.get("shift", 0), moves.get("affine", 0.0), seed
        ):
            view = layer(view, training=True)
        views.append(softmax(learner.network(view, training=False)))
    expected = 2 * ((views[0] - views[1]) ** 2).mean()
    assert expected > 1e-6
    assert loss == pytest.approx(expected, rel=1e-4)
    # Images of one value look the same wherever they are moved.
    flat = np.full_like(x, 7)
    assert loss_of(method, flat, y)[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
def test_the_model_s_own_layer_is_kept():
    x, y, x_unlabeled = task()
    layer = GraphActivityRegularization(5.0, class_prior=[0.5, 0.3, 0.2])
    inside, given = network(), network()
    own = attach(inside, layer)
    theirs = GraphActivityRegularization(5.0, class_prior=[0.5, 0.3, 0.2])
    for method, model in (
        (ExtendedGAR(supervised=1.0), own),
        (ExtendedGAR(theirs, supervised=1.0), given),
    ):
        method.train(model, x, y, x_unlabeled, **OPTIONS)
    plain = network()
    ExtendedGAR(supervised=1.0).train(plain, x, y, x_unlabeled, **OPTIONS)
    for a, b in zip(inside.get_weights(), given.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    other = plain.get_weights()[0] - inside.get_weights()[0]
    assert np.abs(other).max() > 1e-6
    with pytest.raises(ValueError, match="already holds a GAR layer"):
        ExtendedGAR(theirs).train(own, x, y, x_unlabeled, **OPTIONS)


@pytest.mark.slow
def test_an_unbuilt_model_is_built_for_any_batch():
    x, y, x_unlabeled = task()
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3)])
    ExtendedGAR().train(model, x, y, x_unlabeled, **OPTIONS)
    assert model.input_shape == (None, 6, 6, 1)


def test_a_layer_that_is_not_at_the_end_is_refused():
    x, y, x_unlabeled = task()
    inputs = keras.Input((6, 6, 1))
    hidden = keras.layers.Dense(4)(keras.layers.Flatten()(inputs))
    hidden = GraphActivityRegularization()(hidden)
    model = keras.Model(inputs, keras.layers.Dense(3)(hidden))
    with pytest.raises(ValueError, match="has it elsewhere"):
        ExtendedGAR().train(model, x, y, x_unlabeled, **OPTIONS)


def test_integers_that_are_no_images_are_refused_before_training():
    inputs = keras.Input((5,), dtype="int32")
    features = keras.layers.Embedding(4, 3)(inputs)
    logits = keras.layers.Dense(3)(keras.layers.Flatten()(features))
    model = keras.Model(inputs, logits)
    with pytest.raises(ValueError, match="takes int32"):
        ExtendedGAR(vat=1.0).check(model, np.zeros((4, 5), "int32"))


@pytest.mark.slow
def test_the_average_takes_the_statistics_of_batch_normalization():
    x, y, x_unlabeled = task()
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            keras.layers.Flatten(),
            keras.layers.BatchNormalization(momentum=0.5),
            keras.layers.Dense(3),
        ]
    )
    method = ExtendedGAR(average=0.5, supervised=1.0)
    method.train(model, x, y, x_unlabeled, **OPTIONS)
    # 20 steps of momentum 0.5 have forgotten where the statistics began.
    statistics = model.layers[1].moving_mean
    np.testing.assert_allclose(statistics, x_unlabeled.mean(0).ravel(), atol=25)


@pytest.mark.slow
def test_the_average_after_two_steps():
    x, y, _ = task()
    learner = Learner(ExtendedGAR(average=0.9), network(), 10, 0)
    mean = start = learner.network.get_weights()[0]
    for change in (1.0, -3.0):
        changed = start + change
        learner.network.set_weights(
            [changed, *learner.network.get_weights()[1:]]
        )
        learner.compute_loss(x, y, learner(x, training=True))
        mean = 0.9 * mean + 0.1 * changed
    received = learner.evaluated.get_weights()[0]
    np.testing.assert_allclose(received, mean, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_average_lags_behind_the_network():
    x, y, x_unlabeled = task()
    start = [w.copy() for w in network().get_weights()]
    fast = network()
    ExtendedGAR().train(fast, x, y, x_unlabeled, **OPTIONS)
    slow = network()
    method = ExtendedGAR(average=0.9)
    history = method.train(slow, x, y, x_unlabeled, **OPTIONS)
    moved = [
        sum(np.abs(a - b).sum() for a, b in zip(w, start, strict=True))
        for w in (fast.get_weights(), slow.get_weights())
    ]
    assert 0 < moved[1] < moved[0]
    evaluated = history.model.evaluated.get_weights()
    for a, b in zip(slow.get_weights(), evaluated, strict=True):
        assert (a == b).all()


@pytest.mark.slow
def test_vat_is_added():
    x, y, _ = task()
    nothing = GraphActivityRegularization(0.0, 0.0, 0.0)
    one, _ = loss_of(ExtendedGAR(nothing, vat=1.0), x, y)
    two, _ = loss_of(ExtendedGAR(nothing, vat=2.0), x, y)
    assert one > 0
    assert two == pytest.approx(2 * one, rel=1e-4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"supervised": -1},
        {"affine": -0.1},
        {"average": 1.0},
        {"consistency": 1.0},
    ],
)
def test_impossible_methods_are_refused(wrong):
    with pytest.raises(ValueError, match="Received"):
        ExtendedGAR(**wrong)


def test_a_model_without_a_graph_is_refused():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.logits = keras.layers.Dense(3)

        def call(self, x):
            return self.logits(keras.ops.reshape(x, (-1, 36)) / 255)

    x, y, x_unlabeled = task()
    with pytest.raises(ValueError, match="Functional or Sequential"):
        ExtendedGAR().train(Own(), x, y, x_unlabeled, **OPTIONS)


@pytest.mark.slow
def test_features_are_not_moved():
    inputs = keras.Input((5,))
    model = keras.Model(inputs, keras.layers.Dense(3)(inputs))
    x, y = np.ones((12, 5), "float32"), np.arange(12) % 3
    with pytest.raises(ValueError, match="move images"):
        ExtendedGAR(shift=1).train(model, x, y, x, **OPTIONS)
    with pytest.raises(ValueError, match="move images"):
        pretrain(
            model,
            x,
            y,
            epochs=1,
            augmentation=random_augmentation(1, 0),
            verbose=0,
        )


@pytest.mark.slow
def test_a_collapse_is_warned_of():
    x, y, x_unlabeled = task()
    model = network()
    # One output takes all images.
    model.layers[-1].bias.assign([50.0, 0.0, 0.0])
    with pytest.warns(GARWarning, match="hardly any example was"):
        ExtendedGAR().train(model, x, y, x_unlabeled, **OPTIONS)


# Runs

EXTENSIONS = Extensions(
    supervised=1.0,
    shift=1,
    affine=0.1,
    consistency=1.0,
    vat=0.5,
    average=0.9,
    rate="cosine",
    affinity_warmup=2,
)


@pytest.mark.slow
def test_a_killed_run_with_all_extensions_ends_as_an_unbroken_one(tmp_path):
    experiment = replace(TINY, extensions=EXTENSIONS)
    whole = run(tmp_path / "whole", experiment)
    witness = tiny_runs.Witness(("epoch", "regularization", 2))
    with pytest.raises(tiny_runs.Stop):
        run(tmp_path / "broken", experiment, reporter=witness)
    record = run(tmp_path / "broken", experiment)
    assert unchanged(record) == unchanged(whole)
    plain = run(tmp_path / "plain", TINY)
    curves = [r["regularization"]["curve"]["loss"] for r in (record, plain)]
    assert curves[0] != curves[1]


MOVED = {"pretrain_shift": 1, "pretrain_affine": 0.2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [("step", "pretraining", 1), ("epoch", "regularization", 1)],
    ids=["in stage 1", "in stage 2"],
)
def test_a_killed_run_with_moved_images_ends_as_an_unbroken_one(
    event, tmp_path
):
    experiment = replace(TINY, **MOVED)
    whole = run(tmp_path / "whole", experiment)
    with pytest.raises(tiny_runs.Stop):
        run(tmp_path / "broken", experiment, reporter=tiny_runs.Witness(event))
    record = run(tmp_path / "broken", experiment)
    assert unchanged(record) == unchanged(whole)
    plain = run(tmp_path / "plain", TINY)
    losses = [r["pretraining"]["curve"]["loss"] for r in (record, plain)]
    assert losses[0] != losses[1]


@pytest.mark.slow
def test_stage_1_moves_the_images_and_trains_the_model():
    x, y, _ = task()
    seen = []

    class Watch(keras.layers.Layer):
        def call(self, images, training=None):
            seen.append(training)
            return images

    model = network()
    before = model.get_weights()
    options = {"epochs": 2, "batch_size": 6, "verbose": 0}
    pretrain(model, x, y, augmentation=[Watch()], **options)
    assert True in seen
    moved = model.get_weights()
    assert any((a != b).any() for a, b in zip(before, moved, strict=True))
    # What does nothing leaves the training as it is.
    plain = network()
    pretrain(plain, x, y, **options)
    for a, b in zip(moved, plain.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pretrain_shift": -1}, "pretrain_shift must be at least 0"),
        ({"pretrain_affine": float("inf")}, "pretrain_affine must be a finite"),
    ],
)
def test_impossible_moves_of_stage_1_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **change)


@pytest.mark.slow
def test_stage_1_can_be_shared(tmp_path):
    other = replace(TINY, affinity=1.0)
    alone = run(tmp_path / "alone", other)
    first = run(tmp_path / "shared", TINY, share_stage_1=True)
    lines = tiny_runs.Witness()
    second = run(tmp_path / "shared", other, share_stage_1=True, reporter=lines)
    assert "takes stage 1 from an earlier run" in lines.lines
    assert unchanged(second) == unchanged(alone)
    # It says where its stage 1 was made.
    assert second["pretraining"]["environment"] == first["environment"]


@pytest.mark.slow
def test_without_being_asked_no_stage_1_is_kept(tmp_path):
    run(tmp_path, TINY)
    assert not [*(tmp_path / ".checkpoints").glob("stage1*")]


@pytest.mark.slow
def test_the_prior_of_the_labels_reaches_the_layer(tmp_path):
    world = DataConditions(shares=(0.6, 0.3, 0.1), labels_drawn="random")
    experiment = replace(TINY, world=world, class_prior="labels")
    record = run(tmp_path, experiment)
    y = tiny_runs.tiny_data().y_train[record["labeled"]]
    counts = np.bincount(y, minlength=3) + 1
    assert record["class_prior"] == pytest.approx(counts / counts.sum())
    uniform = run(tmp_path, replace(experiment, class_prior=None))
    assert uniform["class_prior"] is None
    assert uniform["labeled"] == record["labeled"]
    balance = [
        r["regularization"]["curve"]["balance"][1] for r in (record, uniform)
    ]
    assert balance[0] != balance[1]


def test_a_prior_of_another_number_of_classes_is_refused(tmp_path):
    experiment = replace(TINY, class_prior=(0.5, 0.5))
    with pytest.raises(ValueError, match="2 shares for 3 outputs"):
        run(tmp_path, experiment, reporter=tiny_runs.Witness())


@pytest.mark.slow
def test_a_restart_has_the_same_labels_and_other_weights(tmp_path):
    first = run(tmp_path, TINY)
    second = run(tmp_path, replace(TINY, restart=1))
    assert first["labeled"] == second["labeled"]
    curves = [r["pretraining"]["curve"]["loss"] for r in (first, second)]
    assert curves[0] != curves[1]


@pytest.mark.slow
def test_warnings_are_in_the_record(tmp_path):
    # Hardly a balance term and a strong affinity: classes are lost.
    experiment = replace(TINY, balance=0.01, affinity=30.0, epochs=6)
    record = run(tmp_path, experiment)
    # Which of the signs come depends on the backend's rounding.
    signs = ("Stage 2 ", "The batches are too small", "When training with GAR ")
    assert all(warning.startswith(signs) for warning in record["warnings"])
    assert record["warnings"]
    sound = run(tmp_path, TINY)
    assert sound["warnings"] == []


@pytest.mark.slow
def test_a_killed_run_names_a_lost_class_as_an_unbroken_one(tmp_path):
    experiment = replace(TINY, balance=0.0, affinity=30.0, stage_2_rate=0.05)
    whole = run(tmp_path / "whole", experiment)
    assert any("has lost class" in text for text in whole["warnings"])
    curve = whole["regularization"]["curve"]["classes_in_use"]
    assert curve[0] is None and curve[1] < 3
    # The state is saved before the epoch's other warnings come.
    witness = tiny_runs.Witness(("epoch", "regularization", 1))
    with pytest.raises(tiny_runs.Stop):
        run(tmp_path / "broken", experiment, reporter=witness)
    record = run(tmp_path / "broken", experiment)
    assert unchanged(record) == unchanged(whole)


def test_an_older_versions_state_goes_on_without_the_new_curve(tmp_path):
    checkpoint = runner.Checkpoint(tmp_path / "state.npz", "", 0)
    state = runner._Run(TINY, 0, checkpoint, None, None).state
    state.progress["regularization"]["curve"] = {
        "epoch": [0, 1], "loss": [None, 0.5],
    }  # fmt: skip
    row = {"epoch": 2, "loss": 0.25, "classes_in_use": 3.0}
    state.note("regularization", row, 1.0, 0.0)
    assert state.curve("regularization") == {
        "epoch": [0, 1, 2], "loss": [None, 0.5, 0.25],
    }  # fmt: skip


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
    record = run(tmp_path, experiment)
    curve = record["regularization"]["curve"]
    own = curve["test_error_own_mean"]
    assert len(own) == 3 and None not in own
    assert own != curve["test_error"]
    # It is of no use in stage 1, but for its end.
    assert "test_error_own_mean" not in record["pretraining"]["curve"]
    assert {p.test_mean for p in asked} == {"training", "own"}
    asked.clear()
    known = DataConditions(known_classes=2)
    stretched = replace(experiment, camera_stretch=True, world=known)
    setup.set_up(stretched, 0)
    assert asked == [NorbPreprocessing(stretch=True)]


def test_the_strength_of_the_fields_reaches_infimnist(monkeypatch):
    asked = []

    class Images(list):
        source = "made"

    def load(data_dir, **options):
        asked.append(options)
        return Images()

    found = replace(registry.UNLABELED["infimnist"], loader=load)
    monkeypatch.setitem(registry.UNLABELED, "infimnist", found)
    monkeypatch.setattr(setup, "_check_stage_2", lambda made: None)
    for strength in (0.5, 1.0):
        change = {"unlabeled": "infimnist", "field_strength": strength}
        setup.set_up(replace(TINY, **change), 0)
    assert asked == [{"field_strength": 0.5}, {"field_strength": 1.0}]


@pytest.mark.slow
def test_votes_can_be_taken_from_the_file_beside_the_record(tmp_path):
    record = run(tmp_path, TINY)
    with np.load(path_of(TINY, 0, tmp_path).with_suffix(".npz")) as file:
        probabilities = file["chosen_probabilities"]
        y = file["test_labels"]
    assert (y == tiny_runs.tiny_data().y_test).all()
    error = np.mean(probabilities.argmax(axis=1) != y)
    assert error == pytest.approx(record["result"]["chosen_error"])


# Data and studies


def test_pairs_of_digits():
    mnist, pairs = datasets.load("mnist"), datasets.load("mnist-pairs")
    left, right = np.split(pairs.x_test[:50], 2, axis=2)
    assert (left == mnist.x_test[:50]).all()
    assert (pairs.y_test[:50] // 10 == mnist.y_test[:50]).all()
    place = np.flatnonzero((mnist.x_test == right[3]).all(axis=(1, 2, 3)))
    assert mnist.y_test[place[0]] == pairs.y_test[3] % 10
    assert len(np.unique(pairs.y_train)) == 100


@pytest.mark.parametrize("study", studies.STUDIES.values())
def test_arms_are_different_experiments(study):
    prints = [arm.fingerprint() for arm in study.arms.values()]
    assert len(set(prints)) == len(prints)


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


def test_a_study_shows_its_arms(tmp_path, capsys):
    study = studies.SKEW
    arms = [*study.arms.values()]
    for seed in (0, 1):
        made_records.write_record(
            tmp_path,
            replace(arms[1], precision="bfloat16"),
            seed,
            chosen_error=0.02 + 0.02 * seed,
        )
    rows = report.study_rows(study, records.read_all(tmp_path), tmp_path)
    assert rows[0][1:] == ["not run", *"----------"]
    assert rows[1][2:4] == ["3.00 ± 1.41 (n = 2)", "-"]
    # Such a record does not say whether a warning came, nor could it tell
    # whether a class was lost.
    assert rows[1][-3:-1] == ["-", "-"]
    report.show_study(study, [], tmp_path)
    text = (tmp_path / "study_skew.md").read_text()
    text = without_links(text)
    assert "class_prior: the true shares | 10.00 ± 0.00 (n = 2)" in text
    assert "not run" in capsys.readouterr().out


def test_runs_with_warnings_are_counted_of_those_that_note_them(tmp_path):
    arm = next(iter(studies.SKEW.arms.values()))
    for seed, noted in enumerate(({}, {"warnings": []}, {"warnings": ["!"]})):
        path = made_records.write_record(tmp_path, arm, seed)
        records.write(path, {**records.read(path), **noted})
    (g,) = report.group(records.read_all(tmp_path))
    assert g.warned() == "1 of 2"


def test_validation_errors_of_both_stages_stand_side_by_side(tmp_path):
    arm = next(iter(studies.SKEW.arms.values()))
    path = made_records.write_record(tmp_path, arm)
    record = records.read(path)
    record["regularization"]["curve"]["val_error"][0] = 0.125
    record["regularization"]["curve"]["val_error"][-1] = 0.25
    records.write(path, record)
    row, *_ = report.study_rows(
        studies.SKEW, records.read_all(tmp_path), tmp_path
    )
    assert row[5:7] == ["12.50 (n = 1)", "25.00 (n = 1)"]


def test_a_vote_by_hand(tmp_path):
    voters = [replace(TINY, restart=number) for number in range(2)]
    # Of three images, the first run has two right, the second one, and the
    # mean of both, 0.6 / 0.4, 0.45 / 0.55 and 0.6 / 0.4, two.
    labels = np.array([0, 1, 1], "uint8")
    votes = (
        [[0.9, 0.1], [0.6, 0.4], [0.4, 0.6]],
        [[0.3, 0.7], [0.3, 0.7], [0.8, 0.2]],
    )
    for voter, probabilities in zip(voters, votes, strict=True):
        path = made_records.write_record(tmp_path, voter)
        np.savez(
            path.with_suffix(".npz"),
            chosen_probabilities=np.array(probabilities, "float16"),
            test_labels=labels,
        )
        # What came without all predictions does not vote.
        made_records.write_record(tmp_path, voter, seed=1)
        path = made_records.write_record(tmp_path, voter, seed=2)
        np.savez(path.with_suffix(".npz"), labels=labels)
    found = records.read_all(tmp_path)
    assert report.vote(voters, found, tmp_path) == {0: pytest.approx(1 / 3)}
    assert not report.vote([TINY, replace(TINY, restart=5)], found, tmp_path)


def test_arms_are_compared_with_the_first_seed_by_seed(tmp_path):
    study = studies.SKEW
    first, second, *_ = study.arms.values()
    for seed, error in ((0, 0.05), (1, 0.06), (2, 0.5)):
        made_records.write_record(tmp_path, first, seed, chosen_error=error)
    for seed, error in ((0, 0.04), (1, 0.08)):
        made_records.write_record(tmp_path, second, seed, chosen_error=error)
    rows = report.study_rows(study, records.read_all(tmp_path), tmp_path)
    # The mean of -1 and +2; seed 2 has no second.
    assert rows[1][3] == "+0.50 ± 2.12 (n = 2)"


def test_a_study_tells_what_its_arms_are(tmp_path):
    first, second, *_ = studies.OPTIONS.arms.values()
    for arm in (first, second):
        made_records.write_record(tmp_path, arm)
    study = replace(studies.OPTIONS, notes=("A note.",))
    notes = report.study_notes(study, records.read_all(tmp_path))
    assert notes[0] == "A note."
    assert notes[1].startswith("seed 0, 2000 + 4 epochs, float32")
    assert notes[1].endswith(": all rows")
    assert notes[2] == "shifts by up to 2 pixels: shift 2"
    # The records do not say how many classes were in use.
    warnings, lost = notes[3:]
    assert warnings.endswith("could name lost ones: 2 of these 2 did not.")
    assert lost.startswith("A run lost a class if")


def test_a_study_does_not_stand_for_the_paper():
    experiment = studies.SKEW.arms["no balance term"]
    assert not settings.stands_for_paper(asdict(experiment), "mnist-100")
