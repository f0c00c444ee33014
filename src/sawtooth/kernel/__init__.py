"""The user-mode Linux kernel: built once, then booted as a program, in virtual time and without root."""

from sawtooth.kernel.build import build
from sawtooth.kernel.guest import Guest, GuestResult
from sawtooth.kernel.kernel import Kernel, find, find_with, having

__all__ = ["Guest", "GuestResult", "Kernel", "build", "find", "find_with", "having"]
