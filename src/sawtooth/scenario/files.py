"""Files that a scenario names, as the core requests them."""

from __future__ import annotations

from collections.abc import Sequence

from sawtooth.scenario.arrivals import Listed, read_transfers
from sawtooth.scenario.compiled_form import Trace
from sawtooth.scenario.jitter import read_deviations
from sawtooth.scenario.sizes import read_cdf
from sawtooth.scenario.sources import content_digest
from sawtooth.scenario.traces import Steps, read_trace, trace_digest


class _Files:
    """Each raises SawtoothError: ``file-not-found``, ``file-unreadable``, or its reader's error."""

    def trace(self, name: str) -> Trace | Steps:
        return read_trace(name)

    def deviations(self, name: str) -> tuple[int, ...]:
        return read_deviations(name)

    def distribution(self, name: str) -> tuple[tuple[int, int], ...]:
        return read_cdf(name)

    def transfers(self, name: str) -> Listed:
        return read_transfers(name)

    def digest_of(self, name: str) -> str:
        """SHA-256 of its content; empty if the file is gone."""
        return trace_digest(name)

    def digest_of_sources(self, names: Sequence[str]) -> str:
        """The same for a module's C sources and the headers next to them."""
        return content_digest(names)


FILES = _Files()
