"""MNIST as published or not at all, and splits that can be drawn again."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gar_keras import datasets
from gar_keras.datasets import DataError, Dataset, load_mnist, make_split
from gar_keras.datasets.base import check_md5
from gar_keras.datasets.mnist import FORMS
from gar_keras.datasets.registry import load_path
from gar_keras.experiments.settings import EXPERIMENTS

# Images of each digit, as counted on the original label files.
TRAIN_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST_COUNTS = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]

# The split of seed 0 with 100 labels, as the records hold it.
FIRST_LABELED = [18023, 33983, 55054, 49937, 30849]
FINGERPRINT = "98613feabaaab990e857fac85784397a42d55b1578c023a202f20c2276e5cb1a"


@pytest.fixture(scope="module")
def mnist():
    return load_mnist()


@pytest.fixture(scope="module")
def arrays(mnist):
    """The four arrays as in the file."""
    return {
        "x_train": mnist.x_train[..., 0],
        "y_train": mnist.y_train.astype("uint8"),
        "x_test": mnist.x_test[..., 0],
        "y_test": mnist.y_test.astype("uint8"),
    }


@pytest.fixture(scope="module")
def packed(arrays, tmp_path_factory):
    """A sound mnist.npz, quick to read."""
    path = tmp_path_factory.mktemp("sound") / "mnist.npz"
    np.savez(path, **arrays)
    return path


def test_mnist_is_mnist(mnist):
    assert mnist.x_train.shape == (60000, 28, 28, 1)
    assert mnist.x_test.shape == (10000, 28, 28, 1)
    assert mnist.x_train.dtype == mnist.x_test.dtype == np.uint8
    assert mnist.y_train[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(mnist.y_train).tolist() == TRAIN_COUNTS
    assert np.bincount(mnist.y_test).tolist() == TEST_COUNTS
    # The mean that everybody standardizes MNIST with.
    assert mnist.x_train.mean() / 255 == pytest.approx(0.1306604762738429)
    assert "exact" in mnist.source


@pytest.mark.slow
def test_a_sound_file_of_ones_own_loads(mnist, packed):
    own = load_mnist(packed.parent)
    np.testing.assert_array_equal(own.x_train, mnist.x_train)
    np.testing.assert_array_equal(own.y_test, mnist.y_test)


@pytest.mark.parametrize("key", FORMS)
def test_one_altered_value_is_refused(key, arrays, tmp_path):
    altered = arrays[key].copy()
    altered.flat[altered.size // 2] ^= 1
    np.savez(tmp_path / "mnist.npz", **{**arrays, key: altered})
    with pytest.raises(DataError, match=f"{key} in .*truncated or altered"):
        load_mnist(tmp_path)


def test_swapped_images_are_refused(arrays, tmp_path):
    swapped = arrays["x_test"][::-1]
    np.savez(tmp_path / "mnist.npz", **{**arrays, "x_test": swapped})
    with pytest.raises(DataError, match="x_test in .*truncated or altered"):
        load_mnist(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999, 0.9999999])
def test_a_truncated_file_is_refused(share, packed, tmp_path):
    path = shutil.copy(packed, tmp_path)
    with open(path, "r+b") as file:
        file.truncate(int(share * packed.stat().st_size))
    with pytest.raises(DataError, match="mnist.npz is not a readable .npz"):
        load_mnist(tmp_path)


def test_a_flipped_byte_in_the_compressed_file_is_refused(mnist, tmp_path):
    from gar_keras.datasets import mnist as module

    inside = module.resources.files("gar_keras") / "data" / "mnist.npz"
    content = bytearray(inside.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "mnist.npz").write_bytes(content)
    with pytest.raises(DataError, match="mnist.npz"):
        load_mnist(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="No MNIST file.*mnist.npz"):
        load_mnist(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "mnist.npz").touch()
    with pytest.raises(DataError, match="data_dir must be a folder"):
        load_mnist(tmp_path / "mnist.npz")


def write_text(path):
    path.write_text("x_train,y_train\n")


def write_npy(path):
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))


def write_other_keys(path):
    np.savez(path, images=np.zeros(3))


def write_objects(path):
    np.savez(path, **{key: np.array([None]) for key in FORMS})


@pytest.mark.parametrize(
    "write", [write_text, write_npy, write_other_keys, write_objects]
)
def test_another_format_is_refused(write, tmp_path):
    write(tmp_path / "mnist.npz")
    with pytest.raises(DataError, match="is not a readable .npz file"):
        load_mnist(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"x_test": np.zeros((10000, 28, 28), "float32")},
        {"x_test": np.zeros((10000, 784), "uint8")},
        {"y_test": np.zeros((9999,), "uint8")},
        {"y_train": np.zeros((60000,), "int64")},
    ],
)
def test_arrays_of_another_form_are_refused(change, arrays, tmp_path):
    np.savez(tmp_path / "mnist.npz", **{**arrays, **change})
    with pytest.raises(DataError, match="must be uint8"):
        load_mnist(tmp_path)


def test_load_finds_by_name(monkeypatch):
    found = tiny()
    monkeypatch.setitem(datasets.DATASETS, "tiny", lambda data_dir: found)
    assert datasets.load("tiny") is found


def test_load_names_the_allowed():
    with pytest.raises(ValueError, match="mnist, .*Received: name='minst'"):
        datasets.load("minst")


def test_load_refuses_data_of_another_name(monkeypatch):
    monkeypatch.setitem(datasets.DATASETS, "norb", lambda data_dir: tiny())
    with pytest.raises(DataError, match="'tiny'.*Received: name='norb'"):
        datasets.load("norb")


def tiny(**changes):
    """A small sound data set, with some attributes changed."""
    sound = {
        "x_train": np.zeros((6, 4, 4, 1), "uint8"),
        "y_train": np.arange(6) % 3,
        "x_test": np.zeros((3, 4, 4, 1), "uint8"),
        "y_test": np.arange(3),
    }
    return Dataset(
        name="tiny",
        title="Tiny",
        num_classes=3,
        source="made for a test",
        **{**sound, **changes},
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_train": np.zeros((6, 4, 4), "uint8")}, "x_train .* channels"),
        ({"x_test": np.zeros((3, 5, 4, 1), "uint8")}, "x_test .* shape"),
        ({"y_train": np.arange(5) % 3}, "one label for each of the 6"),
        ({"y_train": np.zeros((6, 3), "int64")}, "one label for each"),
        ({"y_test": np.array([0, 1, 3])}, "must lie in 0..2"),
        ({"y_test": np.array([0, 1, -1])}, "must lie in 0..2"),
        ({"y_test": np.arange(3.0)}, "y_test .* int64"),
    ],
)
def test_a_data_set_that_does_not_fit_is_refused(change, message):
    with pytest.raises(DataError, match=message):
        tiny(**change)


def test_check_md5_takes_the_bytes_it_knows():
    md5 = "5d41402abc4b2a76b9719d911017c592"
    check_md5(b"hello", md5, "greeting")
    with pytest.raises(DataError, match="greeting is not the expected file"):
        check_md5(b"hallo", md5, "greeting")


@st.composite
def draws(draw):
    """Labels and numbers that can be drawn from them."""
    n = draw(st.integers(2, 6))
    each = draw(st.integers(1, 8))
    extra = draw(st.lists(st.integers(0, n - 1), max_size=20))
    y = np.array([*range(n)] * each + extra)
    y = np.random.default_rng(draw(st.integers(0, 9))).permutation(y)
    num_labeled = n * draw(st.integers(1, each))
    return y, num_labeled, draw(st.integers(0, len(y) - num_labeled))


@settings(max_examples=50, deadline=None)
@given(draws(), st.integers(0, 2**32 - 1))
def test_a_split_is_even_and_disjoint(drawn, seed):
    y, num_labeled, num_validation = drawn
    split = make_split(y, num_labeled, seed, num_validation)
    assert len(split.labeled) == num_labeled
    assert len(split.validation) == num_validation
    chosen = np.concatenate([split.labeled, split.validation])
    assert len(np.unique(chosen)) == len(chosen)
    assert chosen.min() >= 0 and chosen.max() < len(y)
    assert len(set(np.bincount(y[split.labeled]))) == 1


@settings(max_examples=50, deadline=None)
@given(draws(), st.integers(0, 2**32 - 1))
def test_a_seed_decides_the_split(drawn, seed):
    y, num_labeled, num_validation = drawn
    one = make_split(y, num_labeled, seed, num_validation)
    two = make_split(y.copy(), num_labeled, seed, num_validation)
    np.testing.assert_array_equal(one.labeled, two.labeled)
    np.testing.assert_array_equal(one.validation, two.validation)
    assert one.fingerprint() == two.fingerprint()


@settings(max_examples=50, deadline=None)
@given(draws())
def test_labels_do_not_depend_on_the_validation_images(drawn):
    y, num_labeled, num_validation = drawn
    with_them = make_split(y, num_labeled, 0, num_validation)
    without = make_split(y, num_labeled, 0, 0)
    np.testing.assert_array_equal(with_them.labeled, without.labeled)


LABELS = np.arange(1000) % 10


def test_seeds_give_different_splits():
    prints = {make_split(LABELS, 20, s, 50).fingerprint() for s in range(20)}
    assert len(prints) == 20


def test_the_classes_of_the_labels_are_in_no_order():
    split = make_split(LABELS, 100, seed=0, num_validation=0)
    classes = LABELS[split.labeled]
    assert not np.array_equal(classes, np.sort(classes))


def test_every_image_can_be_chosen():
    split = make_split(LABELS, 1000, seed=0, num_validation=0)
    assert sorted(split.labeled) == [*range(1000)]


def test_a_fingerprint_tells_the_parts_apart():
    split = make_split(LABELS, 20, seed=0, num_validation=20)
    swapped = replace(split, labeled=split.validation, validation=split.labeled)
    assert split.fingerprint() != swapped.fingerprint()


def test_a_fingerprint_is_of_the_values_alone():
    split = make_split(LABELS, 20, seed=0, num_validation=20)
    narrow = replace(split, labeled=split.labeled.astype("int16"))
    assert split.fingerprint() == narrow.fingerprint()


def test_the_published_split_is_drawn_again(mnist):
    split = make_split(mnist.y_train, 100, seed=0)
    assert split.labeled[:5].tolist() == FIRST_LABELED
    assert split.fingerprint() == FINGERPRINT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_labeled": 25}, "multiple of the 10 classes.*num_labeled=25"),
        ({"num_labeled": 0}, "num_labeled must be an integer of at least 1"),
        ({"num_labeled": -10}, "num_labeled must be an integer"),
        ({"num_labeled": True}, "num_labeled must be an integer"),
        ({"num_labeled": 20.0}, "num_labeled must be an integer"),
        ({"num_labeled": "20"}, "num_labeled must be an integer"),
        ({"num_labeled": None}, "num_labeled must be an integer"),
        ({"num_labeled": 1010}, "class 0 holds 100. Ask for at most 1000"),
        ({"num_validation": 981}, "num_validation must be at most 980"),
        ({"num_validation": -1}, "num_validation must be an integer"),
        ({"num_validation": 1.0}, "num_validation must be an integer"),
        ({"num_validation": True}, "num_validation must be an integer"),
        ({"seed": -1}, "seed must be an integer"),
        ({"seed": 0.5}, "seed must be an integer"),
        ({"seed": False}, "seed must be an integer"),
        ({"seed": None}, "seed must be an integer"),
        ({"y_train": []}, "y_train must hold at least one label"),
        ({"y_train": LABELS / 1.0}, "y_train must be integer class indices"),
        ({"y_train": np.eye(10, dtype=int)}, "y_train must be integer class"),
        ({"y_train": LABELS - 1}, "y_train must not be negative"),
    ],
)
def test_what_cannot_be_drawn_is_refused(change, message):
    arguments = {
        "y_train": LABELS,
        "num_labeled": 20,
        "seed": 0,
        "num_validation": 10,
    }
    with pytest.raises(ValueError, match=message):
        make_split(**{**arguments, **change})


def test_the_smallest_class_sets_the_limit():
    y = np.array([0] * 9 + [1] * 2)
    with pytest.raises(ValueError, match="class 1 holds 2. Ask for at most 4"):
        make_split(y, 6, seed=0, num_validation=0)


def test_numpy_integers_count_as_integers():
    plain = make_split(LABELS, 20, 3, 10)
    split = make_split(LABELS, np.int32(20), np.uint8(3), np.int64(10))
    assert split.fingerprint() == plain.fingerprint()


def test_every_data_set_of_the_experiments_is_in_the_registry():
    for by_labels in EXPERIMENTS.values():
        for m, experiment in by_labels.items():
            assert experiment.num_labeled == m
            assert experiment.dataset in datasets.DATASETS


def test_every_loader_is_there():
    entries = [*datasets.DATASETS.values(), *datasets.UNLABELED.values()]
    paths = [e.path for e in entries if e.path is not None]
    assert all(callable(load_path(path)) for path in paths)


def test_the_registry_tells_the_titles_of_the_data():
    for name in ("mnist", "mnist-pairs", "digits"):
        assert datasets.load(name).title == datasets.DATASETS[name].title
