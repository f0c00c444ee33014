"""Find: the value of a field at which a goal begins or ceases to hold."""

from sawtooth.search.answering import Check
from sawtooth.search.answers import Answers
from sawtooth.search.find import find
from sawtooth.search.frontier import Frontier
from sawtooth.search.output import save
from sawtooth.search.result import Found
from sawtooth.search.text import words

__all__ = ["Answers", "Check", "Found", "Frontier", "find", "save", "words"]
