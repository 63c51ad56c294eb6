"""The device in use, and machines made up."""

import keras
import pytest

from gar_keras.engine import backend, hardware

BACKEND = keras.backend.backend()


def test_names_of_backend_and_device():
    assert backend.name() == BACKEND
    assert backend.backend_version().count(".") >= 2
    assert hardware.device_kind() in ("cpu", "gpu")
    assert hardware.device_name()


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


@pytest.mark.parametrize(
    "flags, precision",
    [("avx2", "float32"), ("avx512_bf16", "bfloat16")],
)
def test_precision_by_the_units_of_the_processor(flags, precision, cpuinfo):
    cpuinfo.write_text(CPUINFO.format(flags=flags))
    assert hardware.device_name() == "Some Processor"
    expected = precision if BACKEND == "tensorflow" else "float32"
    assert hardware.fast_precision() == expected


def test_processor_of_an_unknown_system(cpuinfo):
    assert hardware.processor()["flags"] == ()
    assert hardware.processor()["model"]
