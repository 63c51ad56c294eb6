"""The backend in use, and what each does in its own way."""

import importlib
import math

import keras
import numpy as np

# Bytes at whose multiples TensorFlow's kernels expect an array to begin.
ALIGNMENT = 64


def name():
    """Name of the backend in use: `"tensorflow"`, `"jax"` or `"torch"`."""
    return keras.backend.backend()


def backend_version():
    """Version of the backend's package."""
    return importlib.import_module(name()).__version__


def return_state(model):
    """Has `fit` on JAX give back the variables that it holds in an epoch."""
    if name() == "jax":
        model.jax_state_sync()


def aligned_empty(shape, dtype):
    """An array without values that a tensor can share the memory of."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + ALIGNMENT, "uint8")
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def as_tensor(array):
    """A tensor of an array, in its memory if that is aligned. TensorFlow only.

    `tf.convert_to_tensor` would keep two copies.
    """
    import tensorflow as tf

    if array.dtype.kind not in "iuf" or not array.size:
        return tf.convert_to_tensor(array)
    flags, begins = array.flags, array.ctypes.data % ALIGNMENT
    is_fit = flags.c_contiguous and flags.writeable and not begins
    if not is_fit or not array.dtype.isnative:
        copy = aligned_empty(array.shape, array.dtype.newbyteorder("="))
        copy[...] = array
        array = copy
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
