"""Results as a whole: what there is below a directory of results, and where one of them is."""

from sawtooth.results.listing import STATES, Entry, listing
from sawtooth.results.place import place

__all__ = ["STATES", "Entry", "listing", "place"]
