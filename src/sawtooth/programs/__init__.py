"""Your own programs on a scenario's hosts: unmodified, on the real kernel, in virtual time and without root."""

from sawtooth.programs.measure import check
from sawtooth.programs.result import Finished, finished
from sawtooth.programs.task import command_text, controls, memory, order, places, traffic, words

__all__ = [
    "Finished",
    "check",
    "command_text",
    "controls",
    "finished",
    "memory",
    "order",
    "places",
    "traffic",
    "words",
]
