"""Where matplotlib keeps its list of fonts: its own directory, or a private one where a user has none to write to."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
from pathlib import Path

from sawtooth import temporary

_VARIABLE = "MPLCONFIGDIR"


@functools.cache
def settle() -> None:
    """To be called before matplotlib is imported: without a home it would complain, on the terminal, of each use."""
    if os.environ.get(_VARIABLE) or all(_writable(directory) for directory in _usual()):
        return
    kept = contextlib.ExitStack()
    os.environ[_VARIABLE] = str(kept.enter_context(temporary.directory()))
    atexit.register(kept.close)
    # The list is made anew each time: that it takes a moment is no news.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


def _usual() -> list[Path]:
    """The directories that it takes by itself."""
    found = []
    for variable, beside in (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache")):
        try:
            home = Path(os.environ.get(variable) or Path.home() / beside)
        except RuntimeError:
            # Nobody knows of a home.
            home = Path("/nonexistent")
        found.append(home / "matplotlib")
    return found


def _writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)
