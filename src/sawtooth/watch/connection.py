"""Connection: its values with units, for text, JSON and files. ``MEANINGS`` is the documented schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.sanitize import plain
from sawtooth.watch import layout
from sawtooth.watch.counters import Changes
from sawtooth.watch.limit import LIMITS, why
from sawtooth.whatif.estimate import poisson_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

MEANINGS = {
    "cookie": "the kernel's unique number of this socket",
    "local": "local address; IPv4 mapped in IPv6 is shown as IPv4",
    "local_port": "local port",
    "peer": "peer's address",
    "peer_port": "peer's port",
    "state": "state of the connection, as ss names it",
    "process": "name of the process that owns the socket; null if /proc does not say",
    "pid": "id of that process",
    "uid": "id of the user that owns the socket",
    "mptcp": "whether it is a subflow of an MPTCP connection",
    "cc": "congestion control",
    "limit": "what limits it: " + ", ".join(LIMITS),
    "why": "the evidence for limit, as a sentence",
    "goodput_bps": "payload acknowledged since the previous sample, bit/s",
    "received_bps": "payload received since the previous sample, bit/s",
    "mean_bps": "payload acknowledged over the window, bit/s",
    "delivery_bps": "the kernel's latest delivery rate, bit/s",
    "standing": "share of the samples in which the path had a queue: the RTT was well above its minimum",
    "standing_bps": "highest delivery rate in those samples, bit/s: the bottleneck's rate",
    "rtt_s": "smoothed RTT, s",
    "rtt_mean_s": "mean of rtt_s over the window, s",
    "rtt_max_s": "maximum of rtt_s over the window, s",
    "rtt_min_s": "minimum RTT of the last five minutes, s; if a whole number of ms, the truth may be up to 1 ms more",
    "window_s": "length of the window, s; the columns from segments to send_buffer_full are over the window",
    "segments": "data segments sent",
    "retransmits": "retransmissions among them",
    "spurious": "spurious retransmissions, as reported by DSACK",
    "loss": "share of the segments lost",
    "loss_low": "low end of its 90% confidence interval, from the count of losses",
    "loss_high": "high end of it",
    "marked": "segments delivered with an ECN mark",
    "busy": "share of the time with data in flight",
    "receive_window_limited": "share of the time limited by the peer's receive window",
    "send_buffer_limited": "share of the time limited by the send buffer",
    "waiting": "share of the samples in which the send buffer was empty",
    "send_buffer_full": "share of the samples in which the send buffer was full and all of it in flight",
    "cwnd_segments": "congestion window, segments",
    "in_flight_segments": "segments in flight",
    "ssthresh_segments": "slow start threshold, segments; null before the first loss",
    "recovery": "state of loss recovery: open, disorder, cwr, recovery or loss",
    "mss_bytes": "largest payload of a segment, bytes",
    "unsent_bytes": "bytes that the application wrote and TCP has not sent",
    "peer_window_bytes": "the peer's receive window, bytes",
    "pacing_bps": "pacing rate, bit/s",
    "bbr_bps": "BBR's estimate of the bottleneck's rate, bit/s; null for other controls",
    "receive_buffer_bytes": "receive buffer (SO_RCVBUF), bytes",
    "send_buffer_bytes": "send buffer (SO_SNDBUF), bytes",
    "acked_bytes": "bytes acknowledged since the connection began",
    "retransmits_ever": "retransmissions since the connection began",
}


@dataclass(frozen=True)
class Connection:
    """One connection in one sample. ``MEANINGS`` explains each field. None means that the kernel does not report the
    value."""

    cookie: str
    local: str
    local_port: int
    peer: str
    peer_port: int
    state: str
    process: str | None
    pid: int | None
    uid: int
    mptcp: bool
    cc: str
    limit: str
    why: str
    goodput_bps: float | None
    received_bps: float | None
    mean_bps: float | None
    delivery_bps: float | None
    standing: float | None
    standing_bps: float | None
    rtt_s: float | None
    rtt_mean_s: float | None
    rtt_max_s: float | None
    rtt_min_s: float | None
    window_s: float | None
    segments: int | None
    retransmits: int | None
    spurious: int | None
    loss: float | None
    loss_low: float | None
    loss_high: float | None
    marked: int | None
    busy: float | None
    receive_window_limited: float | None
    send_buffer_limited: float | None
    waiting: float | None
    send_buffer_full: float | None
    cwnd_segments: int | None
    in_flight_segments: int | None
    ssthresh_segments: int | None
    recovery: str
    mss_bytes: int | None
    unsent_bytes: int | None
    peer_window_bytes: int | None
    pacing_bps: float | None
    bbr_bps: float | None
    receive_buffer_bytes: int | None
    send_buffer_bytes: int | None
    acked_bytes: int | None
    retransmits_ever: int | None

    @property
    def ends(self) -> str:
        """The peer's address and port, as ss writes them."""
        return _end(self.peer, self.peer_port)

    @property
    def begins(self) -> str:
        """This host's address and port, as ss writes them."""
        return _end(self.local, self.local_port)

    def describe(self) -> dict[str, Any]:
        """The connection as JSON values."""
        return dict(vars(self))


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


