"""Examples and labels from files: arrays, tables and folders of images.

| `--data` | examples | labels |
| --- | --- | --- |
| .npz | `x`, or `x_labeled` and `x_unlabeled` | `y`, or `y_labeled` |
| .npy | the array, of which images in uint8 are read by index | a .npy file |
| .csv | the columns of numbers, with a header | the column `label` |
| folder | its images, in the order of their names | `labels.csv` in it |
"""

import csv
from pathlib import Path

import numpy as np

from gar_keras.utils.files import NPZ_DAMAGE

SUFFIXES = (".npz", ".npy", ".csv")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif")

# The column of labels in a table, and that of files in a folder's.
LABEL, FILE = "label", "file"
LABELS = "labels.csv"

# Images that take less are all kept in memory.
MEMORY_BYTES = 1 << 30


def read_npy(path):
    """The array of an .npy file, which is read when it is needed.

    Raises:
        ValueError: if the file is not readable.
    """
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except NPZ_DAMAGE as e:
        raise ValueError(
            f"{path} is not readable as an .npy file of a plain array. Write "
            f"it with np.save. ({e})"
        ) from e


def feature_names(path):
    """The columns of features in a table with a header, in their order."""
    with _open_csv(path) as file:
        return _features(_names(next(_lines(file), (0, []))[1]))


def read_table(path, wanted=None):
    """Features and labels of a table with a header.

    Args:
        path: Path of a .csv file.
        wanted: The columns of features to read, in the order to give them;
            others are left out. By default all, in the order of the file.

    Returns:
        `(x, labels)`: float32 `(m, f)`, and labels as text `(m,)`, empty for
        unlabelled rows; `None` without a column of labels.

    Raises:
        ValueError: if the file is not such a table, or lacks a wanted column.
    """
    header, rows, numbers = _read_csv(path)
    if wanted is None:
        _check_header(path, header)
    names = _features(header) if wanted is None else wanted
    missing = [name for name in names if name not in header]
    if missing:
        raise ValueError(
            f"{path} must have a header with the columns that the model was "
            f"fitted to, in any order: {', '.join(names)}. Received: "
            f"{', '.join(header) or 'none'}; missing: {', '.join(missing)}"
        )
    if not names or not rows:
        raise ValueError(
            f"{path} must have a header, a column of numbers and a row below. "
            f"Received: columns {', '.join(header) or 'none'}, {len(rows)} rows"
        )
    labels = None
    advice = "Leave that column out, or make numbers of it."
    if LABEL in header:
        labels = np.array([row[LABEL].strip() for row in rows])
    elif wanted is None:
        advice += f" If it has the labels, call it {LABEL!r}."
    x = np.empty((len(rows), len(names)), "float32")
    for i, (row, number) in enumerate(zip(rows, numbers, strict=True)):
        for j, name in enumerate(names):
            try:
                x[i, j] = row[name]
            except ValueError:
                raise ValueError(
                    f"{path} must hold numbers in all columns but {LABEL!r}. "
                    f"Received: {row[name]!r} in column {name!r}, line "
                    f"{number}. {advice}"
                ) from None
    return x, labels


def read_image_labels(path, names):
    """The labels of images, from a table of files and labels.

    Args:
        path: A .csv file with the columns `file` and `label`.
        names: The files of the images, relative to their folder.

    Returns:
        Labels as text `(m,)`, empty for images of which the table has none.

    Raises:
        ValueError: if the file is not such a table, or names another image, or
            one twice.
    """
    header, rows, _ = _read_csv(path)
    if not {FILE, LABEL} <= set(header):
        raise ValueError(
            f"{path} must have the columns {FILE} and {LABEL}. Received: "
            f"{', '.join(header) or 'none'}"
        )
    found = {}
    known = set(names)
    for row in rows:
        name = Path(row[FILE].strip()).as_posix()
        if name not in known or name in found:
            fault = "twice" if name in found else "which is not an image there"
            raise ValueError(
                f"{path} must name each image of its folder once at most. "
                f"Received: {name!r}, {fault}"
            )
        found[name] = row[LABEL].strip()
    return np.array([found.get(name, "") for name in names])


def _check_header(path, header):
    """Raises if the first line of a table holds data, or an index."""
    if "" in header:
        raise ValueError(
            f"{path} must have a name for each column. Received: none for "
            f"column {header.index('') + 1} of {len(header)}. Name it, or "
            "leave it out if it is an index: in pandas, to_csv(index=False)."
        )
    # Whole numbers may be names: pandas gives them to columns without any.
    if any("." in name for name in header) and all(map(_is_number, header)):
        raise ValueError(
            f"{path} must have a header. Received: {', '.join(header[:5])} in "
            "its first line. Write the names of the columns above the numbers."
        )


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _features(header):
    return [name for name in header if name != LABEL]


