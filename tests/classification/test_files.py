"""Examples and labels from files."""

import numpy as np
import pytest

from gar_keras.classification import files


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_by_hand(tmp_path):
    path = written(
        tmp_path / "a.csv",
        '\ufeffwidth, height,label\n1,2.5,cat\n-3e1,"4",\n\n5,6, "dog"\n',
    )
    x, labels = files.read_table(path)
    assert x.dtype == "float32"
    assert x.tolist() == [[1, 2.5], [-30, 4], [5, 6]]
    assert labels.tolist() == ["cat", "", '"dog"']
    x, labels = files.read_table(written(path, "a,b\n1,2\n"))
    assert x.tolist() == [[1, 2]] and labels is None


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "columns none, 0 rows"),
        ("a,label\n", "columns a, label, 0 rows"),
        ("label\ncat\n", "a column of numbers"),
        ("a,a\n1,2\n", "name each column once"),
        ("a,b\n1,2\n3\n", "2 cells in each line. Received: 1 in line 3"),
        ("a,b\n\n1,2\n\n3\n", "Received: 1 in line 5"),
        ("a,b\n1,x\n", "'x' in column 'b', line 2"),
        ("\na,b\n1,2\n\n3,x\n", "'x' in column 'b', line 5"),
        ("a,b\n1,\n", "'' in column 'b', line 2"),
        ("1,2\n3,4\n5,six\n", "'six' in column '2', line 3"),
        ("a,kind\n1,cat\n", "column 'kind'.* has the labels, call it 'label'"),
        ("a;label\n1,5;cat\n", "commas between its cells. Received: 'a;label'"),
        (",a,label\n0,1,cat\n", "column 1 of 3. .*index=False"),
        ("5.1,3\n4.9,2\n", "a header. Received: 5.1, 3 in its first line"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        files.read_table(written(tmp_path / "a.csv", text))


def test_a_file_of_bytes_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not readable as a .csv"):
        files.read_table(path)


def test_an_npy_file_is_not_read_at_once(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6).reshape(3, 2))
    x = files.read_npy(tmp_path / "x.npy")
    assert isinstance(x, np.memmap)
    assert x[2].tolist() == [4, 5]
    with pytest.raises(ValueError, match="not readable as an .npy"):
        files.read_npy(written(tmp_path / "y.npy", "text"))


# Folders of images


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A grey image, one in colour, and one of another size in a folder."""
    tf = pytest.importorskip("tensorflow")
    folder = tmp_path_factory.mktemp("images")
    (folder / "more").mkdir()
    for name, shape in (
        ("b.png", (4, 5, 1)), ("more/a.PNG", (4, 5, 3)), ("c.png", (8, 10, 1)),
    ):  # fmt: skip
        image = np.full(shape, len(name), "uint8")
        tf.io.write_file(str(folder / name), tf.io.encode_png(image))
    written(folder / "notes.txt", "")
    return folder


def test_a_folder_of_images_by_hand(folder, monkeypatch):
    x, names = files.read_images(folder, size=(4, 5))
    assert names == ["b.png", "c.png", "more/a.PNG"]
    assert isinstance(x, np.ndarray)
    assert x.dtype == "uint8" and x.shape == (3, 4, 5, 1)
    assert x[:, 2, 2, 0].tolist() == [5, 5, 10]
    monkeypatch.setattr(files, "MEMORY_BYTES", 10)
    source, _ = files.read_images(folder, size=(4, 5))
    assert source.shape == x.shape and not isinstance(source, np.ndarray)
    rows = [2, 0, 2]
    np.testing.assert_array_equal(source.take(rows), x[rows])
    colour, _ = files.read_images(folder, size=(4, 5), channels=3)
    assert colour.shape == (3, 4, 5, 3)


def test_what_are_no_images_is_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="c.png of 8 x 10 pixels, and b.png"):
        files.read_images(folder)
    with pytest.raises(ValueError, match="must hold images .* Received: none"):
        files.read_images(tmp_path)
    written(tmp_path / "a.png", "text")
    with pytest.raises(ValueError, match="a.png is not readable as an image"):
        files.read_images(tmp_path)


def test_labels_of_images_by_hand(tmp_path):
    path = written(
        tmp_path / "labels.csv", "label,file,by\ncat,a.png,me\ndog,./b/c.png,\n"
    )
    labels = files.read_image_labels(path, ["a.png", "b.png", "b/c.png"])
    assert labels.tolist() == ["cat", "", "dog"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("name,label\na.png,1\n", "columns file and label. Received: name"),
        ("file,label\nz.png,1\n", "'z.png', which is not an image there"),
        ("file,label\na.png,1\na.png,2\n", "'a.png', twice"),
    ],
)
def test_wrong_labels_of_images_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        files.read_image_labels(written(tmp_path / "l.csv", text), ["a.png"])
