"""Data in the forms that users have: what `fit` takes, both stages take."""

from types import SimpleNamespace

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops
from scipy import sparse

from gar_keras import (
    ExtendedGAR,
    callbacks,
    data_adapters,
    error_rate,
    pretrain,
    regularize,
)
from gar_keras.data_adapters import as_labeled, as_unlabeled, check_columns
from gar_keras.engine import pipeline
from gar_keras.engine.batches import BatchSampler, Feed, take
from gar_keras.engine.fit import predict
from gar_keras.engine.streams import Stream
from gar_keras.methods import METHODS
from gar_keras.preparation import stage_2_sampler

RNG = np.random.default_rng(0)
Y = np.arange(45) % 3
X = (4 * np.eye(3)[Y] + RNG.normal(size=(45, 3))).astype("float32")
SMALL = dict(labeled_per_batch=4, unlabeled_per_batch=10, verbose=0)


class Batches(keras.utils.PyDataset):
    """Arrays as a `PyDataset`, as users write one."""

    def __init__(self, *arrays, size=8):
        super().__init__()
        self.arrays, self.size = arrays, size

    def __len__(self):
        return -(-len(self.arrays[0]) // self.size)

    def __getitem__(self, index):
        rows = slice(index * self.size, (index + 1) * self.size)
        batch = tuple(array[rows] for array in self.arrays)
        return batch if len(batch) > 1 else batch[0]


def dataset(*arrays, size=8):
    slices = arrays if len(arrays) > 1 else arrays[0]
    return tf.data.Dataset.from_tensor_slices(slices).batch(size)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """An open HDF5 file with `x`, in chunks, and `y`."""
    path = tmp_path_factory.mktemp("hdf5") / "data.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=X.astype(">f4"), chunks=(7, 3))
        file["y"] = Y
        yield file


@pytest.fixture(scope="module")
def memmap(tmp_path_factory):
    path = tmp_path_factory.mktemp("memmap") / "x.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


# Labelled examples


@pytest.mark.parametrize(
    "x, y",
    [
        (X, Y),
        (X.tolist(), Y.tolist()),
        (list(X), Y.astype("float32")),
        (ops.convert_to_tensor(X), ops.convert_to_tensor(Y)),
        (X, np.eye(3)[Y]),
        (sparse.csr_matrix(X), Y[:, None]),
        (dataset(X, Y), None),
        (dataset(X, np.eye(3)[Y]), None),
        (Batches(X, Y), None),
    ],
    ids=["array", "list", "rows", "tensor", "one-hot", "sparse", "tf.data",
         "tf.data, one-hot", "PyDataset"],
)  # fmt: skip
def test_labeled_examples_are_taken_into_memory(x, y):
    x, y = as_labeled(x, y)
    np.testing.assert_array_equal(x, X)
    assert x.dtype == "float32"
    np.testing.assert_array_equal(np.ravel(y), Y)
    assert y.dtype.kind == "i"


def test_labeled_examples_of_a_file(file):
    x, y = as_labeled(file["x"], file["y"])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)


def test_a_table_is_an_array_of_its_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.5, 2.0], "b": [3, 4], "c": [True, False]})
    assert as_unlabeled(table).tolist() == [[1.5, 3, 1], [2, 4, 0]]
    table["name"] = ["x", "y"]
    with pytest.raises(ValueError, match="columns of numbers. Received: name"):
        as_unlabeled(table)


class Table:
    """What is read of a DataFrame, with columns of these names."""

    def __init__(self, names):
        self.columns = list(names)

    def __getitem__(self, name):
        column = X[:, self.columns.index(name)]
        return SimpleNamespace(to_numpy=lambda: column)


def test_columns_in_another_order_are_refused():
    table, other = Table("abc"), Table("acb")
    check_columns(("x", table), a=Table("abc"), b=X, c=(table, Y), d=None)
    check_columns(("x", X), a=table)
    for call in (
        lambda: regularize(network(), table, other),
        lambda: pretrain(network(), table, Y, validation_data=(other, Y)),
        lambda: ExtendedGAR().train(network(), table, Y, other),
    ):
        with pytest.raises(
            ValueError, match="Received: 'c' in the place of 'b'"
        ):
            call()


