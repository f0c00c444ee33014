"""Results: lists the results below a directory, and finds one by name."""

from sawtooth.results.listing import STATES, Entry, listing
from sawtooth.results.lookup import place

__all__ = ["STATES", "Entry", "listing", "place"]
