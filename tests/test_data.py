"""Data in the forms that users have: what `fit` takes, both stages take."""

from functools import partial

import h5py
import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from keras import layers, ops
from said import said
from sources import Batches, Source, dataset
from stacks import Subclassed, sequential

from gar_keras import (
    GARWarning,
    RandomAffine,
    error_rate,
    pretrain,
    regularize,
)
from gar_keras.engine import pipeline
from gar_keras.engine.batches import BatchSampler, TrainingData, take
from gar_keras.engine.data import (
    as_labeled,
    as_unlabeled,
    as_validation,
    num_classes,
    some_of,
    stage_2_data,
    stage_2_sampler,
)
from gar_keras.engine.fit import predict
from gar_keras.engine.streams import Stream

RNG = np.random.default_rng(0)
Y = np.arange(45) % 3
X = (4 * np.eye(3)[Y] + RNG.normal(size=(45, 3))).astype("float32")
FRAME = pd.DataFrame(X, columns=list("abc"))
OTHERS = FRAME.rename(columns={"a": "A"})
SMALL = dict(labeled_per_batch=4, unlabeled_per_batch=10, verbose=0)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """An open HDF5 file with `x`, in chunks, and `y`."""
    path = tmp_path_factory.mktemp("hdf5") / "data.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=X, chunks=(7, 3))
        file["y"] = Y
        yield file


@pytest.fixture(scope="module")
def memmap(tmp_path_factory):
    path = tmp_path_factory.mktemp("memmap") / "x.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize(
    "x, y",
    [
        (X, Y),
        (X.tolist(), Y.tolist()),
        (ops.convert_to_tensor(X), Y.astype("float32")),
        (dataset(X, np.eye(3)[Y]), None),
        (Batches(X, Y), None),
        # Nothing of them is masked.
        (np.ma.masked_array(X), np.ma.masked_array(Y)),
    ],
    ids=["array", "list", "tensor", "tf.data, one-hot", "PyDataset", "masked"],
)
def test_labeled_examples_are_taken_into_memory(x, y):
    is_list = isinstance(x, list)
    x, y = as_labeled(x, y)
    np.testing.assert_array_equal(x, X)
    assert type(x) is np.ndarray
    assert x.dtype == ("float64" if is_list else "float32")
    np.testing.assert_array_equal(np.ravel(y), Y)
    assert y.dtype.kind == "i"


def test_what_is_no_array_is_read_by_index(file, memmap):
    rows = np.array([44, 3, 3, 0])
    for x in (file["x"], memmap):
        assert as_unlabeled(x) is x
        taken = take({"some": x, "all": X}, rows)
        for part in taken.values():
            np.testing.assert_array_equal(part, X[rows])


def batches_of(data, count):
    made = pipeline.Batches(data)
    if keras.backend.backend() != "tensorflow":
        # `fit` asks for the first batch before it begins.
        made[0]
        return [made[i][0] for i in range(count)]
    found = pipeline.as_pipeline(made).take(count)
    return [keras.tree.map_structure(np.asarray, x) for x, *_ in found]


@pytest.mark.parametrize(
    "form",
    [dataset(X), dataset(X, Y), Batches(X, size=8), Batches(X, Y, size=45)],
    ids=["tf.data", "tf.data with labels", "PyDataset", "one batch"],
)
def test_a_stream_makes_batches_of_b_L_and_b_U(form):
    stream = as_unlabeled(form)
    sampler = stage_2_sampler(X[:9], stream, 4, 10, 45, seed=5)
    data = TrainingData(sampler, stream, X[:9])
    found = batches_of(data, 10)
    # Two epochs of 45 images, each seen once; the last batch has what is left.
    assert [len(x) for x in found] == 2 * [14, 14, 14, 14, 9]
    for first in (0, 5):
        seen = np.concatenate([x[:-4] for x in found[first : first + 5]])
        np.testing.assert_array_equal(np.sort(seen, axis=0), np.sort(X, axis=0))
    chosen = np.concatenate([sampler.epoch(i)[1] for i in (1, 2)])
    for x, rows in zip(found, chosen, strict=True):
        np.testing.assert_array_equal(x[-4:], X[:9][rows])


