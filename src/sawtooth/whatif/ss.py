"""Reads what ``ss -tin`` prints about a socket (iproute2, ``misc/ss.c``: ``tcp_stats_print``); one sample or
several."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import takewhile
from statistics import median

from sawtooth.errors import InputError, suggestion
from sawtooth.io.untrusted import LONGEST_LINE, decimal
from sawtooth.sanitize import plain
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.standing_queue import SLACK, above, sure

FEWEST_STANDING, STANDING = 3, 0.5
"""Fewest samples with a queue that show whether others use the path, and the least certainty of the queue in each."""
ALL_WITHIN, HALF_WITHIN = 0.05, 0.002
"""How near the delivery rates are to the median where nobody else does, as logarithms: all of them, and half of
them. A constant rate of others leaves another constant rate, but not that exactly."""
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# A match begins at a word, and text in brackets is short, so a long line takes only linear time.
_WORD = re.compile(r"(?<![a-z_])([a-z_]+):([^\s(]+)(?:\(([^()\s]{0,40})\))?")
_RATE = re.compile(r"(delivery_rate|pacing_rate) ([0-9]+(?:\.[0-9]*)?)([KMGT]?)bps")
_ADDRESS = re.compile(r"\S+:[0-9a-z*-]+$")
_STATES = ("ESTAB", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "LAST-ACK", "CLOSING", "TIME-WAIT", "SYN-SENT")

_FLAGS = ("ts", "sack", "ecn", "ecnseen", "fastopen", "cookie")
_AFTER_NAME = ("wscale:", "rto:")
_NAME = re.compile(r"[a-z][a-z0-9_]*")

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_SHARE = re.compile(r"[0-9]+(?:\.[0-9]*)?%")


def _value(name: str, text: str) -> float:
    try:
        return decimal(text)
    except ValueError as error:
        fix = "give what ss -tin printed, as it was printed"
        raise InputError("not-a-measurement", f"{name}: {error}", fix=fix) from None


@dataclass(frozen=True)
class SocketSample:
    """One socket in one sample: the numbers after ``name:``, rates in bit/s, times in ms as ss prints them."""

    ends: str
    cc: str | None
    words: dict[str, str]
    limits: dict[str, float]
    rates_bps: dict[str, float]
    bbr_bps: float | None
    app_limited: bool

    def number(self, name: str, part: int = 0) -> float | None:
        """One number; ``rtt:1.4/0.2`` has two parts. None if it is missing or not a number.

        Raises SawtoothError ``not-a-measurement`` for an impossible number.
        """
        parts = self.words.get(name, "").split("/")
        found = _NUMBER.match(parts[part]) if part < len(parts) else None
        return _value(name, found[0]) if found else None


def parse_sockets(text: str) -> list[SocketSample]:
    """Every socket in the output, in order. A socket's details may be on its line (``-O``) or on the next."""
    samples: list[SocketSample] = []
    ends = ""
    for line in text.splitlines():
        if len(line) > LONGEST_LINE:
            continue
        words = line.split()
        addresses = [word for word in words if _ADDRESS.fullmatch(word) and not _WORD.fullmatch(word)]
        if words and (words[0] in _STATES or len(addresses) >= 2) and len(addresses) >= 2:
            ends = f"{plain(addresses[0], 80)} → {plain(addresses[1], 80)}"
        if re.search(r"\brtt:[0-9]", line) and re.search(r"\bcwnd:[0-9]", line):
            samples.append(
                _parse_socket(ends, line[line.find(addresses[1]) + len(addresses[1]) :] if addresses[1:] else line)
            )
    return samples


def _parse_socket(ends: str, line: str) -> SocketSample:
    words = {name: value for name, value, _ in _WORD.findall(line)}
    limits = {
        name: min(1.0, _value(name, inside[:-1]) / 100)
        for name, _, inside in _WORD.findall(line)
        if name.endswith("_limited") and _SHARE.fullmatch(inside)
    }
    rates = {name: _value(name, value) * _UNITS[unit] for name, value, unit in _RATE.findall(line)}
    flags = takewhile(lambda word: not word.startswith(_AFTER_NAME), line.split())
    filtered = re.search(r"bbr:\(bw:([0-9]+(?:\.[0-9]*)?)([KMGT]?)bps", line)
    return SocketSample(
        ends=ends,
        # "… skmem:(…) ts sack ecn … cubic wscale:…": the control is the last plain word.
        cc=next((word for word in reversed(list(flags)) if _NAME.fullmatch(word) and word not in _FLAGS), None),
        words=words,
        limits=limits,
        rates_bps=rates,
        bbr_bps=_value("bbr", filtered[1]) * _UNITS[filtered[2]] if filtered else None,
        app_limited=" app_limited" in line,
    )


