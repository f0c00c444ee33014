"""Congestion controls: what each does, who has it, and what it makes of loss."""

from sawtooth.controls.distance import Distance, distance
from sawtooth.controls.facts import FACTS, Facts
from sawtooth.controls.having import Having, having
from sawtooth.controls.response import Response, response

__all__ = ["FACTS", "Distance", "Facts", "Having", "Response", "distance", "having", "response"]
