"""The folder of the data files."""

import pytest

from gar_keras.datasets.data_files import data_folder

pytestmark = pytest.mark.usefixtures("home")


def test_the_folder_is_that_of_the_argument_the_variable_or_the_user(
    home, tmp_path, monkeypatch
):
    assert data_folder() == home / ".cache/gar_keras"
    monkeypatch.setenv("GAR_KERAS_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    assert data_folder(tmp_path) == tmp_path
