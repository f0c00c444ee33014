"""The command line: the same verbs as the package's, and one clear message for whatever goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits with its status; ``arguments`` are those of the process without it."""
    try:
        from sawtooth.cli.program import status_of
    except KeyboardInterrupt:
        # Before anything that could say it is imported.
        sys.stderr.write("error[interrupted]: interrupted\n")
        sys.exit(130)
    sys.exit(status_of(arguments))
