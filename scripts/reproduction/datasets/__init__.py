"""Data sets of the paper beside MNIST, and others, by name."""

from gar_keras.datasets import DataError
from gar_keras.utils.validation import check_choice
from reproduction.datasets.infimnist import InfiMNIST
from reproduction.datasets.registry import DATASETS, UNLABELED

__all__ = ["DATASETS", "UNLABELED", "InfiMNIST", "load"]


def load(name, data_dir=None, **options):
    """Loads a data set by name.

    Args:
        name: One of the keys of `DATASETS`, e.g. `"mnist"`.
        data_dir: Folder that holds the files; see
            `gar_keras.datasets.data_files.data_folder`. Without one, MNIST is
            that inside the package; what comes with another package takes none.
        **options: Further arguments of its loader, e.g. `preprocessing` of
            `load_norb`.

    Returns:
        A `Dataset`.

    Raises:
        ValueError: if the name is unknown.
        DataError: if a file is missing, truncated or altered, or if the files
            are those of a data set of another name.
    """
    check_choice("name", name, sorted(DATASETS))
    dataset = DATASETS[name](data_dir, **options)
    if dataset.name != name:
        raise DataError(
            f"The files are {dataset.title}, which goes by the name "
            f"{dataset.name!r}. Received: name={name!r}. Ask for it by its own "
            "name, or name the folder of the other files."
        )
    return dataset
