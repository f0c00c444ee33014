"""Simulated: scripts played to the TCP of the engine ``sim``."""

from __future__ import annotations

from sawtooth._core import packetdrill
from sawtooth.packetdrill.script import Script, ScriptResult


def played_on_sim(script: Script, *, hz: int = 1000, tolerance_us: int | None = None) -> ScriptResult:
    """Play a script to the simulated TCP of a kernel with ``hz`` ticks per second (scripts are written for 1000).

    ``tolerance_us``: how far a time may be off, in microseconds, if the script does not say it; None: as in
    packetdrill. Raises InputError as ``Script.read`` does.
    """
    verdict, line, reason, packets, assertions, remarks = packetdrill(script.read(), hz, tolerance_us)
    return ScriptResult(script.name, "sim", verdict, line, reason, packets, assertions, tuple(remarks))
