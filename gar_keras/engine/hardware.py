"""The device in use: its kind, its name and its fast precision."""

import functools
import platform
from pathlib import Path

import keras

from gar_keras.engine import backend


@functools.cache
def device_kind():
    """`"gpu"` if the backend sees one, else `"cpu"`."""
    if backend.name() == "tensorflow":
        import tensorflow as tf

        return "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    if backend.name() == "jax":
        import jax

        return "gpu" if jax.default_backend() in ("gpu", "cuda") else "cpu"
    import torch

    return "gpu" if torch.cuda.is_available() else "cpu"


def device_name():
    """The device by its maker's name, e.g. the model of the processor."""
    if device_kind() == "cpu":
        return processor()["model"]
    if backend.name() == "tensorflow":
        import tensorflow as tf

        gpu = tf.config.list_physical_devices("GPU")[0]
        details = tf.config.experimental.get_device_details(gpu)
        return details.get("device_name", "GPU")
    if backend.name() == "jax":
        import jax

        return jax.devices()[0].device_kind
    return "GPU"


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
    return "bfloat16" if units and backend.name() == "tensorflow" else "float32"


def loops_on_device():
    """Whether epochs run as one compiled program: with JAX on one GPU."""
    alone = keras.distribution.distribution() is None
    return backend.name() == "jax" and device_kind() == "gpu" and alone
