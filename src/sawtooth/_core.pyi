"""The part of the package written in Rust: the simulator, the scenario language, and the analysis of captures."""

from collections.abc import Callable, Mapping
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MODULE_HOOKS",
    "OVERRUN",
    "Environments",
    "FlowLimits",
    "Module",
    "Policy",
    "Scenario",
    "Simulation",
    "__version__",
    "action_bounds",
    "capture_path",
    "congestion_controls",
    "describe_compiled",
    "elsewhere",
    "event_names",
    "host_limit",
    "largest_shares",
    "observed",
    "packetdrill",
    "packetdrill_outside_data_path",
    "poisson_interval",
    "queue_options",
    "read_capture",
    "read_part",
    "read_quantity",
    "refused_transfer",
    "registry",
    "replay",
    "share_watch",
    "transfers",
    "usual_fields",
    "whole_ways",
    "write_quantity",
]

__version__: str

MODULE_HOOKS: list[str]
"""Names of a module's functions. ``share_watch`` records the running one by its position; 0: none."""
OVERRUN: str
"""Message of the panic if a module wrote beyond its private memory."""

def capture_path(facts: str, segments: dict[str, NDArray[Any]], sacks: dict[str, NDArray[Any]]) -> str:
    """The estimated path of a connection, as JSON: ``{"Ok": {"seen": …, "path": {"Ok": …}}}``. A part that cannot be
    estimated is ``{"Err": {"code", "message", "fix"}}``.

    ``facts``: the connection's facts from ``read_capture``, as JSON. ``segments`` and ``sacks``: its tables, with
    contiguous columns of unchanged types. Releases the GIL. Raises ValueError for other input.
    """

def registry() -> dict[str, list[dict[str, Any]]]:
    """What a scenario can name: ``controls``, the congestion controls, and ``queues``, the kinds of queues. See
    ``sawtooth.scenario.registry``.
    """

@final
class Scenario:
    """A scenario that was read, checked and compiled. ``files`` reads the files that it names; it has the methods of
    ``sawtooth.scenario.files``. Methods raise InputError with code, field and fix.
    """

    @staticmethod
    def read(tables: Mapping[str, Any], files: object) -> Scenario:
        """Read, check and compile the tables of a file."""

    @staticmethod
    def schema() -> dict[str, Any]:
        """JSON Schema of a scenario file. A property's ``limits`` are its quantity's range, as a user writes it."""

    def set(self, changes: dict[str, Any], files: object) -> Scenario:
        """The scenario with fields changed by dotted path."""

    def with_seed(self, seed: int) -> Scenario:
        """The same scenario with another seed. Raises InputError."""

    def as_custom(self, files: object) -> Scenario:
        """The same network and flows as a ``custom`` scenario."""

    def field(self, name: str) -> Any:
        """A field, by its name in Python: tables as the classes of ``sawtooth.scenario.tables``, lists as tuples."""

    def to_dict(self) -> dict[str, Any]:
        """Every field that has a value, quantities as text."""

    def given(self) -> dict[str, Any]:
        """The fields that were given, quantities as text."""

    def digest(self, files: object) -> str:
        """SHA-256 of the canonical JSON of ``to_dict``, with files replaced by digests of their contents."""

    def flow_names(self) -> list[str]:
        """The name of each flow: the given one, or a generated one."""

    def compile(
        self, files: object
    ) -> tuple[
        str,
        str | None,
        list[tuple[list[str], list[tuple[str, str]], str | None] | None],
        tuple[list[tuple[str, str]], list[str], list[str]],
    ]:
        """What ``Simulation`` takes; the kernel's name; of each flow the files, parameters and name of its module; what
        programs call hosts, by the hosts' names, the names of the programs, and their hosts.
        """

    def check_simulated(self, files: object) -> None:
        """Raise InputError ``unsupported`` for what ``Simulation`` cannot run: programs, a congestion control that it
        lacks, and a flow whose RTT is too short for TCP's clock.
        """

    def forget(self) -> None:
        """Discard the result of compiling, to save memory. It is computed again when needed."""

