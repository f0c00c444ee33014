"""Module: a congestion control's C source, as written for Linux. It is compiled on this machine and runs in a separate
process."""

from sawtooth.module.apart import Apart, Wanted, registered
from sawtooth.module.compiler import build

__all__ = ["Apart", "Wanted", "build", "registered"]
