"""`fit` and `predict` of a model, by the fastest path of backend and device.

On TensorFlow the batches of an epoch are made by a `tf.data` graph, and `fit`
runs many steps in one call of a compiled function. With JAX on a GPU the whole
epoch, over images in memory, is one compiled program: see `jax_epochs`.
Elsewhere `fit` gets the same batches, bit for bit, from NumPy.
"""

import contextlib
import logging
import math

import keras
import numpy as np

from gar_keras.engine import backend, hardware, replicas
from gar_keras.engine.batches import num_examples, take
from gar_keras.engine.graphs import takes_float64
from gar_keras.engine.keras_internals import flatten_layers
from gar_keras.engine.pipeline import Batches, as_pipeline
from gar_keras.utils.validation import check_count

# Layers of augmentation that JAX compiles all the same. An older Keras has
# only some.
AUGMENTATION = tuple(
    getattr(keras.layers, f"Random{name}")
    for name in ("Crop", "Perspective", "Rotation", "Shear", "Translation")
    + ("Zoom",)
    if hasattr(keras.layers, f"Random{name}")
)


@contextlib.contextmanager
def _without_advice():
    """Leaves out TensorFlow's advice on functions that are made in a loop.

    Each model has its own, of which the advice is made after five models.
    """

    def leaves_in(record):
        return "triggered tf.function retracing" not in str(record.msg)

    logger = logging.getLogger("tensorflow")
    logger.addFilter(leaves_in)
    try:
        yield
    finally:
        logger.removeFilter(leaves_in)


@_without_advice()
def fit(model, data, *, passes=1, initial_epoch=0, **options):
    """Calls `fit` of a model with batches of its data, by the fastest path.

    `passes` epochs of the sampler make up one epoch of `fit`. The options are
    other arguments of it, a list of `callbacks` among them.
    """
    replicas.check_fit(data.sampler)
    steps, compiles = passes * data.sampler.steps, False
    if hardware.loops_on_device():
        from gar_keras.engine import jax_epochs

        compiles = jax_epochs.fits(data)
    if compiles:
        batches, steps = jax_epochs.Epochs(data, passes), 1
        jax_epochs.prepare(model, data)
    else:
        batches = Batches(data, passes * options["epochs"])
    is_tensorflow = backend.name() == "tensorflow"
    options |= {
        "callbacks": [_TellEpoch(batches, passes), *options["callbacks"]],
        "initial_epoch": initial_epoch,
        "steps_per_epoch": steps,
        "shuffle": False,
    }
    try:
        return model.fit(
            as_pipeline(batches) if is_tensorflow else batches, **options
        )
    except Exception:
        if not compiles and batches.error is not None:
            raise batches.error from None
        raise
    finally:
        if compiles:
            # The compiled function holds the images and takes no other batch.
            model.train_function = None


class _TellEpoch(keras.callbacks.Callback):
    """Tells the batches the epoch that `fit` begins with.

    With `keras.callbacks.BackupAndRestore` that is a later one than was asked
    for, and `fit` makes no batch before that it trains on.
    """

    def __init__(self, batches, passes):
        super().__init__()
        self._batches = batches
        self._passes = passes
        self._is_told = False

    def on_epoch_begin(self, epoch, logs=None):
        if not self._is_told:
            self._batches.done = self._passes * epoch
            self._is_told = True


def check_epochs(epochs, initial_epoch):
    """Raises unless training can go on from one epoch up to the other."""
    check_count("epochs", epochs, least=1)
    check_count("initial_epoch", initial_epoch, least=0, most=epochs)


@_without_advice()
def predict(model, x, batch_size=500):
    """What `predict` gives for examples with an index, a batch at a time.

    Outputs of 16 bits come in float32: NumPy would add them up in bfloat16.
    """
    m = num_examples(x)
    dtype = "float64" if takes_float64(model) else keras.config.floatx()

    def in_floats(part):
        # Keras does the same with arrays.
        return part.astype(dtype) if part.dtype == np.float64 else part

    # Given arrays, Keras would copy them as a whole.
    def batches():
        for first in range(0, m, batch_size):
            batch = take(x, np.arange(first, min(first + batch_size, m)))
            yield (keras.tree.map_structure(in_floats, batch),)

    def in_32_bits(outputs):
        is_short = outputs.dtype.itemsize == 2
        return outputs.astype("float32") if is_short else outputs

    steps = math.ceil(m / batch_size)
    outputs = model.predict(batches(), steps=steps, verbose=0)
    return keras.tree.map_structure(in_32_bits, outputs)


def compile_options(model, steps):
    """Arguments of `compile` that make `fit` fast on backend and device."""
    if backend.name() == "jax":
        # Keras' layers of augmentation say that they do not support it, for
        # the sake of TensorFlow: `fit` would run each operation by itself.
        for layer in flatten_layers(model):
            if isinstance(layer, AUGMENTATION):
                layer.supports_jit = True
    # A loop of TensorFlow fails on the exchanges between replicas.
    if backend.name() != "tensorflow" or replicas.count() > 1:
        return {"steps_per_execution": 1}
    # XLA makes the convolutions several times slower on a CPU.
    jit_compile = "auto" if hardware.device_kind() == "gpu" else False
    # A divisor: the pipeline has no end that would stop the last call.
    per_call = largest_divisor(steps, 100)
    return {"jit_compile": jit_compile, "steps_per_execution": per_call}


def largest_divisor(number, limit):
    """The largest divisor of `number` that is at most `limit`."""
    return next(d for d in range(limit, 0, -1) if number % d == 0)
