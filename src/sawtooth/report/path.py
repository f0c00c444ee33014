"""The path of a study in a few words: rate, RTT, queue, loss, flows. Varied values are given as a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sawtooth.figures.palette import shown
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.header_sizes import frame_bytes
from sawtooth.stats.path import slowest, trip_s
from sawtooth.study.result import StudyResult

_MOST = 200
"""Maximum number of points that are examined. If there are more, an evenly spaced sample with the first and last."""
_NAMED = 4
"""Maximum number of different values that are listed by name."""


@dataclass(frozen=True)
class Part:
    """A property of the path, its value in words, and whether it differs between points."""

    name: str
    text: str
    varies: bool


def parts(result: StudyResult) -> list[Part]:
    """The properties in the order in which data passes them. Missing ones are omitted."""
    seed = result.places[0].seed
    keys = [tuple(place.key.values()) for place in result.places if place.seed == seed]
    few = {keys[round((len(keys) - 1) * one / (_MOST - 1))] for one in range(_MOST)}
    points = result.study.each(seeds=[seed], overrides=result.overrides, only=few)
    each = [one for one in (scenario.compile() for _, scenario in points) if one.flows]
    if not each:
        return []
    found = [_words("flows", [_flows(one) for one in each])]
    kinds: list[tuple[str, Callable[[Compiled], float | str | None], Callable[[float], str]]] = [
        ("queue", _queue, _packets),
        ("rate", _rate, _bits),
        ("round trip", _round_trip, _seconds),
        ("loss", _loss, _percent),
    ]
    for name, of, said in kinds:
        values = [value for value in map(of, each) if value is not None]
        numbers = [value for value in values if not isinstance(value, str)]
        if len(numbers) < len(values):
            found.append(_words(name, [value if isinstance(value, str) else said(value) for value in values]))
        else:
            found += _numbers(name, numbers, said)
    return found


def _words(name: str, texts: Sequence[str]) -> Part:
    different = list(dict.fromkeys(texts))
    if len(different) > _NAMED:
        return Part(name, f"{different[0]} … {different[-1]}", True)
    return Part(name, " | ".join(different), len(different) > 1)


def _numbers(name: str, values: Sequence[float], said: Callable[[float], str]) -> list[Part]:
    if not values or (name == "loss" and not any(values)):
        return []
    low, high = said(min(values)), said(max(values))
    return [Part(name, low if low == high else f"{low} … {high}", low != high)]


def _flows(compiled: Compiled) -> str:
    counts: dict[str, int] = {}
    for flow in compiled.flows:
        counts[shown(flow.cc)] = counts.get(shown(flow.cc), 0) + flow.count
    return " + ".join(f"{count} × {name}" if count > 1 else name for name, count in counts.items())


def _rate(compiled: Compiled) -> float | None:
    found = slowest(compiled, compiled.flows[0].forward)
    return float(found.lasting_bps) if found is not None else None


def _queue(compiled: Compiled) -> float | str | None:
    """The queue's size: packets; bytes are converted to full frames; a queue of another kind by its name."""
    found = slowest(compiled, compiled.flows[0].forward)
    if found is None:
        return None
    if found.discipline is not None:
        return found.discipline.kind
    if found.queue_packets is not None:
        return float(found.queue_packets)
    host = compiled.hosts[compiled.source(compiled.flows[0])]
    return None if found.queue_bytes is None else found.queue_bytes / frame_bytes(host.mss, timestamps=host.timestamps)


def _round_trip(compiled: Compiled) -> float:
    """RTT of an empty frame on an idle path, in seconds."""
    flow = compiled.flows[0]
    return float(trip_s(compiled, flow.forward, 0) + trip_s(compiled, flow.backward, 0))


def _loss(compiled: Compiled) -> float:
    """Loss in the direction of data."""
    kept = 1.0
    for link in compiled.way(compiled.flows[0].forward):
        kept *= 1 - link.loss_ppb / 1e9
    return 1 - kept


def _bits(value: float) -> str:
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} bit/s"


def _packets(value: float) -> str:
    return f"{value:,.0f} packet{'s' if round(value) != 1 else ''}"


def _seconds(value: float) -> str:
    return f"{value * 1e3:.4g} ms" if value < 10 else f"{value:.4g} s"


def _percent(value: float) -> str:
    return f"{100 * value:.4g}%"
