"""Files are written whole or not at all, whatever stops the writer."""

import pytest

from reproduction import files


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_failure_leaves_the_file_before_it(error, tmp_path):
    path = tmp_path / "a.json"
    with files.writing(path) as file:
        file.write("before: ±")
    with pytest.raises(type(error)):
        with files.writing(path) as file:
            file.write("half of i")
            raise error
    assert path.read_text("utf-8") == "before: ±"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_kill_left_is_deleted(tmp_path):
    path = tmp_path / "a.json"
    path.touch()
    other = tmp_path / ".b.json.abcd"
    other.touch()
    (tmp_path / f".{path.name}.abcd1234").write_text("half of i")
    files.delete_leftovers(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, other])