def read_part(name: str, given: Mapping[str, Any], files: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read one table. ``name``: of its class. Returns its fields, and those that were given. Raises InputError."""

def usual_fields(name: str) -> dict[str, Any]:
    """The defaults of a table's fields."""

def read_quantity(kind: str, given: object) -> tuple[int, str | None]:
    """Read a quantity. ``kind``: the name of its class. Returns its amount in its smallest unit, and a queue's unit.
    Raises InputError.
    """

def write_quantity(kind: str, amount: int, unit: str | None = None) -> str:
    """A quantity as text, in its canonical spelling."""

def elsewhere(steps: list[str], fields: list[str]) -> str | None:
    """A fix for an unknown field at ``steps``, if another field has its meaning. ``fields``: those of its table."""

def describe_compiled(json: str) -> str:
    """Text with all fields of a compiled scenario given as JSON. It is equal for equal scenarios, however the JSON is
    written. Raises ValueError if it is not a compiled scenario.
    """

def whole_ways(json: str) -> list[list[int]]:
    """For each flow of a compiled scenario, given as JSON, the links that its super-packets cross whole, up to the one
    whose queue holds them as one packet; none if they are cut earlier. Raises ValueError if it is no compiled scenario.
    """

def congestion_controls() -> list[str]:
    """Names of the congestion controls that the simulator has."""

def observed() -> list[tuple[str, str, str]]:
    """What an agent sees: names, units and meanings."""

def action_bounds(action: str) -> tuple[float, float]:
    """The least and the greatest action. Raises ValueError."""

def event_names() -> list[str]:
    """Names of the events of a watched simulation. The table ``events`` has their positions in this list."""

def host_limit(bytes: float, share: float, limit: str, host: str, how: str) -> tuple[str, str] | None:
    """The data in flight that a window or buffer of ``bytes`` allows, as JSON, and what cannot be known therefore, in a
    sentence. None if it was the ``limit`` for too small a ``share`` of the time.
    """

def largest_shares(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """The column of the largest share in each row, the first of equal ones; -1 if all are 0 or NaN."""

def poisson_interval(count: int) -> tuple[float, float]:
    """A 90% interval for the mean of a Poisson count: Jeffreys' gamma(count + 1/2). For a count of 0 it starts at 0."""

def queue_options(discipline: str, packets: int | None, bytes: int | None, overhead: int) -> tuple[str, bytes]:
    """Linux's name of a queue's discipline, given as JSON, and its options for rtnetlink. ``packets`` and ``bytes``
    limit the queue; frames take ``overhead`` bytes beside their own. Raises ValueError if it is no discipline.
    """

def read_capture(
    path: str, details: int | None = None, progress: Callable[[int, int], object] | None = None
) -> tuple[str, dict[str, dict[str, NDArray[Any]]]]:
    """Facts of a pcap or pcapng file as JSON, and tables by name and column; see docs/reference/capture.md.

    ``path`` may be ``-``, standard input. ``details``: index of a connection whose segments are all returned (tables
    ``segments`` and ``sacks``). ``progress`` is called with the bytes read and the file's size in bytes (0: unknown).
    Releases the GIL. Raises ValueError, ``CODE: text``, if the file is not a capture, and any error that ``progress``
    raises.
    """

def refused_transfer(
    duration_s: float | None,
    segments: int | None,
    rtt_min_s: float | None,
    rtt_mean_s: float | None,
    application: float,
) -> tuple[str, str, str] | None:
    """Why a transfer is not enough to estimate its path: a code, a message, a fix. None if it is enough.

    ``application``: share of the time in which the sender's application had nothing to send.
    """

def packetdrill(
    text: str, hz: int, tolerance_us: int | None = None
) -> tuple[str, int | None, str, int, int, list[str]]:
    """Play a script in packetdrill's language to the simulated TCP of a kernel with ``hz`` ticks per second.

    ``tolerance_us``: how far a time may be off, in microseconds, if the script does not say it (None: as in
    packetdrill, 4 ms or an eighth of the time since the last event).

    Returns the verdict (``passed``, ``failed`` or ``not applicable``), the line of the first difference (None without
    one), the reason, the number of outbound packets that were as expected, the number of assertions that were true, and
    remarks.
    """

def packetdrill_outside_data_path(text: str) -> str | None:
    """Why a script in packetdrill's language is not about TCP's data path; None: it is."""

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
    """What the congestion control ``control`` would have allowed when each data segment was sent: windows in segments,
    and pacing rates in bytes per second (inf: no pacing).

    Arrays have one entry per segment, in order of time. ``t_ns``: time since the first segment. ``end``: sequence
    number after the last byte. ``known``: acknowledged bytes, never decreasing. Both count bytes since the first data.
    ``known_ns``: when that acknowledgement arrived, at most ``t_ns``. ``again``: whether the segment is a
    retransmission. ``initial_window`` and ``ssthresh``: the state at the start, in segments; None: no threshold yet.
    Raises ValueError for an unknown control and for arrays of different lengths.
    """

def share_watch(descriptor: int) -> None:
    """Start recording in the file ``descriptor`` which module function runs, and which signal ends this process. The
    process also ends when its parent ends. Raises OSError.
    """

def transfers(scenario: str, flow: int, stream: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The transfers of a flow of a compiled scenario, given as JSON, or its ``stream``-th sender's datagrams, if their
    times are random: times in ns since t = 0, in order, and bytes. Raises ValueError for other input.
    """

@final
class Module:
    """A newly loaded copy of a compiled Linux module, and the congestion control that it registers under ``name``.

    Creating it runs the module's code. Raises ValueError (a kind and a message) if the module cannot be used.
    """

    def __new__(cls, library: str, parameters: list[tuple[str, str]], name: str | None) -> Self: ...
    @property
    def name(self) -> str:
        """The control's own name."""

@final
class Policy:
    """A congestion control whose decisions a network makes: an ``activation``, ``tanh`` or ``relu``, between its
    ``layers`` (a row of weights for each output, and the biases), of which the last has one output, the action.

    ``every``: ``ack``, ``rtt``, or ``time`` with ``micros``. ``action``: ``cwnd``, ``rate`` or ``change``. ``inputs``:
    positions in ``observed``. Raises ValueError if the layers' sizes do not match.
    """

    def __new__(
        cls,
        name: str,
        every: str,
        micros: int,
        action: str,
        inputs: list[int],
        layers: list[tuple[list[list[float]], list[float]]],
        activation: str,
    ) -> Self: ...
    def decide(self, seen: NDArray[np.float64]) -> float:
        """The network's output for an observation, not yet within the action's bounds."""

@final
class Environments:
    """Simulations side by side, each with one flow whose congestion control asks for decisions."""

    def __new__(cls, count: int, every: str, micros: int, action: str) -> Self: ...
    def begin(self, index: int, scenario: str, flows: list[int]) -> None:
        """Begin a simulation of a compiled scenario, whose flows with these numbers ask for decisions. It replaces the
        one at this place. Raises ValueError."""

    def choose(self, actions: NDArray[np.float64]) -> None:
        """An action for each simulation; those that do not wait for one ignore it."""

    def advance(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Run each simulation to its next decision or its end. Releases the GIL. Returns their observations, one after
        the other, and which connection decides in each, by a number of its own: -1 for none, at the end."""

    def take(self, index: int) -> dict[str, dict[str, NDArray[Any]]]:
        """As ``Simulation.take``."""

    def counts(self, index: int) -> tuple[int, int, int]:
        """Simulated time in nanoseconds, events processed, and data packets delivered."""

@final
class FlowLimits:
    """Determines what limits the flows of one run, from the compiled scenario (JSON as ``Scenario.compile`` makes it)
    and the rows of its tables. Raises ValueError for other JSON.
    """

    def __new__(cls, scenario: str) -> Self: ...
    @staticmethod
    def tables() -> list[tuple[str, list[str]]]:
        """The tables to pass to ``add``, in this order, and their columns."""

    def add(self, table: str, columns: NDArray[np.float64]) -> None:
        """Add rows of a table: its columns, one after the other. Raises ValueError for a flow, transmitter or link
        that the scenario does not have.
        """

    def report(self, now_s: float) -> str:
        """What limits each flow of the run at time ``now_s``, as JSON; see ``Run.limits``."""

@final
class Simulation:
    """One simulation of a compiled scenario (JSON as ``Scenario.compile`` makes it).

    ``captures``: pcap files to write, by the index of the host that captures. ``modules``: what replaces the
    flows' congestion controls, by flow index. ``watched``: also produce the table ``events``, about the first 16
    connections of each flow and their packets. Raises ValueError for other JSON, or for ``captures`` together with
    ``watched``; OSError for a file.
    """

    def __new__(
        cls,
        scenario: str,
        captures: dict[int, str] | None = None,
        modules: Mapping[int, Module | Policy] | None = None,
        watched: bool = False,
    ) -> Self: ...
    def advance(self, until_ns: int, max_events: int, ends: bool = False) -> bool:
        """Simulates until ``until_ns`` nanoseconds, the scenario's end or ``max_events`` events; true at the end.
        With ``ends`` the run ends at ``until_ns``.

        Releases the GIL. Raises OSError if a capture cannot be written.
        """

    def record(self, on: bool) -> None:
        """Switch on or off, in a watched simulation, the tables ``packets`` and ``hops`` with each packet's path from
        host to host. They cover packets sent while it is on, at most a million hops between two calls of ``take``.
        """

    def take(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Rows since the last ``take``, by table and column; see docs/reference/tables.md."""

    @property
    def now_ns(self) -> int:
        """Simulated time in nanoseconds."""

    @property
    def events(self) -> int:
        """Number of events processed so far."""

    @property
    def delivered_packets(self) -> int:
        """Number of data packets delivered to receivers so far."""

    def skip_repeated(self) -> None:
        """From now on, packets that repeat others exactly are skipped. No row changes; but a call of ``advance`` may
        handle a period more than its events."""

    @property
    def skipped_packets(self) -> int:
        """How many of the delivered packets were skipped."""
