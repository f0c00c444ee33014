"""Find: the value of a field at which a goal begins or ceases to hold."""

from sawtooth.search.answering import Check
from sawtooth.search.answers import Answers
from sawtooth.search.find import find
from sawtooth.search.frontier import Frontier
from sawtooth.search.output import save
from sawtooth.search.result import Threshold
from sawtooth.search.text import words
from sawtooth.search.worst import Worst, worst
from sawtooth.search.worst_output import save_worst, worst_words

__all__ = [
    "Answers",
    "Check",
    "Frontier",
    "Threshold",
    "Worst",
    "find",
    "save",
    "save_worst",
    "words",
    "worst",
    "worst_words",
]
