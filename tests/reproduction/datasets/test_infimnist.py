"""The InfiMNIST generator against the published formula, done by hand."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gar_keras.datasets import DataError
from gar_keras.datasets.mnist import load_mnist
from reproduction.datasets import infimnist
from reproduction.datasets.infimnist import (
    FIELDS_FILE,
    LENGTH,
    TANGENTS_FILE,
    InfiMNIST,
)

indices = st.integers(0, LENGTH - 1)


@pytest.fixture(scope="module")
def x_train():
    return load_mnist().x_train


@pytest.fixture(scope="module")
def source():
    return InfiMNIST()


@pytest.fixture
def made(monkeypatch, source):
    """Generated fields and tangents, which need not be generated again."""
    fields = source._fields.reshape(-1, 28, 28)
    tangents = source._tangents.reshape(-1, 2, 28, 28)
    monkeypatch.setattr(infimnist, "make_fields", lambda: fields)
    monkeypatch.setattr(infimnist, "make_tangents", lambda x: tangents)
    return fields, tangents


def index_of(way, start=60000):
    """The first index from `start` on whose image moves in this way."""
    number = start + 10000
    while number * 131071 % 2**32 % 1521 % 9 != way:
        number += 1
    return number - 10000


def by_hand(index, x_train, fields, tangents, number=float):
    """One image by the formula, number by number, in numbers of this type."""
    i = index + 10000
    a = (i - 10000) % 60000
    k1 = (i * 131071) % 2**32 % 1521
    k2 = (k1 + 1 + 2 * i) % 1522
    alpha = -1 if (k1 + k2) % 2 else 1
    deformed = {}
    for r in range(28):
        for c in range(28):
            z = number(x_train[a, r, c, 0]) + number(alpha) * (
                number(fields[k1, r, c]) * number(tangents[a, 0, r, c])
                - number(fields[k2, r, c]) * number(tangents[a, 1, r, c])
            )
            deformed[r, c] = math.floor(min(max(z, 0), 255))
    ways = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    ways += [(-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0)]
    down, right = ways[k1 % 9]
    image = np.zeros((28, 28), int)
    for r in range(28):
        for c in range(28):
            if (right, c) not in ((-1, 0), (1, 1)):
                # Column -1 is the end of the row above, column 28 the
                # beginning of the row below: an image is one long row.
                row, column = divmod(28 * (r - down) + c - right, 28)
                image[r, c] = deformed.get((row, column), 0)
    return image


# At the first and at the last indices keys are beyond 32 bits, and wrap.
@pytest.mark.parametrize("start", [60000, LENGTH - 60000])
def test_images_follow_the_formula(start, made):
    fields, tangents = made
    images = InfiMNIST()
    assert images.source.endswith("generated fields and tangents")
    # Digits would not show what is blanked at the edges.
    noise = np.random.default_rng(0).integers(0, 256, (60000, 784), "uint8")
    images._x = noise
    chosen = [index_of(way, start) for way in range(9)]
    expected = [
        by_hand(index, noise.reshape(-1, 28, 28, 1), fields, tangents)
        for index in chosen
    ]
    np.testing.assert_array_equal(images.take(chosen)[..., 0], expected)


def test_first_60000_are_mnist(source, x_train):
    np.testing.assert_array_equal(source.take(np.arange(60000)), x_train)


@settings(max_examples=30, deadline=None)
@given(st.lists(indices, max_size=300), st.randoms())
def test_images_depend_on_their_index_alone(source, chosen, random):
    images = dict(zip(chosen, source.take(chosen), strict=True))
    order = chosen + chosen[: len(chosen) // 2]
    random.shuffle(order)
    expected = [images[index] for index in order]
    np.testing.assert_array_equal(
        source.take(order), np.reshape(expected, (-1, 28, 28, 1))
    )
    for index in chosen[:3]:
        np.testing.assert_array_equal(source.take([index])[0], images[index])


def test_generated_images_are_the_same_everywhere(source):
    # SHA-256 as computed once; any other value is another data set.
    images = source.take(np.arange(7 * 60000, 8 * 60000))
    arrays = [source._fields.astype("<f4"), source._tangents, images]
    assert [hashlib.sha256(a.tobytes()).hexdigest()[:16] for a in arrays] == [
        "24c8552080cc64c7",
        "bdb48fab41196ca0",
        "e42bac0a0333f93f",
    ]


@pytest.mark.slow
def test_original_files(tmp_path, x_train):
    rng = np.random.default_rng(0)
    fields = rng.normal(size=(1522, 28, 28)).astype("<f4")
    fields.tofile(tmp_path / FIELDS_FILE)
    # All 0 (and on no disk) but those of two images.
    shape = (60000, 2, 28, 28)
    tangents = np.memmap(tmp_path / TANGENTS_FILE, "<f4", "w+", shape=shape)
    tangents[[5, 59999]] = rng.normal(0, 40, (2, 2, 28, 28))
    tangents.flush()
    images = InfiMNIST(tmp_path)
    assert "original files" in images.source
    # Tangents of 0 leave only the shift.
    plain = index_of(8)
    assert (images.take([plain])[0] == x_train[plain - 60000]).all()
    for index in (60005, 6_000_005, 119_999, 7_979_999):
        # Here float32 rounds, so the reference must round with it.
        expected = by_hand(index, x_train, fields, tangents, np.float32)
        received = images.take([index])[0, ..., 0]
        np.testing.assert_array_equal(received, expected)


FIELDS = bytes(4 * 1522 * 28 * 28)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({TANGENTS_FILE: b""}, FIELDS_FILE),
        ({FIELDS_FILE: FIELDS, TANGENTS_FILE: bytes(20)}, TANGENTS_FILE),
    ],
)
def test_files_that_are_not_the_original_ones_are_named(
    files, named, tmp_path, made, monkeypatch
):
    monkeypatch.setenv("GAR_KERAS_DATA", str(tmp_path))
    for folder in (None, tmp_path):
        assert "generated" in InfiMNIST(folder).source
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for folder in (None, tmp_path):
        with pytest.raises(DataError, match=f"{tmp_path / named} is missing"):
            InfiMNIST(folder)