def _read_csv(path):
    """Names of columns, rows as dicts, and the last line of each row."""
    try:
        with _open_csv(path) as file:
            lines = list(_lines(file))
    except (UnicodeDecodeError, csv.Error) as e:
        raise ValueError(f"{path} is not readable as a .csv file. ({e})") from e
    header = _names(lines[0][1]) if lines else []
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise ValueError(
            f"{path} must have commas between its cells. Received: "
            f"{header[0]!r} as the only column. Save it with commas, and with "
            "points in the numbers."
        )
    if len(set(header)) < len(header):
        raise ValueError(
            f"{path} must name each column once. Received: {', '.join(header)}"
        )
    for number, line in lines[1:]:
        if len(line) != len(header):
            raise ValueError(
                f"{path} must have {len(header)} cells in each line. Received: "
                f"{len(line)} in line {number}"
            )
    rows = [dict(zip(header, line, strict=True)) for _, line in lines[1:]]
    return header, rows, [number for number, _ in lines[1:]]


def _open_csv(path):
    return open(path, encoding="utf-8-sig", newline="")


def _lines(file):
    """The rows of a file with the number of the line each ends in."""
    reader = csv.reader(file)
    return ((reader.line_num, row) for row in reader if row)


def _names(line):
    return [name.strip() for name in line]


def read_images(folder, size=None, channels=None):
    """The images of a folder and of the folders in it.

    Args:
        folder: Its path.
        size: `(height, width)` to bring the images to; by default that of the
            first, which all must have.
        channels: 1 for grey, 3 for colour; by default as the first image.

    Returns:
        `(images, names)`: uint8 `(m, h, w, c)`, an array if it takes less than
        1 GiB and else an image source; and the files, relative to the folder.

    Raises:
        ValueError: if there is no image, or one that is not readable or of
            another size.
    """
    folder = Path(folder)
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix.lower() in IMAGE_SUFFIXES
    )
    if not names:
        raise ValueError(
            f"{folder} must hold images ({', '.join(IMAGE_SUFFIXES)}). "
            "Received: none"
        )
    images = ImageFiles(folder, names, size, channels)
    if np.prod(images.shape) <= MEMORY_BYTES:
        return images.take(np.arange(len(images))), names
    return images, names


class ImageFiles:
    """Image source of files, each decoded when it is asked for.

    Args:
        folder: Path of the folder.
        names: The files in it.
        size: As for `read_images`.
        channels: As for `read_images`.
    """

    dtype = np.dtype("uint8")

    def __init__(self, folder, names, size=None, channels=None):
        self.folder = folder
        self.names = names
        self.resizes = size is not None
        first = self._decode(names[0], channels or 0)
        if channels is None:
            # An alpha channel is left out.
            channels = 1 if first.shape[-1] < 3 else 3
        height, width = size or first.shape[:2]
        self.shape = (len(names), height, width, channels)

    def __len__(self):
        return len(self.names)

    def take(self, indices):
        """The images at these indices, a new array."""
        images = np.empty((len(indices), *self.shape[1:]), self.dtype)
        for image, i in zip(images, indices, strict=True):
            image[:] = self._read(self.names[i])
        return images

    def _read(self, name):
        image = self._decode(name, self.shape[-1])
        size = self.shape[1:3]
        if image.shape[:2] == size:
            return image
        if not self.resizes:
            raise ValueError(
                f"The images of {self.folder} must be of one size. Received: "
                f"{name} of {image.shape[0]} x {image.shape[1]} pixels, and "
                f"{self.names[0]} of {size[0]} x {size[1]}. Give the size that "
                "all are brought to."
            )
        import tensorflow as tf

        resized = tf.image.resize(image, size, antialias=True).numpy()
        return np.clip(np.rint(resized), 0, 255).astype("uint8")

    def _decode(self, name, channels):
        import tensorflow as tf

        try:
            data = tf.io.read_file(str(self.folder / name))
            return tf.io.decode_image(
                data, channels, expand_animations=False
            ).numpy()
        except tf.errors.OpError as e:
            raise ValueError(
                f"{self.folder / name} is not readable as an image. "
                f"({e.message})"
            ) from e
