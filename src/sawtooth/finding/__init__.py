"""Find: the value of a field at which a goal begins or ceases to hold."""

from sawtooth.finding.answer import Check
from sawtooth.finding.answers import Answers
from sawtooth.finding.finding import find
from sawtooth.finding.found import Found
from sawtooth.finding.frontier import Frontier
from sawtooth.finding.saved import save
from sawtooth.finding.text import words

__all__ = ["Answers", "Check", "Found", "Frontier", "find", "save", "words"]
