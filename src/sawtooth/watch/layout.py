"""The layout of sock_diag's messages (Linux's ``uapi/linux/inet_diag.h`` and ``uapi/linux/tcp.h``).

Names are Linux's without the prefix ``tcpi_``. Older kernels send shorter structures, without the newer fields.
"""

from __future__ import annotations

import numpy as np

HEADER = 16
"""Bytes of a netlink message's header (``struct nlmsghdr``)."""
MESSAGE = 72
"""Bytes of a socket's message, without attributes (``struct inet_diag_msg``)."""
BY_FAMILY = 20
ERROR, DONE = 2, 3
INTERRUPTED = 0x10
"""Message flag: sockets changed during the dump."""
INFO, VEGASINFO, CONG, SKMEMINFO, BBRINFO, ULP = 2, 3, 4, 7, 16, 19

SOCKET = np.dtype(
    [
        ("family", "u1"),
        ("state", "u1"),
        ("timer", "u1"),
        ("retrans", "u1"),
        ("sport", ">u2"),
        ("dport", ">u2"),
        ("src", "u1", 16),
        ("dst", "u1", 16),
        ("interface", "<u4"),
        ("cookie", "<u8"),
        ("expires", "<u4"),
        ("rqueue", "<u4"),
        ("wqueue", "<u4"),
        ("uid", "<u4"),
        ("inode", "<u4"),
    ]
)

_WORDS = "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv"
_WORDS += " last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space"
TCP_INFO = np.dtype(
    [(name, "u1") for name in ["state", "ca_state", "retransmits", "probes", "backoff", "options", "wscales", "flags"]]
    + [(name, "<u4") for name in [*_WORDS.split(), "total_retrans"]]
    + [(name, "<u8") for name in ("pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received")]
    + [(name, "<u4") for name in ["segs_out", "segs_in", "notsent_bytes", "min_rtt", "data_segs_in", "data_segs_out"]]
    + [(name, "<u8") for name in ("delivery_rate", "busy_time", "rwnd_limited", "sndbuf_limited")]
    + [("delivered", "<u4"), ("delivered_ce", "<u4"), ("bytes_sent", "<u8"), ("bytes_retrans", "<u8")]
    + [(name, "<u4") for name in ["dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd", "rcv_wnd", "rehash"]]
    + [("total_rto", "<u2"), ("total_rto_recoveries", "<u2"), ("total_rto_time", "<u4")]
)
"""``struct tcp_info`` as of Linux 6.12: 248 bytes. Times in µs, ``last_*`` and ``rto_time`` in ms; rates in bytes/s."""
APP_LIMITED = 1
"""Bit of ``flags``: the application had nothing more to send when the newest delivery rate was measured."""

BBR_INFO = np.dtype([(name, "<u4") for name in ("bw_lo", "bw_hi", "min_rtt", "pacing_gain", "cwnd_gain")])
"""``struct tcp_bbr_info``: bandwidth in bytes/s as two 32-bit halves, minimum RTT in µs, gains times 256."""
_MEMORY = ("rmem_alloc", "rcvbuf", "wmem_alloc", "sndbuf", "fwd_alloc", "wmem_queued", "optmem", "backlog", "drops")
SOCKET_MEMORY = np.dtype([(name, "<u4") for name in _MEMORY])

STATES = {
    1: "ESTAB",
    2: "SYN-SENT",
    4: "FIN-WAIT-1",
    5: "FIN-WAIT-2",
    7: "CLOSED",
    8: "CLOSE-WAIT",
    9: "LAST-ACK",
    11: "CLOSING",
}
"""Names of states as in ss. Only states of connections are included."""
ASKED = sum(1 << number for number in STATES if number != 7)
NO_SLOW_START = 0x7FFFFFFF
"""Value of ``snd_ssthresh`` before the first loss."""
UNPACED = 2**64 - 1
RECOVERY = {0: "open", 1: "disorder", 2: "cwr", 3: "recovery", 4: "loss"}
"""Names of the values of ``ca_state``."""


def offset(structure: np.dtype[np.void], field: str) -> int:
    """Position of a field in a structure, in bytes. Raises KeyError."""
    if structure.fields is None:
        raise KeyError(field)
    return int(structure.fields[field][1])
