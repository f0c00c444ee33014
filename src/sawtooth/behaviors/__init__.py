"""Behaviors of a kernel's TCP: measured in short situations, and compared between kernels."""

from sawtooth.behaviors.catalogue import Catalogue, Situation
from sawtooth.behaviors.changes import Change, Comparison, compared
from sawtooth.behaviors.measurements import Measured, measure
from sawtooth.behaviors.page import write_page
from sawtooth.behaviors.text import words

__all__ = ["Catalogue", "Change", "Comparison", "Measured", "Situation", "compared", "measure", "words", "write_page"]
