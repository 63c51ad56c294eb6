"""Data files: their folder, and what is made of them once."""

import numpy as np
import pytest

from gar_keras.datasets.files import data_folder, made_once

pytestmark = pytest.mark.usefixtures("home")


def test_the_folder_is_that_of_the_argument_the_variable_or_the_user(
    home, tmp_path, monkeypatch
):
    assert data_folder() == home / ".cache/gar_keras"
    monkeypatch.setenv("GAR_KERAS_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    assert data_folder(tmp_path) == tmp_path


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
