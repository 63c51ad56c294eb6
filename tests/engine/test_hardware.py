"""The device in use, and machines made up."""

import sys

import keras
import pytest

from gar_keras.engine import backend, hardware

BACKEND = keras.backend.backend()


def test_names_of_backend_and_device():
    assert backend.name() == BACKEND
    assert backend.backend_version().count(".") >= 2
    assert hardware.device_kind() in ("cpu", "gpu")
    assert hardware.device_name()
    assert hardware.fast_precision() in ("float32", "bfloat16")


class FakeTensorFlow:
    class config:
        list_physical_devices = staticmethod(lambda kind: [f"{kind}:0"])

        class experimental:
            get_device_details = staticmethod(
                lambda gpu: {"device_name": f"Some {gpu}"}
            )


class FakeJax:
    class devices(list):
        def __init__(self):
            self.append(type("Device", (), {"device_kind": "Some GPU:0"}))


class FakeTorch:
    class cuda:
        get_device_name = staticmethod(lambda: "Some GPU:0")


@pytest.mark.parametrize(
    "name, package",
    [("tensorflow", FakeTensorFlow), ("jax", FakeJax), ("torch", FakeTorch)],
)
def test_gpu_by_its_makers_name(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setattr(backend, "name", lambda: name)
    monkeypatch.setattr(hardware, "device_kind", lambda: "gpu")
    assert hardware.device_name() == "Some GPU:0"


CPUINFO = """processor : 0
model name : Some Processor
flags : fpu {flags}

processor : 1
model name : Another
"""


@pytest.mark.parametrize(
    "flags, on_tensorflow",
    [
        ("avx2", "float32"),
        ("avx512_bf16", "bfloat16"),
        ("amx_bf16", "bfloat16"),
    ],
)
def test_precision_by_the_units_of_the_processor(
    flags, on_tensorflow, monkeypatch, tmp_path
):
    (tmp_path / "cpuinfo").write_text(CPUINFO.format(flags=flags))
    monkeypatch.setattr(hardware, "Path", lambda path: tmp_path / "cpuinfo")
    monkeypatch.setattr(hardware, "device_kind", lambda: "cpu")
    hardware.processor.cache_clear()
    try:
        assert hardware.processor()["model"] == "Some Processor"
        expected = on_tensorflow if BACKEND == "tensorflow" else "float32"
        assert hardware.fast_precision() == expected
        assert hardware.device_name() == "Some Processor"
    finally:
        hardware.processor.cache_clear()


def test_processor_of_an_unknown_system(monkeypatch, tmp_path):
    monkeypatch.setattr(hardware, "Path", lambda path: tmp_path / "missing")
    hardware.processor.cache_clear()
    try:
        assert hardware.processor()["flags"] == ()
        assert hardware.processor()["model"]
    finally:
        hardware.processor.cache_clear()
