"""On several devices and processes, GAR is that of the whole batch."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fresh
import keras
import numpy as np
import process_runs
import pytest

# The processes started here have backends of their own.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="once is enough"
    ),
]
PAGE = Path(__file__).parents[1] / "docs" / "distributed.md"
# float16 rounds the parts of a batch, and their sum.
TOLERANCES = {
    "layer": 1e-5,
    "several_losses": 3e-3,
    "both_stages": 1e-5,
    "classes_in_use": 1e-5,
}


def start(script, *arguments, backend="tensorflow"):
    env = fresh.environment(KERAS_BACKEND=backend)
    return fresh.start(fresh.SUPPORT / script, *arguments, env=env)


def printed(*processes):
    """What each process prints as JSON in the end."""
    try:
        with ThreadPoolExecutor(len(processes)) as pool:
            results = list(
                pool.map(lambda p: p.communicate(timeout=900), processes)
            )
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, results, strict=True):
        assert process.returncode == 0, errors[-3000:]
    return [json.loads(out.splitlines()[-1]) for out, _ in results]


@pytest.fixture(scope="module")
def replica_runs():
    return printed(start("replica_runs.py", PAGE))[0]


@pytest.mark.parametrize("case", TOLERANCES)
def test_replicas_train_as_one_device(replica_runs, case):
    (_, one), *others = replica_runs[case].items()
    assert others
    for replicas, run in others:
        keras.tree.map_structure(
            lambda ours, theirs, replicas=replicas: np.testing.assert_allclose(
                ours, theirs, 0, TOLERANCES[case], err_msg=replicas
            ),
            run,
            one,
        )


def test_moving_statistics_fit_the_weights_of_replicas(replica_runs):
    assert max(replica_runs["errors"]["2"]) < 0.05


def test_what_replicas_cannot_train_is_refused(replica_runs):
    messages = replica_runs["refusals"]["2"]
    for name, part in (
        ("list", "CrossEntropy trains on one device"),
        ("safe", "SafeGAR trains on one device"),
        ("uneven", "a first batch that divides evenly over the replicas"),
        ("regularizer", "GAR cannot be an activity_regularizer"),
    ):
        assert part in messages[name]


def test_the_page_trains_on_replicas(replica_runs):
    assert replica_runs["page"]["2"] == {"replicas": 2, "finite": True}


def free_ports(count):
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_two_processes_train_as_one(backend):
    ports = free_ports(process_runs.WORKERS)
    results = printed(
        *(
            start("process_runs.py", index, *ports, backend=backend)
            for index in range(process_runs.WORKERS)
        )
    )
    losses, weights = process_runs.alone()
    for their_losses, their_weights in results:
        np.testing.assert_allclose(their_losses, losses, rtol=1e-5)
        for ours, theirs in zip(weights, their_weights, strict=True):
            np.testing.assert_allclose(theirs, ours, atol=1e-5)
