"""The floor of a training step: how fast the machine could run it at best.

The step is taken apart into operations, each of which does some floating-point
operations (flops) and moves some bytes. The machine has two ceilings, measured
in the backend in use: the flops a second of a large matrix product, and the
bytes a second of a large copy. An operation cannot take less time than either
allows,

```
floor = sum over the operations of max(flops / ceiling, bytes / bandwidth)
```

the roofline of each. The maximum is taken operation by operation, for one
waits for the result of the one before: the products of one do not hide the
bytes of another.

What an operation is, and what it moves: a layer with the bias and activation
behind its product is one operation forward, one for the gradient of its
inputs, one for that of its weights, and one for the update. Each reads each
of its operands once and writes each result once, in the dtype that the layer
computes in; weights and the optimizer's moments lie in the dtype of the
variables. The products alone count as flops: bias, activation, pooling and
update are limited by the bytes they move. Border pixels count like the others.

So the floor is that of a program which runs layer by layer, with direct
convolutions, on a memory as fast as the copy. One that fuses layers, keeps a
tensor in a cache or multiplies by a fast algorithm (Winograd's) may come
closer to it than 1, or below.
"""

import math
import time
from dataclasses import dataclass

import keras
import numpy as np
from keras import layers, ops

from gar_keras.engine import hardware
from gar_keras.engine.keras_internals import calls
from gar_keras.layers import (
    GraphActivityRegularization,
    PerImageStandardization,
)
from gar_keras.models import has_graph
from gar_keras.utils.validation import check_count

FORWARD = "forward"
INPUT_GRADIENT = "input gradient"
WEIGHT_GRADIENT = "weight gradient"
UPDATE = "update"

PRODUCTS = (layers.Conv2D, layers.Dense)
POOLS = (layers.MaxPooling2D,)
# One number out for each number in.
MAPS = (layers.Rescaling, PerImageStandardization, layers.Dropout)
# The same numbers under another shape or name.
VIEWS = (layers.InputLayer, layers.Flatten, layers.Identity)
KNOWN = (*PRODUCTS, *POOLS, *MAPS, *VIEWS, GraphActivityRegularization)


@dataclass(frozen=True)
class Operation:
    """One operation of a step.

    Attributes:
        layer: Name of the layer.
        part: `"forward"`, `"input gradient"`, `"weight gradient"` or
            `"update"`.
        flops: Floating-point operations of its products, two for each
            multiplication with its addition.
        bytes: Bytes read and written.
        dtype: What the layer computes in.
    """

    layer: str
    part: str
    flops: int
    bytes: int
    dtype: str


@dataclass(frozen=True)
class Ceilings:
    """Peak rates of a machine.

    Attributes:
        flops: Flops a second of a matrix product, by dtype.
        bytes: Bytes a second, read and written, of a copy.
    """

    flops: dict
    bytes: float


def forward_operations(model, batch):
    """The operations of a model's forward pass.

    Args:
        model: A Functional or built Sequential model of the layers of `cnn6`
            and `cnn9`: convolutions, max-pooling, dense layers, dropout,
            flattening, rescaling, standardization and GAR.
        batch: Images in the batch.

    Returns:
        A list of `Operation`, in the order of the layers.

    Raises:
        ValueError: if there is another layer in the model.

    Example: 2 * 2048 multiplications and additions for each of 10 logits.

    >>> from gar_keras import cnn6
    >>> forward_operations(cnn6(), batch=1)[-1].flops
    40960
    """
    check_count("batch", batch, least=1)
    return [_Call(node, batch).forward() for node in _nodes(model)]


