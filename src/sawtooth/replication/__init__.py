"""Replications: results that others published, run again and compared cell by cell."""

from sawtooth.replication.judged import Evaluation, judged
from sawtooth.replication.page import write_page
from sawtooth.replication.replication import Replication
from sawtooth.replication.shipped import found, shipped
from sawtooth.replication.text import words

__all__ = ["Evaluation", "Replication", "found", "judged", "shipped", "words", "write_page"]
