"""What users give reaches the model as it names it, or is refused in a line."""

import h5py
import keras
import numpy as np
import pytest
from keras import layers
from sources import Batches, dataset
from stacks import functional, sequential

from gar_keras import GARClassifier, error_rate, pretrain, regularize
from gar_keras.callbacks import ErrorRate

tf = pytest.importorskip("tensorflow")
pandas = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
Y = np.arange(60) % 3
X = (rng.normal(size=(60, 4)) + 4 * np.eye(4)[Y]).astype("float32")
X_L, Y_L = X[:24], Y[:24]
BITS = X > 1
QUIET = {"verbose": 0}
SMALL = {"labeled_per_batch": 4, "unlabeled_per_batch": 20, "epochs": 1}


def named(kind):
    """A model of the first two columns and the last two, by name."""
    keras.utils.set_random_seed(0)
    one, two = keras.Input((2,), name="b"), keras.Input((2,), name="a")
    outputs = layers.Dense(3)(layers.Concatenate()([one, two]))
    inputs = [one, two] if kind == "list" else {"b": one, "a": two}
    return keras.Model(inputs, outputs)


def keyed(x, more=()):
    first, second = x[:, :2], x[:, 2:]
    text = np.array(["row"] * len(x))
    extra = {name: text if name == "0" else 9 * first for name in more}
    return extra | {"b": first, "a": second}


DOORS = {
    "arrays": lambda x, y=None: x if y is None else (x, y),
    "tf.data": dataset,
    "PyDataset": Batches,
}


@pytest.mark.parametrize(
    ("kind", "form"),
    [("list", "arrays"), ("dict", "arrays"), ("list", "tf.data"),
     ("dict", "PyDataset")],
)  # fmt: skip
def test_a_dict_has_what_the_model_names_and_more(kind, form):
    results = []
    for more in ((), ("0", "aa", "c")):
        model = named(kind)
        x_l, x_u = keyed(X_L, more), keyed(X, more)
        pair = DOORS[form](x_l, Y_L)
        labeled = pair if form == "arrays" else (pair,)
        errors = ErrorRate(mine=pair if form == "arrays" else (pair, None))
        one = pretrain(
            model, *labeled, epochs=4, report_every=2, validation_data=pair,
            callbacks=[errors], **QUIET,
        )  # fmt: skip
        two = regularize(
            model, labeled[0], DOORS[form](x_u), validation_data=pair,
            y_labeled=Y_L if form == "arrays" else None, **SMALL, **QUIET,
        )  # fmt: skip
        results.append(
            [*model.get_weights(), error_rate(model, *labeled)]
            + [history.history["val_loss"] for history in (one, two)]
        )
        whole = np.concatenate([X_L[:, :2], X_L[:, 2:]], axis=1)
        kernel, bias = model.get_weights()
        assert results[-1][2] == np.mean(
            np.argmax(whole @ kernel + bias, axis=1) != Y_L
        )
    keras.tree.map_structure(np.testing.assert_array_equal, *results)


@pytest.mark.parametrize("method", ["vat", "mean-teacher", "entropy"])
def test_one_input_in_a_dict_trains_as_the_array(method):
    weights = []
    for form in (lambda x: x, lambda x: {"features": x}):
        keras.utils.set_random_seed(0)
        source = keras.Input((4,), name="features")
        model = keras.Model(form(source), layers.Dense(3)(source))
        regularize(
            model, form(X_L), form(X), y_labeled=Y_L, method=method, **SMALL,
            **QUIET,
        )  # fmt: skip
        weights.append(model.get_weights())
    np.testing.assert_equal(*weights)


def network():
    return functional(layers.Dense(3))


def frame(x=X, **columns):
    return pandas.DataFrame(x, columns=list("abcd")).assign(**columns)


def lengths():
    def batches():
        for steps in (2, 3, 4):
            yield np.ones((6, steps, 4), "float32"), Y[:6]

    signature = tf.TensorSpec((None, None, 4)), tf.TensorSpec((None,), tf.int64)
    return tf.data.Dataset.from_generator(batches, output_signature=signature)


def read_anything():
    return sequential(
        layers.GlobalAveragePooling1D(), layers.Dense(3), shape=(None, 4)
    )


