"""What connections did between samples, computed from the kernel's counters."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sawtooth.watch import layout
from sawtooth.watch.sample import Sample
from sawtooth.whatif.standing_queue import above

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

COUNTERS = (
    "bytes_acked",
    "bytes_received",
    "data_segs_out",
    "total_retrans",
    "dsack_dups",
    "busy_time",
    "rwnd_limited",
    "sndbuf_limited",
    "delivered_ce",
)
_WRAPPING = np.array([layout.TCP_INFO[name].itemsize == 4 for name in COUNTERS])
_AT = {name: place for place, name in enumerate(COUNTERS)}
WOKEN = 2 / 3
"""Part of the send buffer: the kernel wakes a waiting writer below it."""
_TINY_S = 0.0002
"""Waits shorter than this, in seconds, come from the hosts themselves and not from a queue."""


@dataclass(frozen=True)
class Changes:
    """The connections of one sample, and what they did since an earlier one. Arrays have one entry per connection, NaN
    where unknown.

    ``interval_s`` is the time since the previous sample. ``window_s`` is the time since the oldest kept sample that has
    the connection.

    In the interval: ``goodput_bps`` (acknowledged), ``received_bps``.

    In the window: ``mean_bps``; ``segments`` with data sent, ``retransmits`` among them, ``spurious`` among those (the
    peer already had the data); ``marked`` (ECN); shares of time ``busy``, ``receive_window``, ``send_buffer``; shares
    of samples ``waiting`` (nothing left to send, window not full), ``filled`` (the same, but the send buffer is full)
    and ``standing`` (a queue stands); ``standing_bps``, the highest delivery rate in the samples with a queue;
    ``rtt_mean_s``; ``rtt_max_s``; ``delivery_max_bps``.
    """

    sample: Sample
    interval_s: Column
    window_s: Column
    goodput_bps: Column
    received_bps: Column
    mean_bps: Column
    segments: Column
    retransmits: Column
    spurious: Column
    marked: Column
    busy: Column
    receive_window: Column
    send_buffer: Column
    waiting: Column
    filled: Column
    standing: Column
    standing_bps: Column
    rtt_mean_s: Column
    rtt_max_s: Column
    delivery_max_bps: Column

    def __len__(self) -> int:
        return len(self.sample)

    @property
    def lost(self) -> Column:
        """Retransmissions that were necessary."""
        return np.maximum(0.0, self.retransmits - np.nan_to_num(self.spurious))

    @property
    def loss(self) -> Column:
        """Share of data segments lost in the window; NaN if none was sent."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.segments > 0, self.lost / self.segments, np.nan)

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Changes:
        """The selected connections only."""
        columns = {name: value[which] for name, value in vars(self).items() if name != "sample"}
        return Changes(self.sample.chosen(which), **columns)


@dataclass(frozen=True)
class _Connections:
    """What is kept of a sample, sorted by cookie: counters and momentary values. ``added``: 0 where unknown."""

    at_s: float
    cookie: NDArray[np.uint64]
    counters: NDArray[np.float64]
    moment: NDArray[np.float64]
    added: NDArray[np.float64]

    def of(self, cookie: NDArray[np.uint64]) -> tuple[_Connections, NDArray[np.bool_]]:
        """The values of the sockets ``cookie`` (sorted), and which of them this sample has. The others are NaN."""
        at, there = self._places(cookie)
        if at is None:
            return self, there
        unknown = np.full((cookie.size, 1), np.nan)
        if not self.cookie.size:
            counters, moment = (np.repeat(unknown, one.shape[1], axis=1) for one in (self.counters, self.moment))
        else:
            counters, moment = (np.where(there[:, None], one[at], unknown) for one in (self.counters, self.moment))
        return _Connections(self.at_s, cookie, counters, moment, np.nan_to_num(moment)), there

    def _places(self, cookie: NDArray[np.uint64]) -> tuple[NDArray[np.intp] | None, NDArray[np.bool_]]:
        """The position of each socket in this sample (None if all positions are equal), and whether the sample has
        it.
        """
        if cookie.size == self.cookie.size and np.array_equal(cookie, self.cookie):
            return None, np.ones(cookie.size, bool)
        if not self.cookie.size:
            return np.zeros(cookie.size, np.intp), np.zeros(cookie.size, bool)
        at = np.minimum(np.searchsorted(self.cookie, cookie), self.cookie.size - 1)
        return at, self.cookie[at] == cookie


class Window:
    """The newest samples, covering at most ``samples`` intervals."""

    def __init__(self, samples: int = 10) -> None:
        self._kept: deque[_Connections] = deque(maxlen=samples + 1)

    def add(self, sample: Sample) -> Changes:
        """Add a sample. Returns the changes up to it, in the order of cookies."""
        counters = (
            np.stack([sample.field(name) for name in COUNTERS], axis=1) if len(sample) else np.zeros((0, len(_AT)))
        )
        moment = _moment(sample)
        now = _Connections(sample.at_s, sample.cookie, counters, moment, np.nan_to_num(moment))
        before = self._kept[-1] if self._kept else None
        self._kept.append(now)
        return _changes(sample, now, before, list(self._kept))


