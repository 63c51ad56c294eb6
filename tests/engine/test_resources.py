"""What a process takes of the machine, against an environment made up."""

import os
from types import SimpleNamespace

import pytest

from gar_keras.engine import resources


@pytest.fixture
def environ(monkeypatch):
    values = {}
    monkeypatch.setattr(resources, "os", SimpleNamespace(environ=values))
    return values


def test_threads_are_limited_unless_the_user_did(environ):
    environ["OMP_NUM_THREADS"] = "7"
    resources.limit_threads(3)
    assert environ == {
        "TF_NUM_INTRAOP_THREADS": "3",
        "PJRT_NPROC": "3",
        "OMP_NUM_THREADS": "7",
    }
    names = ("tensorflow", "jax", "torch")
    assert [resources.threads(name) for name in names] == [3, 3, 7]


def test_a_gpu_is_shared_unless_the_user_said_how(environ):
    resources.share_gpu()
    assert environ == {
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    own = {
        "TF_FORCE_GPU_ALLOW_GROWTH": "false",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": ".1",
    }
    environ.clear()
    environ.update(own)
    resources.share_gpu()
    assert environ == own


def test_the_cores_are_those_this_process_may_use(monkeypatch):
    monkeypatch.setattr(
        resources.os, "sched_getaffinity", lambda pid: {1, 3, 5}, raising=False
    )
    assert resources.cores() == 3
    monkeypatch.delattr(resources.os, "sched_getaffinity")
    assert resources.cores() == os.cpu_count()
