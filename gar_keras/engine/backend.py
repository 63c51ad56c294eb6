"""What differs between Keras' backends, and nothing else.

On TensorFlow the batches of an epoch are made by a `tf.data` graph, and `fit`
runs many steps in one call of a compiled function. With JAX on a GPU the whole
epoch is one compiled program: see `jax_epochs`. Elsewhere `fit` gets the same
batches, bit for bit, from NumPy.
"""

import functools
import inspect
from pathlib import Path
import platform
import sys
import weakref

import keras
from keras import ops
import numpy as np

from gar_keras.engine.batches import Start
from gar_keras.engine.batches import behind_unlabeled
from gar_keras.engine.batches import image_bytes
from gar_keras.engine.batches import take
from gar_keras.utils.validation import is_in_memory

# Steps for which images are fetched at once from a source outside memory, at
# most, and what the batches that wait for `fit` may take in memory.
SOURCE_CHUNK = 40
PREFETCH_BYTES = 256 << 20


def name():
    """Name of the backend in use: `"tensorflow"`, `"jax"` or `"torch"`."""
    return keras.backend.backend()


def fit(model, feed, *, passes=1, initial_epoch=0, **options):
    """Calls `fit` of a model, with the batches of a feed, by the fastest path.

    Args:
        model: A Keras model, compiled with `compile_options`.
        feed: A `batches.Feed`.
        passes: Epochs of the sampler that make up one epoch of `fit`.
        initial_epoch: Epochs of `fit` that are done already.
        **options: Other arguments of `fit`, a list of `callbacks` among them.

    Returns:
        What `fit` returns.
    """
    start = Start(feed.first_epoch + passes * initial_epoch)
    follow = _FollowFit(start, feed.first_epoch, passes)
    options |= {
        "initial_epoch": initial_epoch,
        "shuffle": False,
        "callbacks": [follow, *options["callbacks"]],
    }
    if loops_on_device():
        from gar_keras.engine import jax_epochs

        if jax_epochs.fits(feed, passes):
            batches = jax_epochs.prepare(model, feed, passes, start)
            try:
                return model.fit(batches, steps_per_epoch=1, **options)
            finally:
                # It holds the images, and takes no other batches than these.
                model.train_function = None
    steps = passes * feed.sampler.steps
    batches = make_batches(feed, start)
    return model.fit(batches, steps_per_epoch=steps, **options)


class _FollowFit(keras.callbacks.Callback):
    """Has the batches start with the epoch that `fit` starts with.

    That is a later one than `fit` was told, where a callback such as
    `keras.callbacks.BackupAndRestore` restores what an earlier call has done.

    Args:
        start: The `Start` of the batches.
        first_epoch: Number of the epoch of the sampler that `fit` would start
            with at its epoch 0.
        passes: Epochs of the sampler that make up one epoch of `fit`.
    """

    def __init__(self, start, first_epoch, passes):
        super().__init__()
        self.start = start
        self.first_epoch = first_epoch
        self.passes = passes
        self._has_begun = False

    def on_epoch_begin(self, epoch, logs=None):
        if not self._has_begun:
            self._has_begun = True
            self.start.epoch = self.first_epoch + self.passes * epoch


