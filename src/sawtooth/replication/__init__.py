"""Replications: results that others published, run again and compared cell by cell."""

from sawtooth.replication.evaluation import Evaluation, evaluate
from sawtooth.replication.page import write_page
from sawtooth.replication.replication import Replication
from sawtooth.replication.shipped import found, shipped
from sawtooth.replication.text import words

__all__ = ["Evaluation", "Replication", "evaluate", "found", "shipped", "words", "write_page"]