def step_operations(model, batch, moments=1):
    """The operations of a training step: forward, gradients, update.

    There is no gradient of the inputs of the first layer that is trained, nor
    of anything before it.

    Args:
        model: As in `forward_operations`. A layer that is not trained has no
            gradient of its weights and no update.
        batch: Images in the batch.
        moments: Numbers that the optimizer keeps for each weight: 1 for SGD
            with momentum, 2 for Adam.

    Returns:
        A list of `Operation`: forward in the order of the layers, then each
        layer's gradients and update in that order.

    Raises:
        ValueError: if there is another layer in the model.

    Example:

    >>> from gar_keras import cnn6
    >>> flops = [o.flops for o in step_operations(cnn6(), batch=128)]
    >>> sum(flops)
    18936496128
    """
    check_count("moments", moments, least=0)
    operations = forward_operations(model, batch)
    depends = set()
    for node in _nodes(model):
        call = _Call(node, batch)
        if id(call.x) in depends:
            operations.append(call.input_gradient())
        if call.trained:
            operations.append(call.weight_gradient())
        if call.trained or id(call.x) in depends:
            depends.add(id(call.y))
    trained = {
        node.operation.name: node.operation
        for node in _nodes(model)
        if node.operation.trainable_weights
    }
    # Once for a layer, however often it is called.
    updates = [_update(layer, moments) for layer in trained.values()]
    return [*operations, *updates]


def floor_ms(operations, ceilings):
    """The least time that operations take, in milliseconds.

    Args:
        operations: List of `Operation`.
        ceilings: `Ceilings` for their dtypes.

    Returns:
        `1000 * sum of max(flops / ceiling, bytes / bandwidth)`.

    Example: limited by the product, then by the memory.

    >>> ceilings = Ceilings(flops={"float32": 100.0}, bytes=10.0)
    >>> floor_ms([Operation("a", "forward", 50, 1, "float32"),
    ...     Operation("b", "forward", 50, 20, "float32")], ceilings)
    2500.0
    """
    return 1000 * sum(
        max(
            o.flops / ceilings.flops[o.dtype] if o.flops else 0.0,
            o.bytes / ceilings.bytes,
        )
        for o in operations
    )


def product_dtypes(operations):
    """The dtypes whose ceilings `floor_ms` needs for some operations."""
    return sorted({o.dtype for o in operations if o.flops})


def measure_ceilings(dtypes, sides=None, mebibytes=None, repeats=5):
    """Measures what the backend in use reaches on its device.

    A product of square matrices and a negation, which reads and writes each
    number once like a copy, that no backend leaves out; the best of several
    sizes and repeats, for the rest only disturbs.

    float32 products run on a GPU as the backend would run them in a network:
    in TensorFloat-32 where that is its default.

    Args:
        dtypes: Dtypes of the products, e.g. `["float32", "bfloat16"]`.
        sides: Rows of the matrices. By default large enough for the device.
        mebibytes: Sizes of the copied arrays, likewise; on a CPU from that of
            the networks' largest tensors on, which a cache may hold too.
        repeats: Times that each size is measured, after one to warm up.

    Returns:
        `Ceilings`.
    """
    gpu = hardware.device_kind() == "gpu"
    sides = sides or ((4096, 8192) if gpu else (1024, 2048))
    mebibytes = mebibytes or ((256, 1024) if gpu else (16, 64, 256))
    # As many in a row as make the start of the first one small.
    chain = 20 if gpu else 2
    return Ceilings(
        flops={
            dtype: max(_product_rate(n, dtype, chain, repeats) for n in sides)
            for dtype in dtypes
        },
        bytes=max(_copy_rate(size, chain, repeats) for size in mebibytes),
    )