def predict(model, x, batch_size=500):
    """What `predict` gives for an array, by the fastest path.

    Args:
        model: A Keras model.
        x: Array `(m, ...)`.
        batch_size: Images in a batch.

    Returns:
        A NumPy array, or what the model's structure of outputs is.

    Example:

    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.ReLU()])
    >>> predict(model, np.array([[-1., 2.], [3., -4.]])).tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    if name() != "tensorflow":
        return model.predict(x, batch_size=batch_size, verbose=0)
    import tensorflow as tf

    if x.dtype == np.float64:
        # As Keras does with arrays.
        x = x.astype(keras.config.floatx())
    images = tf.convert_to_tensor(x)
    starts = tf.data.Dataset.range(0, len(x), batch_size)
    batches = starts.map(lambda i: images[i : i + batch_size]).prefetch(2)
    return model.predict(batches.with_options(_pipeline_options()), verbose=0)


def loops_on_device():
    """Whether epochs run as one compiled program: with JAX on one GPU."""
    alone = keras.distribution.distribution() is None
    return name() == "jax" and device_kind() == "gpu" and alone


def make_batches(feed, start=None):
    """What `fit` draws its batches from, on the backend in use.

    Args:
        feed: A `batches.Feed`.
        start: A `batches.Start` that may be set until `fit` begins. By default
            that of the feed's first epoch.

    Returns:
        A `tf.data.Dataset` or a `keras.utils.PyDataset`, of batches `x` or
        `(x, y)`. It has no end: `fit` must be told `steps_per_epoch`.
    """
    make = _graph_batches if name() == "tensorflow" else _ArrayBatches
    return make(feed, start or Start(feed.first_epoch))


def compile_options(steps):
    """Arguments of `compile` that make `fit` fast on this backend and device.

    Args:
        steps: Steps of one `fit` epoch. Many run in one call where the
            backend can loop by itself.
    """
    if name() != "tensorflow":
        return {}
    # XLA makes the convolutions several times slower on a CPU.
    jit_compile = "auto" if device_kind() == "gpu" else False
    # A divisor: the pipeline has no end that would stop the last call.
    return {
        "jit_compile": jit_compile,
        "steps_per_execution": largest_divisor(steps, 100),
    }


def largest_divisor(number, limit):
    """The largest divisor of `number` that is at most `limit`.

    Example:

    >>> largest_divisor(536, 100)
    67
    """
    return next(d for d in range(limit, 0, -1) if number % d == 0)


@functools.cache
def device_kind():
    """`"gpu"` if the backend sees one, else `"cpu"`."""
    if name() == "tensorflow":
        import tensorflow as tf

        return "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    if name() == "jax":
        import jax

        return "gpu" if jax.default_backend() in ("gpu", "cuda") else "cpu"
    import torch

    return "gpu" if torch.cuda.is_available() else "cpu"


def device_name():
    """The device by its maker's name, e.g. the model of the processor."""
    if device_kind() == "cpu":
        return processor()["model"]
    return {
        "tensorflow": _tensorflow_gpu,
        "jax": _jax_gpu,
        "torch": _torch_gpu,
    }[name()]()


def _tensorflow_gpu():
    import tensorflow as tf

    gpu = tf.config.list_physical_devices("GPU")[0]
    details = tf.config.experimental.get_device_details(gpu)
    return details.get("device_name", "GPU")


def _jax_gpu():
    import jax

    return jax.devices()[0].device_kind


def _torch_gpu():
    import torch

    return torch.cuda.get_device_name()


def backend_version():
    """Version of the backend's package."""
    import importlib

    return importlib.import_module(name()).__version__


