"""Runs in several processes of this machine, side by side.

Each worker is a new process, since neither TensorFlow nor JAX survives a fork.
Nothing here loads keras: a worker sets its environment before that.
"""

import contextlib
import os
import pickle
import signal
import threading
import traceback
from multiprocessing import connection, get_context, parent_process

from gar_keras.engine.resources import (
    cores,
    keep_to,
    limit_threads,
    share_gpu,
    shares_of_cores,
)
from gar_keras.utils.loading import quiet_tensorflow

# Seconds for a worker to die of SIGTERM before it gets SIGKILL.
_PATIENCE = 10

GOES_ON = "The same command goes on from the last finished epoch."


class WorkerError(RuntimeError):
    """A worker that ended in the middle of a run, or could not begin it."""


class Relay:
    """A worker's end of the `Reporter` of a run, which the sweep holds.

    Args:
        send: Function that takes what to call the reporter with: the name of
            a method and its arguments.
    """

    def __init__(self, send):
        self._send = send

    def say(self, text):
        self._send("say", text)

    def step(self, stage, done, total, logs, steps=1):
        """Nothing: a bar for each of many runs would help nobody."""

    def epoch(self, stage, row, total):
        self._send("epoch", stage, row, total)


def attempt(run, results, deadline, reporter, options):
    """Makes a run in a worker, whatever becomes of it.

    Args:
        run: `(experiment, seed)`.
        results: Folder of the records.
        deadline: `time.monotonic()` at which the run must have stopped.
        reporter: A `Relay`.
        options: `RunnerOptions`.

    Returns:
        What `runner.run` returns, or the exception that it raised.
    """
    try:
        quiet_tensorflow()
        from gar_keras.experiments import runner

        return runner.run(
            *run,
            results,
            options,
            deadline=deadline,
            reporter=reporter,
        )
    except Exception as e:
        return portable(e)


def portable(error):
    """An exception as it can be sent to another process.

    Its traceback becomes a note, which Python shows below the message.
    """
    text = "".join(traceback.format_exception(error))
    try:
        sent = pickle.loads(pickle.dumps(error))
    except Exception:
        # Some take other arguments than those they can be made again from.
        sent = RuntimeError(f"{type(error).__name__}: {error}")
    sent.add_note(f"In the worker:\n\n{text}")
    return sent


class Processes:
    """Workers in processes of their own. A context: they end with it.

    Args:
        count: Number of workers. Each is bound to an equal share of the cores.
        results: Folder of the records.
        options: `RunnerOptions` of each run.

    Attributes:
        places: Number of runs that can be made at once.
    """

    def __init__(self, count, results, options):
        self.places = count
        self._shares = shares_of_cores(count)
        self._threads = max(1, cores() // count)
        self._arguments = (results, options)
        self._idle = []
        self._busy = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        workers = [*self._idle, *(worker for worker, *_ in self._busy.values())]
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.bury()

    def start(self, run, reporter, deadline):
        """Gives a run to a worker.

        Args:
            run: `(experiment, seed)`.
            reporter: The `Reporter` of the run.
            deadline: `time.monotonic()` at which the run must have stopped.
        """
        worker = self._idle.pop() if self._idle else self._new_worker()
        self._busy[worker.pipe] = worker, run, reporter
        # If it is dead, `wait` will find out.
        with contextlib.suppress(OSError):
            # All processes of a machine have the same monotonic().
            worker.pipe.send((run, deadline))

    def _new_worker(self):
        return _Worker(self._shares.pop(0), self._threads, *self._arguments)

    def wait(self):
        """Waits until a worker has something to tell.

        Returns:
            List of `(run, outcome)` of the runs that ended: the record,
            `None` if another process is running the run, or an exception.
        """
        over = []
        for pipe in connection.wait(self._busy):
            worker, run, reporter = self._busy[pipe]
            try:
                kind, *content = pipe.recv()
            except (EOFError, OSError):
                del self._busy[pipe]
                over.append((run, WorkerError(worker.bury())))
                self._shares.append(worker.share)
                continue
            if kind == "over":
                del self._busy[pipe]
                self._idle.append(worker)
                over.append((run, *content))
            else:
                getattr(reporter, kind)(*content)
        return over


class _Worker:
    """A process that makes the runs it is sent, and the pipe to it."""

    def __init__(self, share, *arguments):
        self.share = share
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, share, *arguments), daemon=True
        )
        with _interrupts_ignored():
            self.process.start()
        # Now the pipe ends when the worker does.
        theirs.close()

    def bury(self):
        """Waits for the end of the process; tells what ended it."""
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()
        code = self.process.exitcode
        if code < 0:
            end = f"by signal {-code} ({signal.strsignal(-code)})"
        else:
            end = f"with status {code}"
        return (
            f"Its process ended {end}. If memory was short, take fewer "
            f"--jobs. {GOES_ON}"
        )


@contextlib.contextmanager
def _interrupts_ignored():
    """Makes a process started meanwhile deaf to Ctrl-C from its first moment.

    Ctrl-C goes to all processes of a terminal, but the first one decides.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(pipe, share, threads, results, options):
    """What a worker does, until it is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_to(share)
    limit_threads(threads)
    share_gpu()
    relay = Relay(lambda *message: pipe.send(message))
    # Its end is that of the parent, even before the thread knows of it.
    with contextlib.suppress(EOFError, OSError):
        while True:
            run, deadline = pipe.recv()
            outcome = attempt(run, results, deadline, relay, options)
            pipe.send(("over", outcome))


def _end_with_parent():
    """Leaves no worker behind, however the parent died."""
    parent_process().join()
    os._exit(1)
