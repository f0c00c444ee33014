"""Options of queueing disciplines and filters, in rtnetlink's binary form (linux/pkt_sched.h, pkt_cls.h).

They are packed here because pyroute2 supports neither netem's seed nor its 64-bit attributes, and rounds delays to 64
ns.
"""

from __future__ import annotations

import json
import struct

from sawtooth import _core
from sawtooth.scenario.compiled_form import GilbertElliott, Jitter, Policer, Reorder, Transmitter

UNLIMITED = 2**31 - 1
"""Packets: a queue that is never full."""
PPB = 10**9
KEEPS_ORDER_BPS = 8 * 10**12
"""A rate at which a frame takes one or two nanoseconds: netem then prevents overtaking."""
_CERTAIN = 2**32 - 1
"""netem's probability of 1."""

_NETEM_CORR, _NETEM_DELAY_DIST, _NETEM_REORDER, _NETEM_CORRUPT, _NETEM_JITTER64 = 1, 2, 3, 4, 11
_NETEM_LOSS, _NETEM_RATE, _NETEM_RATE64, _NETEM_LATENCY64, _NETEM_SLOT, _NETEM_SEED = 5, 6, 8, 10, 12, 14
_NETEM_LOSS_GE = 2
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_HTB_PARMS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_DUALPI2_LIMIT = 1
_STAB_BASE = 1
_FLOWER_CLASSID, _FLOWER_ETH_DST, _FLOWER_ETH_DST_MASK = 1, 4, 5
_ETHERNET = 1
_MATCHALL_CLASSID, _MATCHALL_ACT = 1, 2
_ACT_KIND, _ACT_OPTIONS = 1, 2
_POLICE_TBF, _POLICE_RATE, _POLICE_RATE64 = 1, 2, 8
_DROP = 2
_TICK_NS = 64
"""The clock tick in which act_police measures bursts."""


def netem(
    *,
    limit: int = UNLIMITED,
    loss_ppb: int = 0,
    gilbert_elliott: GilbertElliott | None = None,
    seed: int | None = None,
    rate_bps: int = 0,
    overhead_bytes: int = 0,
    delay_ns: int = 0,
    slot_ns: int = 0,
    slot_bytes: int = 0,
    jitter: Jitter | None = None,
    reorder: Reorder | None = None,
    duplicate: tuple[int, int] | None = None,
    corrupt: tuple[int, int] | None = None,
) -> bytes:
    """``limit`` is in packets, including the one on the wire; it is checked after the loss (``netem_enqueue``).

    ``gilbert_elliott`` (as in a compiled scenario) replaces ``loss_ppb``: tc's ``loss gemodel``. ``jitter``,
    ``reorder``, ``duplicate``, ``corrupt`` are as in a compiled link; a rate keeps packets in order. ``slot_ns``:
    packets that are due leave together, this long after the previous group (tc's ``slot``), at most ``slot_bytes`` and
    the rest of a packet (0: all).
    """
    share, duplicate_correlation = duplicate or (0, 0)
    gap = 0 if reorder is None else reorder.gap
    options = struct.pack("=6I", 0, limit, _chance(loss_ppb), gap, _chance(share), 0)
    correlated = (0 if jitter is None else jitter.correlation_ppb, 0, duplicate_correlation)
    if any(correlated):
        options += _attribute(_NETEM_CORR, struct.pack("=3I", *map(_chance, correlated)))
    if reorder is not None:
        options += _attribute(_NETEM_REORDER, struct.pack("=2I", *map(_chance, (reorder.ppb, reorder.correlation_ppb))))
    if corrupt is not None:
        options += _attribute(_NETEM_CORRUPT, struct.pack("=2I", *map(_chance, corrupt)))
    if jitter is not None:
        options += _attribute(_NETEM_JITTER64, struct.pack("=q", jitter.ns))
        if jitter.table:
            options += _attribute(_NETEM_DELAY_DIST, struct.pack(f"={len(jitter.table)}h", *jitter.table))
    if gilbert_elliott is not None:
        model = gilbert_elliott
        p, r, bad, good = map(_chance, (model.p_ppb, model.r_ppb, model.bad_ppb, model.good_ppb))
        # The third is the probability that a packet survives the bad state.
        chances = struct.pack("=4I", p, r, _CERTAIN - bad, good)
        options += _attribute(_NETEM_LOSS, _attribute(_NETEM_LOSS_GE, chances))
    if rate_bps:
        bytes_a_second = max(1, round(rate_bps / 8))
        options += _attribute(_NETEM_RATE, struct.pack("=Iiii", min(bytes_a_second, 2**32 - 1), overhead_bytes, 0, 0))
        if bytes_a_second >= 2**32:
            options += _attribute(_NETEM_RATE64, struct.pack("=Q", bytes_a_second))
    if delay_ns:
        options += _attribute(_NETEM_LATENCY64, struct.pack("=q", delay_ns))
    if slot_ns:
        options += _attribute(_NETEM_SLOT, struct.pack("=2q2i2q", slot_ns, slot_ns, 0, slot_bytes, 0, 0))
    if seed is not None:
        options += _attribute(_NETEM_SEED, struct.pack("=Q", seed))
    return options


def tbf(*, rate_bps: int, burst_bytes: int, overhead_bytes: int = 0) -> bytes:
    """A token bucket without a queue: give it a fifo as its child. It splits super-packets larger than the burst."""
    parameters = _rate(rate_bps, overhead_bytes) + bytes(12) + struct.pack("=III", 0, 0, 0)
    options = _attribute(_TBF_PARMS, parameters) + _large_rate(_TBF_RATE64, rate_bps)
    return options + _attribute(_TBF_BURST, struct.pack("=I", burst_bytes))