class _Call:
    """One call of a layer in a model, for a batch."""

    def __init__(self, node, batch):
        self.layer = node.operation
        if type(self.layer) not in KNOWN:
            raise ValueError(
                "The floor is known for the layers "
                f"{', '.join(sorted(kind.__name__ for kind in KNOWN))}. "
                f"Received: {type(self.layer).__name__} "
                f"{self.layer.name!r}. Take it out, or count a model without "
                "it."
            )
        self.batch = batch
        (self.y,) = node.output_tensors
        # A model's inputs come from nowhere.
        (self.x,) = node.input_tensors or [self.y]
        self.trained = bool(self.layer.trainable_weights)

    def forward(self):
        moved = self._size(self.x) + self._weights() + self._size(self.y)
        if isinstance(self.layer, VIEWS):
            moved = 0
        if isinstance(self.layer, GraphActivityRegularization):
            # It hands its input on.
            moved = self._size(self.x)
        return self._operation(FORWARD, moved)

    def input_gradient(self):
        moved = self._size(self.y) + self._weights() + self._size(self.x)
        if isinstance(self.layer, VIEWS):
            moved = 0
        if isinstance(self.layer, POOLS):
            # Where the maximum was is seen from the inputs.
            moved += self._size(self.x)
        return self._operation(INPUT_GRADIENT, moved)

    def weight_gradient(self):
        moved = self._size(self.x) + self._size(self.y)
        if self.layer.activation is not keras.activations.linear:
            # Where it is flat is seen from the outputs; read here once for
            # both gradients.
            moved += self._size(self.y)
        moved += _count(self.layer) * _itemsize(self.layer.compute_dtype)
        return self._operation(WEIGHT_GRADIENT, moved)

    def _operation(self, part, moved):
        dtype = self.layer.compute_dtype
        return Operation(self.layer.name, part, self._product(), moved, dtype)

    def _product(self):
        """Flops of the product, the same forward and for either gradient."""
        if not isinstance(self.layer, PRODUCTS):
            return 0
        per_output = math.prod(self.layer.kernel.shape[:-1])
        return 2 * self.batch * math.prod(self.y.shape[1:]) * per_output

    def _size(self, tensor):
        numbers = self.batch * math.prod(tensor.shape[1:])
        return numbers * _itemsize(tensor.dtype)

    def _weights(self):
        if not isinstance(self.layer, PRODUCTS):
            return 0
        size = sum(math.prod(w.shape) for w in self.layer.weights)
        return size * _itemsize(self.layer.variable_dtype)


def _nodes(model):
    """The calls of the layers of a model, each after those that it needs."""
    if not isinstance(model, keras.Model) or not has_graph(model):
        raise ValueError(
            "The floor is counted from the shapes of the layers, which Keras "
            "knows of a Functional or a built Sequential model alone. "
            f"Received: model={model!r}"
        )
    # Sequential models hold their graph inside.
    return calls(keras.Model(model.inputs, model.outputs))


def _update(layer, moments):
    """Reads the gradients, reads and writes the weights and moments."""
    per_weight = 2 * (1 + moments) * _itemsize(layer.variable_dtype)
    per_weight += _itemsize(layer.compute_dtype)
    moved = _count(layer) * per_weight
    return Operation(layer.name, UPDATE, 0, moved, layer.compute_dtype)


def _count(layer):
    """Numbers in the weights that are trained."""
    return sum(math.prod(w.shape) for w in layer.trainable_weights)


def _itemsize(dtype):
    """Bytes of a number; NumPy knows no bfloat16 by name."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def _product_rate(side, dtype, chain, repeats):
    rng = np.random.default_rng(0)
    # Of this size the products neither grow nor vanish.
    values = rng.standard_normal((side, side), "float32") / math.sqrt(side)
    a = ops.convert_to_tensor(values, dtype=dtype)

    def run():
        y = a
        for _ in range(chain):
            y = ops.matmul(a, y)
        _wait(y[0, 0])

    return chain * 2 * side**3 / _best(run, repeats)


def _copy_rate(mebibytes, chain, repeats):
    count = (mebibytes << 20) // 4
    x = ops.ones((count,), dtype="float32")

    def run():
        y = x
        for _ in range(chain):
            y = ops.negative(y)
        _wait(y[0])

    return chain * 2 * 4 * count / _best(run, repeats)


def _wait(number):
    """Waits until the backend has computed a number."""
    float(ops.convert_to_numpy(ops.cast(number, "float32")))


def _best(run, repeats):
    """The shortest of several times, in seconds, after one to warm up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
