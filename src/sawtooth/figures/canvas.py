"""Chooses the directory of matplotlib's font cache: its usual one, or a private one if the user cannot write there."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
from pathlib import Path

from sawtooth.io import tempdirs

_VARIABLE = "MPLCONFIGDIR"


@functools.cache
def settle() -> None:
    """Call this before matplotlib is imported. Otherwise it prints a warning at each use if there is no home
    directory."""
    if os.environ.get(_VARIABLE) or all(_writable(directory) for directory in _usual()):
        return
    kept = contextlib.ExitStack()
    os.environ[_VARIABLE] = str(kept.enter_context(tempdirs.directory()))
    atexit.register(kept.close)
    # The cache is then built at each use; matplotlib's message about this is suppressed.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


def _usual() -> list[Path]:
    """The directories that matplotlib would use."""
    found = []
    for variable, beside in (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache")):
        try:
            home = Path(os.environ.get(variable) or Path.home() / beside)
        except RuntimeError:
            # There is no home directory.
            home = Path("/nonexistent")
        found.append(home / "matplotlib")
    return found


def _writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)
