"""Which congestion control sent this? A ranked answer with calibrated probabilities, or why there is none."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from sawtooth.capture.identify.features import features
from sawtooth.capture.identify.forest import Forest
from sawtooth.capture.identify.trace import Floats, Segments, TooLittle, Trace, trace
from sawtooth.capture.judgement import Judgement

FORMAT = 1
SHORTEST_S = 10.0
MISSING = -1000.0
"""Stands for a number that the trace does not show."""
SAME = {"dctcp": "reno", "lp": "reno"}
"""Learned as one: without ECN the kernel's DCTCP is its Reno (``dctcp_init``), and TCP-LP, where it sees no other flow,
nearly so: learned by itself it was taken for Reno more than three times as often as for itself."""
SIZES = ("small", "middling", "large")
_UP_TO = (15, 40)
"""Segments, of small and middling windows at their largest. BIC, Illinois and Scalable are Reno in growth up to 14, 14
and 100, BIC and Illinois in back-off too, and HighSpeed is Reno up to 38 (``tcp_bic.c``, ``tcp_illinois.c``,
``tcp_scalable.c``, ``tcp_highspeed.c``)."""
_LIMITED_SHARE = 0.5
"""Of the data: sent so often into a full receive window, or after all had been acknowledged, it shows no window."""


@dataclass(frozen=True)
class Identification:
    """``ranked``: groups of congestion controls that cannot be told apart on such a path, with their probabilities,
    the likeliest first; ``names``: each by itself. ``unknown``: why there is no answer; None where there is one.
    """

    ranked: tuple[tuple[tuple[str, ...], float], ...]
    names: tuple[tuple[str, float], ...]
    unknown: str | None = None
    path: str = ""
    """The class of path, which decides the groups."""

    @property
    def best(self) -> tuple[str, ...] | None:
        """The likeliest group; None for "unknown"."""
        return None if self.unknown is not None else self.ranked[0][0]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        ranked = [{"controls": list(group), "probability": probability} for group, probability in self.ranked]
        return {"unknown": self.unknown, "ranked": ranked, "names": dict(self.names), "path": self.path}

    def text(self) -> str:
        """One line a group, down to 1%."""
        lines = [
            f"{probability:4.0%}  {' or '.join(group)}" for group, probability in self.ranked if probability >= 0.01
        ]
        if self.unknown is None:
            return "\n".join(["congestion control:", *lines])
        guess = ["if it must be:", *lines] if lines else []
        return "\n".join([f"congestion control: unknown, {self.unknown}", *guess])


@dataclass(frozen=True)
class Classifier:
    """``groups``: by class of path, the groups that are not told apart there; ``limits``: what training has seen."""

    classes: tuple[str, ...]
    features: tuple[str, ...]
    forest: Forest
    temperature: float
    groups: dict[str, tuple[tuple[str, ...], ...]]
    limits: Floats
    strange: float
    doubt: float

    @classmethod
    def read(cls, kept: dict[str, Any]) -> Classifier:
        """What ``tools/train_identify.py train`` wrote. Raises ValueError for another format."""
        if kept.get("format") != FORMAT:
            raise ValueError(f"format {kept.get('format')} of the classifier, not {FORMAT}")
        return cls(
            classes=tuple(kept["classes"]),
            features=tuple(kept["features"]),
            forest=Forest.read(kept["trees"], kept["base"]),
            temperature=kept["temperature"],
            groups={name: tuple(tuple(group) for group in groups) for name, groups in kept["groups"].items()},
            limits=np.array(kept["limits"], dtype=float),
            strange=kept["strange"],
            doubt=kept["doubt"],
        )

    def identify(self, segments: Segments, judged: Judgement | None = None) -> Identification:
        """Of one connection's segments. Where a reader has judged what limits them, that is what counts."""
        try:
            seen = trace(segments)
            found = features(seen)
        except TooLittle as error:
            return Identification((), (), str(error))
        values = vector(found)
        probabilities = calibrated(self.forest.logits(values), self.temperature)
        names = sorted(zip(self.classes, probabilities.tolist(), strict=True), key=lambda one: -one[1])
        by_name = dict(names)
        path = path_class(found)
        groups = self.groups[path]
        ranked = sorted(
            ((group, sum(by_name.get(name, 0.0) for name in group)) for group in groups), key=lambda one: -one[1]
        )
        unknown = (
            too_little(seen) or (limited(seen) if judged is None else judged.hides_window()) or self._strange(values)
        )
        if unknown is None and ranked[0][1] < self.doubt:
            unknown = f"no group reaches {self.doubt:.0%}"
        return Identification(tuple(ranked), tuple(names), unknown, path)

    def _strange(self, values: Floats) -> str | None:
        shown = values != MISSING
        outside = (values < self.limits[0]) | (values > self.limits[1])
        share = float(outside[shown].mean())
        return f"it is like nothing in training: {share:.0%} of its features are" if share > self.strange else None


def vector(found: dict[str, float]) -> Floats:
    values = np.array(list(found.values()), dtype=float)
    return np.asarray(np.nan_to_num(values, nan=MISSING, posinf=1e6, neginf=-1e6))


def calibrated(logits: Floats, temperature: float) -> Floats:
    """Probabilities: those of the logits divided by the temperature."""
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def path_class(found: dict[str, float]) -> str:
    """What decides which controls can be told apart: how many back-offs are seen, and how large the window is."""
    backoffs = float(np.expm1(found["epochs"]))
    seen = "no" if backoffs < 0.5 else "few" if backoffs < 4.5 else "many"
    size = SIZES[int(np.searchsorted(np.log(_UP_TO), found["flight_0.95"]))]
    return f"{seen} back-offs, {size} windows"


def too_little(seen: Trace) -> str | None:
    """Why a trace shows no congestion window, whatever limits the transfer; None where it may."""
    if seen.duration_s < SHORTEST_S:
        return f"{seen.duration_s:.1f} s are too short: it takes {SHORTEST_S:g} s of a bulk transfer"
    if seen.hidden:
        return "a capture nearer the receiver shows the sender's window by timestamps only, and it has none"
    return None


def limited(seen: Trace) -> str | None:
    """What else than the congestion window limits a transfer that no reader has judged, as that of a CSV; or None."""
    if np.isfinite(seen.window) and (seen.flight * seen.mss > 0.9 * seen.window).mean() > _LIMITED_SHARE:
        return "the receive window is the limit, not the congestion window"
    if seen.idle_s > 0.2 * seen.duration_s:
        return "the sender was idle, waiting for its application"
    return None


@functools.cache
def shipped() -> Classifier:
    """That of this version."""
    return Classifier.read(json.loads((files("sawtooth") / "data" / "identify.json").read_text(encoding="utf-8")))


def identify(segments: Segments, judged: Judgement | None = None) -> Identification:
    """By the shipped classifier."""
    return shipped().identify(segments, judged)
