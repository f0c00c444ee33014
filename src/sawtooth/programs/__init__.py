"""Your own programs on a scenario's hosts: unmodified, on the real kernel, in virtual time and without root."""

from sawtooth.programs.finished import TIME_UP, Finished, finished
from sawtooth.programs.order import controls, memory, order, places, shown, traffic, words
from sawtooth.programs.printed import Output, Printed
from sawtooth.programs.tables import read
from sawtooth.programs.value import check

__all__ = [
    "TIME_UP",
    "Finished",
    "Output",
    "Printed",
    "check",
    "controls",
    "finished",
    "memory",
    "order",
    "places",
    "read",
    "shown",
    "traffic",
    "words",
]
