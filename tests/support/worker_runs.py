"""What stands for a run in the worker processes of tests."""

import json
import os
import signal
import time
from pathlib import Path

SETTINGS = ("TF_NUM_INTRAOP_THREADS", "XLA_PYTHON_CLIENT_PREALLOCATE")


def act(task, place, results, options):
    """Does what the options say for the seed, and notes how it was begun."""
    _, seed = task
    note = {name: os.environ.get(name) for name in SETTINGS}
    # Under another name first: the test must not read half of it.
    begun = Path(results, f"begun-{seed}")
    part = begun.with_suffix(".part")
    part.write_text(json.dumps({"pid": os.getpid(), **note}))
    part.rename(begun)
    what = options["acts"][seed]
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(600)
    return {"seed": seed}
