"""Files are written whole or not at all, whatever stops the writer."""

import pytest

from reproduction import files


def half(error):
    """Writes half of a file, then fails."""

    def write_to(file):
        file.write("half of i")
        raise error

    return write_to


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_failure_leaves_the_file_before_it(error, tmp_path):
    path = tmp_path / "a.json"
    files.write_atomically(path, lambda file: file.write("before"))
    with pytest.raises(type(error)):
        files.write_atomically(path, half(error))
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_text_is_utf_8_in_any_locale(tmp_path):
    path = tmp_path / "a.md"
    files.write_atomically(path, lambda file: file.write("± Π α"))
    assert path.read_bytes() == "± Π α".encode()


def test_what_a_kill_left_is_deleted(tmp_path):
    path = tmp_path / "a.json"
    path.touch()
    other = tmp_path / ".b.json.abcd"
    other.touch()
    (tmp_path / f".{path.name}.abcd1234").write_text("half of i")
    files.delete_leftovers(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, other])


def test_a_temporary_file_has_the_suffix_that_the_writer_looks_at(tmp_path):
    path = tmp_path / "model.keras"
    with files.replacing(path, ".keras") as temporary:
        assert temporary.suffix == ".keras"
        assert temporary.parent == tmp_path and temporary != path
        temporary.touch()
    assert list(tmp_path.iterdir()) == [path]
