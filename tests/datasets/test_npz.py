"""Arrays are read in the form asked for, or refused."""

import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gar_keras.datasets.base import DataError
from gar_keras.datasets.npz import Form, read_arrays

ARRAYS = {"x": np.arange(24, dtype="uint8").reshape(2, 3, 4), "y": np.arange(2)}


FORMS = {
    "x": Form(np.uint8, (2, range(1, 4), 4)),
    "y": Form(np.integer, (2,)),
}


@pytest.fixture(scope="module")
def npz(tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "sound.npz"
    np.savez_compressed(path, **ARRAYS, other=np.zeros(1))
    return path.read_bytes()


def test_read_arrays(tmp_path, npz):
    (tmp_path / "a.npz").write_bytes(npz)
    arrays = read_arrays(tmp_path / "a.npz", FORMS)
    assert arrays.keys() == {"x", "y"}
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[key], strict=True)


def test_read_arrays_refuses_other_files(tmp_path, npz):
    path = tmp_path / "a.npz"
    with pytest.raises(DataError, match="not a readable .npz file"):
        read_arrays(path, FORMS)
    path.write_bytes(npz)
    with pytest.raises(DataError, match="with x, z: .*no item named 'z.npy'"):
        read_arrays(path, {"x": FORMS["x"], "z": FORMS["y"]})
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(DataError, match="not a readable .npz file"):
        read_arrays(path, FORMS)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (Form(np.uint8, (2, 4, 4)), r"uint8 \(2, 4, 4\)"),
        (Form(np.uint8, (range(3, 9), 3, 4)), r"uint8 \(3..8, 3, 4\)"),
        (Form(np.uint8, (2,)), r"uint8 \(2,\)"),
        (Form(np.int64, (2, 3, 4)), r"int64 \(2, 3, 4\)"),
        (Form(np.floating, (2, 3, 4)), r"floating \(2, 3, 4\)"),
    ],
    ids=["length", "range", "axes", "dtype", "abstract"],
)
def test_read_arrays_refuses_other_forms(tmp_path, npz, form, message):
    path = tmp_path / "a.npz"
    path.write_bytes(npz)
    with pytest.raises(
        DataError,
        match=rf"{path} .*: x must be {message}. Received: uint8 \(2, 3, 4\)"
        ". Put a clean copy in its place",
    ):
        read_arrays(path, {"x": form})


def npy(header, content=b""):
    """An .npy file of this header."""
    size = len(header).to_bytes(2, "little")
    return b"\x93NUMPY\x01\x00" + size + header.encode() + content


HEADER = "{{'descr': '|u1', 'fortran_order': False, 'shape': {}, }}\n"


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy(HEADER.format((10**12,))), "x must be .* Received: uint8 .10000"),
        (npy(HEADER.format((-2, 3, 4))), "x must be .* Received: uint8 .-2"),
        (npy(HEADER.format((2, 3, 4))), "EOF"),
        (npy(HEADER.format((2, 3, 4)), bytes(25)), "x has bytes behind"),
        (npy("{'descr': ("), "EOF"),
        (npy("-" * 9_000 + "1"), ".npz"),
        (b"\x93NUMPY\x02\x00" + bytes(9), r"version \(1, 0\)"),
    ],
    ids=["huge", "negative", "cut", "more", "open", "nested", "version"],
)
def test_read_arrays_refuses_members(tmp_path, member, message):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", member)
    with pytest.raises(DataError, match=message):
        read_arrays(path, {"x": FORMS["x"]})


def test_read_arrays_reads_no_more_than_the_form(tmp_path, peak):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros((2, 3, 10_000_000), "uint8"))

    def read():
        with pytest.raises(DataError, match="x must be"):
            read_arrays(path, {"x": FORMS["x"]})

    assert peak(read) < 1_000_000


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_read_arrays_never_yields_other_values(tmp_path, npz, data):
    content = bytearray(npz)
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:at]
    else:
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    (tmp_path / "a.npz").write_bytes(content)
    try:
        arrays = read_arrays(tmp_path / "a.npz", FORMS)
    except DataError:
        return
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[key], strict=True)
