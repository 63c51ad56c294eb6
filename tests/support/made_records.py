"""Made-up run records for the tests of what reads them."""

from reproduction import records
from reproduction.benchmarks.benchmark_records import OverheadSettings
from reproduction.paths import path_of
from reproduction.settings import GRAPH_BASELINES

OVERHEAD_CASE = OverheadSettings(
    batch_size=4, num_classes=10, num_images=10, precision="float32",
    steps=2, pairs=2,
)  # fmt: skip


def make_record(
    experiment,
    seed=0,
    chosen_error=0.02,
    last_error=0.03,
    baseline_error=0.1,
    title="MNIST",
    lost=False,
    v=None,
    also=None,
):
    """A record whose results are the given ones, with curves to match.

    Where a class was lost, the balance at the end says so, or the energies of
    the classes in two batches of the first epoch, `v`. What else a record is
    to hold is in `also`.
    """
    epochs = 1 if experiment.method in GRAPH_BASELINES else experiment.epochs
    test = [chosen_error] * (epochs + 1)
    test[0] = baseline_error
    # The first epoch is chosen; the last one can be the same.
    test[2:] = [*test[2:-1], last_error][: epochs - 1]
    validation = [*test[:1], 0.0, *test[2:]]
    terms = [None, *(0.1 / epoch for epoch in range(1, epochs + 1))]
    balance = [term and 1 - term for term in terms]
    if lost:
        balance[-1] = 0.5
    return {
        "format": records.FORMAT,
        "experiment": experiment.as_json(),
        "cell": experiment.cell,
        "fingerprint": experiment.fingerprint(),
        "seed": seed,
        "data": {"title": title, "source": "made", "unlabeled": "made"},
        # Another draw by each seed.
        "labeled": [*range(seed, seed + experiment.num_labeled)],
        "environment": {"device": "Some CPU", "cores": 2},
        "pretraining": {"seconds": 120.0, "curve": {"epoch": [1]}},
        "regularization": {
            "seconds": 600.0,
            "curve": {
                "epoch": [*range(epochs + 1)],
                "val_error": validation,
                "test_error": test,
                "affinity": terms,
                "balance": balance,
                "seconds": [None, *[36.0] * epochs],
            },
        },
        "result": {
            "baseline_error": baseline_error,
            "chosen_epoch": 1,
            "chosen_error": chosen_error,
            "last_epoch": epochs,
            "last_error": test[-1],
        },
        "first_epoch": {"v": v} if v else None,
        **(also or {}),
    }


def write_record(folder, experiment, seed=0, **results):
    """Writes such a record and returns its path."""
    path = path_of(experiment, seed, folder)
    records.write(path, make_record(experiment, seed, **results))
    return path
