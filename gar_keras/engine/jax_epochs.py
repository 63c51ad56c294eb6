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

from gar_keras.engine.batches import Feed, image_bytes, num_examples, take
from gar_keras.engine.streams import Stream
from gar_keras.utils.files import user_cache

# What the images may take on the device: all of them, which stay there, or
# else those of one step of `fit`, which come with its indices.
RESIDENT_BYTES = 4 << 30


def fits(feed, passes=1):
    """Whether the device has room for what one step of `fit` needs.

    Args:
        feed: A `batches.Feed`.
        passes: Epochs of the sampler that make up one step of `fit`.
    """
    images = feed.images
    if isinstance(images, Stream):
        return False
    count = num_examples(images)
    # Labels are taken by the indices of all images, which then have to stay.
    if feed.labels is None:
        count = min(count, passes * feed.sampler.images_per_epoch)
    return _have_room(count, images)


def _have_room(count, images):
    return count * image_bytes(images) <= RESIDENT_BYTES


def prepare(model, feed, passes=1):
    """Makes `fit` of a compiled model run whole epochs on the device.

    Args:
        model: A model after `compile`.
        feed: A `batches.Feed`.
        passes: Epochs of the sampler that make up one step of `fit`.

    Returns:
        What to give to `fit`, with `steps_per_epoch=1`.
    """
    _keep_programs()
    _build(model, feed)
    stays = _have_room(num_examples(feed.images), feed.images)
    resident = jax.device_put(
        {
            "images": _arrays(feed.images) if stays else None,
            "x_labeled": feed.x_labeled,
            "labels": feed.labels,
            "y_labeled": feed.y_labeled,
        }
    )
    run = jax.jit(epochs(model.train_step, feed.sampler), donate_argnums=0)

    def train_function(state, iterator):
        # An argument, not a constant, which would be compiled in.
        (drawn,) = next(iterator)
        return run(state, drawn, resident)

    # `fit` makes this function itself unless there is one.
    model.train_function = train_function
    return _Indices(feed, passes, with_images=not stays)


def epochs(train_step, sampler):
    """The function that runs every step of some epochs.

    Args:
        train_step: `train_step(state, batch) -> (logs, state)`, as a Keras
            model has it on JAX.
        sampler: `BatchSampler` of the epochs.

    Returns:
        A function `(state, drawn, resident) -> (logs, state)` that `jax.jit`
        takes. `drawn` has the arrays `"order"`, `(passes, images_per_epoch)`,
        and `"chosen"`, `(passes, steps, b_L)`, as the sampler gives them.
        `resident` has the arrays that they index, `"images"`, `"x_labeled"`,
        `"labels"` and `"y_labeled"`; `drawn["images"]`, `(passes,
        images_per_epoch, ...)`, takes the place of the first where it is
        given. The logs are those of the last step.
    """
    full = sampler.images_per_epoch // sampler.batch
    cut = full * sampler.batch

    def one_step(state, rows, chosen, pool, resident):
        feed = Feed(sampler, **resident)
        return train_step(
            state, feed.batch(take(pool, rows), rows, chosen, xp=ops)
        )

    def one_pass(state, drawn, resident):
        order, chosen = drawn["order"], drawn["chosen"]
        pool = drawn.get("images", resident["images"])
        logs = None

        def loop(state, step):
            logs, state = one_step(state, *step, pool, resident)
            return state, logs

        if full:
            rows = order[:cut].reshape(full, sampler.batch)
            state, each = jax.lax.scan(loop, state, (rows, chosen[:full]))
            logs = jax.tree.map(lambda values: values[-1], each)
        if full < sampler.steps:
            # The last batch is shorter: a step of its own.
            logs, state = one_step(
                state, order[cut:], chosen[full], pool, resident
            )
        return state, logs

    def run(state, drawn, resident):
        state, each = jax.lax.scan(
            lambda state, one: one_pass(state, one, resident), state, drawn
        )
        return jax.tree.map(lambda values: values[-1], each), state

    return run


class _Indices(keras.utils.PyDataset):
    """What the device needs from the host, `passes` epochs at a time.

    Args:
        feed: A `batches.Feed`.
        passes: Epochs in one item.
        with_images: Whether an epoch's images go to the device with it.
    """

    num_batches = None

    def __init__(self, feed, passes, with_images):
        super().__init__()
        self.feed, self.passes, self.with_images = feed, passes, with_images

    def __getitem__(self, index):
        first = self.feed.first_epoch + index * self.passes
        epochs = map(self.feed.sampler.epoch, range(first, first + self.passes))
        orders, chosen = zip(*epochs, strict=True)
        drawn = {
            "order": np.stack(orders).astype("int32"),
            "chosen": np.stack(chosen).astype("int32"),
        }
        if self.with_images:
            drawn["images"] = keras.tree.map_structure(
                lambda *each: np.stack(each),
                *(take(self.feed.images, order) for order in orders),
            )
            # They come in the order of the epoch.
            drawn["order"][:] = np.arange(self.feed.sampler.images_per_epoch)
        return (drawn,)


def _arrays(images):
    """Images of a file or an image source as arrays in memory."""
    return keras.tree.map_structure(
        lambda part: (
            part
            if isinstance(part, np.ndarray)
            else take(part, np.arange(len(part)))
        ),
        images,
    )


def _build(model, feed):
    """Makes what `fit` would make from its first batch, which has no images."""
    sampler = feed.sampler
    labels = feed.labels if feed.y_labeled is None else feed.y_labeled
    rows = np.zeros(min(sampler.batch, sampler.images_per_epoch), "int64")
    x = keras.tree.map_structure(
        ops.convert_to_tensor, take(feed.images, rows[:1])
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
