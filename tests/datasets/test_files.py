"""Data files: their folder, their download, and what is made of them once."""

import functools
import hashlib
import http.server
import sys
import threading

import numpy as np
import pytest

from gar_keras.datasets.base import DataError
from gar_keras.datasets.files import data_folder, fetch, made_once

CONTENT = b"published"
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def address(tmp_path):
    """The address of a folder with the file `a.bin`."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "a.bin").write_bytes(CONTENT)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Nothing."""

    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/a.bin"
        server.shutdown()


def test_the_folder_is_that_of_the_argument_the_variable_or_the_user(
    home, tmp_path, monkeypatch
):
    assert data_folder() == home / ".cache/gar_keras"
    monkeypatch.setenv("GAR_KERAS_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    assert data_folder(tmp_path) == tmp_path


def test_a_file_is_fetched_once_and_anew_where_it_is_damaged(address, tmp_path):
    path = fetch("a.bin", address, MD5, tmp_path / "data")
    assert path == tmp_path / "data/a.bin"
    assert path.read_bytes() == CONTENT
    path.write_bytes(b"damaged")
    assert fetch("a.bin", address, MD5, path.parent).read_bytes() == CONTENT
    # It is there: nobody is asked.
    nowhere = "http://127.0.0.1:1/a.bin"
    assert fetch("a.bin", nowhere, MD5, path.parent) == path


def test_what_cannot_be_fetched_is_said_with_a_way_out(
    address, tmp_path, monkeypatch
):
    for url in ("http://127.0.0.1:1/a.bin", f"{address}x"):
        with pytest.raises(DataError, match=f"{url}.*put the file in .*data"):
            fetch("a.bin", url, MD5, tmp_path / "data")
    with pytest.raises(DataError, match="hash"):
        fetch("a.bin", address, "0" * 32, tmp_path)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="pip install 'gar_keras.experimen"):
        fetch("a.bin", address, MD5, tmp_path)


@pytest.fixture
def make():
    """A function whose calls are counted in `calls`."""

    def make():
        make.calls += 1
        return {"x": np.arange(12).reshape(3, 2, 2), "y": np.zeros(3)}

    make.calls = 0
    return make


def test_arrays_are_made_once_for_each_setting(make, home):
    for _ in range(2):
        made = made_once("a", {"seed": 0}, ["x", "y"], make)
        assert isinstance(made["x"], np.memmap)
        np.testing.assert_array_equal(made["x"], make()["x"])
        make.calls -= 1
    assert make.calls == 1
    made_once("a", {"seed": 1}, ["x", "y"], make)
    assert make.calls == 2
    files = [*(home / ".cache/gar_keras").iterdir()]
    assert len(files) == 4
    assert all(path.suffix == ".npy" for path in files)


@pytest.mark.parametrize("length", [0, 50, 150])
def test_arrays_cut_short_are_made_anew(make, length, tmp_path, monkeypatch):
    monkeypatch.setenv("GAR_KERAS_CACHE", str(tmp_path))
    made_once("a", {}, ["x", "y"], make)
    (path,) = tmp_path.glob("*-x.npy")
    path.write_bytes(path.read_bytes()[:length])
    made = made_once("a", {}, ["x", "y"], make)
    assert made["x"].sum() == 66
    assert make.calls == 2


def test_a_folder_that_cannot_be_written_is_named(make, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GAR_KERAS_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="Could not write .*GAR_KERAS_CACHE"):
        made_once("a", {}, ["x"], make)
