"""The simulator and the reading of captures, in Rust."""

from collections.abc import Callable, Mapping
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONGESTION_CONTROLS",
    "MODULE_HOOKS",
    "OVERRUN",
    "VARIANTS",
    "FlowLimits",
    "Module",
    "Scenario",
    "Simulation",
    "__version__",
    "capture_path",
    "congestion_controls",
    "describe_compiled",
    "elsewhere",
    "event_names",
    "host_limit",
    "largest_shares",
    "poisson_interval",
    "read_capture",
    "read_part",
    "read_quantity",
    "refused_transfer",
    "replay",
    "share_watch",
    "transfers",
    "usual_fields",
    "write_quantity",
]

__version__: str

MODULE_HOOKS: list[str]
"""What of a module may run, by its number in the page of ``share_watch``; 0: nothing."""
OVERRUN: str
"""What a panic says where a module wrote beyond its private memory."""

def capture_path(facts: str, segments: dict[str, NDArray[Any]], sacks: dict[str, NDArray[Any]]) -> str:
    """The path behind a connection, as JSON: ``{"Ok": {"seen": …, "path": {"Ok": …}}}``; in the place of what there is
    not is ``{"Err": {"code", "message", "fix"}}``.

    ``facts`` are the connection's own, as JSON, of ``read_capture``; ``segments`` and ``sacks`` its tables, each column
    contiguous and of the type that it had. Other Python threads run meanwhile. Raises ValueError on anything else.
    """

CONGESTION_CONTROLS: list[str]
"""Those that a scenario may name without a kernel of its own."""
VARIANTS: dict[str, tuple[str, ...]]
"""What else than Linux's behaviour the engine ``sim`` has under a control's name."""

@final
class Scenario:
    """A scenario that was read, checked and compiled. ``files`` answers for the files that it names, with the methods
    of ``sawtooth.scenario.files``. What is wrong is an InputError with code, field and fix.
    """

    @staticmethod
    def read(tables: Mapping[str, Any], files: object) -> Scenario:
        """From the tables of a file."""

    @staticmethod
    def schema() -> dict[str, Any]:
        """JSON Schema of a scenario file. A property's ``limits`` are its quantity's range, as a user writes it."""

    def set(self, changes: dict[str, Any], files: object) -> Scenario:
        """The scenario with fields changed by dotted path."""

    def with_seed(self, seed: int) -> Scenario:
        """The same with another seed, of which nothing that is checked depends. Raises InputError."""

    def as_custom(self, files: object) -> Scenario:
        """The same network and flows as a ``custom`` scenario."""

    def field(self, name: str) -> Any:
        """A field, by its name in Python: tables as the classes of ``sawtooth.scenario.tables``, lists as tuples."""

    def told(self) -> dict[str, Any]:
        """Every field that has a value, quantities as text."""

    def given(self) -> dict[str, Any]:
        """The fields that were given, quantities as text."""

    def digest(self, files: object) -> str:
        """SHA-256 of the canonical JSON of ``told``, files by what they say."""

    def flow_names(self) -> list[str]:
        """The name of each flow: its own, or the one it gets."""

    def compile(
        self, files: object
    ) -> tuple[str, str | None, list[tuple[list[str], list[tuple[str, str]], str | None] | None]]:
        """What ``Simulation`` takes; the kernel's name; of each flow the files, parameters and name of its module."""

    def forget(self) -> None:
        """Leaves what was compiled when it was read: ``compile`` does so again."""

