"""The kind of queue, the loss process, and whether others use the bottleneck: each with probabilities, from a capture.

Boosted trees were trained on paths drawn at random and simulated (experiments/train_explain.py): simulation-based
inference, amortised, so that an answer takes milliseconds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.capture.identify.classifier import MISSING, calibrated
from sawtooth.capture.identify.classifier import vector as as_vector
from sawtooth.capture.identify.forest import Forest
from sawtooth.capture.identify.trace import Floats
from sawtooth.whatif.estimate import TAIL_DROP, Estimate
from sawtooth.whatif.quantity import Choice

if TYPE_CHECKING:
    from sawtooth.whatif.observation import Observed

FORMAT = 1
UNSEEN = ((TAIL_DROP, 0.7), ("codel", 0.18), ("pie", 0.12))
"""How often each was among the paths that the classifiers were trained on (experiments/explain_corpus.py); RED and
policers count as tail drop."""
PARTS = {"queue_kind": "the kind of queue", "loss_process": "the loss process", "cross_traffic": "other traffic"}
"""The kinds that are found, and their titles."""
NOT_SEEN = "none seen"
MANAGED = {"CoDel or fq_codel": "codel", "PIE": "pie", "RED": None}
"""Kinds of queue that drop before they are full, and which of the scenario's can be simulated without knowing more."""
TRAINED = {"rate": (1.5e6, 200e6), "rtt": (0.004, 0.25)}
"""Rates in bit/s and base round trips in s of the simulated paths, with some room."""
STEADY = 1.1
"""A rate whose 90% interval spans more than this factor is not steady: others may leave it."""
TOO_FEW = "the capture shows fewer than 100 round trips"


def vector(signs: Mapping[str, float], path: Mapping[str, Mapping[str, Any]], cc: str | None, bps: float) -> Floats:
    """The signs of a capture, and what ``whatif`` estimates from it: quantities with ``value``, ``low``, ``high`` and
    ``bound``; the control, and the goodput."""
    rate, queue = path["rate"], path["queue"]
    more = {
        "rate_width": float(np.log(rate["high"] / rate["low"])),
        "rate_bound": float(rate["bound"] != ""),
        "queue_bound": float(queue["bound"] != ""),
        "random_loss": float(np.log10(path["loss"]["value"] + 1e-6)),
        "burst": path["burst"]["value"],
        "use": bps / rate["value"],
        "by_bbr": float(cc in ("bbr", "bbr3")),
        "by_unknown": float(cc is None),
    }
    return as_vector({**signs, **more})


def unlike(path: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Why a path is unlike the simulated ones; None if its rate and round trip are in their range. A rate that is not
    steady, or only a lower bound, may be what others leave of one in the range: it is never too low."""
    for name, called, any_low in (("rate", "rate", not steady(path["rate"])), ("rtt", "base RTT", False)):
        low, high = TRAINED[name]
        if path[name]["value"] > high or (path[name]["value"] < low and not any_low):
            return f"no simulated path has such a {called}"
    return None


def steady(rate: Mapping[str, Any]) -> bool:
    """Whether trains of packets agree on the rate."""
    return not rate["bound"] and bool(rate["high"] <= rate["low"] * STEADY)


@dataclass(frozen=True)
class Part:
    """One classifier. It answers if a kind has at least the probability ``level``."""

    classes: tuple[str, ...]
    forest: Forest
    temperature: float
    level: float

    def judge(self, values: Floats, called: str, strange: float, allowed: float) -> Choice:
        shares = calibrated(self.forest.logits(values), self.temperature)
        named = sorted(zip(self.classes, shares.tolist(), strict=True), key=lambda one: -one[1])
        best, share = named[0]
        if strange > allowed:
            why = f"the capture is unlike the simulated ones: {strange:.0%} of its signs are outside their range"
            return Choice(None, why)
        if share < self.level:
            return Choice(
                None, f"{called} could be {best} ({share:.0%}) or {named[1][0]} ({named[1][1]:.0%})", tuple(named)
            )
        return Choice(best, "by delays, losses and rates over time, as on simulated paths of this kind", tuple(named))


@dataclass(frozen=True)
class Kinds:
    """The classifiers, and the range of each sign in training, of which at most the share ``strange`` may be
    exceeded."""

    parts: Mapping[str, Part]
    limits: Floats
    strange: float

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Kinds:
        """Reads what ``experiments/train_explain.py`` wrote. Raises ValueError for another format."""
        if kept.get("format") != FORMAT:
            raise ValueError(f"format {kept.get('format')} of the classifiers, not {FORMAT}")
        parts = {
            name: Part(
                tuple(part["classes"]), Forest.read(part["trees"], part["base"]), part["temperature"], part["level"]
            )
            for name, part in kept["parts"].items()
        }
        return cls(parts, np.array(kept["limits"], dtype=float), kept["strange"])

    def judge(self, values: Floats) -> dict[str, Choice]:
        """The choices, by the names of ``PARTS``."""
        shown = values != MISSING
        outside = (values < self.limits[0]) | (values > self.limits[1])
        strange = float(outside[shown].mean())
        return {name: part.judge(values, PARTS[name], strange, self.strange) for name, part in self.parts.items()}


@functools.cache
def shipped() -> Kinds:
    """The classifiers that come with this version."""
    return Kinds.read(json.loads((files("sawtooth") / "data" / "explain.json").read_text(encoding="utf-8")))


def kinds(observed: Observed) -> dict[str, Choice]:
    """The kinds of what a capture shows, by the names of ``PARTS``."""
    if observed.signs is None:
        return _unknown(TOO_FEW)
    assert observed.path is not None
    if (why := unlike(described(observed.path))) is not None:
        return _unknown(why)
    return shipped().judge(as_seen(observed))


def as_seen(observed: Observed) -> Floats:
    """The vector of a capture that shows signs, a path and a goodput."""
    assert observed.signs is not None
    assert observed.path is not None
    assert observed.goodput_bps is not None
    return vector(observed.signs, described(observed.path), observed.cc, observed.goodput_bps)


def described(path: Estimate) -> dict[str, dict[str, Any]]:
    """The quantities of a path, as ``vector`` and ``unlike`` take them."""
    return {name: value.describe() for name, value in path.quantities.items()}


def _unknown(why: str) -> dict[str, Choice]:
    return {name: Choice(None, why) for name in PARTS}


def simulated(queue: Choice) -> tuple[tuple[str, float], ...]:
    """The scenario's queues that may stand for a kind that is not known, with probabilities. What was not seen may be
    any, as often as among the paths of the training."""
    found: dict[str, float] = {}
    for name, share in queue.shares:
        of = UNSEEN if name == NOT_SEEN else ((MANAGED.get(name) or TAIL_DROP, 1.0),)
        for kind, part in of:
            found[kind] = found.get(kind, 0.0) + share * part
    return tuple(found.items())
