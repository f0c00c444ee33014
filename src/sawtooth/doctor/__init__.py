"""Doctor: which engines work on this machine, and which of its properties matter to TCP."""

from sawtooth.doctor.checks import Check, checks
from sawtooth.doctor.examination import examine
from sawtooth.doctor.text import words

__all__ = ["Check", "checks", "examine", "words"]
