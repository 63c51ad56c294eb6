"""GAR and other methods on features: data sets that come with scikit-learn.

Nothing is augmented and nothing is chosen by an error: the methods have their
default hyper-parameters, and all go on from the same stage 1 for as many steps,
or for as long as GAR.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from gar_keras.classification.settings import FitSettings
from gar_keras.experiments import records
from gar_keras.methods import METHODS
from gar_keras.paper import (
    LABELED_PER_BATCH,
    LEARNING_RATE,
    UNLABELED_PER_BATCH,
)

FORMAT = 1
FOLDER = "other_data"

# In place of a method, in the runs of a record.
STAGE_1 = "stage 1"

# By which the time of an epoch is measured, after one in which functions are
# compiled.
TIMED_EPOCHS = 30

# What can be equal for all methods that train a network.
EQUAL = ("steps", "time")

# Names of the data sets, by which scikit-learn's load_... are called.
DATA = ("digits", "breast_cancer", "wine")


@dataclass(frozen=True)
class Settings:
    """What is trained on a data set.

    Attributes:
        data: One of `DATA`.
        methods: Names in `METHODS`.
        labels_per_class: Labelled rows of each class.
        test_share: Share of the rows that are kept for the test.
        seeds: Each decides labels, test rows, weights and batches.
        pretrain_epochs: Passes of stage 1, of one batch each.
        epochs: Passes of stage 2 over all training rows.
        equal: What is equal for all methods that train a network: `"steps"`,
            or `"time"`: where an epoch takes another time than with the first
            of the methods, the epochs are as many more or fewer.
        learning_rate: Of all methods that train a network.
        labeled_per_batch: b_L, or all labelled rows where there are fewer.
        unlabeled_per_batch: b_U.
    """

    data: str
    methods: tuple[str, ...] = (
        "gar",
        "supervised",
        "entropy",
        "pseudo-label",
        "vat",
        "label-spreading",
    )
    labels_per_class: int = 5
    test_share: float = 1 / 3
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    pretrain_epochs: int = 2000
    epochs: int | Literal["auto"] = FitSettings.epochs
    equal: Literal[EQUAL] = "steps"
    learning_rate: float = LEARNING_RATE
    labeled_per_batch: int = LABELED_PER_BATCH
    unlabeled_per_batch: int = UNLABELED_PER_BATCH


@dataclass(frozen=True)
class Rows:
    """The rows of a seed. `x` are all training rows, as stage 2 sees them."""

    x: object
    chosen: object
    y_labeled: object
    x_test: object
    y_test: object


def path_of(data, results, equal="steps"):
    """Path of the record of a data set."""
    name = data if equal == "steps" else f"{data}_equal-{equal}"
    return Path(results) / FOLDER / f"{name}.json"


def run(settings, results, say=print):
    """Writes the record of a data set, unless it is there.

    The runs are kept as they end: where one fails, or the process is killed,
    the next call makes those that are left.

    Args:
        settings: `Settings`.
        results: Folder of the records.
        say: Function that is told of each error found.

    Returns:
        The record, a dict.

    Raises:
        ValueError: if the record that is there has other settings.
    """
    path = path_of(settings.data, results, settings.equal)
    if path.exists():
        record = records.read_json(path, "train again")
        if record["settings"] != _as_json(settings):
            raise ValueError(
                f"{path} was made with other settings. Move it out of the "
                "results folder to train again."
            )
        say(f"{path.stem} is finished: {path}")
        return record
    kept = Path(results) / ".checkpoints" / f"{FOLDER}_{path.name}"
    head = {
        "format": FORMAT,
        "settings": _as_json(settings),
        "method_settings": {m: METHODS[m].settings() for m in settings.methods},
    }
    runs = _kept_runs(kept, head)
    for folder in (kept.parent, path.parent):
        folder.mkdir(parents=True, exist_ok=True)

    def keep(run):
        runs.append(run)
        records.write(kept, {**head, "runs": runs})
        error = 100 * run["test_error"]
        name = f"{settings.data}, seed {run['seed']}, {run['method']}"
        say(f"{name}: {error:.2f} %")

    record = {**head, **train(settings, runs, keep), "runs": runs}
    records.write(path, record)
    kept.unlink()
    return record


def _kept_runs(path, head):
    """The runs of an earlier call that did not come to its end."""
    if not path.exists():
        return []
    kept = records.read_json(path, "train again")
    runs = kept.pop("runs", [])
    return runs if kept == head else []


def train(settings, runs, keep):
    """Makes the runs of all seeds and methods on a data set.

    Args:
        settings: `Settings`.
        runs: Runs that are made already, dicts.
        keep: Function that is given each run as it ends.

    Returns:
        A dict of what the record says of the data and of the machine.
    """
    # Keras is loaded when there is something to train.
    from gar_keras.experiments import environment

    x, y = load(settings.data)
    for seed in settings.seeds:
        made = {run["method"] for run in runs if run["seed"] == seed}
        if made < {STAGE_1, *settings.methods}:
            rows = split(settings, x, y, seed)
            for run in _of_seed(settings, rows, seed, made):
                keep({"seed": seed, **run})
    return {
        "rows": len(y),
        "features": x.shape[1],
        "classes": int(y.max()) + 1,
        "largest_class": float(max((y == c).mean() for c in set(y.tolist()))),
        "environment": environment.describe(),
    }


def load(data):
    """The features `(m, f)`, float64, and the class indices of a data set."""
    from gar_keras.utils.optional import optional

    sklearn = optional("sklearn.datasets", "The data", extra="experiments")
    return getattr(sklearn, f"load_{data}")(return_X_y=True)


def split(settings, x, y, seed):
    """`Rows` of a seed: features of mean 0 and deviation 1, without labels.

    Mean and deviation are those of the training rows, the labelled rows are
    drawn from these evenly over the classes.
    """
    import numpy as np

    from gar_keras.datasets.splits import make_split

    num_test = round(settings.test_share * len(y))
    order = np.random.default_rng([seed, len(y)]).permutation(len(y))
    test, train = order[:num_test], order[num_test:]
    num_labeled = settings.labels_per_class * (int(y.max()) + 1)
    chosen = make_split(y[train], num_labeled, seed, 0).labeled
    mean, deviation = x[train].mean(axis=0), x[train].std(axis=0)
    # A constant feature becomes 0.
    scaled = (x - mean) / np.where(deviation > 0, deviation, 1)
    scaled = scaled.astype("float32")
    return Rows(
        x=scaled[train],
        chosen=chosen,
        y_labeled=y[train][chosen],
        x_test=scaled[test],
        y_test=y[test],
    )


def _of_seed(settings, rows, seed, made):
    """The runs of a seed: stage 1, and each method behind it.

    Those that are made already are left out; stage 1 is trained all the same.
    """
    import keras

    from gar_keras import pretrain, sgd
    from gar_keras.callbacks import error_rate
    from gar_keras.classification.fit import default_network

    x_labeled = rows.x[rows.chosen]
    keras.utils.set_random_seed(seed)
    network = default_network(rows.x, len(set(rows.y_labeled.tolist())))
    start = time.perf_counter()
    pretrain(
        network,
        x_labeled,
        rows.y_labeled,
        epochs=settings.pretrain_epochs,
        optimizer=sgd(settings.learning_rate),
        seed=seed,
        verbose=0,
    )
    seconds = time.perf_counter() - start
    error = error_rate(network, rows.x_test, rows.y_test)
    if STAGE_1 not in made:
        yield _run(STAGE_1, error, seconds)
    weights = network.get_weights()
    epochs = _epochs(settings, network, rows, seed)
    for method in settings.methods:
        if method in made:
            continue
        network.set_weights(weights)
        start = time.perf_counter()
        if method in epochs:
            _train(settings, method, network, rows, seed, epochs[method])
            seconds = time.perf_counter() - start
            error = error_rate(network, rows.x_test, rows.y_test)
            yield _run(method, error, seconds) | {"epochs": epochs[method]}
        else:
            error = _inferred(method, rows, seed)
            yield _run(method, error, time.perf_counter() - start)
    keras.backend.clear_session()


def _epochs(settings, network, rows, seed):
    """The epochs of the methods that train a network, by their names."""
    trained = [m for m in settings.methods if METHODS[m].network]
    if settings.equal == "steps":
        return dict.fromkeys(trained, settings.epochs)
    weights, seconds = network.get_weights(), {}
    for method in trained:
        network.set_weights(weights)
        seconds[method] = _seconds_per_epoch(
            settings, method, network, rows, seed
        )
    longest = settings.epochs * seconds[trained[0]]
    return {m: max(1, round(longest / seconds[m])) for m in trained}


def _seconds_per_epoch(settings, method, network, rows, seed):
    from keras.callbacks import LambdaCallback

    ends = []
    clock = LambdaCallback(
        on_epoch_end=lambda *_: ends.append(time.perf_counter())
    )
    epochs = 1 + TIMED_EPOCHS
    _train(settings, method, network, rows, seed, epochs, callbacks=[clock])
    return (ends[-1] - ends[0]) / TIMED_EPOCHS


def _train(settings, name, network, rows, seed, epochs, callbacks=()):
    """Stage 2 by a method that trains the network.

    All have the optimizer of `regularize`. With plain `sgd()`, the default of
    the methods beside GAR, Pseudo-Label diverged on digits.
    """
    from gar_keras.methods.options import GAROptions
    from gar_keras.optimizers import stage_2_optimizer

    per_epoch = -(-len(rows.x) // settings.unlabeled_per_batch)
    optimizer = stage_2_optimizer(
        GAROptions(), epochs * per_epoch, settings.learning_rate
    )
    METHODS[name]().train(
        network,
        rows.x[rows.chosen],
        rows.y_labeled,
        rows.x,
        epochs=epochs,
        labeled_per_batch=min(settings.labeled_per_batch, len(rows.chosen)),
        unlabeled_per_batch=settings.unlabeled_per_batch,
        optimizer=optimizer,
        seed=seed,
        callbacks=callbacks,
        verbose=0,
    )


def _inferred(name, rows, seed):
    """The test error of a method without a network."""
    import numpy as np

    found = METHODS[name]().fit_predict(
        rows.x[rows.chosen],
        rows.y_labeled,
        # Each row is in the graph once.
        np.delete(rows.x, rows.chosen, axis=0),
        rows.x_test,
        seed=seed,
    )
    return (found != rows.y_test).mean()


def _run(method, error, seconds):
    return {
        "method": method,
        "test_error": float(error),
        "seconds": round(seconds, 2),
    }


def _as_json(settings):
    # Earlier records are of equal steps and do not say so.
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(settings).items()
        if (name, value) != ("equal", "steps")
    }