def _moment(sample: Sample) -> NDArray[np.float64]:
    """Momentary values per connection: whether it waits for its application; whether its send buffer is full; whether a
    queue stands; the delivery rate in bit/s if a queue stands, else 0; the smoothed RTT in s; the delivery rate."""
    rtt, least = sample.field("rtt") / 1e6, sample.field("min_rtt") / 1e6
    unsent, flight = sample.field("notsent_bytes"), sample.field("unacked")
    # Application-limited as in Linux (tcp_rate_check_app_limited): less than one segment left to send, window not full,
    # nothing lost.
    waits = (unsent < sample.field("snd_mss")) & (flight < sample.field("snd_cwnd")) & (sample.field("lost") <= 0)
    waits |= np.isnan(unsent) & (sample.info["flags"] & layout.APP_LIMITED > 0)
    # The kernel wakes a waiting writer when the send buffer is below two thirds (sk_stream_is_writeable).
    full = sample.memory_known & (sample.memory["wmem_queued"] >= WOKEN * sample.memory["sndbuf"]) & (flight > 0)
    delivery = sample.field("delivery_rate") * 8
    # Delays of only some acknowledgements, such as delayed acknowledgements with a small window, appear in the RTT
    # variation. So subtract it.
    queued = rtt - sample.field("rttvar") / 1e6 > above(least, sample.field("snd_mss"), delivery) + _TINY_S
    columns = [(waits & ~full).astype(float), (waits & full).astype(float), queued.astype(float)]
    return np.stack([*columns, np.where(queued, delivery, 0.0), rtt, delivery], axis=1)


def _difference(new: NDArray[np.float64], old: NDArray[np.float64]) -> NDArray[np.float64]:
    """Difference of counters; 32-bit counters may wrap around. Any other decrease gives NaN."""
    change = new - old
    wrapped = np.where(_WRAPPING & (change < 0), change + 2**32, change)
    return np.where(wrapped < 0, np.nan, wrapped)


def _changes(sample: Sample, now: _Connections, before: _Connections | None, kept: list[_Connections]) -> Changes:
    count = len(sample)
    last = np.full((count, len(_AT)), np.nan)
    interval = np.full(count, np.nan)
    if before is not None:
        old, there = before.of(now.cookie)
        last = _difference(now.counters, old.counters)
        interval[there] = now.at_s - before.at_s
    base, since = np.full((count, len(_AT)), np.nan), np.full(count, np.nan)
    sums, samples, highest = np.zeros((count, 6)), np.zeros((count, 1)), np.full((count, 3), -np.inf)
    for one in kept:
        one, there = one.of(now.cookie)
        new = there & np.isnan(since)
        if one.at_s < now.at_s and new.any():
            base[new], since[new] = one.counters[new], one.at_s
        # A sample that does not have the connection adds nothing.
        sums += one.added
        samples += there[:, None]
        np.fmax(highest, one.moment[:, 3:], out=highest)
    whole = _difference(now.counters, base)
    length = now.at_s - since
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / samples
        rates = last / interval[:, None]
        shares = np.minimum(1.0, whole / 1e6 / length[:, None])
        means[:, 4] = np.where(np.isnan(now.moment[:, 4]), np.nan, means[:, 4])
        standing_bps = np.where(sums[:, 2] > 0, highest[:, 0], np.nan)
        mean_bps = whole[:, _AT["bytes_acked"]] * 8 / length
    of = {name: whole[:, place] for name, place in _AT.items()}
    return Changes(
        sample=sample,
        interval_s=interval,
        window_s=length,
        goodput_bps=rates[:, _AT["bytes_acked"]] * 8,
        received_bps=rates[:, _AT["bytes_received"]] * 8,
        mean_bps=mean_bps,
        segments=of["data_segs_out"],
        retransmits=of["total_retrans"],
        spurious=of["dsack_dups"],
        marked=of["delivered_ce"],
        busy=shares[:, _AT["busy_time"]],
        receive_window=shares[:, _AT["rwnd_limited"]],
        send_buffer=shares[:, _AT["sndbuf_limited"]],
        waiting=means[:, 0],
        filled=means[:, 1],
        standing=means[:, 2],
        standing_bps=standing_bps,
        rtt_mean_s=means[:, 4],
        rtt_max_s=np.where(np.isfinite(highest[:, 1]), highest[:, 1], np.nan),
        delivery_max_bps=np.where(np.isfinite(highest[:, 2]), highest[:, 2], np.nan),
    )
