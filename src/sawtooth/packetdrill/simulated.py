"""Simulated: scripts played to the sender of the engine ``sim``."""

from __future__ import annotations

from sawtooth._core import packetdrill
from sawtooth.packetdrill.script import Played, Script


def played_on_sim(script: Script, *, hz: int = 1000) -> Played:
    """Play a script to the simulated sender of a kernel with ``hz`` ticks per second (scripts are written for 1000).

    Raises InputError as ``Script.read`` does.
    """
    verdict, line, reason, packets, assertions, remarks = packetdrill(script.read(), hz)
    return Played(script.name, "sim", verdict, line, reason, packets, assertions, tuple(remarks))