def shorter(by_bytes: int) -> bytes:
    """Makes a root discipline, and all below it, count each frame as shorter by this many bytes (tc's ``stab``)."""
    return _attribute(_STAB_BASE, struct.pack("=BBhi4I", 0, 0, 0, -by_bytes, _ETHERNET, 0, 0, 0))


def valve(frame_bytes: int, limit: int) -> bytes:
    """A token bucket that passes one frame of at most ``frame_bytes`` each time it gets these options, and splits
    longer ones. A frame takes more than half of its tokens, which refill at one byte per second. ``limit`` is for a
    fifo below it.
    """
    parameters = _rate(8, 2**16 - 1) + bytes(12) + struct.pack("=III", limit, 0, 0)
    return _attribute(_TBF_PARMS, parameters) + _attribute(_TBF_BURST, struct.pack("=I", frame_bytes))


def cut(frame_bytes: int) -> bytes:
    """A token bucket that splits super-packets and delays nothing by more than a nanosecond or two per frame."""
    return tbf(rate_bps=KEEPS_ORDER_BPS, burst_bytes=frame_bytes)


def around() -> bytes:
    """prio with two classes: the first for Linux's highest priority, the second for everything else."""
    return struct.pack("=i16B", 2, *(int(priority != 7) for priority in range(16)))


def htb(*, rate_bps: int, ahead_ns: int, overhead_bytes: int = 0) -> tuple[bytes, bytes]:
    """HTB with one class, and that class's options. Each packet leaves when earlier ones have had their time, whatever
    their size, and ``ahead_ns`` sooner to compensate for late timers. Give the class a fifo as its child."""
    spec = _rate(rate_bps, overhead_bytes)
    ticks = max(1, ahead_ns // _TICK_NS)
    parameters = spec + spec + struct.pack("=5I", ticks, ticks, 0, 0, 0)
    leaf = _attribute(_HTB_PARMS, parameters)
    leaf += _large_rate(_HTB_RATE64, rate_bps) + _large_rate(_HTB_CEIL64, rate_bps)
    return _attribute(_HTB_INIT, struct.pack("=5I", 3, 10, 1, 0, 0)), leaf


def police(policer: Policer, classid: int, overhead_bytes: int = 0) -> bytes:
    """A filter that sends everything to a class, except what its policer drops."""
    burst = min(_CERTAIN, round(policer.burst_bytes * 8 * 10**9 / policer.rate_bps / _TICK_NS))
    parameters = struct.pack("=IiIII", 0, _DROP, 0, burst, UNLIMITED) + _rate(policer.rate_bps, overhead_bytes)
    # The table, from the time when the kernel could not divide, is ignored, but required.
    options = _attribute(_POLICE_TBF, parameters + bytes(12) + bytes(12)) + _attribute(_POLICE_RATE, bytes(1024))
    options += _large_rate(_POLICE_RATE64, policer.rate_bps)
    action = _attribute(_ACT_KIND, b"police\0") + _attribute(_ACT_OPTIONS, options)
    return _attribute(_MATCHALL_CLASSID, struct.pack("=I", classid)) + _attribute(_MATCHALL_ACT, _attribute(1, action))


def _rate(rate_bps: int, overhead_bytes: int) -> bytes:
    """tc_ratespec. The size of its table's cells is ignored, but must not be 0."""
    bytes_a_second = max(1, round(rate_bps / 8))
    return struct.pack("=BBHhHI", 3, _ETHERNET, overhead_bytes, 0, 0, min(bytes_a_second, 2**32 - 1))


def _large_rate(kind: int, rate_bps: int) -> bytes:
    """A rate that does not fit into 32 bits of bytes per second."""
    bytes_a_second = round(rate_bps / 8)
    return _attribute(kind, struct.pack("=Q", bytes_a_second)) if bytes_a_second >= 2**32 else b""


def discipline(transmitter: Transmitter, overhead_bytes: int = 0) -> tuple[str, bytes]:
    """Kind and options of a transmitter's queue, the child of a token bucket with the same overhead."""
    queue = transmitter.discipline
    told = "tail_drop" if queue is None else {queue.kind: vars(queue.value)}
    return _core.queue_options(json.dumps(told), transmitter.queue_packets, transmitter.queue_bytes, overhead_bytes)


def any_dualpi2() -> bytes:
    """DualPI2 with the kernel's defaults; it does not accept empty options."""
    return _attribute(_DUALPI2_LIMIT, struct.pack("=I", 1000))


def prio(bands: int) -> bytes:
    """``bands`` classes (2 to 16); what no filter takes goes to the first."""
    return struct.pack("=i16B", bands, *bytes(16))


def by_destination(mac: str, classid: int) -> bytes:
    """A flower filter: frames to ``mac`` go to the class."""
    address = bytes.fromhex(mac.replace(":", ""))
    return (
        _attribute(_FLOWER_CLASSID, struct.pack("=I", classid))
        + _attribute(_FLOWER_ETH_DST, address)
        + _attribute(_FLOWER_ETH_DST_MASK, b"\xff" * 6)
    )


def _chance(ppb: int) -> int:
    return min(_CERTAIN, (ppb * (_CERTAIN + 1) + PPB // 2) // PPB)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
