"""Connection: one of them as values with units, for lines, JSON and files; ``MEANINGS`` is the documented schema."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sawtooth.plain import plain
from sawtooth.watch import layout
from sawtooth.watch.change import Changes
from sawtooth.watch.limit import LIMITS, why
from sawtooth.whatif.estimate import poisson_interval

MEANINGS = {
    "cookie": "the kernel's number of this socket, never used again",
    "local": "its own address; IPv4 in IPv6 as IPv4",
    "local_port": "its own port",
    "peer": "the peer's address",
    "peer_port": "the peer's port",
    "state": "as ss names it",
    "process": "name of a process that holds it, null where /proc does not say",
    "pid": "that process's number",
    "uid": "the user who owns it",
    "mptcp": "whether it is a path of an MPTCP connection",
    "cc": "congestion control",
    "limit": "what holds it back: " + ", ".join(LIMITS),
    "why": "how that is known",
    "goodput_bps": "payload that was acknowledged since the look before, bit/s",
    "received_bps": "payload that was received since then, bit/s",
    "mean_bps": "payload acknowledged over the window, bit/s",
    "delivery_bps": "the kernel's newest delivery rate, bit/s",
    "rtt_s": "smoothed round trip, s",
    "rtt_mean_s": "its mean over the window's looks, s",
    "rtt_max_s": "its largest of these, s",
    "rtt_min_s": "the least round trip that the kernel remembers, s",
    "window_s": "how long the window is, s: the next columns are of it",
    "segments": "segments of data sent",
    "retransmits": "of these, sent again",
    "spurious": "of these, the peer had already (DSACK)",
    "loss": "share of the segments that was lost",
    "loss_low": "low end of its 90% interval, from the count alone",
    "loss_high": "high end",
    "marked": "segments that came with a mark (ECN)",
    "busy": "share of the time with data under way",
    "receive_window_limited": "share of the time that the peer's window was closed",
    "send_buffer_limited": "share of the time that the send buffer was too small",
    "waiting": "share of the looks at which nothing was left to send",
    "send_buffer_full": "share of the looks at which the send buffer was full, and all of it under way",
    "cwnd_segments": "congestion window",
    "in_flight_segments": "sent and not acknowledged",
    "ssthresh_segments": "null before the first loss",
    "recovery": "open, disorder, cwr, recovery or loss",
    "mss_bytes": "payload of a segment",
    "unsent_bytes": "written by the application, not sent yet",
    "peer_window_bytes": "what the peer allows",
    "pacing_bps": "how fast the kernel lets it send, bit/s",
    "bbr_bps": "what BBR takes for the bottleneck's rate, bit/s; null of others",
    "receive_buffer_bytes": "SO_RCVBUF as the kernel has it",
    "send_buffer_bytes": "SO_SNDBUF",
    "acked_bytes": "acknowledged since the connection began",
    "retransmits_ever": "sent again since then",
}


@dataclass(frozen=True)
class Connection:
    """One connection at one look; ``MEANINGS`` says what each is. None is what the kernel does not tell."""

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
        """The peer, as ss writes it."""
        return f"[{self.peer}]:{self.peer_port}" if ":" in self.peer else f"{self.peer}:{self.peer_port}"

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def connections(changes: Changes, limit: np.ndarray[Any, Any], holders: dict[int, tuple[int, str]]) -> list[Connection]:
    """All of them as values; a connection takes some 0.2 ms. ``holders`` are processes by inode: number and name."""
    look = changes.look
    names = "delivery_rate rtt min_rtt snd_cwnd unacked snd_ssthresh snd_mss notsent_bytes snd_wnd pacing_rate"
    told = {name: look.field(name).tolist() for name in [*names.split(), "bytes_acked", "total_retrans"]}
    own = {name: value.tolist() for name, value in vars(changes).items() if name != "look"}
    loss, lost = changes.loss.tolist(), changes.lost.tolist()
    bbr = look.bbr_bps.tolist()
    found = []
    for at in range(len(changes)):
        socket = look.sockets[at]
        local, local_port, peer, peer_port = look.addresses(at)
        inode = int(socket["inode"])
        pid, process = holders.get(inode, (None, None)) if inode else (None, None)
        low = high = None
        if own["segments"][at] > 0:
            low, high = (min(1.0, end / own["segments"][at]) for end in poisson_interval(round(lost[at])))
        threshold = told["snd_ssthresh"][at]
        found.append(
            Connection(
                cookie=f"{int(socket['cookie']):x}",
                local=local,
                local_port=local_port,
                peer=peer,
                peer_port=peer_port,
                state=layout.STATES.get(int(socket["state"]), str(int(socket["state"]))),
                process=None if process is None else plain(process, 60),
                pid=pid,
                uid=int(socket["uid"]),
                mptcp=bool(look.ulp[at] == b"mptcp"),
                cc=plain(look.cc[at].decode("ascii", "replace"), 16),
                limit=LIMITS[int(limit[at])],
                why=why(changes, at, int(limit[at])),
                goodput_bps=_number(own["goodput_bps"][at]),
                received_bps=_number(own["received_bps"][at]),
                mean_bps=_number(own["mean_bps"][at]),
                delivery_bps=_number(told["delivery_rate"][at] * 8),
                rtt_s=_number(told["rtt"][at] / 1e6),
                rtt_mean_s=_number(own["rtt_mean_s"][at]),
                rtt_max_s=_number(own["rtt_max_s"][at]),
                rtt_min_s=_number(told["min_rtt"][at] / 1e6) if told["min_rtt"][at] < 2**32 - 1 else None,
                window_s=_number(own["window_s"][at]),
                segments=_whole(own["segments"][at]),
                retransmits=_whole(own["retransmits"][at]),
                spurious=_whole(own["spurious"][at]),
                loss=_number(loss[at]),
                loss_low=low,
                loss_high=high,
                marked=_whole(own["marked"][at]),
                busy=_number(own["busy"][at]),
                receive_window_limited=_number(own["receive_window"][at]),
                send_buffer_limited=_number(own["send_buffer"][at]),
                waiting=_number(own["waiting"][at]),
                send_buffer_full=_number(own["filled"][at]),
                cwnd_segments=_whole(told["snd_cwnd"][at]),
                in_flight_segments=_whole(told["unacked"][at]),
                ssthresh_segments=_whole(threshold) if threshold < layout.NO_SLOW_START else None,
                recovery=layout.RECOVERY.get(int(look.info["ca_state"][at]), "unknown"),
                mss_bytes=_whole(told["snd_mss"][at]),
                unsent_bytes=_whole(told["notsent_bytes"][at]),
                peer_window_bytes=_whole(told["snd_wnd"][at]),
                pacing_bps=_number(told["pacing_rate"][at] * 8) if told["pacing_rate"][at] < 2**63 else None,
                bbr_bps=_number(bbr[at]),
                receive_buffer_bytes=int(look.memory["rcvbuf"][at]) if look.memory_known[at] else None,
                send_buffer_bytes=int(look.memory["sndbuf"][at]) if look.memory_known[at] else None,
                acked_bytes=_whole(told["bytes_acked"][at]),
                retransmits_ever=_whole(told["total_retrans"][at]),
            )
        )
    return found


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _whole(value: float) -> int | None:
    return int(value) if math.isfinite(value) else None
