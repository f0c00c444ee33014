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
from sawtooth.capture.identify.replay_fit import ReplayFit, replay_fits
from sawtooth.capture.identify.trace import Floats, Segments, TooLittle, Trace, trace
from sawtooth.capture.summary import Judgement

FORMAT = 2
SHORTEST_S = 10.0
MISSING = -1000.0
"""Stands for a feature that the trace does not show."""
SAME = {"dctcp": "reno", "lp": "reno"}
"""Learned as one class. Without ECN the kernel's DCTCP is its Reno (``dctcp_init``). TCP-LP is nearly Reno if it sees
no other flow: as a separate class it was taken for Reno more than three times as often as for itself."""
SIZES = ("small", "middling", "large")
_UP_TO = (15, 40)
"""Largest windows in segments, of the classes small and medium. BIC, Illinois and Scalable grow like Reno up to 14, 14
and 100 segments, BIC and Illinois also back off like it, and HighSpeed is Reno up to 38 (``tcp_bic.c``,
``tcp_illinois.c``, ``tcp_scalable.c``, ``tcp_highspeed.c``).
"""
ENOUGH = 5
"""Back-offs: with fewer, the growth between them is not seen often enough."""
LONGER = "a transfer that is 30 s longer"
_LIMITED_SHARE = 0.5
"""Share of the data that was sent into a full receive window or after everything was acknowledged; beyond it the data
shows no congestion window."""


