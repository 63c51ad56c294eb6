"""One fit on labelled and unlabelled examples, beside the two stages.

    python scripts/one_fit.py

trains on scikit-learn's digits and writes one_fit.json and one_fit.png, in a
minute or two where nothing else runs. --draw makes the picture anew.
"""

import sys
from dataclasses import asdict, dataclass, field

from gar_keras.experiments import folders, records
from gar_keras.report import one_fit as shown
from gar_keras.utils import cli


@dataclass(frozen=True)
class Settings:
    """What is trained; the steps of both ways are the same, up to an epoch."""

    data: str = "digits"
    num_labeled: int = 100
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    batch_size: int = 128
    labeled_per_batch: int = 16
    # Stage 1 has all labels in one batch: as many steps.
    pretrain_epochs: int = 440
    # Of 12 steps.
    epochs: int = 55
    # Of 11 steps.
    labeled_epochs: int = 40
    all_epochs: int = 100
    global_clipnorm: float = 1.0
    # Test error every so many epochs.
    every: int = 5


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    results: cli.Folder = field(default_factory=folders.own)
    """Folder of the record and the picture."""
    draw: bool = False
    """Draw the record that is there, and train nothing."""


def labels_and_data(settings, seed):
    """The data set, the indices of X_L, and labels with -1 for all others."""
    import numpy as np

    from gar_keras.datasets.digits import load_digits
    from gar_keras.datasets.splits import make_split

    data = load_digits()
    chosen = make_split(
        data.y_train, settings.num_labeled, seed, num_validation=1
    ).labeled
    y = np.full(len(data.y_train), -1)
    y[chosen] = data.y_train[chosen]
    return data, np.sort(chosen), y


def new_network(x, seed):
    """The network of `GARClassifier` for features, from the same start."""
    import keras

    from gar_keras.classification.fit import default_network

    keras.utils.set_random_seed(seed)
    return default_network(x, 10)


def two_stages(settings, seed, data, chosen, y):
    """Algorithm 1; the test errors by step."""
    from gar_keras import pretrain, regularize

    x = flat(data.x_train)
    network = new_network(x, seed)
    options = dict(seed=seed, verbose=0)
    in_one = settings.pretrain_epochs // 11
    first = pretrain(
        network, x[chosen], y[chosen], epochs=settings.pretrain_epochs,
        report_every=in_one, callbacks=test_errors(data, 1), **options,
    ).history["test_error"]  # fmt: skip
    second = regularize(
        network, x[chosen], x, epochs=settings.epochs,
        labeled_per_batch=settings.labeled_per_batch,
        unlabeled_per_batch=settings.batch_size - settings.labeled_per_batch,
        callbacks=test_errors(data, settings.every), **options,
    ).history["test_error"]  # fmt: skip
    switch = settings.pretrain_epochs
    per_epoch = -(-len(x) // (settings.batch_size - settings.labeled_per_batch))
    per_look = per_epoch * settings.every
    steps = [in_one * (i + 1) for i in range(len(first))]
    steps += [switch + per_look * (i + 1) for i in range(len(second))]
    return {"switch": switch, "step": steps, "test_error": first + second}


def one_fit(settings, seed, data, chosen, y, gar=True):
    """One `fit` on all rows; the test errors by step."""
    import keras

    from gar_keras import GARAfter, attach, sgd

    x = flat(data.x_train)
    network = new_network(x, seed)
    model = attach(network) if gar else network
    model.compile(
        sgd(global_clipnorm=settings.global_clipnorm),
        keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=-1
        ),
    )
    switch = [GARAfter(epochs=settings.labeled_epochs)] if gar else []
    history = model.fit(
        shuffled(x, y, settings.batch_size), epochs=settings.all_epochs,
        callbacks=[*switch, *test_errors(data, settings.every)], verbose=0,
        shuffle=False,
    ).history["test_error"]  # fmt: skip
    per_epoch = -(-len(x) // settings.batch_size)
    return {
        "switch": per_epoch * settings.labeled_epochs,
        "step": [
            per_epoch * settings.every * (i + 1) for i in range(len(history))
        ],
        "test_error": history,
    }


def shuffled(x, y, batch_size):
    """Batches that are others in each epoch.

    After `set_random_seed`, `fit` on TensorFlow puts an array into the same
    order in each epoch.
    """
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices((x, y))
    return rows.shuffle(len(x)).batch(batch_size)


def labels_alone(*arguments):
    """The same `fit` without GAR."""
    return one_fit(*arguments, gar=False)


WAYS = {
    "two stages": two_stages,
    "one fit": one_fit,
    "one fit, labels alone": labels_alone,
}


def test_errors(data, every):
    """A callback that measures the test error once in so many epochs."""
    from gar_keras.callbacks import ErrorRate

    class Measure(ErrorRate):
        def on_epoch_end(self, epoch, logs=None):
            if (epoch + 1) % every == 0:
                super().on_epoch_end(epoch, logs)

    return [Measure(test_error=(flat(data.x_test), data.y_test))]


def flat(x):
    """Images as rows of features."""
    return x.reshape(len(x), -1).astype("float32")


def train(settings):
    """The record of all ways and seeds."""
    from gar_keras.experiments import environment

    runs = []
    for seed in settings.seeds:
        for way, function in WAYS.items():
            found = function(settings, seed, *labels_and_data(settings, seed))
            runs.append({"way": way, "seed": seed, **found})
            error = 100 * found["test_error"][-1]
            print(f"{way}, seed {seed}: {error:.2f} %", flush=True)
    return {
        "format": 1,
        "settings": asdict(settings),
        "environment": environment.describe(),
        "runs": runs,
    }


def main(options):
    """Trains unless there is a record to draw; writes, draws and prints."""
    path = options.results / f"{shown.NAME}.json"
    if options.draw:
        record = records.read_json(path, "train again")
    else:
        record = train(Settings())
        path.parent.mkdir(parents=True, exist_ok=True)
        records.write(path, record)
    shown.draw(record, path.with_suffix(".png"))
    print(shown.markdown(record), end="")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
