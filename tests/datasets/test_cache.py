"""Files made from the data: once, and anew where they are unsound."""

from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest

from gar_keras.datasets.base import DataError
from gar_keras.datasets.cache import (
    Cached,
    cache_folders,
    create_checked,
    fingerprint,
)

pytestmark = pytest.mark.usefixtures("home")


def test_cache_folders(home, tmp_path, monkeypatch):
    usual = home / ".cache" / "gar_keras"
    assert cache_folders() == [usual]
    assert cache_folders(tmp_path) == [tmp_path, usual]
    monkeypatch.setenv("GAR_KERAS_CACHE", "~/made")
    assert cache_folders(tmp_path) == [home / "made"]


def test_fingerprint_depends_on_content_name_and_settings(tmp_path):
    for name, content in (("a", b"1"), ("b", b"1"), ("c/a", b"1"), ("d", b"2")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    a, b, same, d = (tmp_path / name for name in ("a", "b", "c/a", "d"))
    one = fingerprint([a], {"seed": 0, "mean": "own"})
    assert one == fingerprint([same], {"mean": "own", "seed": 0})
    others = [
        fingerprint([a], {"seed": 1, "mean": "own"}),
        fingerprint([b], {"seed": 0, "mean": "own"}),
        fingerprint([d], {"seed": 0, "mean": "own"}),
        fingerprint([a, b], {"seed": 0, "mean": "own"}),
        fingerprint([b, a], {"seed": 0, "mean": "own"}),
        fingerprint([], {"seed": 0, "mean": "own"}),
    ]
    assert len({one, *others}) == 7


VALUES = np.arange(60.0).reshape(20, 3)


def write_values(file):
    create_checked(file, "x", VALUES.shape, VALUES.dtype, 5)[:] = VALUES


def read_values(path):
    with h5py.File(path, "r") as file:
        return file["x"][()]


class Counted:
    """A cache of VALUES that counts how often they are written."""

    def __init__(self, mark="a" * 64):
        self.written = 0
        self.cached = Cached("values", mark, self.write, read_values)

    def write(self, file):
        self.written += 1
        write_values(file)


def files_in(folder):
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".lock")


def test_cache_is_written_once(tmp_path):
    counted = Counted()
    for _ in range(2):
        np.testing.assert_array_equal(counted.cached.load(tmp_path), VALUES)
    assert counted.written == 1
    assert files_in(tmp_path) == ["values-aaaaaaaaaaaaaaaa.h5"]


def test_what_a_kill_left_of_a_cache_is_deleted(tmp_path):
    (tmp_path / ".values-aaaaaaaaaaaaaaaa.h5.abcd").write_bytes(b"half")
    Counted().cached.load(tmp_path)
    assert files_in(tmp_path) == ["values-aaaaaaaaaaaaaaaa.h5"]


def test_cache_of_other_data_is_not_used(tmp_path):
    first = Counted()
    first.cached.load(tmp_path)
    # Its name has the same beginning of the fingerprint, its inside does not.
    second = Counted("a" * 63 + "b")
    second.cached.load(tmp_path)
    third = Counted("c" * 64)
    third.cached.load(tmp_path)
    assert (first.written, second.written, third.written) == (1, 1, 1)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a sound cache."""
    folder = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GAR_KERAS_CACHE", str(folder))
        Counted().cached.load()
    return (folder / "values-aaaaaaaaaaaaaaaa.h5").read_bytes()


def check_reads_or_remakes(folder, content):
    path = folder / "values-aaaaaaaaaaaaaaaa.h5"
    path.write_bytes(content)
    counted = Counted()
    np.testing.assert_array_equal(counted.cached.load(folder), VALUES)
    return counted.written


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.9999])
def test_cache_cut_short_is_made_anew(tmp_path, sound, kept):
    content = sound[: int(kept * len(sound))]
    assert check_reads_or_remakes(tmp_path, content) == 1
    assert check_reads_or_remakes(tmp_path, sound) == 0


def test_cache_with_one_altered_value_is_made_anew(tmp_path, sound):
    at = sound.index(VALUES[7].tobytes())
    content = bytearray(sound)
    content[at] ^= 1
    assert check_reads_or_remakes(tmp_path, content) == 1


@pytest.mark.parametrize("bit", [0, 6])
def test_cache_with_a_flipped_bit_never_yields_other_values(
    tmp_path, sound, bit
):
    def refuse(file):
        raise DataError("to be made anew")

    cached = Cached("values", "a" * 64, refuse, read_values)
    path = tmp_path / "values-aaaaaaaaaaaaaaaa.h5"
    places, found = range(bit, len(sound), 29), 0
    for at in places:
        content = bytearray(sound)
        content[at] ^= 1 << bit
        path.write_bytes(content)
        try:
            values = cached.load(tmp_path)
        except DataError:
            found += 1
        else:
            np.testing.assert_array_equal(values, VALUES, strict=True)
    # The others are padding, which carries no information.
    assert found > len(places) / 3


def test_cache_that_cannot_be_written_leaves_nothing(tmp_path):
    def fail(file):
        write_values(file)
        raise OSError("No space left on device")

    cached = Cached("values", "a" * 64, fail, read_values)
    with pytest.raises(DataError, match="No space left.*GAR_KERAS_CACHE"):
        cached.load(tmp_path)
    assert files_in(tmp_path) == []


def test_cache_passes_on_errors_of_the_data(tmp_path):
    def fail(file):
        raise DataError("the data are bad")

    with pytest.raises(DataError, match="^the data are bad$"):
        Cached("values", "a" * 64, fail, read_values).load(tmp_path)
    assert files_in(tmp_path) == []


def test_cache_made_by_several_at_once_is_written_once(tmp_path):
    counted = Counted()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(counted.cached.load, tmp_path) for _ in range(4)]
        for job in jobs:
            np.testing.assert_array_equal(job.result(30), VALUES)
    assert counted.written == 1


@pytest.fixture
def read_only(tmp_path):
    folder = tmp_path / "read-only"
    folder.mkdir()
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


def test_cache_of_a_read_only_folder_lies_in_the_home(home, read_only):
    counted = Counted()
    for _ in range(2):
        counted.cached.load(read_only)
    assert counted.written == 1
    assert files_in(read_only) == []
    assert len(files_in(home / ".cache" / "gar_keras")) == 1


def test_cache_in_a_read_only_folder_is_read(read_only):
    read_only.chmod(0o755)
    Counted().cached.load(read_only)
    read_only.chmod(0o555)
    counted = Counted()
    counted.cached.load(read_only)
    assert counted.written == 0


def test_cache_with_nowhere_to_lie(read_only, monkeypatch):
    monkeypatch.setenv("GAR_KERAS_CACHE", str(read_only / "made"))
    with pytest.raises(DataError, match="Set the environment variable"):
        Counted().cached.load()


def test_cache_in_the_folder_of_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("GAR_KERAS_CACHE", str(tmp_path / "made"))
    (tmp_path / "data").mkdir()
    Counted().cached.load(tmp_path / "data")
    assert files_in(tmp_path / "data") == []
    assert len(files_in(tmp_path / "made")) == 1
