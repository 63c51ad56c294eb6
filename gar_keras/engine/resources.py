"""Cores, threads and GPU memory that a process may take.

Nothing here loads keras: most of it has to be set before that.
"""

import os

# Each is the number of threads of a pool: of TensorFlow's operations, of JAX
# on a CPU, and of what uses OpenMP, such as PyTorch.
_THREADS = {
    "tensorflow": "TF_NUM_INTRAOP_THREADS",
    "jax": "PJRT_NPROC",
    "torch": "OMP_NUM_THREADS",
}

# Settings of how much of a GPU's memory JAX takes.
_MEMORY = (
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
)


def cores():
    """Processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no such thing.
        return os.cpu_count() or 1


def threads(backend):
    """Threads of a run on a CPU: with other numbers, sums round differently."""
    given = os.environ.get(_THREADS[backend], "")
    return int(given) if given.isdecimal() and int(given) else cores()


def share_gpu():
    """Leaves room for other processes in the memory of a GPU.

    Processes that are started afterwards do the same. What the user set in the
    environment stays as it is.
    """
    # JAX would take 75 % of it when it starts, and TensorFlow all of it.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if not any(name in os.environ for name in _MEMORY):
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"


def limit_threads(count):
    """Bounds the threads of a run, unless the user did."""
    for name in _THREADS.values():
        os.environ.setdefault(name, str(count))