def test_a_stream_of_unknown_length_needs_the_size_of_an_epoch():
    def sampler(stream, images_per_epoch=None):
        x = as_unlabeled(stream)
        return stage_2_sampler(X[:9], x, 4, 10, images_per_epoch, seed=0)

    with pytest.raises(ValueError, match="images_per_epoch=None"):
        sampler(dataset(X).repeat())
    assert sampler(dataset(X).repeat(), 30).steps == 3
    # 45 images in 6 batches of 8.
    assert sampler(dataset(X)).size == 48


def test_a_stream_that_can_be_read_once_alone_is_told():
    once = iter(np.split(X, 9))
    stream = Stream(
        "x_unlabeled",
        tf.data.Dataset.from_generator(
            lambda: once, output_signature=tf.TensorSpec((None, 3), "float32")
        ),
    )
    batches = stream.in_batches([10], seed=0)
    with pytest.raises(ValueError, match="x_unlabeled cannot be read again"):
        for _ in range(9):
            next(batches)
    # A method that looks at them first finds none.
    with pytest.raises(ValueError, match="x_unlabeled cannot be read again"):
        some_of(stream, 9)


def test_labelled_examples_can_be_read_once_alone():
    signature = (tf.TensorSpec((None, 3)), tf.TensorSpec((None,), "int64"))

    def once():
        parts = zip(np.split(X, 9), np.split(Y, 9), strict=True)
        return tf.data.Dataset.from_generator(
            lambda: parts, output_signature=signature
        )

    for x, y in (as_labeled(once()), as_validation(once(), X)):
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(y, Y)


def test_some_of_a_stream_are_of_all_its_batches():
    batches = Batches(np.repeat(np.arange(100), 5), size=5)
    assert 30 < np.median(some_of(as_unlabeled(batches), 100)) < 70


def network():
    keras.utils.set_random_seed(0)
    return sequential(layers.Dense(3), shape=(3,))


LARGE_X = 255 * X
OF_OTHER_SIZES = {
    "unlabelled": lambda: stage_2(X, LARGE_X),
    "labelled": lambda: stage_2(LARGE_X, X),
    "image source": lambda: stage_2(X, Source(LARGE_X)),
    "data set": lambda: stage_2(X, Batches(LARGE_X)),
    "validation": lambda: pretrain(
        network(), X, Y, validation_data=(LARGE_X, Y), epochs=1, verbose=0
    ),
}


def stage_2(x_labeled, x_unlabeled):
    return stage_2_data(
        x_labeled, None, x_unlabeled, None, labeled_per_batch=4,
        unlabeled_per_batch=10, images_per_epoch=None, seed=0,
    )  # fmt: skip


@pytest.mark.parametrize("call", OF_OTHER_SIZES.values(), ids=OF_OTHER_SIZES)
def test_numbers_of_another_size_are_warned_of(call):
    (text,) = said(call)
    assert "Scale both in the same way" in text


def test_a_column_that_is_sorted_is_of_one_size():
    table = np.arange(2.0 * 450).reshape(450, 2) ** 4
    rows = np.arange(0, 450, 15)
    assert said(lambda: stage_2(table[rows], table)) == []