@dataclass(frozen=True)
class Identification:
    """``ranked``: first the group of controls that the trace may be from, the smallest that reaches the classifier's
    ``level``, then each other control, with probabilities. ``names``: the probability of each control. ``unknown``: why
    there is no answer, else None. ``helps``: what would improve the answer; None if nothing is known to.
    """

    ranked: tuple[tuple[tuple[str, ...], float], ...]
    names: tuple[tuple[str, float], ...]
    unknown: str | None = None
    path: str = ""
    """The class of path: the number of back-offs and the size of the windows."""
    helps: str | None = None
    replayed: tuple[ReplayFit, ...] = ()
    """For each control of the core, likeliest first: how likely the sent data is under it, given the same
    acknowledgements."""

    @property
    def best(self) -> tuple[str, ...] | None:
        """The group; None for "unknown"."""
        return None if self.unknown is not None else self.ranked[0][0]

    @property
    def none(self) -> str | None:
        """Why the sent data fits none of the replayed controls; None if one fits or none was replayed."""
        if not self.replayed or any(one.fits for one in self.replayed):
            return None
        likeliest = self.replayed[0]
        return (
            f"each explains what was sent worse than 95% of the transfers that it did send; closest is "
            f"{likeliest.control}, with windows off by {_off(likeliest.off)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        ranked = [{"controls": list(group), "probability": probability} for group, probability in self.ranked]
        names = dict(self.names)
        values = {"unknown": self.unknown, "helps": self.helps, "ranked": ranked, "names": names, "path": self.path}
        by_replay = {one.control: one.to_dict() for one in self.replayed}
        return values | {"replayed": by_replay, "none_of_replayed": self.none}

    def text(self) -> str:
        """The group, each of its controls, and what would help; for "unknown" the reason and the likeliest."""
        alone = [f"{share:4.0%}  {_either(like(name))}" for name, share in self.names if share >= 0.01]
        help_line = [] if self.helps is None else [f"what would help: {self.helps}"]
        if self.unknown is not None:
            guess = ["best guess:", *alone[:5]] if alone else []
            return "\n".join([f"congestion control: unknown: {self.unknown}", *help_line, *guess])
        group, share = self.ranked[0]
        lines = [f"congestion control: {_either(group)}, {_percent(share)}"]
        return "\n".join([*lines, *([] if len(_distinct(group)) == 1 else help_line), *alone, *self._replay_lines()])

    def _replay_lines(self) -> list[str]:
        lines = [
            f"  {one.control:5} {'fits    ' if one.fits else 'does not'}  log-likelihood {one.log_likelihood:5.2f} per "
            f"round trip, windows off by {_off(one.off)}"
            for one in self.replayed
        ]
        none = [] if self.none is None else [f"  none of them fits: {self.none}"]
        return ["controls replayed on the ACKs and losses that the sender saw:", *lines, *none] if lines else []


def like(name: str) -> tuple[str, ...]:
    """The control with those that are learned as one class with it."""
    return tuple(sorted([name, *(other for other, same in SAME.items() if same == name)]))


def _distinct(group: tuple[str, ...]) -> set[str]:
    return {SAME.get(name, name) for name in group}


def _either(group: tuple[str, ...]) -> str:
    return " or ".join(group)


def _percent(share: float) -> str:
    return "over 99%" if share > 0.99 else f"{share:.0%}"


def _off(share: float) -> str:
    return f"{share:.0%}" if share < 1 else f"a factor of {1 + share:.1f}"


@dataclass(frozen=True)
class Classifier:
    """A group reaches ``level`` with at most ``widest`` controls. ``limits``: the ranges seen in training, of which at
    most the share ``strange`` may be exceeded."""

    classes: tuple[str, ...]
    features: tuple[str, ...]
    forest: Forest
    temperature: float
    level: float
    widest: int
    limits: Floats
    strange: float

    @classmethod
    def read(cls, kept: dict[str, Any]) -> Classifier:
        """Reads what ``experiments/train_identify.py train`` wrote. Raises ValueError for another format."""
        if kept.get("format") != FORMAT:
            raise ValueError(f"format {kept.get('format')} of the classifier, not {FORMAT}")
        return cls(
            classes=tuple(kept["classes"]),
            features=tuple(kept["features"]),
            forest=Forest.read(kept["trees"], kept["base"]),
            temperature=kept["temperature"],
            level=kept["level"],
            widest=kept["widest"],
            limits=np.array(kept["limits"], dtype=float),
            strange=kept["strange"],
        )

    def identify(self, segments: Segments, judged: Judgement | None = None) -> Identification:
        """Identifies one connection from its segments. If ``judged`` says what limits it, that decides."""
        try:
            seen = trace(segments)
            found = features(seen)
        except TooLittle as error:
            return Identification((), (), str(error), helps=LONGER)
        values = vector(found)
        probabilities = calibrated(self.forest.logits(values), self.temperature)
        names = sorted(zip(self.classes, probabilities.tolist(), strict=True), key=lambda one: -one[1])
        shares = np.cumsum([share for _, share in names])
        few = min(int(np.searchsorted(shares, self.level)) + 1, len(names))
        group = tuple(sorted(name for one, _ in names[:few] for name in like(one)))
        ranked = ((group, float(shares[few - 1])), *((like(name), share) for name, share in names[few:]))
        unknown = (
            too_little(seen) or (limited(seen) if judged is None else judged.hides_window()) or self._strange(values)
        )
        # If the window is not the limit, a longer trace would not help.
        helps = would_help(seen, found) if unknown is None else LONGER if seen.duration_s < SHORTEST_S else None
        if unknown is None and few > self.widest:
            unknown = f"more than {self.widest} controls explain what the capture shows"
        return Identification(ranked, tuple(names), unknown, path_class(found), helps, replay_fits(seen))

    def _strange(self, values: Floats) -> str | None:
        shown = values != MISSING
        outside = (values < self.limits[0]) | (values > self.limits[1])
        share = float(outside[shown].mean())
        return (
            f"it is unlike the training data: {share:.0%} of its features are outside its range"
            if share > self.strange
            else None
        )


def vector(found: dict[str, float]) -> Floats:
    values = np.array(list(found.values()), dtype=float)
    return np.asarray(np.nan_to_num(values, nan=MISSING, posinf=1e6, neginf=-1e6))


def calibrated(logits: Floats, temperature: float) -> Floats:
    """Probabilities: those of the logits divided by the temperature."""
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def path_class(found: dict[str, float]) -> str:
    """What decides which controls can be distinguished: the number of back-offs and the size of the window."""
    backoffs = float(np.expm1(found["epochs"]))
    seen = "no" if backoffs < 0.5 else "few" if backoffs < 4.5 else "many"
    size = SIZES[int(np.searchsorted(np.log(_UP_TO), found["flight_0.95"]))]
    return f"{seen} back-offs, {size} windows"


def would_help(seen: Trace, found: dict[str, float]) -> str | None:
    """What would show more of the congestion control; None if there are enough back-offs with large enough windows."""
    helps = []
    backoffs = float(np.expm1(found["epochs"]))
    if backoffs < ENOUGH:
        each_s = seen.duration_s / max(backoffs, 1.0)
        more_s = 30 * int(np.ceil(min(each_s * (ENOUGH - backoffs), 300.0) / 30))
        helps.append(f"a transfer that is {more_s} s longer, to see {ENOUGH} losses")
    if found["flight_0.95"] < np.log(_UP_TO[0]):
        helps.append(
            f"a path or queue that holds more than {_UP_TO[0]} segments, because below that many controls "
            "behave like Reno"
        )
    return "; ".join(helps) or None


def too_little(seen: Trace) -> str | None:
    """Why a trace shows no congestion window, whatever limits the transfer; None if it may."""
    if seen.duration_s < SHORTEST_S:
        return f"{seen.duration_s:.1f} s is too short: identification needs {SHORTEST_S:g} s of a bulk transfer"
    if seen.hidden:
        return "away from the sender, a capture shows the window only with TCP timestamps, and this connection has none"
    return None


def limited(seen: Trace) -> str | None:
    """What other than the congestion window limits a transfer without a judgement, such as one from a CSV; None if
    nothing."""
    if np.isfinite(seen.window) and (seen.flight * seen.mss > 0.9 * seen.window).mean() > _LIMITED_SHARE:
        return "the receive window is the limit, not the congestion window"
    if seen.idle_s > 0.2 * seen.duration_s:
        return "the sender was idle, waiting for its application"
    return None


@functools.cache
def shipped() -> Classifier:
    """The classifier that comes with this version."""
    return Classifier.read(json.loads((files("sawtooth") / "data" / "identify.json").read_text(encoding="utf-8")))


def identify(segments: Segments, judged: Judgement | None = None) -> Identification:
    """Identifies with the bundled classifier."""
    return shipped().identify(segments, judged)
