"""The fast path on a GPU with JAX: a whole epoch in one compiled program.

The images lie on the device as uint8. The host draws the indices of each epoch,
0.5 MB for MNIST, and begins to send them before the device starts on the
previous one. The device gathers the batches and runs the steps in a loop. Each
step is Keras' own `train_step` of the same model, layers and optimizer, and
`fit` does the rest: callbacks, logs and metrics are those of the plain path.

Not for a CPU: convolutions inside a loop are many times slower there.
"""

import jax
import keras
import numpy as np
from keras import ops

from gar_keras.engine.batches import (
    TrainingData,
    image_bytes,
    num_examples,
    take,
)
from gar_keras.engine.pipeline import Batches
from gar_keras.utils.cache import user_cache
from gar_keras.utils.validation import is_in_memory

# The most bytes that the images may take on the device.
RESIDENT_BYTES = 4 << 30


def fits(data):
    """Whether the images are in memory, and the device has room for them."""
    return all(map(is_in_memory, keras.tree.flatten(data.images))) and (
        num_examples(data.images) * image_bytes(data.images) <= RESIDENT_BYTES
    )


class Epochs(Batches):
    """The indices of whole epochs, so many of the sampler in each batch."""

    def __init__(self, data, passes):
        super().__init__(data)
        self._passes = passes

    def __getitem__(self, index):
        first = self.done + index * self._passes
        drawn = map(self.epoch, range(first, first + self._passes))
        order, chosen = map(np.stack, zip(*drawn, strict=True))
        indices = {"order": order, "chosen": chosen}
        return ({name: x.astype("int32") for name, x in indices.items()},)


def prepare(model, data):
    """Makes `fit` of a compiled model take a batch of `Epochs` as one step."""
    _keep_programs()
    _build(model, data)
    names = ("images", "x_labeled", "labels", "y_labeled")
    resident = jax.device_put({name: getattr(data, name) for name in names})
    run = jax.jit(epochs(model.train_step, data.sampler), donate_argnums=0)

    def train_function(state, iterator):
        # An argument, not a constant, which would be compiled in.
        (drawn,) = next(iterator)
        return run(state, drawn, resident)

    # `fit` makes this function itself unless there is one.
    model.train_function = train_function


def epochs(train_step, sampler):
    """The function that runs every step of some epochs, for `jax.jit`.

    `(state, drawn, resident) -> (logs, state)`, with the logs of the last
    step. `drawn` has the arrays `"order"`, `(passes, images_per_epoch)`, and
    `"chosen"`, `(passes, steps, b_L)`; `resident` those that they index.
    """
    full = sampler.images_per_epoch // sampler.batch
    cut = full * sampler.batch

    def one_step(state, rows, chosen, data):
        x = take(data.images, rows)
        return train_step(state, data.batch(x, rows, chosen, xp=ops))

    def one_pass(state, drawn, data):
        order, chosen = drawn["order"], drawn["chosen"]
        logs = None

        def loop(state, step):
            logs, state = one_step(state, *step, data)
            return state, logs

        if full:
            rows = order[:cut].reshape(full, sampler.batch)
            state, each = jax.lax.scan(loop, state, (rows, chosen[:full]))
            logs = jax.tree.map(lambda values: values[-1], each)
        if full < sampler.steps:
            # The last batch is shorter: a step of its own.
            logs, state = one_step(state, order[cut:], chosen[full], data)
        return state, logs

    def run(state, drawn, resident):
        data = TrainingData(sampler, **resident)
        state, each = jax.lax.scan(
            lambda state, one: one_pass(state, one, data), state, drawn
        )
        return jax.tree.map(lambda values: values[-1], each), state

    return run


def _build(model, data):
    """Makes what `fit` would make from its first batch, which has no images."""
    sampler = data.sampler
    labels = data.labels if data.y_labeled is None else data.y_labeled
    rows = np.zeros(min(sampler.batch, sampler.images_per_epoch), "int64")
    x = keras.tree.map_structure(
        ops.convert_to_tensor, take(data.images, rows[:1])
    )
    y = None if labels is None else ops.convert_to_tensor(labels[rows[:1]])
    outputs = model(x, training=False)
    model.compute_loss(x, y, outputs, training=False)
    model.compute_metrics(x, y, outputs)
    model.reset_metrics()
    model.optimizer.build(model.trainable_variables)


def _keep_programs():
    """Has compiled programs kept on disc, for later seeds and later runs."""
    if jax.config.jax_compilation_cache_dir is not None:
        return
    folder = user_cache() / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
