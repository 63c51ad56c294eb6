"""The cores and threads that a process takes, and its part of a GPU."""

import os

# Each is the number of threads of a pool: of TensorFlow's operations, of JAX
# on a CPU, and of what uses OpenMP, such as PyTorch.
THREADS = {
    "tensorflow": "TF_NUM_INTRAOP_THREADS",
    "jax": "PJRT_NPROC",
    "torch": "OMP_NUM_THREADS",
}


def cores():
    """Processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no such thing.
        return os.cpu_count() or 1


def threads(backend):
    """Threads of a run on a CPU: with other numbers, sums round differently."""
    given = os.environ.get(THREADS[backend], "")
    return int(given) if given.isdecimal() and int(given) else cores()


def take_part(threads=None):
    """Leaves room for others in the memory of a GPU, and bounds the threads.

    For a process before it computes, and those that it starts. What the user
    set in the environment stays as it is.
    """
    # JAX would take 75 % of the memory when it starts, and TensorFlow all.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if threads is not None:
        for name in THREADS.values():
            os.environ.setdefault(name, str(threads))