def test_a_pipeline_that_is_never_shuffled_is_warned_of():
    def found(x):
        return said(lambda: stage_2(X[:9], x))

    slices = tf.data.Dataset.from_tensor_slices(X)
    of_batches = slices.batch(8).shuffle(5)
    length = tf.data.experimental.assert_cardinality(6)
    in_new_ones = of_batches.unbatch().batch(8).apply(length)
    given_as_batches = tf.data.Dataset.from_tensor_slices(X.reshape(5, 9, 3))
    for x in (dataset(X), of_batches, in_new_ones, given_as_batches.shuffle(5)):
        (order,) = found(x)
        assert "no shuffle of single examples is seen" in order
    shuffled = slices.shuffle(45).batch(8).prefetch(1)
    again = slices.batch(8).unbatch().shuffle(45).batch(8).apply(length)
    for x in (X, shuffled, again, shuffled.shuffle(5), Batches(X)):
        assert found(x) == []
    # The first batch makes an example of three rows.
    windows = slices.batch(3).shuffle(15).batch(5)
    texts = said(lambda: stage_2(X.reshape(15, 3, 3)[:9], windows))
    assert texts == []


class FromFile(np.memmap):
    """A memmap that may not be read as a whole."""

    def __getitem__(self, index):
        rows = super().__getitem__(index)
        assert len(rows) < len(self)
        return rows.view(np.ndarray)

    def __array__(self, *_, **__):
        raise AssertionError("the whole file was read")

    def __array_ufunc__(self, ufunc, *_, **__):
        raise AssertionError(f"the whole file went through {ufunc}")


@pytest.mark.slow
def test_what_is_read_batch_by_batch_trains_as_the_array(
    file, memmap, monkeypatch
):
    monkeypatch.setattr(pipeline, "STEPS_AT_ONCE", 2)
    mapped, weights = memmap.view(FromFile), []
    for x in (X, X.astype("float64"), file["x"], mapped, Source(X)):
        model = network()
        regularize(model, X[:9], x, epochs=2, **SMALL)
        weights.append(model.get_weights()[0])
    for mine in weights[1:]:
        np.testing.assert_array_equal(mine, weights[0])


def two_inputs():
    """The network of one input, which gets its first feature apart."""
    one, two = keras.Input((1,), name="one"), keras.Input((2,), name="two")
    x = layers.Concatenate()([one, two])
    return keras.Model({"one": one, "two": two}, network()(x))


def parted(x):
    return {"two": x[:, 1:], "one": x[:, :1]}


def test_a_tuple_of_inputs_stays_apart_from_labels():
    pairs = tf.data.Dataset.from_tensor_slices(((X[:, :1], X[:, 1:]), Y))
    labeled = X[:9, :1], X[:9, 1:]
    stream = as_unlabeled(pairs.batch(8))
    (x,) = batches_of(
        TrainingData(BatchSampler(45, 10, 9, 4), stream, labeled), 1
    )
    assert [tuple(part.shape) for part in x] == [(14, 1), (14, 2)]


REFUSED = {
    "labels twice": (
        lambda: as_labeled(dataset(X, Y), Y), "y_labeled must be left out",
    ),
    "endless": (lambda: as_labeled(dataset(X, Y).repeat()), "have an end"),
    "weights": (lambda: as_labeled(dataset(X, Y, Y)), "weights of examples"),
    "weights of the unlabelled": (
        lambda: regularize(network(), X, dataset(X, Y, Y)),
        "x_unlabeled must hold pairs.* weights of examples",
    ),
    "no batch": (lambda: as_labeled(dataset(X[:0])), "at least one batch"),
    "single": (lambda: as_labeled(dataset(X, Y).unbatch()), "give batches"),
    "single unlabelled": (
        lambda: regularize(network(), X, dataset(X).unbatch()),
        "x_unlabeled must have a row for each example",
    ),
    "two-hot": (lambda: as_labeled(X, 2 * np.eye(3)[Y]), "single 1 among 0"),
    "masked": (
        lambda: regularize(network(), X, np.ma.masked_equal(X, X[1, 1])),
        "x_unlabeled must have no masked values. Received: 1 masked of 135",
    ),
    "path": (
        lambda: pretrain(network(), "x.npz", Y), "x_labeled of type str",
    ),
    "no labels": (lambda: pretrain(network(), dataset(X)), "y_labeled is mis"),
    "too many inputs": (
        lambda: pretrain(network(), (X, X), Y),
        "takes 1 inputs. Received: 2 arrays as x_labeled. Give a dict or a tu",
    ),
    "fewer inputs": (
        lambda: regularize(two_inputs(), tuple(parted(X).values()), (X,)),
        "the same inputs",
    ),
    "uneven inputs": (
        lambda: pretrain(two_inputs(), {"one": X[:, :1], "two": X[:5, 1:]}, Y),
        "as many examples in each input",
    ),
    "columns in another order": (
        lambda: regularize(network(), FRAME, FRAME[["c", "b", "a"]]),
        "x_unlabeled must have the columns of x_labeled, in their order",
    ),
    "columns of an input": (
        lambda: regularize(
            network(), {"a": FRAME}, {"a": FRAME[["c", "b", "a"]]}
        ),
        r"x_unlabeled\['a'\] must have the columns of x_labeled\['a'\]",
    ),
    "other columns": (
        lambda: pretrain(network(), FRAME, Y, validation_data=(OTHERS, Y)),
        r"validation_data\[0\] must have the columns of x_labeled",
    ),
    "neighbours of a stream": (
        lambda: regularize(
            network(), X, dataset(X), y_labeled=Y, method="embed-cnn", **SMALL
        ),
        "x_unlabeled must be a NumPy array",
    ),
}  # fmt: skip


