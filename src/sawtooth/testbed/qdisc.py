"""Options of queueing disciplines and filters, in rtnetlink's binary form (linux/pkt_sched.h, pkt_cls.h).

They are packed here because pyroute2 supports neither netem's seed nor its 64-bit attributes, and rounds delays to 64
ns.
"""

from __future__ import annotations

import struct
from dataclasses import astuple

from sawtooth.scenario.compiled import (
    Cake,
    Codel,
    DualPi2,
    Fifo,
    Fq,
    FqCodel,
    FqPie,
    GilbertElliott,
    Jitter,
    Pie,
    Policer,
    Red,
    Reorder,
    Sfq,
    Tbf,
    Transmitter,
)
from sawtooth.scenario.header_sizes import ETHERNET

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
_TBF_PARMS, _TBF_RATE64, _TBF_PRATE64, _TBF_BURST, _TBF_PBURST = 1, 4, 5, 6, 7
_HTB_PARMS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_CODEL_TARGET, _CODEL_LIMIT, _CODEL_INTERVAL, _CODEL_ECN, _CODEL_CE_THRESHOLD = range(1, 6)
_FQ_CODEL_TARGET, _FQ_CODEL_LIMIT, _FQ_CODEL_INTERVAL, _FQ_CODEL_ECN, _FQ_CODEL_FLOWS, _FQ_CODEL_QUANTUM = range(1, 7)
_FQ_CODEL_CE_THRESHOLD, _FQ_CODEL_MEMORY = 7, 9
_RED_PARMS, _RED_STAB, _RED_MAX_P = 1, 2, 3
_RED_ECN, _RED_HARDDROP, _RED_ADAPTIVE = 1, 2, 4
_PIE_TARGET, _PIE_LIMIT, _PIE_TUPDATE, _PIE_ALPHA, _PIE_BETA, _PIE_ECN, _PIE_BYTEMODE = range(1, 8)
_FQ_PIE_LIMIT, _FQ_PIE_FLOWS, _FQ_PIE_TARGET, _FQ_PIE_TUPDATE, _FQ_PIE_ALPHA, _FQ_PIE_BETA = range(1, 7)
_FQ_PIE_QUANTUM, _FQ_PIE_MEMORY, _FQ_PIE_ECN, _FQ_PIE_BYTEMODE = 7, 8, 10, 11
_CAKE_RATE, _CAKE_FLOWS, _CAKE_OVERHEAD, _CAKE_RTT, _CAKE_TARGET, _CAKE_MEMORY = 2, 5, 6, 7, 8, 10
_CAKE_ISOLATION = {
    "flowblind": 0,
    "srchost": 1,
    "dsthost": 2,
    "hosts": 3,
    "flows": 4,
    "dual-srchost": 5,
    "dual-dsthost": 6,
    "triple-isolate": 7,
}
_DUALPI2_LIMIT, _DUALPI2_MEMORY, _DUALPI2_TARGET, _DUALPI2_TUPDATE, _DUALPI2_ALPHA, _DUALPI2_BETA = range(1, 7)
_DUALPI2_STEP_PACKETS, _DUALPI2_STEP_US, _DUALPI2_MIN_QLEN_STEP, _DUALPI2_COUPLING = range(7, 11)
_DUALPI2_DROP_OVERLOAD, _DUALPI2_DROP_EARLY, _DUALPI2_PROTECTION, _DUALPI2_ECN_MASK, _DUALPI2_SPLIT_GSO = range(11, 16)
_STAB_BASE = 1
_FLOWER_CLASSID, _FLOWER_ETH_DST, _FLOWER_ETH_DST_MASK = 1, 4, 5
_ETHERNET = 1
_FQ_LIMIT, _FQ_FLOW_LIMIT, _FQ_QUANTUM, _FQ_INITIAL_QUANTUM, _FQ_REFILL_DELAY, _FQ_ORPHAN_MASK = 1, 2, 3, 4, 9, 10
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
        p, r, bad, good = map(_chance, astuple(gilbert_elliott))
        # The third is the probability that a packet survives the bad state.
        model = struct.pack("=4I", p, r, _CERTAIN - bad, good)
        options += _attribute(_NETEM_LOSS, _attribute(_NETEM_LOSS_GE, model))
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


