"""Files that a scenario names, as the core asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from sawtooth.compiled import Opportunities
from sawtooth.scenario.arrivals import Listed, read_transfers
from sawtooth.scenario.jitter import read_deviations
from sawtooth.scenario.sizes import read_cdf
from sawtooth.scenario.sources import content_digest
from sawtooth.scenario.traces import Steps, read_trace, trace_digest


class _Files:
    """Each raises SawtoothError: ``file-not-found``, ``file-unreadable``, or what its reader says of the text."""

    def trace(self, name: str) -> Opportunities | Steps:
        return read_trace(name)

    def deviations(self, name: str) -> tuple[int, ...]:
        return read_deviations(name)

    def distribution(self, name: str) -> tuple[tuple[int, int], ...]:
        return read_cdf(name)

    def transfers(self, name: str) -> Listed:
        return read_transfers(name)

    def digest_of(self, name: str) -> str:
        """SHA-256 of what it says; of a file that is gone, nothing."""
        return trace_digest(name)

    def digest_of_sources(self, names: Sequence[str]) -> str:
        """The same of a module's C sources, and the headers beside them."""
        return content_digest(names)


FILES = _Files()
