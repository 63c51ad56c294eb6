"""Names of classes and of features in saved models.

A .keras file is an archive. The names lie in Keras' own `metadata.json`, so
that Keras loads the file as any other, with or without this package.
"""

import json
import zipfile
from pathlib import Path

from gar_keras.utils.files import replacing

METADATA = "metadata.json"
CLASSES = "class_names"
FEATURES = "feature_names"


def save(model, path, class_names=None, feature_names=None):
    """Saves a model, with the names of its classes and of its features.

    Args:
        model: A `keras.Model`.
        path: Path of the .keras file.
        class_names: A string or number for each class, or `None`.
        feature_names: A string for each feature of an example, or `None`.

    Raises:
        ValueError: if the path is not that of a .keras file.
    """
    path = Path(path)
    if path.suffix != ".keras":
        raise ValueError(
            f"Models are saved in .keras files. Received: path={str(path)!r}"
        )
    with replacing(path, path.suffix) as temporary:
        model.save(temporary)
        entries = {CLASSES: class_names, FEATURES: feature_names}
        known = {k: names for k, names in entries.items() if names is not None}
        if known:
            _add(temporary, known)


def class_names(path):
    """The names of the classes in a saved model.

    Args:
        path: Path of a .keras file.

    Returns:
        A list, in the order of the logits; `None` if the file has none.
    """
    return _metadata(path).get(CLASSES)


def feature_names(path):
    """The names of the features that a saved model takes.

    Args:
        path: Path of a .keras file.

    Returns:
        A list, in the order of the inputs; `None` if the file has none.
    """
    return _metadata(path).get(FEATURES)


def _metadata(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(METADATA))


def _add(path, entries):
    """Adds entries to the metadata of a .keras file."""
    with zipfile.ZipFile(path) as archive:
        members = {m: archive.read(m) for m in archive.namelist()}
    metadata = json.loads(members[METADATA]) | entries
    members[METADATA] = json.dumps(metadata).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
