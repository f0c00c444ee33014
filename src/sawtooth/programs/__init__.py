"""Your own programs on a scenario's hosts: unmodified, on the real kernel, in virtual time and without root."""

from sawtooth.programs.execution import Execution, Finished, execute
from sawtooth.programs.program import Program
from sawtooth.programs.value import value_of

__all__ = ["Execution", "Finished", "Program", "execute", "value_of"]