@pytest.mark.parametrize("call, message", REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


# Examples that no layer rescales


PIXELS = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 1), "uint8")
TABLE = np.random.default_rng(0).normal(size=(60, 4))
MIXED = TABLE * [1, 1, 1, 100]


def columns(*first, shape=(4,), dtype=None):
    """A model of the layers in front of its only weights."""
    last = layers.Flatten(), layers.Dense(3, name="logits")
    return sequential(*first, *last, shape=shape, dtype=dtype)


stack = partial(columns, shape=(8, 8, 1))


def divided():
    inputs = keras.Input((8, 8, 1))
    return keras.Model(inputs, layers.Dense(3)(layers.Flatten()(inputs / 255)))


def adapted(x):
    return layers.Normalization(mean=x.mean(0), variance=x.var(0))


def wide_and_deep():
    inputs = keras.Input((4,))
    both = [layers.Dense(4)(adapted(MIXED)(inputs)), inputs]
    x = layers.Concatenate()(both)
    return keras.Model(inputs, layers.Dense(3, name="logits")(x))


LARGE = "get numbers up to"
UNSCALED = {
    "pixels": (stack(), PIXELS, f"'logits' .*{LARGE} 255"),
    "rescaled too late": (
        stack(layers.Conv2D(2, 3, name="c"), layers.Rescaling(0.1)),
        PIXELS,
        f"'c' .*{LARGE} 255",
    ),
    "one column": (columns(), MIXED, LARGE),
    "offset": (columns(layers.Dropout(0.5)), TABLE + 20, LARGE),
    "nested": (
        columns(keras.Sequential([layers.Dense(5, name="in")])),
        MIXED,
        f"'in' .*{LARGE}",
    ),
    "one of two ways": (wide_and_deep(), MIXED, LARGE),
    "two inputs": (two_inputs(), parted(30 * X), LARGE),
    "augmented": (
        stack(RandomAffine(0.1), layers.RandomFlip()),
        PIXELS,
        f"{LARGE} 255",
    ),
    "padded": (stack(layers.ZeroPadding2D(1)), PIXELS, f"{LARGE} 255"),
    "not scaled enough": (stack(layers.Rescaling(0.5)), PIXELS, LARGE),
    "some function": (stack(layers.Lambda(lambda x: x)), PIXELS, LARGE),
    "a depthwise layer": (stack(layers.DepthwiseConv2D(2)), PIXELS, LARGE),
    "nanometres": (columns(), 1e-9 * TABLE, "get numbers of at most"),
}


@pytest.mark.parametrize("model, x, sizes", UNSCALED.values(), ids=UNSCALED)
def test_what_reaches_the_weights_as_it_is_stored_is_warned_of(model, x, sizes):
    with pytest.warns(GARWarning, match=sizes):
        num_classes(model, "x_labeled", x)