def from_ss(text: str, *, connection: str | None = None) -> Observed:
    """The connection with the most acknowledged data, or the only one with ``connection`` in its addresses.

    Raises SawtoothError: ``not-a-measurement``, ``unknown-name``, ``application-limited``.
    """
    samples = parse_sockets(text)
    if not samples:
        message = "there is no TCP socket with its details in this text"
        raise InputError("not-a-measurement", message, fix="give what ss -tin printed while data was sent")
    names = list(dict.fromkeys(one.ends for one in samples))
    if connection is not None:
        names = [name for name in names if connection in name]
        if len(names) != 1:
            known = suggestion(connection, {one.ends for one in samples})
            message = f'"{plain(connection, 60)}" is in the addresses of {len(names)} connections'
            raise InputError("unknown-name", message, field="connection", fix=known)
    of = {name: [one for one in samples if one.ends == name] for name in names}
    return _observed(max(of.values(), key=lambda each: each[-1].number("bytes_acked") or 0.0))


def _observed(seen: list[SocketSample]) -> Observed:
    last = seen[-1]
    acked, busy = last.number("bytes_acked") or 0.0, last.number("busy")
    segments, rtt = last.number("data_segs_out") or last.number("segs_out"), last.number("rtt")
    if not acked or rtt is None:
        message = "this socket has sent no data: only the sending end's socket tells about the path"
        raise InputError("not-a-measurement", message, fix="run ss -tin on the host that sends, during the transfer")
    rtts = [value for one in seen if (value := one.number("rtt")) is not None]
    minima = [value for one in seen if (value := one.number("minrtt")) is not None]
    # An idle socket counts no busy time; without busy time the transfer's age is unknown. What is acknowledged was
    # delivered half a round trip ago.
    duration = max(busy - min(minima or rtts) / 2, busy / 2) / 1000 if busy else None
    standing_bps, standing = _standing(seen)
    delivery = [one.rates_bps["delivery_rate"] for one in seen if "delivery_rate" in one.rates_bps]
    names = {"rwnd_limited": "receive window", "sndbuf_limited": "send buffer"}
    limited = {names[name]: share for name, share in last.limits.items() if name in names}
    if all(one.app_limited for one in seen):
        # The kernel's flag for its last rate sample: if every sample has it, the sender waits for its application.
        limited["application"] = 1.0
    # Since the peer last sent data, or since the connection began, it has been open for at least this long.
    open_ms = last.number("lastrcv")
    if busy and open_ms and busy < open_ms:
        limited["application"] = max(limited.get("application", 0.0), 1 - busy / open_ms)
    window = last.number("snd_wnd")
    return Observed(
        source="ss",
        what=f"ss, {last.ends or 'one socket'}, {len(seen)} look{'s' if len(seen) > 1 else ''}",
        goodput_bps=acked * 8 / duration if duration else None,
        duration_s=duration,
        # The kernel is busy from the first data on.
        since_data=True,
        cc=last.cc,
        cc_how="ss says so" if last.cc else "",
        mss=min(65400, max(48, int(last.number("mss") or 1448))),
        segments=int(segments) if segments else None,
        retransmits=int(last.number("retrans", 1) or 0),
        rtt_min_s=min(minima or rtts) / 1000,
        rtt_mean_s=sum(rtts) / len(rtts) / 1000,
        rtt_max_s=max(rtts) / 1000,
        rtt_smoothed=not minima,
        rtt_samples=len(rtts),
        window_bytes=int(window) if window else None,
        limited=limited,
        delivery_bps=max(delivery, default=None),
        standing_bps=standing_bps,
        standing=standing,
        alone=_alone(seen),
        bottleneck_bps=last.bbr_bps,
    )


def _standing(seen: list[SocketSample]) -> tuple[float | None, float]:
    """The delivery rate while a queue stood at the bottleneck, and the certainty that it is the bottleneck's rate: that
    a queue stood, and that the samples with one agree."""
    weighted = [
        (one.rates_bps["delivery_rate"], _queue_certainty(one)) for one in seen if one.rates_bps.get("delivery_rate")
    ]
    weight = sum(certainty for _, certainty in weighted)
    if not weight:
        return None, 0.0
    middle = sum(math.log(rate) * certainty for rate, certainty in weighted) / weight
    apart = max(certainty * abs(math.log(rate) - middle) for rate, certainty in weighted)
    return math.exp(middle), max(certainty for _, certainty in weighted) * sure(-apart, -SLACK)


def _alone(seen: list[SocketSample]) -> bool:
    """Whether a queue stood in some samples, and the delivery rate was the same in all. Packets of others, or losses
    that leave the queue empty, would change it."""
    rates = [rate for one in seen if (rate := one.rates_bps.get("delivery_rate"))]
    if sum(_queue_certainty(one) >= STANDING for one in seen) < FEWEST_STANDING or len(rates) < FEWEST_STANDING:
        return False
    middle = median(rates)
    apart = [abs(math.log(rate / middle)) for rate in rates]
    return max(apart) <= ALL_WITHIN and median(apart) <= HALF_WITHIN


def _queue_certainty(sample: SocketSample) -> float:
    """The certainty that a queue stood at the bottleneck in this sample; the delivery rate is then the bottleneck's."""
    rtt, deviation, least = sample.number("rtt"), sample.number("rtt", 1) or 0.0, sample.number("minrtt")
    if rtt is None or not least:
        return 0.0
    full = float(above(least / 1000, sample.number("mss") or 0.0, sample.rates_bps.get("delivery_rate", 0.0)))
    return sure((rtt - 2 * deviation) / 1000 / full, 1 + SLACK)
