"""Module: a congestion control from its C source, as written for Linux; compiled here, run in a process apart."""

from sawtooth.module.apart import Apart, Wanted, registered
from sawtooth.module.compiler import build

__all__ = ["Apart", "Wanted", "build", "registered"]