# Unlabelled examples


def test_what_is_no_array_is_read_by_index(file, memmap):
    rows = np.array([44, 3, 3, 0])
    for x in (file["x"], memmap, sparse.coo_matrix(X)):
        found = as_unlabeled(x)
        assert found.shape == X.shape
        taken = take(found, rows)
        np.testing.assert_array_equal(taken, X[rows])
        # In the byte order of this machine: TensorFlow takes no other.
        assert taken.dtype == found.dtype == np.dtype("float32")
    assert as_unlabeled(memmap) is memmap


def batches_of(feed, count):
    found = pipeline.make_batches(feed)
    if isinstance(found, keras.utils.PyDataset):
        # `fit` asks for the first batch before it begins.
        found[0]
        return [found[i] for i in range(count)]
    return [ops.convert_to_numpy(x) for x in found.take(count)]


@pytest.mark.parametrize(
    "data",
    [dataset(X), dataset(X, Y), Batches(X, size=8), Batches(X, Y, size=45)],
    ids=["tf.data", "tf.data with labels", "PyDataset", "one batch"],
)
def test_a_stream_makes_batches_of_b_L_and_b_U(data):
    sampler = stage_2_sampler(X[:9], as_unlabeled(data), 4, 10, 45, seed=5)
    feed = Feed(sampler, as_unlabeled(data), X[:9])
    found = batches_of(feed, 10)
    # Two epochs of 45 images, each seen once; the last batch has what is left.
    assert [len(x) for x in found] == 2 * [14, 14, 14, 14, 9]
    for first in (0, 5):
        seen = np.concatenate([x[:-4] for x in found[first : first + 5]])
        np.testing.assert_array_equal(np.sort(seen, axis=0), np.sort(X, axis=0))
    chosen = np.concatenate([sampler.epoch(i)[1] for i in (1, 2)])
    for x, rows in zip(found, chosen, strict=True):
        np.testing.assert_array_equal(x[-4:], X[:9][rows])


def test_a_stream_of_unknown_length_needs_the_size_of_an_epoch():
    endless = as_unlabeled(dataset(X).repeat())
    with pytest.raises(ValueError, match="images_per_epoch=None"):
        stage_2_sampler(X[:9], endless, 4, 10, None, seed=0)
    assert stage_2_sampler(X[:9], endless, 4, 10, 30, seed=0).steps == 3
    # 45 images in 6 batches of 8.
    assert (
        stage_2_sampler(X[:9], Stream("x", dataset(X)), 4, 10, None, 0).size
        == 48
    )


def test_a_stream_is_read_as_it_is_needed():
    asked = []

    class Large(Batches):
        def __getitem__(self, index):
            asked.append(index)
            return super().__getitem__(index)

    data = Large(np.zeros((100_000, 3), "float32"))
    feed = Feed(BatchSampler(100, 10, 9, 4), as_unlabeled(data), X[:9])
    batches_of(feed, 2)
    assert len(asked) < 1000


@pytest.mark.parametrize("make", [dataset, Batches])
def test_predictions_of_a_stream_are_those_of_the_array(make, file):
    model = network()
    expected = predict(model, X)
    for x in (Stream("x", make(X)), as_unlabeled(file["x"])):
        np.testing.assert_allclose(predict(model, x), expected, rtol=1e-5)


# As users write it


def network():
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((3,)), layers.Dense(3)])


@pytest.mark.slow
@pytest.mark.parametrize("make", [dataset, Batches])
def test_both_stages_on_data_sets(make):
    model, labeled, test = network(), make(X[:9], Y[:9]), make(X, Y)
    pretrain(model, labeled, epochs=100, verbose=0, validation_data=test)
    history = regularize(
        model, labeled, make(X), epochs=2, validation_data=test, **SMALL
    )
    assert len(history.history["val_error"]) == 2
    assert error_rate(model, test) < 0.2
    method = ExtendedGAR(supervised=1.0)
    history = method.train(model, labeled, None, make(X), epochs=1, **SMALL)
    assert history.history["supervised"][0] < 1