def read_part(name: str, given: Mapping[str, Any], files: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """One table by the name of its class: its fields, and what of them was given. Raises InputError."""

def usual_fields(name: str) -> dict[str, Any]:
    """What fields of a table are where they are absent."""

def read_quantity(kind: str, given: object) -> tuple[int, str | None]:
    """A quantity, by the name of its class, in its finest unit, and a queue's unit. Raises InputError."""

def write_quantity(kind: str, amount: int, unit: str | None = None) -> str:
    """The one spelling of a quantity."""

def elsewhere(steps: list[str], fields: list[str]) -> str | None:
    """A fix for an unknown field at ``steps``, where another one does what it says; ``fields``: those of its table."""

def describe_compiled(json: str) -> str:
    """The same text of a compiled scenario that is given as JSON. Raises ValueError for what is none."""

def congestion_controls() -> list[str]:
    """Names of the congestion controls that the simulator has."""

def event_names() -> list[str]:
    """Names of what a watched simulation tells, by their numbers in its table ``events``."""

def host_limit(bytes: float, share: float, limit: str, host: str, how: str) -> tuple[str, str] | None:
    """What a window or a buffer of ``bytes`` let be in flight, as JSON, and what that leaves open, in a sentence; None
    where it was the ``limit`` for too small a ``share`` of the time to matter.
    """

def largest_shares(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Of each row the column of the largest share, the first of equal ones; -1 where all are 0 or NaN."""

def poisson_interval(count: int) -> tuple[float, float]:
    """The middle 90% of the mean of a Poisson count: Jeffreys' gamma(count + 1/2), with 0 at the low end of none."""

def read_capture(
    path: str, details: int | None = None, progress: Callable[[int, int], object] | None = None
) -> tuple[str, dict[str, dict[str, NDArray[Any]]]]:
    """Facts of a pcap or pcapng file as JSON, and tables by name and column; see docs/reference/capture.md.

    ``path`` may be ``-``, standard input. ``details`` is the index of the connection whose every segment is wanted
    (tables ``segments`` and ``sacks``). ``progress`` is called with the bytes read and the bytes of the file (0: not
    known). Other Python threads run meanwhile. Raises ValueError, ``CODE: text``, where the file is no capture at all,
    and whatever ``progress`` raises.
    """

def refused_transfer(
    duration_s: float | None,
    segments: int | None,
    rtt_min_s: float | None,
    rtt_mean_s: float | None,
    application: float,
) -> tuple[str, str, str] | None:
    """Why a transfer says too little of its path: a code, what is wrong, what to do. None where it says enough.

    ``application`` is the share of the time that the sender's application had nothing to send.
    """

def replay(
    control: str,
    t_ns: NDArray[np.uint64],
    end: NDArray[np.uint64],
    known: NDArray[np.uint64],
    known_ns: NDArray[np.uint64],
    again: NDArray[np.bool_],
    mss: int,
    initial_window: int = 10,
    ssthresh: int | None = None,
    seed: int = 1,
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """What ``control`` would have allowed when each data segment left: windows in segments, pacing rates in bytes a
    second (inf: it does not pace).

    One entry a segment, in order of time: ``t_ns`` since the first, ``end`` the number after its last byte, ``known``
    what its sender knew to be acknowledged, which never falls, both in bytes since the first data; ``known_ns`` when
    it learned that, never after ``t_ns``; ``again``: it had been sent before. ``initial_window`` and ``ssthresh``, in
    segments, are what it began with; None: slow start has no end yet. Raises ValueError for an unknown control and for
    arrays that are not of one length.
    """

def share_watch(descriptor: int) -> None:
    """From here on the file ``descriptor`` says which module's hook runs, and which signal ended this process, which
    ends with its parent. Raises OSError.
    """

def transfers(
    arrivals: str, seed: int, flow: int, start_ns: int, until_ns: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Transfers that come by themselves, as a simulation has them: ns since t = 0, in order, and bytes.

    ``arrivals`` is JSON as ``sawtooth.compiled.Arrivals`` makes it; ``flow`` the number of its flow. Raises ValueError
    on JSON that is not that.
    """

@final
class Module:
    """A module that a C compiler made of a source for Linux, opened anew: what it registers under ``name``.

    Its code runs from here on. Raises ValueError (a kind, and words) where it is not taken.
    """

    def __new__(cls, library: str, parameters: list[tuple[str, str]], name: str | None) -> Self: ...
    @property
    def name(self) -> str:
        """As it calls itself."""

@final
class FlowLimits:
    """What limits the flows of one run: of a compiled scenario, which is JSON as ``Scenario.compile`` makes it, and of
    rows of its tables. Raises ValueError on JSON that is not that.
    """

    def __new__(cls, scenario: str) -> Self: ...
    @staticmethod
    def tables() -> list[tuple[str, list[str]]]:
        """The tables that are read, in the order in which they are to be given, and their columns."""

    def add(self, table: str, columns: NDArray[np.float64]) -> None:
        """More rows of a table: its columns, one after the other. Raises ValueError for a flow, transmitter or link
        that the scenario does not have.
        """

    def told(self, now_s: float) -> str:
        """What limits each flow of a run that has come to ``now_s``, as JSON: see ``Run.limits``."""

@final
class Simulation:
    """One simulation of a compiled scenario, which is JSON as ``Scenario.compile`` makes it.

    ``captures``: pcap files to be written, by the index of the host that sees the packets; ``modules``: what flows have
    instead of a congestion control of the core, by their index; ``watched``: a table ``events`` tells what happens to
    the first 16 connections of each flow and to their packets. Raises ValueError on JSON that is not that, or where it
    is captured and watched; OSError for a file.
    """

    def __new__(
        cls,
        scenario: str,
        captures: dict[int, str] | None = None,
        modules: dict[int, Module] | None = None,
        watched: bool = False,
    ) -> Self: ...
    def advance(self, until_ns: int, max_events: int) -> bool:
        """Simulates until ``until_ns`` nanoseconds, the scenario's end or ``max_events`` events; true at the end.

        Other Python threads run meanwhile. Raises OSError where a capture cannot be written.
        """

    def record(self, on: bool) -> None:
        """From now on ``packets`` and ``hops`` have each packet's way from host to host, or no more, where it is
        watched: of what is sent while it is on, at most a million hops between two calls of ``take``.
        """

    def take(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Rows since the last ``take``, by table and column; see docs/reference/tables.md."""

    @property
    def now_ns(self) -> int:
        """Simulated time in nanoseconds."""

    @property
    def events(self) -> int:
        """Events so far."""

    @property
    def delivered_packets(self) -> int:
        """Data packets delivered to receivers so far."""
