"""The reference's records, beside those of another folder."""

from gar_keras.experiments import folders
from gar_keras.experiments import records


def reference_beside(results):
    """The records of the reference; none if `results` is the reference."""
    if folders.is_reference(results) or folders.reference() is None:
        return ()
    return records.read_all(folders.reference())