@pytest.mark.parametrize("make", [dataset, Batches])
def test_a_large_data_set_is_evaluated_in_pieces(make, monkeypatch):
    model = network()
    expected = error_rate(model, X, Y)
    asked = []

    def spy(model, x, batch_size):
        asked.append(len(x))
        return predict(model, x, batch_size)

    monkeypatch.setattr(callbacks, "predict", spy)
    assert error_rate(model, make(X, Y)) == expected
    # 12 bytes an example: two batches of 8 reach 150.
    monkeypatch.setattr(data_adapters, "PIECE_BYTES", 150)
    assert error_rate(model, make(X, Y)) == expected
    assert asked == [45, 16, 16, 13]


@pytest.mark.slow
def test_a_file_trains_as_the_array(file, memmap):
    weights = []
    for x in (X, memmap, file["x"], X.astype("float64")):
        model = network()
        regularize(model, X[:9], x, epochs=1, **SMALL)
        weights.append(model.get_weights()[0])
    for mine in weights[1:]:
        np.testing.assert_allclose(mine, weights[0], rtol=1e-5)


@pytest.mark.slow
def test_a_folder_of_images(tmp_path):
    pytest.importorskip("PIL")
    for i in range(12):
        folder = tmp_path / "few" / f"class {i % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        image = np.full((6, 5, 1), 255 * (i % 2))
        keras.utils.save_img(folder / f"{i}.png", image, scale=False)
    options = dict(
        image_size=(6, 5), color_mode="grayscale", batch_size=5, verbose=False
    )
    read = keras.utils.image_dataset_from_directory
    few = read(tmp_path / "few", **options)
    many = read(tmp_path / "few", labels=None, **options)
    model = keras.Sequential(
        [keras.Input((6, 5, 1)), layers.Rescaling(1 / 255), layers.Flatten(),
         layers.Dense(2)]
    )  # fmt: skip
    pretrain(model, few, epochs=100, verbose=0)
    regularize(model, few, many, epochs=1, **SMALL)
    assert error_rate(model, few) == 0


# Several inputs


def two_inputs():
    """The network of one input, which gets its first feature apart."""
    one, two = keras.Input((1,), name="one"), keras.Input((2,), name="two")
    x = layers.Concatenate()([one, two])
    return keras.Model({"one": one, "two": two}, network()(x))


def parted(x):
    return {"two": x[:, 1:], "one": x[:, :1]}


@pytest.mark.slow
def test_several_inputs_train_as_one():
    results = []
    for make, part in ((network, np.asarray), (two_inputs, parted)):
        model = make()
        data = part(X[:9]), Y[:9]
        pretrain(model, *data, epochs=5, verbose=0, validation_data=data)
        regularize(model, data[0], part(X), epochs=1, **SMALL)
        ExtendedGAR(supervised=1.0, average=0.5).train(
            model, *data, part(X), epochs=1, **SMALL
        )
        results.append([*model.get_weights(), error_rate(model, part(X), Y)])
    for mine, its in zip(*results, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_several_inputs_from_data_sets_and_files(file):
    labeled = tf.data.Dataset.from_tensor_slices((parted(X[:9]), Y[:9]))
    data = tf.data.Dataset.from_tensor_slices(parted(X)).batch(8)
    model = two_inputs()
    pretrain(model, labeled.batch(4), epochs=1, verbose=0)
    history = regularize(model, labeled.batch(4), data, epochs=1, **SMALL)
    assert np.isfinite(history.history["loss"][0])
    mixed = {"one": as_unlabeled(file["x"]), "two": X}
    taken = take(mixed, np.array([3, 1]))
    np.testing.assert_array_equal(taken["one"], X[[3, 1]])
    np.testing.assert_array_equal(taken["two"], X[[3, 1]])


@pytest.mark.parametrize("make", [dataset, Batches])
def test_a_tuple_of_inputs_stays_apart_from_labels(make):
    if make is dataset:
        data = tf.data.Dataset.from_tensor_slices(((X[:, :1], X[:, 1:]), Y))
        data = data.batch(8)
    else:

        class Pairs(Batches):
            def __getitem__(self, index):
                x, y = super().__getitem__(index)
                return (x[:, :1], x[:, 1:]), y

        data = Pairs(X, Y)
    labeled = X[:9, :1], X[:9, 1:]
    stream = as_unlabeled(data)
    feed = Feed(BatchSampler(45, 10, 9, 4), stream, labeled)
    batches = pipeline.make_batches(feed)
    first = batches[0] if hasattr(batches, "feed") else next(iter(batches))
    x, y, _ = keras.utils.unpack_x_y_sample_weight(first)
    assert [tuple(part.shape) for part in x] == [(14, 1), (14, 2)]
    assert y is None


# What is refused


def test_arrays_that_mask_nothing_are_plain_arrays():
    nothing = np.ma.masked_array(X)
    x, y = as_labeled(nothing, np.ma.masked_array(Y))
    for found, plain in [(x, X), (y, Y), (as_unlabeled(nothing), X)]:
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, plain)


