"""The end of what is late, whatever it is at."""

import contextlib
import math
import os
import sys
import threading
import time

from reproduction import cli

# Seconds after a deadline in which a run may still end by itself.
GRACE = 10.0


def deadline_in(seconds):
    """`time.monotonic()` in so many seconds; infinity for `None`."""
    return math.inf if seconds is None else time.monotonic() + seconds


def seconds_to(deadline):
    """Seconds to a deadline, at least 0; `None` if there is none."""
    if math.isinf(deadline):
        return None
    return max(0.0, deadline - time.monotonic())


def reached(seconds, advice):
    """What is told once a time limit is reached; `None` without a limit."""
    if seconds is None:
        return None
    return f"Time limit of {seconds:g} s reached. {advice}"


@contextlib.contextmanager
def kept(deadline, say):
    """Ends the process at a deadline, if what is inside goes on by then.

    A call of a compiled loop can be a hundred steps long, and no exception
    comes into it. What must not be lost has to be in a file by then.

    Args:
        deadline: `time.monotonic()` of the end; may be infinite.
        say: Function without arguments that tells of it.
    """
    seconds = seconds_to(deadline)
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, _end, [say])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(say):
    say()
    sys.stdout.flush()
    os._exit(cli.EXIT_TIME)
