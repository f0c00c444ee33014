"""Watcher: samples at regular times, filtered, with each connection's limit and what could not be seen."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sawtooth.errors import InputError, suggestion
from sawtooth.watch.connection import Columns, Connection, columns
from sawtooth.watch.counters import Changes, Window
from sawtooth.watch.filter import condition
from sawtooth.watch.limit import limits
from sawtooth.watch.processes import Processes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sawtooth.watch.netlink import Connections
    from sawtooth.watch.sample import Sample

SORTS = ("goodput", "received", "delivery", "loss", "retransmits", "rtt", "cwnd", "peer")
SAMPLES = 10
"""Default number of intervals in a window."""


@dataclass(frozen=True)
class LiveMoment:
    """One sample: ``changes`` of the connections that pass the filter; ``limit`` of each (an index into ``LIMITS``);
    ``time`` of day; ``total`` number of connections; ``short``, the number of connections that closed since the
    previous sample without being in it, and ``short_bytes`` that their peers acknowledged (None if the kernel does not
    report it). ``unreported`` says in sentences what the kernel did not report.
    """

    time: str
    changes: Changes
    limit: NDArray[np.int64]
    total: int
    short: int | None
    short_bytes: int | None
    unreported: tuple[str, ...]
    processes: Processes

    @property
    def unseen(self) -> tuple[str, ...]:
        """Sentences about what could not be seen. Hidden processes are only known after a connection's process was
        requested."""
        if not self.processes.hidden:
            return self.unreported
        hidden = f"which process holds a socket, of {self.processes.hidden} processes of other users: as root"
        return (*self.unreported, hidden)

    @property
    def at_s(self) -> float:
        """Time of a monotonic clock."""
        return self.changes.sample.at_s

    @property
    def matching(self) -> int:
        """Number of connections that pass the filter."""
        return len(self.changes)

    def order(self, sort: str) -> NDArray[np.intp]:
        """Positions in sorted order, largest first; addresses ascending."""
        changes = self.changes
        of = {
            "goodput": changes.goodput_bps,
            "received": changes.received_bps,
            "delivery": changes.sample.field("delivery_rate"),
            "loss": changes.loss,
            "retransmits": changes.retransmits,
            "rtt": changes.sample.field("rtt"),
            "cwnd": changes.sample.field("snd_cwnd"),
        }
        return in_order(sort, changes.sample.sockets, of, changes.sample.field("bytes_acked"))

    def first(self, sort: str = "goodput", count: int | None = None) -> list[Connection]:
        """Connections in order, at most ``count``."""
        return [Connection(*row) for row in zip(*self.columns(sort, count).values(), strict=True)]

    def columns(self, sort: str = "goodput", count: int | None = None) -> Columns:
        """The connections of ``first`` as columns: one list of values per field."""
        which = self.order(sort)[:count]
        inodes = self.changes.sample.sockets["inode"][which].tolist()
        return columns(self.changes.chosen(which), self.limit[which], self.processes.of(inodes))


def in_order(
    sort: str, sockets: NDArray[np.void], of: Mapping[str, NDArray[np.float64]], carried: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Positions sorted by ``sort``, one of ``SORTS``. Among equals, the connection with the most bytes comes first."""
    if sort == "peer":
        return np.lexsort((sockets["dport"], *(sockets["dst"][:, at] for at in range(15, -1, -1)), sockets["family"]))
    if sort not in of:
        raise InputError("unknown-name", f'"{sort}" is not a sort order', field="--sort", fix=suggestion(sort, SORTS))
    return np.lexsort((-np.nan_to_num(carried), -np.nan_to_num(of[sort], nan=-1.0)))


class Moment(Protocol):
    """A sample as it is displayed, from the kernel (``LiveMoment``) or a recording. None means unknown."""

    @property
    def time(self) -> str: ...
    @property
    def at_s(self) -> float: ...
    @property
    def matching(self) -> int: ...
    @property
    def total(self) -> int | None: ...
    @property
    def short(self) -> int | None: ...
    @property
    def short_bytes(self) -> int | None: ...
    @property
    def unseen(self) -> tuple[str, ...]: ...
    def first(self, sort: str = "goodput", count: int | None = None) -> list[Connection]: ...


def described(seen: Moment, shown: Sequence[Connection]) -> dict[str, Any]:
    """The sample as JSON values."""
    return {
        "time": seen.time,
        "at_s": seen.at_s,
        "connections_total": seen.total,
        "connections_matching": seen.matching,
        "short_connections": seen.short,
        "short_bytes": seen.short_bytes,
        "unseen": list(seen.unseen),
        "connections": [one.describe() for one in shown],
    }


class Watcher:
    """Samples ``source`` on each call of ``sample``. Memory use is limited to ``samples`` samples."""

    def __init__(self, source: Connections, *, filter: str = "", samples: int = SAMPLES) -> None:
        """Raises SawtoothError as ``condition``."""
        self._source = source
        self._window = Window(samples)
        self.narrow(filter)
        self._processes = Processes()
        self._before: NDArray[np.uint64] | None = None

    def narrow(self, filter: str) -> None:
        """Use another filter from the next sample on. Raises SawtoothError as ``condition``."""
        self._condition, self._all = condition(filter), not filter.strip()

    def sample(self) -> LiveMoment:
        """Sample now. Raises SawtoothError ``unsupported`` if the kernel does not provide connections."""
        time = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        sample = self._source.sample()
        # A closed connection whose values the kernel no longer provides.
        if sample.info_bytes.size and not sample.info_bytes.all():
            sample = sample.chosen(sample.info_bytes > 0)
        short, short_bytes, missed = self._short()
        changes = self._window.add(sample)
        chosen = changes if self._all else changes.chosen(self._condition(changes.sample, self._holders))
        self._before = sample.cookie
        return LiveMoment(
            time=time,
            changes=chosen,
            limit=limits(chosen),
            total=len(sample),
            short=short,
            short_bytes=short_bytes,
            unreported=self._unreported(sample, missed),
            processes=self._processes,
        )

    def _holders(self, sample: Sample) -> list[str]:
        inodes = sample.sockets["inode"].tolist()
        held = self._processes.of(inodes)
        return [held[inode][1] if inode in held else "" for inode in inodes]

    def _short(self) -> tuple[int | None, int | None, bool]:
        """Connections that were in no sample, with their bytes, and whether some are unknown. Nothing for the first
        sample."""
        if not self._source.reports_ends:
            return None, None, False
        ended, missed = self._source.ended()
        if self._before is None:
            return 0, 0, missed
        new = ~np.isin(ended.cookie, self._before)
        # Count only connections that sent or received data.
        new &= (ended.info["bytes_acked"] > 1) | (ended.info["bytes_received"] > 0)
        return int(new.sum()), int(ended.info["bytes_acked"][new].sum()), missed

    def _unreported(self, sample: Sample, missed: bool) -> tuple[str, ...]:
        sentences = []
        if not self._source.reports_ends:
            sentences.append("connections shorter than one interval: this kernel does not report closed connections")
        elif missed:
            sentences.append("some connections shorter than one interval: the kernel could not report them all")
        if sample.partly:
            sentences.append("some connections may be missing or outdated: they changed during the dump")
        if sample.damaged:
            sentences.append(f"{sample.damaged} messages of the kernel that make no sense here")
        return tuple(sentences)
