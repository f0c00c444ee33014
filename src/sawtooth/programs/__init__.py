"""Your own programs on a scenario's hosts: unmodified, on the real kernel, in virtual time and without root."""

from sawtooth.programs.measure import check
from sawtooth.programs.result import Finished, finished
from sawtooth.programs.task import controls, memory, order, places, shown, traffic, words

__all__ = [
    "Finished",
    "check",
    "controls",
    "finished",
    "memory",
    "order",
    "places",
    "shown",
    "traffic",
    "words",
]
