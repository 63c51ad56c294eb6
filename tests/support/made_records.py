"""Made-up run records for the tests of what reads them."""

from reproduction import records
from reproduction.paths import path_of


def make_record(
    experiment,
    seed=0,
    chosen_error=0.02,
    last_error=0.03,
    baseline_error=0.1,
    title="MNIST",
    lost=False,
    also=None,
    curve=None,
):
    """A record whose results are the given ones, with curves to match.

    What else a record is to hold, or other values, are in `also`; other curves
    of stage 2 in `curve`.
    """
    epochs = experiment.epochs if experiment.trains_network else 1
    test = [chosen_error] * (epochs + 1)
    test[0] = baseline_error
    # The first epoch is chosen; the last one can be the same.
    test[2:] = [*test[2:-1], last_error][: epochs - 1]
    validation = [*test[:1], 0.0, *test[2:]]
    terms = [None, *(0.1 / epoch for epoch in range(1, epochs + 1))]
    path = path_of(experiment, seed, "nowhere")
    return {
        "format": records.FORMAT,
        "path": "/".join(path.parts[-3:]),
        "fingerprint": experiment.fingerprint(),
        "experiment": experiment.as_json(),
        "seed": seed,
        # Another draw by each seed.
        "labeled": [*range(seed, seed + experiment.num_labeled)],
        "split_fingerprint": "0a1b2c3d",
        "data": {"title": title, "source": "made", "unlabeled": "made"},
        "class_prior": None,
        "predicted_prior": None,
        "environment": {"device": "Some CPU", "device_kind": "cpu", "cores": 2},
        "resumed_in": [],
        "warnings": None,
        "pretraining": {"seconds": 120.0, "curve": {"epoch": [1]}},
        "regularization": {
            "seconds": 600.0,
            "curve": {
                "epoch": [*range(epochs + 1)],
                "val_error": validation,
                "test_error": test,
                "affinity": terms,
                "balance": [term and 1 - term for term in terms],
                "seconds": [None, *[36.0] * epochs],
                **(curve or {}),
            },
        },
        "lost_classes": [2] if lost else [],
        "balanced_errors": None,
        "snapshot_epochs": [],
        **(also or {}),
    }


def write_record(folder, experiment, seed=0, **results):
    """Writes such a record and returns its path."""
    path = path_of(experiment, seed, folder)
    records.write(path, make_record(experiment, seed, **results))
    return path
