"""Packetdrill: scripts in packetdrill's language, played to the simulated TCP and to real kernels in virtual time."""

from __future__ import annotations

from sawtooth.packetdrill.guest import played_on_kernel
from sawtooth.packetdrill.script import FAILED, NOT_APPLICABLE, PASSED, Script, ScriptResult, find_scripts
from sawtooth.packetdrill.simulated import played_on_sim

__all__ = [
    "FAILED",
    "NOT_APPLICABLE",
    "PASSED",
    "Script",
    "ScriptResult",
    "find_scripts",
    "played_on_kernel",
    "played_on_sim",
]
