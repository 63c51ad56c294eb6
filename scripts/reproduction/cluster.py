"""Runs on the machines of a Ray cluster, side by side.

A run works in a folder of its machine, from its beginning, and what it leaves
there comes back when it ends. Where its machine is lost, it begins again on
another one.
"""

import os
import tempfile
from pathlib import Path

import filelock

from gar_keras.utils.optional import optional
from reproduction import environment, files, processes, records
from reproduction.paths import path_of
from reproduction.run import lock_of, path_of_state
from reproduction.sweep import WorkerError, make, outcome_of


def on_cluster(tasks, results, options, address):
    """Makes runs on the cluster of this address, or on one begun here.

    A run gets a GPU, or an equal share of the cores.
    """
    if not tasks:
        return
    # Ray reports its use to nobody, unless the user wants it so.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # The coming default, of which Ray else warns with every task.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray = optional("ray", "A cluster", "ray")
    # Other machines get the code of this one.
    modules = [str(environment.PACKAGE), str(Path(__file__).parent)]
    variables = {environment.REVISION: environment.revision_in_use() or ""}
    # What backends look at while they are loaded.
    of_backends = "KERAS_BACKEND", "TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS"
    for name in (*of_backends, *processes.THREADS.values()):
        if name in os.environ:
            variables[name] = os.environ[name]
    # Raises a ConnectionError where there is no such cluster.
    ray.init(
        address,
        logging_level="WARNING",
        runtime_env={"py_modules": modules, "env_vars": variables},
        **({"include_dashboard": False} if address == "local" else {}),
    )
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(machine.get("GPU", 0) >= 1 for machine in machines):
        needs, threads = {"num_gpus": 1, "num_cpus": 1}, None
    else:
        cores = [int(machine.get("CPU", 0)) for machine in machines]
        # The cores of a run are on one machine.
        threads = max(1, min(sum(cores) // len(tasks), max(cores)))
        needs = {"num_cpus": threads}
    remote = ray.remote(max_retries=3, **needs)(_make)
    busy = {}
    try:
        for task, place in tasks.items():
            lock = lock_of(path_of_state(*task, results))
            try:
                held = lock.acquire(timeout=0)
            except filelock.Timeout:
                yield task, None
                continue
            ref = remote.remote(task, place, threads, options)
            busy[ref] = task, held
        while busy:
            (ref,), _ = ray.wait([*busy], num_returns=1)
            task, held = busy.pop(ref)
            with held:
                try:
                    outcome, arrays = ray.get(ref)
                except ray.exceptions.RayError as e:
                    outcome = WorkerError(
                        "It could not be made on the cluster "
                        f"({records.first_line(e)}). Each machine needs Ray "
                        "and Keras in the versions of this one."
                    )
                if not isinstance(outcome, WorkerError):
                    path = path_of(*task, results)
                    # A method without a network has no arrays.
                    if arrays is not None:
                        beside = path.with_suffix(".npz")
                        with files.writing(beside, "wb") as file:
                            file.write(arrays)
                    # The record comes last: it says that the run is finished.
                    records.write(path, outcome)
                    path_of_state(*task, results).unlink(missing_ok=True)
                yield task, outcome
    finally:
        # Runs are left after Ctrl-C, as a rule.
        for ref, (_, held) in busy.items():
            with held:
                ray.cancel(ref, force=True)
        ray.shutdown()


def _make(task, place, threads, options):
    """Makes a run on a machine of the cluster; its outcome and its arrays."""
    processes.take_part(threads)
    with tempfile.TemporaryDirectory(prefix="gar_keras_") as folder:
        outcome = outcome_of(make, task, place, folder, options)
        arrays = path_of(*task, folder).with_suffix(".npz")
        return outcome, arrays.read_bytes() if arrays.exists() else None
