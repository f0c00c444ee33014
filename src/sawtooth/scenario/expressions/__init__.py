"""Parses comparisons of measures; units are those of scenario files, and nothing is executed.

    >>> wanted = parse("goodput >= 90% of path.rate")
    >>> [one.name for one in wanted.measures]
    ['goodput', 'path.rate']

The caller resolves the names: ``wanted.sides(resolve)`` calls ``resolve`` with each ``Measure`` and gets an ``Amount``.
"""

from sawtooth.scenario.expressions.amount import NUMBER, RATE, SHARE, SIZE, TIME, Amount, Dimension
from sawtooth.scenario.expressions.parser import parse, parse_expression
from sawtooth.scenario.expressions.tree import Comparison, Expression, Measure

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
