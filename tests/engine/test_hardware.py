"""The device in use, on machines made up."""

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
