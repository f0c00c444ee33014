"""Congestion controls: how each works, which engines have it, and how it reacts to loss."""

from sawtooth.controls.distance import Distance, distance
from sawtooth.controls.facts import FACTS, Facts
from sawtooth.controls.having import Having, having
from sawtooth.controls.response import Response, response

__all__ = ["FACTS", "Distance", "Facts", "Having", "Response", "distance", "having", "response"]