def test_what_makes_no_sense_is_refused():
    cases = [
        (lambda: as_labeled(dataset(X, Y), Y), "y_labeled must be left out"),
        (lambda: as_labeled(dataset(X, Y).repeat()), "must have an end"),
        (lambda: as_labeled(dataset(X, Y, Y)), "weights of examples"),
        (lambda: as_labeled(dataset(X[:0])), "at least one batch"),
        (lambda: as_labeled(dataset(X, Y).unbatch()), "must give batches"),
        (
            lambda: regularize(network(), X, dataset(X).unbatch()),
            "x_unlabeled must give batches .* single examples. Call its batch",
        ),
        (lambda: as_labeled(X, 2 * np.eye(3)[Y]), "single 1 among 0"),
        (
            lambda: pretrain(network(), np.ma.masked_equal(X, X[1, 1]), Y),
            "x_labeled must have no masked values. Received: 1 masked of 135",
        ),
        (
            lambda: pretrain(network(), X, np.ma.masked_equal(Y, 0)),
            "y_labeled must have no masked values. Received: 15 masked of 45",
        ),
        (
            lambda: regularize(network(), X, np.ma.masked_equal(X, X[1, 1])),
            r"x_unlabeled must have no masked .* x_unlabeled.filled\(value\)",
        ),
        (lambda: as_labeled([[1, 2], [3]]), "list of examples of one shape"),
        (lambda: pretrain(network(), "x.npz", Y), "Load the file first"),
        (lambda: pretrain(network(), ["one", "two"], [0, 1]), "of text first"),
        (
            lambda: pretrain(network(), tf.sparse.from_dense(X), Y),
            "Make it dense: tf.sparse.to_dense",
        ),
        (
            lambda: pretrain(network(), tf.ragged.constant([[1.0]]), [0]),
            r"Make it dense: x.to_tensor\(\)",
        ),
        (lambda: pretrain(network(), X), "y_labeled is missing"),
        (lambda: pretrain(network(), dataset(X)), "y_labeled is missing"),
        (lambda: regularize(network(), X, iter(X)), "runs only once"),
        (lambda: regularize(network(), X, dataset(X[:, :2])), "same shape"),
        (
            lambda: regularize(network(), X, tf.data.Dataset.from_tensors(
                tf.ragged.constant([[1.0], [2.0, 3.0]]))),
            "dense tensors",
        ),
        (lambda: pretrain(network(), parted(X), Y), "1 inputs, and 2"),
        (lambda: pretrain(two_inputs(), X, Y), "2 inputs, and 1 are given"),
        (
            lambda: regularize(two_inputs(), parted(X), {"one": X}),
            "the same inputs",
        ),
        (
            lambda: pretrain(
                two_inputs(), {"one": X[:, :1], "two": X[:5, 1:]}, Y
            ),
            "as many examples in each input",
        ),
        (
            lambda: ExtendedGAR(vat=1.0).train(
                two_inputs(), parted(X), Y, parted(X), **SMALL
            ),
            "the one input of a model",
        ),
        (
            lambda: METHODS["embed-cnn"]().train(
                network(), X, Y, dataset(X), **SMALL
            ),
            "one array of them",
        ),
    ]  # fmt: skip
    for call, message in cases:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
