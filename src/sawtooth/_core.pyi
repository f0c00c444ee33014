"""The simulator, in Rust."""

from typing import Any, Self, final

from numpy.typing import NDArray

__all__ = ["Simulation", "__version__", "congestion_controls"]

__version__: str

def congestion_controls() -> list[str]:
    """Names of the congestion controls that the simulator has."""

@final
class Simulation:
    """One simulation of a compiled scenario, which is JSON as ``Scenario.compile`` makes it.

    Raises ValueError on JSON that is not that.
    """

    def __new__(cls, scenario: str) -> Self: ...
    def advance(self, until_ns: int, max_events: int) -> bool:
        """Simulates until ``until_ns`` nanoseconds, the scenario's end or ``max_events`` events; true at the end.

        Other Python threads run meanwhile.
        """

    def take(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Rows since the last ``take``, by table and column; see docs/design.md."""

    @property
    def now_ns(self) -> int:
        """Simulated time in nanoseconds."""

    @property
    def events(self) -> int:
        """Events so far."""

    @property
    def delivered_packets(self) -> int:
        """Data packets delivered to receivers so far."""
