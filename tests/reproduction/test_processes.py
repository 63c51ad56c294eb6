"""The threads and cores of a process."""

import os

from reproduction import processes


def test_threads_and_cores_of_a_process(monkeypatch):
    monkeypatch.setattr(os, "environ", {"OMP_NUM_THREADS": "7"})
    processes.take_part(3)
    assert os.environ == {
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_NUM_INTRAOP_THREADS": "3",
        "PJRT_NPROC": "3",
        "OMP_NUM_THREADS": "7",
    }
    names = ("tensorflow", "jax", "torch")
    assert [processes.threads(name) for name in names] == [3, 3, 7]
    monkeypatch.setattr(
        os, "sched_getaffinity", lambda pid: {1, 3, 5}, raising=False
    )
    assert processes.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processes.cores() == os.cpu_count()
