"""Trainings on replicas of `tf.distribute`, for a process of their own.

Logical devices must be set before TensorFlow starts. Run as a script, this
prints what came of each training as JSON, by its name and its replicas.
"""

import contextlib
import json
import sys
from pathlib import Path

import keras
import numpy as np
from snippets import python_blocks, run_blocks

from gar_keras import (
    GAR,
    CrossEntropy,
    GraphActivityRegularization,
    GraphActivityRegularizer,
    error_rate,
    pretrain,
    regularize,
    sgd,
)

RNG = np.random.default_rng(0)
# Batches of 8, 8 and 5: on 4 replicas, the last one has 2, 2, 1 and 0 rows.
X = RNG.normal(size=(21, 5)).astype("float32")
Y = np.arange(21) % 3
# Two strategies with collectives would mix them up.
MIRRORED = """MirroredStrategy(
        ["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice()
    )"""
COEFFICIENTS = {"affinity": 2.0, "frobenius": 1e-3}


def strategies():
    """Strategies of 1, 2 and 4 replicas; with 1, there is none."""
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 4
    )
    return {
        1: None,
        2: tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
        # Without collectives, which fail in a loop of many steps.
        4: tf.distribute.MirroredStrategy(
            [f"CPU:{i}" for i in range(4)],
            cross_device_ops=tf.distribute.ReductionToOneDevice(),
        ),
    }


def network(*behind, hidden=(), regularizer=None, dtype=None):
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(7, "relu", dtype=dtype),
            *hidden,
            keras.layers.Dense(3, activity_regularizer=regularizer),
            *behind,
        ]
    )


def trained(model, optimizer, callbacks=(), **options):
    """What a training and an evaluation log, and the weights."""
    model.compile(optimizer, loss=None, **options)
    fit = {"batch_size": 8, "verbose": 0}
    history = model.fit(
        X, epochs=2, shuffle=False, callbacks=list(callbacks), **fit
    ).history
    logs = model.evaluate(X, return_dict=True, **fit)
    return {"logs": [history, logs], "weights": weights(model)}


def weights(model):
    return [np.asarray(w).tolist() for w in model.get_weights()]


def layer(scope, replicas):
    with scope():
        gar = GraphActivityRegularization(**COEFFICIENTS)
        model = network(gar)
        # Beside the replicas, where no metric can be updated.
        model(X)
        schedule = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: gar.set_coefficients(
                affinity=2.0 - epoch
            )
        )
        return trained(model, keras.optimizers.SGD(0.1), [schedule])


def several_losses(scope, replicas):
    """In mixed precision, with clipped gradients; on 2 replicas, eagerly."""
    with scope():
        model = network(
            GraphActivityRegularization(name="first"),
            keras.layers.Dense(3, kernel_regularizer="l2"),
            GraphActivityRegularization(**COEFFICIENTS),
            regularizer=keras.regularizers.L2(0.01),
            dtype="mixed_float16",
        )
        optimizer = sgd(0.1, momentum=0.5, global_clipnorm=0.2)
        return trained(model, optimizer, run_eagerly=replicas == 2)


def both_stages(scope, replicas):
    with scope():
        model = network()
    pretrain(model, X[:8], Y[:8], epochs=2, batch_size=4, verbose=0)
    history = regularize(
        model, X[:9], X, labeled_per_batch=2, unlabeled_per_batch=6, epochs=2,
        validation_data=(X, Y), keep_best=False, verbose=0,
    )  # fmt: skip
    return {"logs": [history.history], "weights": weights(model)}


def classes_in_use(scope, replicas):
    """The second class is no row's. Batches of 100, 100, 100 and 1 row."""
    Z = np.eye(3)[np.arange(301) % 2 * 2]
    with scope():
        behind = GraphActivityRegularization()
        model = keras.Sequential([keras.Input((3,)), behind])
        model.compile(loss=None)
    logs = model.evaluate(Z, batch_size=100, return_dict=True, verbose=0)
    windows = np.asarray(behind.usage.variables[0])
    return {"logs": [logs], "weights": [windows.tolist()]}


def errors(scope, replicas):
    """Errors after each stage, of few labels and BatchNormalization."""
    y = np.arange(320) % 3
    x = RNG.normal(2.0, 0.5, (320, 5)) + 4 * np.eye(5)[y]
    x = x.astype("float32")
    found = []
    for synchronized in (False, True):
        with scope():
            normalization = keras.layers.BatchNormalization(
                momentum=0.999, synchronized=synchronized
            )
            model = network(hidden=[normalization])
        few = x[:24], y[:24]
        pretrain(model, *few, epochs=40, report_every=10, verbose=0)
        found.append(error_rate(model, x, y))
        regularize(
            model, few[0], x, labeled_per_batch=8, unlabeled_per_batch=40,
            epochs=2, verbose=0,
        )  # fmt: skip
        found.append(error_rate(model, x, y))
    return found


def refusals(scope, replicas):
    """The messages of what cannot be trained on replicas, by its name."""

    def stage_2(method):
        regularize(network(), X, X, y_labeled=Y, method=method, verbose=0)

    cases = {
        "list": lambda: stage_2([GAR(), CrossEntropy()]),
        "safe": lambda: stage_2("safe-gar"),
        "uneven": lambda: pretrain(network(), X, Y, epochs=1, verbose=0),
        "regularizer": lambda: trained(
            network(regularizer=GraphActivityRegularizer()), "sgd"
        ),
    }
    messages = {}
    for name, train in cases.items():
        try:
            with scope():
                train()
        except ValueError as error:
            messages[name] = str(error)
    return messages


def page(scope, replicas):
    """The page's first example, on data of its own."""
    example, *_ = python_blocks(Path(sys.argv[1]).read_text(encoding="utf-8"))
    example = example.replace("MirroredStrategy()", MIRRORED)
    arrays = {"x_labeled": X[:20], "y_labeled": Y[:20]}
    arrays["x_unlabeled"] = np.tile(X, (6, 1))
    model = run_blocks([example], arrays)["regularized"]
    finite = all(np.isfinite(w).all() for w in model.get_weights())
    count = model.distribute_strategy.num_replicas_in_sync
    return {"replicas": count, "finite": finite}


CASES = {
    layer: (1, 2, 4),
    several_losses: (1, 2, 4),
    both_stages: (1, 2),
    classes_in_use: (1, 4),
    errors: (2,),
    refusals: (2,),
    page: (2,),
}


def main():
    made = strategies()
    results = {case.__name__: {} for case in CASES}
    for case, counts in CASES.items():
        for replicas in counts:
            strategy = made[replicas]
            scope = strategy.scope if strategy else contextlib.nullcontext
            results[case.__name__][replicas] = case(scope, replicas)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
