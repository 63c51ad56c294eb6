"""The fast path on a GPU with JAX: a whole epoch in one compiled program.

The images lie on the device as uint8. The host sends the indices of an epoch,
0.5 MB for MNIST, while the device works on the one before. The device gathers
the batches and runs the steps in a loop. Each step is Keras' own `train_step`
of the same model, layers and optimizer, and `fit` does the rest: callbacks,
logs and metrics are those of the plain path.

Not for a CPU: convolutions inside a loop are many times slower there.
"""

import os
from pathlib import Path

import jax
import keras
from keras import ops
import numpy as np

from gar_keras.engine.backend import image_bytes
from gar_keras.engine.backend import take
from gar_keras.engine.batches import Start
from gar_keras.utils.validation import is_source

# What the images may take on the device: all of them, which stay there, or
# else those of one step of `fit`, which come with its indices.
RESIDENT_BYTES = 4 << 30


def fits(plan, images, passes=1):
    """Whether the device has room for what one step of `fit` needs.

    Args:
        plan: `BatchPlan` over `images`.
        images: Array `(m, ...)` or image source.
        passes: Epochs of the plan that make up one step of `fit`.
    """
    seen = min(len(images), passes * plan.per_epoch)
    return _have_room(seen, images)


def _have_room(count, images):
    return count * image_bytes(images) <= RESIDENT_BYTES


def prepare(
    model,
    plan,
    images,
    guides=None,
    labels=None,
    first_epoch=1,
    guide_labels=None,
    passes=1,
):
    """Makes `fit` of a compiled model run whole epochs on the device.

    Args:
        model: A model after `compile`.
        plan: `BatchPlan` over `images` and `guides`.
        images: Array `(m, ...)` or image source.
        guides: Images that are put behind the others in each batch, or
            `None`.
        labels: Class indices `(m,)` of `images`, or `None`.
        first_epoch: Number of the epoch of the plan to begin with, from 1.
        guide_labels: Class indices of `guides`, or `None`. With them, `y` is
            -1 for the other images, and `labels` must be `None`.
        passes: Epochs of the plan that make up one step of `fit`.

    Returns:
        What to give to `fit`, with `steps_per_epoch=1`.
    """
    start = Start(first_epoch)
    return prepare_from(
        model, start, plan, images, guides, labels, guide_labels, passes
    )


def prepare_from(
    model, start, plan, images, guides, labels, guide_labels, passes
):
    """`prepare` with a `batches.Start`, set until `fit` begins."""
    _keep_programs()
    _build(
        model, images, labels if guide_labels is None else guide_labels, plan
    )
    indices = _Indices(start, plan, images, passes)
    resident = jax.device_put(
        {
            "images": indices.resident,
            "guides": guides,
            "labels": _array(labels),
            "guide_labels": _array(guide_labels),
        }
    )
    run = jax.jit(epochs(model.train_step, plan), donate_argnums=0)

    def train_function(state, iterator):
        # An argument, not a constant, which would be compiled in.
        (drawn,) = next(iterator)
        return run(state, drawn, resident)

    # `fit` makes this function itself unless there is one.
    model.train_function = train_function
    return indices


def epochs(train_step, plan):
    """The function that runs every step of some epochs.

    Args:
        train_step: `train_step(state, batch) -> (logs, state)`, as a Keras
            model has it on JAX.
        plan: `BatchPlan` of the epochs.

    Returns:
        A function `(state, drawn, resident) -> (logs, state)` that `jax.jit`
        takes. `drawn` has the arrays `"order"`, `(passes, per_epoch)`, and
        `"guides"`, `(passes, steps, b_L)`, as the plan gives them. `resident`
        has the arrays that they index, `"images"`, `"guides"`, `"labels"` and
        `"guide_labels"`; `drawn["images"]`, `(passes, per_epoch, ...)`, takes
        the place of the first where it is given. The logs are those of the
        last step.
    """
    full = plan.per_epoch // plan.batch
    cut = full * plan.batch

    def one_step(state, rows, chosen, pool, resident):
        x = pool[rows]
        if resident["guides"] is not None:
            x = ops.concatenate([x, resident["guides"][chosen]])
        if resident["guide_labels"] is not None:
            y = resident["guide_labels"][chosen]
            y = ops.concatenate([ops.full(rows.shape, -1, y.dtype), y])
            return train_step(state, (x, y))
        if resident["labels"] is not None:
            return train_step(state, (x, resident["labels"][rows]))
        return train_step(state, (x,))

    def one_pass(state, drawn, resident):
        order, chosen = drawn["order"], drawn["guides"]
        pool = drawn.get("images", resident["images"])
        logs = None

        def loop(state, step):
            logs, state = one_step(state, *step, pool, resident)
            return state, logs

        if full:
            rows = order[:cut].reshape(full, plan.batch)
            state, each = jax.lax.scan(loop, state, (rows, chosen[:full]))
            logs = jax.tree.map(lambda values: values[-1], each)
        if full < plan.steps:
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
    """What the device needs from the host, `passes` epochs at a time."""

    num_batches = None

    def __init__(self, start, plan, images, passes):
        super().__init__()
        self.start = start
        self.plan = plan
        self.passes = passes
        self.resident = self.source = None
        if not _have_room(len(images), images):
            # An epoch's images go to the device with its indices.
            self.source = images
        elif is_source(images):
            self.resident = images.take(np.arange(len(images)))
        else:
            self.resident = images

    def __getitem__(self, index):
        first = self.start.epoch + index * self.passes
        each = [self.plan.epoch(first + i) for i in range(self.passes)]
        drawn = {
            "order": np.stack([order for order, _ in each]).astype("int32"),
            "guides": np.stack([guides for _, guides in each]).astype("int32"),
        }
        if self.source is not None:
            drawn["images"] = np.stack(
                [take(self.source, order) for order, _ in each]
            )
            # They come in the order of the epoch.
            drawn["order"][:] = np.arange(self.plan.per_epoch)
        return (drawn,)


def _array(labels):
    return None if labels is None else np.asarray(labels)


def _build(model, images, labels, plan):
    """Makes what `fit` would make from its first batch, which has no images."""
    rows = np.zeros(min(plan.batch, plan.per_epoch), "int64")
    x = ops.convert_to_tensor(take(images, rows[:1]))
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
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "gar_keras" / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