def classify(x):
    few = np.where(np.arange(60) < 24, Y, -1)
    network = sequential(layers.Dense(3))
    GARClassifier(network, pretrain_epochs=1, epochs=1).fit(x, few)


DATES = pandas.date_range("2020", periods=60)
REFUSED = {
    "a missing key": (
        lambda: pretrain(named("dict"), {"a": X_L[:, :2]}, Y_L, **QUIET),
        "each input of the model: 'b', 'a'. Received: x_labeled with 'a'",
    ),
    "batches of several lengths": (
        lambda: pretrain(read_anything(), lengths(), epochs=1, **QUIET),
        r"one shape. Received: examples of \(2, 4\) and \(3, 4\)",
    ),
    # Read in the training, by TensorFlow in a thread of its own.
    "unlabelled ones": (
        lambda: regularize(
            read_anything(), np.ones((24, 2, 4), "float32"), lengths(),
            images_per_epoch=20, **QUIET,
        ),
        "one shape. Received: examples of",
    ),
    "text": (
        lambda: pretrain(network(), frame(name="x")[:24], Y_L, **QUIET),
        "array of real numbers",
    ),
    "dates": (
        lambda: pretrain(network(), frame(when=DATES)[:24], Y_L, **QUIET),
        "x_labeled must hold numbers, but has a column of dates",
    ),
    "dates in a table": (
        lambda: classify(frame(d=DATES)),
        "X must hold numbers, but has a column of dates",
    ),
    "missing numbers": (
        lambda: pretrain(
            network(), frame().astype("Float32").mask(X > 4)[:24], Y_L, **QUIET
        ),
        "fill in what is missing",
    ),
    "integers that are cut off": (
        lambda: pretrain(
            sequential(layers.Embedding(9, 2), layers.Flatten(),
                       layers.Dense(3), dtype="int32"),
            np.full((24, 4), 2**40), Y_L, **QUIET,
        ),
        "Give integers that int32 holds",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_is_a_line(name):
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text) as raised:
        call()
    assert "\n" not in str(raised.value)


def hdf5(tmp_path):
    file = h5py.File(tmp_path / "x.h5", "w")
    file["x"] = BITS
    return file["x"]


def memory_map(tmp_path):
    np.save(tmp_path / "x.npy", BITS)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


# Other forms of the same numbers.
TAKEN = {
    "HDF5": hdf5,
    "memory map": memory_map,
    "boolean columns": lambda _: frame(BITS).astype("boolean"),
}
# The batches of a stream come in an order of their own, the same for bytes.
STREAMS = {"tf.data": dataset, "PyDataset": Batches}


@pytest.mark.parametrize("name", [*TAKEN, *STREAMS])
def test_booleans_are_bytes(name, tmp_path):
    as_bytes, results = BITS.astype("uint8"), []
    if name in TAKEN:
        forms = as_bytes, TAKEN[name](tmp_path)
    else:
        forms = map(STREAMS[name], (as_bytes, BITS))
    for x_u in forms:
        model = network()
        model.set_weights([np.eye(4)[:, :3], np.zeros(3)])
        x_l = BITS[:24].astype("uint8")
        method = {"optimizer": keras.optimizers.SGD(0.1), **SMALL, **QUIET}
        regularize(model, x_l, x_u, **method)
        results.append(model.get_weights())
    np.testing.assert_equal(*results)


def test_one_number_is_one_whatever_its_bytes():
    whole = np.round(X).astype("int16")
    results = []
    for dtype in ("int16", ">i2"):
        model = network()
        model.set_weights([np.eye(4)[:, :3], np.zeros(3)])
        x = whole.astype(dtype)
        history = pretrain(
            model, whole[:24], Y_L, epochs=2, validation_data=(x, Y), **QUIET
        ).history
        assert history["val_error"][0] == error_rate(model, x, Y)
        regularize(
            model, whole[:24], x, validation_data=(x, Y), **SMALL, **QUIET
        )
        results.append(model.get_weights())
    np.testing.assert_equal(*results)
    # Integers of another size that the model's holds, as FeatureSpace has them.
    model = sequential(
        layers.Embedding(9, 2), layers.Flatten(), layers.Dense(3), dtype="int32"
    )
    pretrain(model, abs(whole[:24]).astype("int64") % 9, Y_L, epochs=1, **QUIET)
