"""The device in use, and what it computes fast."""

import functools
import platform
import re
from pathlib import Path

import keras

from gar_keras.engine import backend


@functools.cache
def _gpus():
    """The names of the GPUs that the backend sees."""
    if backend.name() == "tensorflow":
        import tensorflow as tf

        details = tf.config.experimental.get_device_details
        gpus = tf.config.list_physical_devices("GPU")
        return [details(gpu).get("device_name", "GPU") for gpu in gpus]
    if backend.name() == "jax":
        import jax

        gpus = [d for d in jax.devices() if d.platform in ("gpu", "cuda")]
        return [gpu.device_kind for gpu in gpus]
    import torch

    return ["GPU"] * torch.cuda.device_count()


def device_kind():
    """`"gpu"` if the backend sees one, else `"cpu"`."""
    return "gpu" if _gpus() else "cpu"


def device_name():
    """The device by its maker's name, e.g. the model of the processor."""
    return processor()["model"] if device_kind() == "cpu" else _gpus()[0]


@functools.cache
def processor():
    """Model and instruction sets of the processor, as far as the OS tells."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.findall(r"^(model name|flags)\s*: *(.*)", text, re.M)
    fields = dict(reversed(found))
    return {
        "model": fields.get("model name") or platform.processor() or "unknown",
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
