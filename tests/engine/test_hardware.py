"""The device in use and shares of it, on machines made up."""

import os

import keras
import pytest

from gar_keras.engine import hardware

BACKEND = keras.backend.backend()


CPUINFO = """processor : 0
model name : Some Processor
flags : fpu {flags}

processor : 1
model name : Another
"""


@pytest.fixture
def cpuinfo(monkeypatch, tmp_path):
    """The file that tells of the processor; there is none at first."""
    monkeypatch.setattr(hardware, "Path", lambda path: tmp_path / "cpuinfo")
    monkeypatch.setattr(hardware, "device_kind", lambda: "cpu")
    hardware.processor.cache_clear()
    yield tmp_path / "cpuinfo"
    hardware.processor.cache_clear()


def test_precision_by_the_units_of_the_processor(cpuinfo):
    # Of an unknown system.
    assert hardware.processor()["flags"] == ()
    assert hardware.processor()["model"]
    for flags, precision in (("avx2", "float32"), ("avx512_bf16", "bfloat16")):
        hardware.processor.cache_clear()
        cpuinfo.write_text(CPUINFO.format(flags=flags))
        assert hardware.device_name() == "Some Processor"
        expected = precision if BACKEND == "tensorflow" else "float32"
        assert hardware.fast_precision() == expected


def test_threads_and_cores_of_a_process(monkeypatch):
    monkeypatch.setattr(os, "environ", {"OMP_NUM_THREADS": "7"})
    hardware.take_part(3)
    assert os.environ == {
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_NUM_INTRAOP_THREADS": "3",
        "PJRT_NPROC": "3",
        "OMP_NUM_THREADS": "7",
    }
    names = ("tensorflow", "jax", "torch")
    assert [hardware.threads(name) for name in names] == [3, 3, 7]
    monkeypatch.setattr(
        os, "sched_getaffinity", lambda pid: {1, 3, 5}, raising=False
    )
    assert hardware.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert hardware.cores() == os.cpu_count()
