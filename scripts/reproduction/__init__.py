"""What reproduces the paper.

`settings`, `methods`, `studies`, `paths` and `commands` need no Keras, so that
a command line is read at once; everything else does.
"""

import sys


def _interrupted(kind, error, trace, usual=sys.excepthook):
    """Ctrl-C while a script loads its modules is one line too."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        raise SystemExit(130)
    usual(kind, error, trace)


sys.excepthook = _interrupted
