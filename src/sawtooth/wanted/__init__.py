"""Wanted: parses comparisons of measures; units are those of scenario files, and nothing is executed.

    >>> wanted = parse("goodput >= 90% of path.rate")
    >>> [one.name for one in wanted.measures]
    ['goodput', 'path.rate']

The caller resolves the names: ``wanted.sides(resolve)`` calls ``resolve`` with each ``Measure`` and gets an ``Amount``.
"""

from sawtooth.wanted.amount import NUMBER, RATE, SHARE, SIZE, TIME, Amount, Dimension
from sawtooth.wanted.expression import Comparison, Expression, Measure
from sawtooth.wanted.parser import parse, parse_expression

__all__ = [
    "NUMBER",
    "RATE",
    "SHARE",
    "SIZE",
    "TIME",
    "Amount",
    "Comparison",
    "Dimension",
    "Expression",
    "Measure",
    "parse",
    "parse_expression",
]
