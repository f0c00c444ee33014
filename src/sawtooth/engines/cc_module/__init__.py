"""Module: a congestion control's C source, as written for Linux. It is compiled on this machine and runs in a separate
process."""

from sawtooth.engines.cc_module.compiler import build
from sawtooth.engines.cc_module.isolated_process import IsolatedSimulation, Module, registered

__all__ = ["IsolatedSimulation", "Module", "build", "registered"]
