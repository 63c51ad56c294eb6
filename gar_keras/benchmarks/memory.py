"""Peak memory of a piece of work, in a process of its own."""

import multiprocessing
import re
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

MIB = 1 << 20


def peak(function, *arguments):
    """Peak memory of a new process that calls a function.

    Args:
        function: Function that a new process can import.
        *arguments: Its arguments, which `pickle` can hold.

    Returns:
        A dict: `"host_mib"`, the largest resident set with all libraries
        loaded, and `"device_mib"`, the most that the backend had allocated on
        a GPU at a time, or `None` without one. In MiB.

    Raises:
        ChildProcessError: if the process is killed, e.g. for want of memory.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(_call, function, arguments).result()
        except BrokenProcessPool as e:
            raise ChildProcessError(
                "The process whose memory was measured was killed, most likely "
                f"for want of memory. Received: {function.__name__}"
                f"{arguments!r}. Make room, or measure a smaller case."
            ) from e


def text(measured):
    """Peak memory in words: of the GPU if there is one.

    Example:

    >>> text({"host_mib": 1234.5, "device_mib": None})
    '1,234 MiB'
    """
    if measured["device_mib"] is None:
        return f"{measured['host_mib']:,.0f} MiB"
    return f"{measured['device_mib']:,.0f} MiB of the GPU"


def _call(function, arguments):
    function(*arguments)
    return {"host_mib": _host_peak() / MIB, "device_mib": _device_peak()}


def _host_peak():
    """Bytes of the largest resident set of this process."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        status = ""
    if found := re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE):
        return int(found[1]) * 1024
    # Not on Linux, where this figure begins at the peak of the parent.
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def _device_peak():
    """MiB, or `None` if no backend that uses a GPU is loaded."""
    if "keras" not in sys.modules:
        return None
    from gar_keras.engine import backend, hardware

    if hardware.device_kind() == "cpu":
        return None
    if backend.name() == "tensorflow":
        import tensorflow as tf

        used = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    elif backend.name() == "jax":
        import jax

        used = jax.devices()[0].memory_stats()["peak_bytes_in_use"]
    else:
        import torch

        used = torch.cuda.max_memory_allocated()
    return used / MIB
