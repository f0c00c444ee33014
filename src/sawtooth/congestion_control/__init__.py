"""Congestion controls: how each works, which engines have it, and how it reacts to loss."""

from sawtooth.congestion_control.availability import Having, having
from sawtooth.congestion_control.fidelity import Distance, distance
from sawtooth.congestion_control.response import Response, response

__all__ = ["Distance", "Having", "Response", "distance", "having", "response"]