SCALED = {
    "rescaling": (stack(layers.Rescaling(1 / 255)), PIXELS),
    "division": (divided(), PIXELS),
    "nested, behind augmentation": (
        stack(RandomAffine(0.1), keras.Sequential([layers.Rescaling(1 / 255)])),
        PIXELS,
    ),
    "nested normalization": (
        columns(keras.Sequential([adapted(MIXED)])),
        MIXED,
    ),
    "pixels from 0 to 1": (stack(), PIXELS / np.float32(255)),
    "standardized": (columns(), TABLE),
    "one-hot": (columns(), np.eye(4)),
    "normalization": (columns(adapted(MIXED)), MIXED),
    "batch normalization": (columns(layers.BatchNormalization()), MIXED),
    "embedding": (columns(layers.Embedding(99, 3)), np.full((9, 4), 80)),
    # As scikit-learn's digits: no worse than when they are standardized.
    "0 to 16": (columns(), np.arange(68).reshape(17, 4) % 17 / 1.0),
}


@pytest.mark.parametrize("model, x", SCALED.values(), ids=SCALED)
def test_what_is_or_may_be_scaled_is_not_warned_of(model, x):
    assert said(lambda: num_classes(model, "x_labeled", x)) == []


SECONDS = 1.7e9 + 60.0 * (np.arange(60) % 3)[:, None]


needs_float64 = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="float64 of TensorFlow"
)


def of_dtype(dtype, *first):
    return columns(*first, shape=(1,), dtype=dtype)


def of_scalars():
    inputs = keras.Input((), name="a")
    columns_of_one = layers.Reshape((1,))(inputs)
    return keras.Model({"a": inputs}, layers.Dense(3)(columns_of_one))


def without_graph(dtype=None):
    return Subclassed(layers.Dense(3), dtype=dtype)


INTEGERS = SECONDS.astype("int64")


def in_float64():
    moments = dict(mean=SECONDS.mean(0), variance=SECONDS.var(0))
    return layers.Normalization(**moments, dtype="float64")


# In years, the differences of a minute do not count.
YEARS = SECONDS + 1e8 * TABLE[:, :1]
CAST = {
    "seconds": (lambda: of_dtype("float32"), SECONDS, True),
    "milliseconds": (lambda: of_dtype("float32"), 1000 * INTEGERS, True),
    "years": (lambda: of_dtype("float32"), YEARS, False),
    "float32": (lambda: of_dtype("float32"), np.float32(SECONDS), False),
    "int64 in float64": (
        lambda: of_dtype("int64", in_float64()), INTEGERS, False,
    ),
    "hashed": (lambda: of_dtype("int64", layers.Hashing(5)), INTEGERS, False),
    "float64": (lambda: of_dtype("float64", in_float64()), SECONDS, False),
    "one number each": (of_scalars, {"a": SECONDS[:, 0]}, True),
    "no graph": (without_graph, SECONDS, True),
    "float64, no graph": (lambda: without_graph("float64"), SECONDS, False),
    "list": (lambda: of_dtype("float32"), SECONDS.tolist(), True),
}  # fmt: skip


@pytest.mark.parametrize("make, x, is_told", CAST.values(), ids=CAST)
@needs_float64
def test_error_rate_warns_of_what_the_model_makes_float32_of(make, x, is_told):
    model = make()
    told = said(lambda: error_rate(model, x, np.arange(60) % 3))
    assert any("does not hold" in text for text in told) == is_told


@needs_float64
@pytest.mark.parametrize(
    "dtype, x", [("float64", SECONDS), ("int64", INTEGERS)]
)
def test_predictions_keep_float64(dtype, x):
    model = of_dtype(dtype, in_float64())
    expected = ops.convert_to_numpy(model(tf.constant(SECONDS)))
    assert len(np.unique(expected[:, 0])) == 3
    found = predict(model, x, batch_size=7)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