@functools.cache
def processor():
    """Model and instruction sets of the processor, as far as the OS tells."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {"model": platform.processor() or "unknown", "flags": ()}
    fields = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return {
        "model": fields.get("model name", "unknown"),
        "flags": tuple(fields.get("flags", "").split()),
    }


def fast_precision():
    """`"bfloat16"` where the hardware computes in it, else `"float32"`.

    On a CPU only TensorFlow's kernels are known to gain by it.
    """
    if device_kind() == "gpu":
        return "bfloat16"
    units = {"amx_bf16", "avx512_bf16"} & set(processor()["flags"])
    return "bfloat16" if units and name() == "tensorflow" else "float32"


def num_replicas():
    """Replicas over which TensorFlow splits each batch; 1 elsewhere."""
    if name() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def check_one_replica():
    """Raises if TensorFlow splits each batch over several replicas."""
    replicas = num_replicas()
    if replicas > 1:
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        raise ValueError(
            f"GAR cannot train on the {replicas} replicas of "
            f"{type(strategy).__name__}. Each replica would compute N = BᵀB "
            "of its own part of the batch, and the mean of their losses is "
            "not the loss of the batch. Use one device, or the JAX backend "
            "with keras.distribution.DataParallel, which computes N over the "
            "whole batch."
        )


# The module and function, for each backend, that run what is to be computed
# again for the gradient. PyTorch's keeps the losses of the first time.
_REMATERIALIZED_BY = {
    "jax": ("jax._src.ad_checkpoint", "checkpoint."),
    "tensorflow": ("tensorflow.python.ops.custom_gradient", "recompute_grad."),
}


def check_not_rematerialized():
    """Raises in a function that is computed again for the gradient.

    `keras.remat` makes such functions. A loss added there is lost on JAX, and
    has no gradient on TensorFlow. (A function that calls `stateless_call`
    itself, and returns the losses, may well be computed again.)
    """
    if name() not in _REMATERIALIZED_BY:
        return
    module, function = _REMATERIALIZED_BY[name()]
    stateless_call = inspect.unwrap(keras.Layer.stateless_call).__code__
    frame = sys._getframe()
    while frame is not None and frame.f_code is not stateless_call:
        inside = frame.f_globals.get("__name__") == module
        if inside and frame.f_code.co_qualname.startswith(function):
            raise ValueError(
                "The loss of GAR cannot be added under rematerialization: it "
                "would have no gradient. Leave the layer that adds it, and "
                "the model that it is in, out of keras.remat and "
                "keras.RematScope."
            )
        frame = frame.f_back


def is_sparse(x):
    """Whether `x` is a sparse tensor of the backend."""
    if name() == "tensorflow":
        import tensorflow as tf

        return isinstance(x, tf.SparseTensor | tf.IndexedSlices)
    if name() == "jax":
        from jax.experimental import sparse

        return isinstance(x, sparse.JAXSparse)
    return getattr(x, "is_sparse", False)


def is_taken(variable):
    """Whether `fit` has the value of a variable, to give it back later.

    So it is on JAX from the first step of an epoch to its end, where an
    assignment would be lost.
    """
    return name() == "jax" and variable._value is None


def updates_in_place(gradient):
    """Whether `apply_momentum` can take this gradient."""
    if name() != "tensorflow":
        return False
    import tensorflow as tf

    return isinstance(gradient, tf.Tensor)


def apply_momentum(variable, moment, gradient, rate, momentum, nesterov):
    """Updates a weight and its momentum in one kernel. TensorFlow only.

    Args:
        variable: The weight, a Keras or TensorFlow variable.
        moment: Its momentum, a Keras variable.
        gradient: Dense gradient of the weight.
        rate: Learning rate of the step.
        momentum: Factor of the momentum.
        nesterov: Whether with Nesterov momentum.
    """
    import tensorflow as tf

    if isinstance(variable, keras.Variable):
        variable = variable.value

    def cast(value):
        return tf.cast(value, variable.dtype)

    tf.raw_ops.ResourceApplyKerasMomentum(
        var=variable.handle,
        accum=moment.value.handle,
        lr=cast(rate),
        grad=cast(gradient),
        momentum=cast(momentum),
        use_nesterov=nesterov,
    )


def gradient(function, x):
    """The gradient of a scalar function of a tensor, also within a step.

    What the function assigns to Keras variables, such as the state of a
    dropout's seed, is assigned once, as if the function were called alone.

    Args:
        function: From a tensor like `x` to a scalar tensor.
        x: A float tensor.

    Returns:
        A tensor like `x`. It is no constant to a gradient taken around this
        function: put `keras.ops.stop_gradient` around it if it is to be one.

    Example:

    >>> x = keras.ops.convert_to_tensor([1.0, 2.0])
    >>> np.array(gradient(lambda x: keras.ops.sum(x * x), x)).tolist()
    [2.0, 4.0]
    """
    if name() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x, unconnected_gradients="zero")
    if name() == "jax":
        return _jax_gradient(function, x)
    import torch

    with torch.enable_grad():
        if not x.requires_grad:
            x = x.detach().requires_grad_(True)
        y = function(x)
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
    return slope


def _jax_gradient(function, x):
    """The gradient on JAX, where no tracer may be left in a variable."""
    import jax
    from keras.src.backend.common.stateless_scope import get_stateless_scope

    assigned = []

    class Scope(keras.StatelessScope):
        def add_update(self, update):
            super().add_update(update)
            assigned.append(update[0])

    around = get_stateless_scope()

    def pure(x):
        scope = Scope()
        if around is not None:
            scope.state_mapping.update(around.state_mapping)
        with scope:
            y = function(x)
        return y, [scope.get_current_value(v) for v in assigned]

    slope, values = jax.grad(pure, has_aux=True)(x)
    for variable, value in zip(assigned, values, strict=True):
        variable.assign(value)
    return slope


class StepMean(keras.metrics.Mean):
    """Mean, over the steps, of a scalar that a layer computes in `call`.

    Keras' other metrics are updated outside of `call`. On TensorFlow that
    makes no difference. On JAX a layer cannot touch the variables of a metric
    while the loss is differentiated: the value has to wait until the metrics
    of the step are gathered, which is when Keras asks for `result`.
    """

    def record(self, value):
        """Takes one step's value. Called in the layer's `call`."""
        scope = _stateless_scope()
        if name() != "jax" or scope is None:
            self.update_state(ops.stop_gradient(value))
            return
        seen_in = getattr(self, "_seen_in", None)
        if seen_in is None or seen_in() is not scope:
            self._seen_in = weakref.ref(scope)
            self._waiting = []
        self._waiting.append(ops.stop_gradient(value))

    def result(self):
        if _stateless_scope() is not None:
            for value in getattr(self, "_waiting", ()):
                self.update_state(value)
            self._waiting = []
        return super().result()


def _stateless_scope():
    from keras.src.backend.common import stateless_scope

    return stateless_scope.get_stateless_scope()


# For each pass that collects losses, and each layer, a list.
_passes = weakref.WeakKeyDictionary()


def pass_memory(layer):
    """A list that belongs to a layer for the rest of a pass, or `None`.

    It is `None` outside of `stateless_call`, with which `fit` of JAX calls a
    model. There each call of a layer makes Keras drop the losses that the
    layer added before, as if it were the call of another pass.
    """
    scope = _stateless_scope()
    if scope is None or not scope.collect_losses:
        return None
    layers = _passes.setdefault(scope, weakref.WeakKeyDictionary())
    return layers.setdefault(layer, [])


def add_loss(layer, loss):
    """Adds a loss to a layer that may be called several times in a pass.

    What Keras has dropped of its earlier calls is added again: see
    `pass_memory`.

    Args:
        layer: The layer whose `call` is running.
        loss: A scalar tensor.
    """
    added = pass_memory(layer)
    if added is not None:
        left = {id(x) for x in layer.losses}
        dropped = [x for x in added if id(x) not in left]
        loss = sum(dropped, loss)
        added[:] = [x for x in added if id(x) in left] + [loss]
    layer.add_loss(loss)


def chunk_steps(sampler, images):
    """Steps whose batches are made at once; twice as many wait for `fit`.

    Args:
        sampler: `BatchSampler` over `images`.
        images: Array `(m, ...)` or image source.

    Returns:
        `SOURCE_CHUNK`, or less where so many batches would be larger than
        half of `PREFETCH_BYTES`; 1 at least.

    Example:

    >>> from gar_keras.engine.batches import BatchSampler
    >>> chunk_steps(BatchSampler(2000, 128), np.zeros((2000, 28, 28), "uint8"))
    40
    """
    batch_bytes = (sampler.batch + sampler.labeled_per_batch) * image_bytes(
        images
    )
    return max(1, min(SOURCE_CHUNK, PREFETCH_BYTES // (2 * batch_bytes)))


def _graph_batches(feed, start):
    import tensorflow as tf

    sampler, images = feed.sampler, feed.images
    full = sampler.images_per_epoch // sampler.batch
    cut = full * sampler.batch
    chunk = chunk_steps(sampler, images)

    draw = _Lent(lambda done: sampler.epoch(start.epoch + done))
    fetch = _Lent(lambda rows: take(images, rows))

    def indices(done):
        order, chosen = tf.numpy_function(
            draw, [done], (tf.int64, tf.int64), stateful=False
        )
        order = tf.ensure_shape(order, (sampler.images_per_epoch,))
        chosen = tf.ensure_shape(
            chosen, (sampler.steps, sampler.labeled_per_batch)
        )
        rows = tf.reshape(order[:cut], (full, sampler.batch))
        batches = fetch_all(rows, chosen[:full])
        if full == sampler.steps:
            return batches
        # One more, shorter batch with what is left.
        return batches.concatenate(fetch_all(order[None, cut:], chosen[full:]))

    def fetch_all(rows, chosen):
        data = tf.data.Dataset.from_tensor_slices((rows, chosen))
        if is_in_memory(images):
            return data.map(gather)
        return data.batch(chunk).map(take_chunk).unbatch()

    # Captured tensors, not constants of the graph, which must stay below 2 GB.
    resident = tf.convert_to_tensor(images) if is_in_memory(images) else None
    x_labeled, labels, y_labeled = (
        None if array is None else tf.convert_to_tensor(array)
        for array in (feed.x_labeled, feed.labels, feed.y_labeled)
    )

    def with_labels(x, rows, chosen):
        if y_labeled is not None:
            y = tf.gather(y_labeled, chosen)
            return x, behind_unlabeled(y, rows, ops)
        return x if labels is None else (x, tf.gather(labels, rows))

    def gather(row, chosen):
        x = tf.gather(resident, row)
        if x_labeled is not None:
            x = tf.concat([x, tf.gather(x_labeled, chosen)], axis=0)
        return with_labels(x, row, chosen)

    def take_chunk(rows, chosen):
        x = tf.numpy_function(
            fetch, [tf.reshape(rows, [-1])], images.dtype, stateful=False
        )
        x = tf.reshape(x, (-1, rows.shape[1], *images.shape[1:]))
        if x_labeled is not None:
            x = tf.concat([x, tf.gather(x_labeled, chosen)], axis=1)
        return with_labels(x, rows, chosen)

    # Not `counter`: TensorFlow never lets go of the graph of its scan.
    epochs = tf.data.Dataset.range(np.iinfo("int64").max)
    batches = epochs.flat_map(indices).prefetch(2 * chunk)
    batches = batches.with_options(_pipeline_options())
    for lent in (draw, fetch):
        weakref.finalize(batches, lent.take_back)
    return batches


class _Lent:
    """A function for `tf.numpy_function`, which never lets go of it.

    Once it is taken back, what it refers to can be freed.
    """

    def __init__(self, function):
        self._function = function

    def __call__(self, *arguments):
        return self._function(*arguments)

    def take_back(self):
        self._function = None


def _pipeline_options():
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = True
    # Making batches is light: leave the cores to the network. And what a
    # thread of TensorFlow's own pool has made, the network may work on in that
    # thread, alone.
    options.threading.private_threadpool_size = 1
    options.autotune.enabled = False
    return options


class _ArrayBatches(keras.utils.PyDataset):
    """The same batches from NumPy, for backends without a pipeline.

    Without end, like the pipeline: what Keras does at the end of a data set,
    and how often it calls `on_epoch_end`, differs between its versions.
    """

    num_batches = None

    def __init__(self, feed, start):
        super().__init__()
        self.feed = feed
        self.start = start
        # One epoch's indices are kept, for the steps that come next.
        self._epoch = functools.lru_cache(maxsize=1)(feed.sampler.epoch)

    def __getitem__(self, index):
        feed, batch = self.feed, self.feed.sampler.batch
        done, step = divmod(index, feed.sampler.steps)
        order, chosen = self._epoch(self.start.epoch + done)
        rows = order[step * batch : (step + 1) * batch]
        x = take(feed.images, rows)
        if feed.x_labeled is not None:
            x = np.concatenate([x, feed.x_labeled[chosen[step]]])
        if feed.y_labeled is not None:
            return x, behind_unlabeled(feed.y_labeled[chosen[step]], rows)
        return x if feed.labels is None else (x, feed.labels[rows])
