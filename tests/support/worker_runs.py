"""What workers run in tests, brought to them by their options.

A worker is a process that knows nothing of the test. But it unpickles the
options of its runs, and for these classes to unpickle is to set up the worker.
"""

import os
import signal
import sys
import time
import types
from pathlib import Path

SETTINGS = ("TF_NUM_INTRAOP_THREADS", "XLA_PYTHON_CLIENT_PREALLOCATE")


class OutOfTime(Exception):
    """Stands for that of the runner, in a worker without keras."""


OutOfTime.__module__ = "gar_keras.experiments.runner"


class Odd(Exception):
    """Cannot be made again from its arguments, as some of TensorFlow."""

    def __init__(self, code, text):
        super().__init__(text)


class Acts:
    """Has the runner of a worker do, for each seed, what is said here.

    Such a worker never loads keras, and so it is there in no time.
    """

    def __init__(self, *acts):
        self.acts = acts

    def __reduce__(self):
        return _set_up_acts, (self.acts,)


def _set_up_acts(acts):
    def run(experiment, seed, results, options, *, deadline, reporter):
        # Under another name first: the test must not read half of it.
        begun = Path(results, f"begun-{seed}")
        begun.with_suffix(".part").write_text(str(os.getpid()))
        begun.with_suffix(".part").rename(begun)
        reporter.say("begins")
        return _act(acts[seed], seed, results)

    fake = types.ModuleType("gar_keras.experiments.runner")
    fake.run = run
    fake.OutOfTime = OutOfTime
    sys.modules[fake.__name__] = fake


def _cores():
    # macOS and Windows have no such thing.
    return sorted(getattr(os, "sched_getaffinity", lambda pid: ())(0))


def _act(act, seed, results):
    if act == "record":
        values = {name: os.environ.get(name) for name in SETTINGS}
        cores = _cores()
        return {"seed": seed, "pid": os.getpid(), "cores": cores, **values}
    if act == "wait for 1":
        while not Path(results, "begun-1").exists():
            time.sleep(0.01)
        return {"seed": seed, "cores": _cores()}
    if act == "skip":
        return None
    if act == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "exit":
        os._exit(3)
    if act == "hang":
        time.sleep(600)
    if act == "late":
        raise OutOfTime
    if act == "odd":
        raise Odd(7, "an odd error")
    if act == "data":
        from gar_keras.datasets import DataError

        raise DataError("No file [of MNIST].")
    raise AssertionError(act)


class Tiny:
    """Has a worker know the tiny runs of `tiny_runs`.

    Args:
        marker: Path of a file that does not exist yet, or `None`. The first
            worker to be set up writes its process id there, and hangs after
            the first epoch of stage 2.
    """

    def __init__(self, marker=None):
        self.marker = marker

    def __reduce__(self):
        return _set_up_tiny, (self.marker,)


def _set_up_tiny(marker):
    # Keras is loaded here and not before: workers of `Acts` need none.
    import tiny_runs

    from gar_keras.experiments import recorder

    tiny_runs.datasets.DATASETS["tiny"] = tiny_runs.tiny_data
    tiny_runs.datasets.DATASETS["broken"] = _no_data
    tiny_runs.setup.build_model = tiny_runs.tiny_model
    if marker is None or Path(marker).exists():
        return
    Path(marker).write_text(str(os.getpid()))
    run_recorder = recorder.RunRecorder
    begin = run_recorder.on_epoch_begin

    def hang(self, epoch, logs=None):
        if self.stage == "regularization" and epoch == 1:
            run_recorder.on_epoch_begin = begin
            # In short naps: Ray cannot interrupt a long one.
            for _ in range(12000):
                time.sleep(0.05)
        begin(self, epoch, logs)

    run_recorder.on_epoch_begin = hang


def _no_data(data_dir):
    from gar_keras.datasets import DataError

    raise DataError("No file [of MNIST].")
