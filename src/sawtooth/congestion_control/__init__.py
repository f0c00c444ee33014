"""Congestion controls: how each works, which engines have it, and how it reacts to loss."""

from sawtooth.congestion_control.availability import Availability, having
from sawtooth.congestion_control.fidelity import Distance, distance
from sawtooth.congestion_control.response import Response, response

__all__ = ["Availability", "Distance", "Response", "distance", "having", "response"]
