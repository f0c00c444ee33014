"""Fidelity: compares the simulator with the real kernel on a grid of scenarios, with the noise of both."""

from sawtooth.fidelity.differences import outside
from sawtooth.fidelity.fidelity import Fidelity, compare_on
from sawtooth.fidelity.grid import Grid
from sawtooth.fidelity.text import words

__all__ = ["Fidelity", "Grid", "compare_on", "outside", "words"]
