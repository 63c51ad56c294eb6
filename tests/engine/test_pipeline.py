"""The batches that `fit` gets on the backend in use, and how it is called."""

import keras
import numpy as np
import pytest
from keras import layers, ops
from sources import Source
from stacks import sequential

from gar_keras.engine import pipeline
from gar_keras.engine.batches import BatchSampler, TrainingData
from gar_keras.engine.data import some_of
from gar_keras.engine.fit import compile_options, largest_divisor, predict
from gar_keras.engine.pipeline import Batches

BACKEND = keras.backend.backend()
IMAGES = np.random.default_rng(0).integers(0, 256, (23, 4, 3, 1), "uint8")
X_L = 255 - IMAGES[:9]
LABELS = np.arange(23) % 5


def first(data, count):
    """The first batches that `fit` gets, as tuples of NumPy arrays."""
    batches = Batches(data)
    if BACKEND == "tensorflow":
        taken = pipeline.as_pipeline(batches).take(count)
    else:
        taken = map(batches.__getitem__, range(count))
    return [tuple(map(ops.convert_to_numpy, batch)) for batch in taken]


def by_hand(sampler, x_labeled, labels, count):
    """The same batches from the sampler alone."""
    batches = []
    for epoch in range(1, 4):
        order, chosen = sampler.epoch(epoch)
        for step in range(sampler.steps):
            rows = order[step * sampler.batch : (step + 1) * sampler.batch]
            x = IMAGES[rows]
            if x_labeled is not None:
                x = np.concatenate([x, x_labeled[chosen[step]]])
            batches.append((x,) if labels is None else (x, labels[rows]))
    return batches[:count]


def assert_same(received, expected):
    assert len(received) == len(expected)
    for mine, its in zip(received, expected, strict=True):
        assert len(mine) == len(its)
        for a, b in zip(mine, its, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


SAMPLERS = {
    "short last batch": BatchSampler(23, 5, 9, 2, seed=3),
    "full batches": BatchSampler(23, 5, 9, 2, images_per_epoch=10),
    "less than a batch": BatchSampler(23, 50, 9, 9),
    "more batches than a chunk": BatchSampler(
        23, 1, 9, 1, images_per_epoch=pipeline.STEPS_AT_ONCE // 2 + 1
    ),
    "wrapping windows": BatchSampler(23, 4, 9, 3, images_per_epoch=15),
}
TRAININGS = {name: (sampler, X_L, None) for name, sampler in SAMPLERS.items()}
TRAININGS["stage 1"] = BatchSampler(23, 5, seed=2), None, LABELS


@pytest.mark.parametrize(
    "images", [IMAGES, Source(IMAGES)], ids=["array", "source"]
)
@pytest.mark.parametrize(
    "sampler, x_labeled, labels", TRAININGS.values(), ids=TRAININGS
)
def test_batches_of_a_training(sampler, x_labeled, labels, images):
    data = TrainingData(sampler, images, x_labeled, labels=labels)
    count = 2 * sampler.steps + 1
    expected = by_hand(sampler, x_labeled, labels, count)
    assert_same(first(data, count), expected)
    # In any order, and again.
    batches = Batches(data)
    for number in (count - 1, 0, sampler.steps, 0):
        assert_same([batches[number]], expected[number : number + 1])
    # From a later epoch on.
    batches.done = 1
    assert_same([batches[0]], expected[sampler.steps :][:1])


@pytest.mark.skipif(BACKEND != "tensorflow", reason="TensorFlow's pipeline")
@pytest.mark.parametrize("room, steps", [(10**6, 40), (1000, 5), (1, 1)])
def test_source_is_asked_for_what_there_is_room_for(room, steps, monkeypatch):
    # 7 images of 12 bytes in a batch: 84 * 2 * 5 is below 1,000.
    monkeypatch.setattr(pipeline, "PREFETCH_BYTES", room)
    asked = []

    class Asked(Source):
        def take(self, indices):
            asked.append(len(indices))
            return super().take(indices)

    sampler = BatchSampler(23, 5, 9, 2, images_per_epoch=20)
    data = TrainingData(sampler, Asked(IMAGES), X_L)
    assert_same(first(data, 8), by_hand(sampler, X_L, None, 8))
    assert asked[0] == 5 * min(steps, sampler.steps)


@pytest.mark.parametrize("form", [np.asarray, Source])
def test_some_examples_are_drawn_at_random(form):
    x = form(IMAGES)
    drawn = some_of(x, 5)
    rows = [i for i in range(23) if (IMAGES[i] == drawn).all((1, 2, 3)).any()]
    np.testing.assert_array_equal(drawn, IMAGES[rows])
    # Not evenly spaced.
    assert len(rows) == 5 and len(set(np.diff(rows))) > 1
    np.testing.assert_array_equal(some_of(x, 99), IMAGES)
    assert (some_of(IMAGES, 23) is IMAGES) and some_of(IMAGES, 22) is not IMAGES


def test_steps_in_one_call_divide_the_epoch():
    for number, limit, divisor in (
        (536, 100, 67), (2000, 100, 100), (3, 100, 3), (7, 5, 1), (12, 5, 4),
    ):  # fmt: skip
        assert largest_divisor(number, limit) == divisor
    options = compile_options(sequential(layers.Dense(2)), 536)
    if BACKEND == "tensorflow":
        assert options["steps_per_execution"] == 67
    else:
        assert options == {"steps_per_execution": 1}


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_predictions_are_those_of_keras(dtype):
    x = np.random.default_rng(0).integers(0, 256, (25, 6, 6, 1)).astype(dtype)
    model = sequential(
        layers.Flatten(), layers.BatchNormalization(), layers.Dropout(0.5),
        layers.Dense(3), shape=(6, 6, 1),
    )  # fmt: skip
    # The last batch has five images.
    predicted = predict(model, x, batch_size=10)
    expected = model.predict(x, batch_size=10, verbose=0)
    assert predicted.shape == (25, 3)
    np.testing.assert_array_equal(predicted, expected)
