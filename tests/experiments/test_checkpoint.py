"""The state of an unfinished run: exact, or none at all."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gar_keras.experiments.checkpoint import Checkpoint, assign
from gar_keras.experiments.records import RecordError

ones = keras.ops.ones
to_numpy = keras.ops.convert_to_numpy

# Fingerprint and seed.
RUN = ("0123abcd", 3)
PROGRESS = {"curve": {"epoch": [0, 1], "error": [0.1, None]}, "seconds": 1.5}


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "run.npz", *RUN)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a small saved state."""
    checkpoint = Checkpoint(tmp_path_factory.mktemp("sound") / "run.npz", *RUN)
    checkpoint.save(PROGRESS, model=[np.arange(3.0), np.eye(2)])
    return checkpoint.path.read_bytes()


def test_a_state_comes_back_bit_for_bit(checkpoint):
    rng = np.random.default_rng(0)
    # More than ten: their order is that of their numbers, not of their names.
    model = [rng.standard_normal(3).astype("float32") for _ in range(12)]
    seed = [np.array([2**32 - 1, 7], "uint32"), np.array(5, "int64")]
    checkpoint.save(PROGRESS, model=model, optimizer=seed, best=[])
    progress, variables = checkpoint.load()
    assert progress == PROGRESS
    assert variables.keys() == {"model", "optimizer"}
    for saved, loaded in zip(
        [*model, *seed],
        [*variables["model"], *variables["optimizer"]],
        strict=True,
    ):
        assert loaded.dtype == saved.dtype
        np.testing.assert_array_equal(loaded, saved, strict=True)


def test_the_state_of_a_model_comes_back(checkpoint):
    def build():
        layers = [keras.layers.Dense(3), keras.layers.Dropout(0.5, seed=1)]
        model = keras.Sequential([keras.Input((2,)), *layers])
        optimizer = keras.optimizers.SGD(momentum=0.9)
        optimizer.build(model.trainable_variables)
        return model, optimizer

    model, optimizer = build()
    model(np.ones((4, 2)), training=True)
    optimizer.apply([ones(v.shape) for v in model.trainable_variables])
    checkpoint.save({}, model=model.variables, optimizer=optimizer.variables)
    _, variables = checkpoint.load()
    other, other_optimizer = build()
    assign(other.variables, variables["model"])
    assign(other_optimizer.variables, variables["optimizer"])
    for ours, theirs in (
        (other.variables, model.variables),
        (other_optimizer.variables, optimizer.variables),
    ):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(to_numpy(a), to_numpy(b))
    # The state of dropout is among them, and has moved.
    state = to_numpy(other.layers[1].seed_generator.state)
    assert state.tolist() == [1, 1]


def test_a_later_state_replaces_the_earlier(checkpoint):
    checkpoint.save({"epoch": 1}, model=[np.zeros(2)])
    checkpoint.save({"epoch": 2}, model=[np.ones(2)])
    progress, variables = checkpoint.load()
    assert progress == {"epoch": 2}
    assert variables["model"][0].tolist() == [1, 1]


def test_no_file_is_no_state(checkpoint):
    assert checkpoint.load() is None


def test_a_deleted_state_is_gone(checkpoint):
    checkpoint.save(PROGRESS, model=[])
    checkpoint.delete()
    checkpoint.delete()
    assert checkpoint.load() is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_truncated_file_is_no_state(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "truncated.npz"
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    assert Checkpoint(path, *RUN).load() is None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_file_never_loads_wrong(content, tmp_path_factory, data):
    position = data.draw(st.integers(0, len(content) - 1))
    damaged = bytearray(content)
    damaged[position] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(damaged)
    try:
        state = Checkpoint(path, *RUN).load()
    except RecordError:
        return
    if state is not None:
        # The byte was one of those that hold no content.
        progress, variables = state
        assert progress == PROGRESS
        first, second = variables["model"]
        assert first.tolist() == [0, 1, 2]
        assert second.tolist() == [[1, 0], [0, 1]]


def test_a_file_that_lost_an_array_is_no_state(checkpoint):
    checkpoint.save(PROGRESS, model=[np.zeros(2), np.ones(2)])
    with np.load(checkpoint.path) as archive:
        arrays = dict(archive)
    np.savez(checkpoint.path, **arrays)
    assert checkpoint.load() is not None
    del arrays["model/1"]
    np.savez(checkpoint.path, **arrays)
    assert checkpoint.load() is None


@pytest.mark.parametrize(
    "content", [b"", b"no archive", b"\x93NUMPY\x01\x00", b"PK\x05\x06"]
)
def test_another_format_is_no_state(content, checkpoint):
    checkpoint.path.write_bytes(content)
    assert checkpoint.load() is None


def test_the_state_of_another_version_is_refused(checkpoint):
    np.savez(checkpoint.path, progress=np.array("{}"))
    with pytest.raises(RecordError, match="another version") as error:
        checkpoint.load()
    assert str(checkpoint.path) in str(error.value)


@pytest.mark.parametrize("other", [("0123abcd", 4), ("0123abce", 3)])
def test_the_state_of_another_run_is_refused(other, checkpoint):
    checkpoint.save(PROGRESS, model=[])
    with pytest.raises(RecordError, match="another run") as error:
        Checkpoint(checkpoint.path, *other).load()
    assert str(checkpoint.path) in str(error.value)


def test_what_claims_to_be_too_large_is_refused(checkpoint, monkeypatch):
    checkpoint.save(PROGRESS, model=[])

    def load(file):
        raise MemoryError("Unable to allocate 72.8 TiB")

    monkeypatch.setattr(np, "load", load)
    with pytest.raises(RecordError, match="72.8 TiB") as error:
        checkpoint.load()
    assert str(checkpoint.path) in str(error.value)


def test_a_failed_save_leaves_the_state_before_it(checkpoint):
    checkpoint.save({"epoch": 1}, model=[np.zeros(2)])
    with pytest.raises(TypeError, match="not JSON serializable"):
        checkpoint.save({"epoch": object()}, model=[np.ones(2)])
    with pytest.raises(OSError, match="full"):
        checkpoint.save({"epoch": 2}, model=fail_late())
    assert checkpoint.load()[0] == {"epoch": 1}
    assert list(checkpoint.path.parent.iterdir()) == [checkpoint.path]


def fail_late():
    yield np.ones(2)
    raise OSError("full")


@pytest.mark.parametrize("values", [[2, 2], [3], []])
def test_values_of_other_variables_are_refused(values):
    variables = [keras.Variable(np.zeros(2, "float32"))]
    values = [np.ones(n, "float32") for n in values]
    with pytest.raises(ValueError, match=r"but the run has 1 of shapes \[\(2,"):
        assign(variables, values)
    assert to_numpy(variables[0]).tolist() == [0, 0]