Columns = dict[str, list[Any]]
"""A list of values, one per connection, by field name."""


def connections(changes: Changes, limit: NDArray[np.int64], holders: dict[int, tuple[int, str]]) -> list[Connection]:
    """All connections as values. ``holders``: number and name of the process by inode."""
    return [Connection(*row) for row in zip(*columns(changes, limit, holders).values(), strict=True)]


def columns(changes: Changes, limit: NDArray[np.int64], holders: dict[int, tuple[int, str]]) -> Columns:
    """The same values as columns, in the order of ``MEANINGS``."""
    sample = changes.sample
    sockets, count = sample.sockets, len(changes)
    ends = [sample.addresses(at) for at in range(count)]
    held = [holders.get(inode, (None, None)) if inode else (None, None) for inode in sockets["inode"].tolist()]
    low, high = _loss_interval(changes)
    threshold, least, pace = (sample.field(name) for name in ("snd_ssthresh", "min_rtt", "pacing_rate"))
    rcvbuf, sndbuf = (np.where(sample.memory_known, sample.memory[name], np.nan) for name in ("rcvbuf", "sndbuf"))
    return {
        "cookie": [f"{cookie:x}" for cookie in sample.cookie.tolist()],
        "local": [end[0] for end in ends],
        "local_port": [end[1] for end in ends],
        "peer": [end[2] for end in ends],
        "peer_port": [end[3] for end in ends],
        "state": [layout.STATES.get(state, str(state)) for state in sockets["state"].tolist()],
        "process": [None if name is None else plain(name, 60) for _, name in held],
        "pid": [pid for pid, _ in held],
        "uid": sockets["uid"].tolist(),
        "mptcp": (sample.ulp == b"mptcp").tolist(),
        "cc": [plain(name.decode("ascii", "replace"), 16) for name in sample.cc.tolist()],
        "limit": [LIMITS[one] for one in limit.tolist()],
        "why": [why(changes, at, one) for at, one in enumerate(limit.tolist())],
        "goodput_bps": _numbers(changes.goodput_bps),
        "received_bps": _numbers(changes.received_bps),
        "mean_bps": _numbers(changes.mean_bps),
        "delivery_bps": _numbers(sample.field("delivery_rate") * 8),
        "standing": _numbers(changes.standing),
        "standing_bps": _numbers(changes.standing_bps),
        "rtt_s": _numbers(sample.field("rtt") / 1e6),
        "rtt_mean_s": _numbers(changes.rtt_mean_s),
        "rtt_max_s": _numbers(changes.rtt_max_s),
        "rtt_min_s": _numbers(np.where(least < 2**32 - 1, least / 1e6, np.nan)),
        "window_s": _numbers(changes.window_s),
        "segments": _whole(changes.segments),
        "retransmits": _whole(changes.retransmits),
        "spurious": _whole(changes.spurious),
        "loss": _numbers(changes.loss),
        "loss_low": low,
        "loss_high": high,
        "marked": _whole(changes.marked),
        "busy": _numbers(changes.busy),
        "receive_window_limited": _numbers(changes.receive_window),
        "send_buffer_limited": _numbers(changes.send_buffer),
        "waiting": _numbers(changes.waiting),
        "send_buffer_full": _numbers(changes.filled),
        "cwnd_segments": _whole(sample.field("snd_cwnd")),
        "in_flight_segments": _whole(sample.field("unacked")),
        "ssthresh_segments": _whole(np.where(threshold < layout.NO_SLOW_START, threshold, np.nan)),
        "recovery": [layout.RECOVERY.get(state, "unknown") for state in sample.info["ca_state"].tolist()],
        "mss_bytes": _whole(sample.field("snd_mss")),
        "unsent_bytes": _whole(sample.field("notsent_bytes")),
        "peer_window_bytes": _whole(sample.field("snd_wnd")),
        "pacing_bps": _numbers(np.where(pace < 2**63, pace * 8, np.nan)),
        "bbr_bps": _numbers(sample.bbr_bps),
        "receive_buffer_bytes": _whole(rcvbuf),
        "send_buffer_bytes": _whole(sndbuf),
        "acked_bytes": _whole(sample.field("bytes_acked")),
        "retransmits_ever": _whole(sample.field("total_retrans")),
    }


def _loss_interval(changes: Changes) -> tuple[list[Any], list[Any]]:
    """Lower and upper end of the loss interval for each connection. Equal counts are computed once."""
    lost, which = np.unique(np.rint(np.nan_to_num(changes.lost)), return_inverse=True)
    between = np.array([poisson_interval(int(one)) for one in lost]).reshape(-1, 2)[which]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(changes.segments > 0, between.T / changes.segments, np.nan)
    low, high = np.minimum(1.0, share)
    return _numbers(low), _numbers(high)


def _numbers(values: NDArray[np.float64]) -> list[Any]:
    found = values.astype(object)
    found[~np.isfinite(values)] = None
    return list(found)


def _whole(values: NDArray[np.float64]) -> list[Any]:
    known = np.isfinite(values)
    found = np.where(known, values, 0).astype(np.int64).astype(object)
    found[~known] = None
    return list(found)
