"""The folder for what can be made again."""

import os
from pathlib import Path


def user_cache():
    """`gar_keras` in `$XDG_CACHE_HOME` or `~/.cache`; it need not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gar_keras"
