"""Fidelity: compares the simulator with the real kernel on a grid of scenarios, with the noise of both."""

from sawtooth.compare.fidelity.differences import outside
from sawtooth.compare.fidelity.fidelity import Fidelity, compare_on
from sawtooth.compare.fidelity.grid import Grid
from sawtooth.compare.fidelity.text import words

__all__ = ["Fidelity", "Grid", "compare_on", "outside", "words"]
