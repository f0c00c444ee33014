"""The command line: the same verbs as the package's, and a clear message for every error."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status. ``arguments``: those after the program's name, by default the
    process's."""
    try:
        from sawtooth.cli.program import status_of
    except KeyboardInterrupt:
        # Ctrl-C during the import: report it here, because no module for messages is loaded yet.
        sys.stderr.write("error[interrupted]: interrupted\n")
        sys.exit(130)
    sys.exit(status_of(arguments))
