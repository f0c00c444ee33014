"""Your own programs on a scenario's hosts: unmodified, on the real kernel, in virtual time and without root."""

from sawtooth.programs.finished import Finished, finished
from sawtooth.programs.order import controls, memory, order, places, shown, traffic, words
from sawtooth.programs.value import check

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