def shaper(limit_bytes: int, tbf: Tbf, overhead_bytes: int = 0) -> bytes:
    """A token bucket with its own fifo."""
    peak = bytes(12) if tbf.peakrate_bps is None else _rate(tbf.peakrate_bps, overhead_bytes)
    parameters = _rate(tbf.rate_bps, overhead_bytes) + peak + struct.pack("=III", limit_bytes, 0, 0)
    options = _attribute(_TBF_PARMS, parameters) + _large_rate(_TBF_RATE64, tbf.rate_bps)
    options += _attribute(_TBF_BURST, struct.pack("=I", tbf.burst_bytes))
    if tbf.peakrate_bps is not None:
        options += _large_rate(_TBF_PRATE64, tbf.peakrate_bps)
        options += _attribute(_TBF_PBURST, struct.pack("=I", tbf.minburst_bytes))
    return options


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


def fifo(limit: int) -> bytes:
    """pfifo or bfifo with a limit in packets or bytes."""
    return struct.pack("=I", limit)


def discipline(transmitter: Transmitter, overhead_bytes: int = 0) -> tuple[str, bytes]:
    """Kind and options of a transmitter's queue, the child of a token bucket with the same overhead."""
    packets = min(transmitter.queue_packets or UNLIMITED, 2**32 - 1)
    match transmitter.discipline:
        case None | Fifo():
            if transmitter.queue_bytes is not None:
                return "bfifo", fifo(min(transmitter.queue_bytes, 2**32 - 1))
            return "pfifo", fifo(packets)
        case Codel(target_ns, interval_ns, ecn, ce_threshold_ns):
            about = {
                _CODEL_TARGET: _us(target_ns),
                _CODEL_LIMIT: packets,
                _CODEL_INTERVAL: _us(interval_ns),
                _CODEL_ECN: int(ecn),
            }
            return "codel", _numbers(about | _threshold(_CODEL_CE_THRESHOLD, ce_threshold_ns))
        case FqCodel(target_ns, interval_ns, flows, quantum, ecn, ce_threshold_ns):
            # The simulator counts packets, not kernel memory.
            about = {
                _FQ_CODEL_TARGET: _us(target_ns),
                _FQ_CODEL_LIMIT: packets,
                _FQ_CODEL_INTERVAL: _us(interval_ns),
                _FQ_CODEL_ECN: int(ecn),
                _FQ_CODEL_FLOWS: flows,
                _FQ_CODEL_MEMORY: UNLIMITED,
            }
            about |= _threshold(_FQ_CODEL_CE_THRESHOLD, ce_threshold_ns)
            return "fq_codel", _numbers(about | ({_FQ_CODEL_QUANTUM: quantum} if quantum else {}))
        case Fq(flow_limit, quantum, initial, mask, refill_delay_ns):
            about = {
                _FQ_LIMIT: packets,
                _FQ_FLOW_LIMIT: flow_limit,
                _FQ_REFILL_DELAY: _us(refill_delay_ns),
                _FQ_ORPHAN_MASK: mask,
            }
            about |= {_FQ_QUANTUM: quantum} if quantum else {}
            return "fq", _numbers(about | ({_FQ_INITIAL_QUANTUM: initial} if initial else {}))
        case Sfq(quantum, perturb_ns, flows, divisor, depth, headdrop):
            # struct tc_sfq_qopt_v1: without RED, to which the rest would apply.
            own = struct.pack("=IiIII", quantum or 0, perturb_ns // 10**9, packets, divisor, flows)
            return "sfq", own + struct.pack("=II", depth, int(headdrop)) + bytes(44)
        case Tbf() as tbf:
            return "tbf", shaper(min(transmitter.queue_bytes or UNLIMITED, UNLIMITED), tbf, overhead_bytes)
        case Red() as red:
            return "red", _red(min(transmitter.queue_bytes or UNLIMITED, UNLIMITED), red)
        case Pie(target_ns, tupdate_ns, alpha, beta, bytemode, ecn):
            about = {
                _PIE_TARGET: _us(target_ns),
                _PIE_LIMIT: packets,
                _PIE_TUPDATE: _us(tupdate_ns),
                _PIE_ALPHA: alpha,
                _PIE_BETA: beta,
                _PIE_ECN: int(ecn),
                _PIE_BYTEMODE: int(bytemode),
            }
            return "pie", _numbers(about)
        case FqPie(target_ns, tupdate_ns, alpha, beta, bytemode, flows, quantum, ecn):
            about = {
                _FQ_PIE_LIMIT: packets,
                _FQ_PIE_FLOWS: flows,
                _FQ_PIE_TARGET: _us(target_ns),
                _FQ_PIE_TUPDATE: _us(tupdate_ns),
                _FQ_PIE_ALPHA: alpha,
                _FQ_PIE_BETA: beta,
                _FQ_PIE_MEMORY: UNLIMITED,
                _FQ_PIE_ECN: int(ecn),
                _FQ_PIE_BYTEMODE: int(bytemode),
            }
            return "fq_pie", _numbers(about | ({_FQ_PIE_QUANTUM: quantum} if quantum else {}))
        case Cake(bandwidth_bps, interval_ns, target_ns, isolation, memory_bytes):
            about = {
                _CAKE_FLOWS: _CAKE_ISOLATION[isolation],
                # Beyond the IP packet.
                _CAKE_OVERHEAD: ETHERNET + overhead_bytes,
                _CAKE_RTT: _us(interval_ns),
                _CAKE_TARGET: _us(target_ns),
                _CAKE_MEMORY: min(memory_bytes, 2**32 - 1),
            }
            rate = _attribute(_CAKE_RATE, struct.pack("=Q", (bandwidth_bps or 0) // 8))
            return "cake", rate + _numbers(about)
        case DualPi2() as given:
            return "dualpi2", _dualpi2(packets, given)


def any_dualpi2() -> bytes:
    """DualPI2 with the kernel's defaults; it does not accept empty options."""
    return _numbers({_DUALPI2_LIMIT: 1000})


def _dualpi2(limit: int, given: DualPi2) -> bytes:
    about = {
        _DUALPI2_LIMIT: limit,
        _DUALPI2_MEMORY: UNLIMITED,
        _DUALPI2_TARGET: _us(given.target_ns),
        _DUALPI2_TUPDATE: _us(given.tupdate_ns),
        _DUALPI2_ALPHA: given.alpha_256,
        _DUALPI2_BETA: given.beta_256,
        _DUALPI2_MIN_QLEN_STEP: given.min_qlen_step,
    }
    if given.step_thresh_packets is not None:
        about[_DUALPI2_STEP_PACKETS] = min(given.step_thresh_packets, _CERTAIN)
    about |= _threshold(_DUALPI2_STEP_US, given.step_thresh_ns)
    small = {
        _DUALPI2_COUPLING: given.coupling_factor,
        _DUALPI2_DROP_OVERLOAD: int(given.drop_on_overload),
        _DUALPI2_DROP_EARLY: int(given.drop_enqueue),
        _DUALPI2_PROTECTION: given.classic_protection,
        # The bits of the ECN field of which one suffices: 01, and 11 for any.
        _DUALPI2_ECN_MASK: 3 if given.any_ect else 1,
        _DUALPI2_SPLIT_GSO: 1,
    }
    return _numbers(about) + b"".join(_attribute(kind, struct.pack("=B", value)) for kind, value in small.items())


def _red(limit: int, red: Red) -> bytes:
    """Without the decay of the average while idle: below a token bucket no queue is known to be idle."""
    flags = _RED_ECN if red.ecn else 0
    flags |= _RED_HARDDROP if red.harddrop or not red.ecn else 0
    flags |= _RED_ADAPTIVE if red.adaptive else 0
    # This is the exact one of two ways to give the probability; Plog, the other, is then unused.
    parameters = struct.pack("=IIIBBBB", limit, red.min_bytes, red.max_bytes, red.weight_log, 1, 1, flags)
    chance = struct.pack("=I", min(_CERTAIN, red.probability_ppb * 2**32 // PPB))
    table = _attribute(_RED_STAB, bytes(256))
    return _attribute(_RED_PARMS, parameters) + table + _attribute(_RED_MAX_P, chance)


def _threshold(kind: int, threshold_ns: int | None) -> dict[int, int]:
    return {} if threshold_ns is None else {kind: _us(threshold_ns)}


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


def _us(ns: int) -> int:
    return max(1, round(ns / 1000))


def _numbers(values: dict[int, int]) -> bytes:
    """Attributes of 32 bits each."""
    return b"".join(_attribute(kind, struct.pack("=I", value)) for kind, value in values.items())


def _chance(ppb: int) -> int:
    return min(_CERTAIN, (ppb * (_CERTAIN + 1) + PPB // 2) // PPB)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
