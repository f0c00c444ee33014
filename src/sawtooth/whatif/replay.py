"""Replay: what each congestion control gets on the paths that an estimate leaves possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sawtooth.stats.interval import beyond, t_quantile
from sawtooth.whatif.estimate import Estimate
from sawtooth.whatif.fitting import AGAIN, RUNS, fit, posterior
from sawtooth.whatif.observation import BY_MODEL, CONTROLS, Observed
from sawtooth.whatif.quantity import Z90
from sawtooth.whatif.runs import DRAWS, Drawn, Replayed, Runs, affordable, draw
from sawtooth.whatif.shared import Given, learned, may_use

AGREES = 0.1
ROUGHLY = 0.3
WIDEST = 10.0
"""An interval that spans more than this factor contains everything, and is no test."""
PART = 0.05
"""Probability beyond either end of an interval."""
CHANGES_EXPLAINED = 4
"""Changes of the path that ``explain`` simulates. They count for how many paths are drawn whoever asks, so that all
commands draw the same paths."""
FEWEST_RANKED = round(1 / PART) - 1
"""Runs needed for an interval by rank; with fewer, its end is beyond all of them."""
APART = 0.006
"""Standard deviation of the logarithm of a kernel's goodput from the simulator's on the same path: half of BBR's
self-tests on unseen paths are within 0.4% (docs/validation.md, What if)."""

BY_TOTALS = {"the same": (0.008, 0.264), "another": (0.322, 0.264)}
"""By how much the ends of an interval are moved apart, as logarithms, where only totals are known, which do not show
others on the path: of the observed control on its path, and of another control or a changed path. Conformal prediction
from 113 answers about 41 paths of a kernel, of which others use 31 (experiments/explain_trial.py, margins). A path
counts up to six times, and changes of the path were not measured."""


@dataclass(frozen=True)
class Answer:
    """What one congestion control gets: the median over the draws, and a 90% interval for one transfer.

    Each draw is one run, so the interval covers the uncertainty of the path and the chance in one transfer. ``open``:
    the answer depends on the bottleneck's rate, of which only a lower bound is known; only ``low_bps`` is valid.
    ``unknown``: why nothing of it is; the path has what the simulated one lacks. An answer that was learned has no
    draws, and ``retransmitted`` is None.
    """

    cc: str
    median_bps: float
    low_bps: float
    high_bps: float
    retransmitted: float | None
    draws: tuple[float, ...]
    open: bool = False
    unknown: str = ""

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "cc": self.cc,
            "goodput_bps": None if self.open or self.unknown else self.median_bps,
            "low_bps": None if self.unknown else self.low_bps,
            "high_bps": None if self.open or self.unknown else self.high_bps,
            "retransmitted": self.retransmitted,
            "draws_bps": list(self.draws),
            "why": self.unknown or None,
        }


@dataclass(frozen=True)
class SelfTest:
    """The observed congestion control, replayed, compared with the observation.

    ``verdict``: "agrees" (within 10% or the interval), "roughly" (within 30%), "fails", "fitted" (the path was chosen
    to make it agree) or "none".
    """

    verdict: str
    ratio: float
    words: str

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {"verdict": self.verdict, "ratio": None if math.isnan(self.ratio) else self.ratio, "words": self.words}


@dataclass(frozen=True)
class Replays:
    """All that ``replay`` simulated: the paths, what they leave of the estimate, the runs of each control on them, and
    what these say. ``given``: others may use the path, and what each control gets was learned instead."""

    test: SelfTest
    answers: list[Answer]
    estimate: Estimate
    paths: list[Drawn]
    results: dict[str, list[Replayed]]
    runs: Runs
    given: Mapping[str, Given] = field(default_factory=dict)

    def answer(
        self,
        cc: str,
        found: Sequence[Replayed],
        paths: Sequence[Drawn],
        change: Mapping[str, Any] | None = None,
    ) -> Answer:
        """What the runs of ``cc`` on ``paths`` say; ``change`` has the fields that were set, and is None if the paths
        are those of the estimate. If they follow a bottleneck's rate that was never seen full, only what they get at
        the lowest rate is certain."""
        same = change is None and cc == self.runs.observed.cc
        told = self._predicted(cc, found, same)
        if why := _beyond_simulation(self.runs.observed, cc):
            return replace(told, unknown=why)
        if _cause_open(self.runs.observed, cc):
            spared = self._predicted(cc, self.runs.some([replace(path, loss=0.0) for path in paths], cc, change), same)
            low, high = min(told.low_bps, spared.low_bps), max(told.high_bps, spared.high_bps)
            told = replace(told, low_bps=low, high_bps=high)
        if may_be_policed(self.runs.observed) and cc in BY_MODEL and self.runs.observed.cc not in BY_MODEL:
            # A policer would leave it about what it left the observed one.
            told = replace(told, low_bps=min(told.low_bps, self.runs.observed.goodput_bps or 0.0))
        rate, rates = self.estimate.rate, [one.rate_bps for one in found]
        if rate.bound == "at least" and max(rates) == rate.low:
            return replace(told, open=True)
        if rate.bound != "at least" or not follows(rates, told.draws):
            return told
        slowest = [replace(path, rate_bps=rate.low) for path in paths[: len(found)]]
        return replace(told, low_bps=self._predicted(cc, self.runs.of(slowest, cc, change), same).low_bps, open=True)

    def _predicted(self, cc: str, found: Sequence[Replayed], same: bool) -> Answer:
        """From totals the interval is wider: others may use the path, unless the delivery rate shows that they do not.
        From few runs of a capture it would reach above what the bottleneck carries. ``same``: nothing is changed."""
        told = predicted(cc, found)
        if not _by_totals(self.runs.observed):
            most = self.estimate.rate.high * self.runs.payload * math.exp(Z90 * APART)
            return replace(told, high_bps=max(told.median_bps, min(told.high_bps, most)))
        if self.runs.observed.alone:
            return told
        below, above = BY_TOTALS["the same" if same else "another"]
        return replace(told, low_bps=told.low_bps * math.exp(-below), high_bps=told.high_bps * math.exp(above))


LEARNED = "what each control gets was learned from simulated paths with other traffic"


def replay(
    observed: Observed,
    estimate: Estimate,
    *,
    controls: Sequence[str] = CONTROLS,
    draws: int = DRAWS,
    seed: int = 1,
    progress: Callable[[float], None] | None = None,
    more: int = 0,
) -> Replays:
    """Simulates every drawn path with each of ``controls``; ``progress`` receives the share done. ``more`` runs of each
    path may follow; ``progress`` counts them too.

    If only a replay can tell the losses of the path from those of a full queue, the paths are fitted. Where others may
    use the path, nothing is simulated: what they yield was learned. Uses at least two threads, since the simulator
    releases the GIL. Raises SawtoothError as the engine ``sim`` does.
    """
    if learned().knows(observed):
        given = {cc: learned().gives(observed, cc) for cc in controls}
        test = SelfTest("none", math.nan, f"not possible, because {may_use(observed)}; {LEARNED}")
        told = [by_others(cc, one) for cc, one in given.items()]
        return Replays(test, told, estimate, [], {}, Runs(observed, estimate), given)
    fitted = estimate.by_replay and observed.cc in CONTROLS and observed.goodput_bps is not None
    each = len(controls) + sum(_cause_open(observed, cc) for cc in controls)
    asked, each = each + more, each + CHANGES_EXPLAINED
    # What follows the rate is also run at the lowest one; the progress does not wait for that.
    lowest, fits = each if estimate.rate.bound == "at least" else 0, RUNS if fitted else 0
    count = max(2, affordable(observed, estimate, draws, each + lowest + fits) if fitted else draws)
    total = count * (asked + fits) + (AGAIN if fitted else 0)
    runs = Runs(observed, estimate, total, progress, answers=each + lowest)
    if fitted:
        paths = fit(observed, estimate, runs, draws=count, seed=seed)
        estimate = posterior(estimate, paths, by_totals=_by_totals(observed))
    else:
        paths = draw(estimate, count, seed)
    named = dict.fromkeys((*([observed.cc] if observed.cc in CONTROLS else []), *controls))
    # The self-test needs the observed control on what the estimate allows, not on the lowest rate.
    results = {cc: runs.some(paths, cc, at_lowest=cc != observed.cc) for cc in named if cc is not None}
    test = self_test(observed, [predicted(cc, found) for cc, found in results.items()], fitted=fitted)
    replays = Replays(test, [], estimate, paths, results, runs)
    if test.verdict != "fails":
        # A control gets no number if the replay does not reproduce the observation.
        replays.answers.extend(replays.answer(cc, results[cc], paths) for cc in controls)
    return replays


def by_others(cc: str, given: Given) -> Answer:
    """What was learned of paths that others use, as an answer."""
    low, middle, high = given.goodput_bps
    return Answer(cc, middle, low, high, None, ())


def _beyond_simulation(observed: Observed, cc: str) -> str:
    """Why what a control of the other family would get cannot be simulated; "" if it can. The observed one shows what
    the path leaves to its own family."""
    if not observed.kinds or (observed.cc is not None and (cc in BY_MODEL) == (observed.cc in BY_MODEL)):
        return ""
    if observed.kinds["cross_traffic"].answer == "present":
        return f"others use the bottleneck, and what they leave to {cc} is not known"
    if observed.kinds["queue_kind"].answer == "policer":
        return f"a policer limits the path, and what it leaves to {cc} is not known"
    return ""


def may_be_policed(observed: Observed) -> bool:
    """Whether a capture shows losses outside a full queue, and the kind of queue is not judged."""
    lossy = observed.path is not None and observed.path.loss.low > 0
    return lossy and bool(observed.kinds) and not observed.kinds["queue_kind"].shares


def _cause_open(observed: Observed, cc: str) -> bool:
    """Whether the path may spare ``cc`` all random loss: BBR lost data, and totals do not show whether at random or to
    a policer, a managed queue or others, which drop what is sent too fast."""
    by_bbr = observed.cc in BY_MODEL and cc not in BY_MODEL
    return by_bbr and _by_totals(observed) and bool(observed.retransmits)


def _by_totals(observed: Observed) -> bool:
    """Whether the input is of counters, as of ss, iperf3 and ``watch``, which do not show others on the path."""
    return observed.path is None and not observed.given


def follows(rates: Sequence[float], goodput: Sequence[float]) -> bool:
    """Whether the goodput increases with the bottleneck rate that was tried: rank correlation, significant at 5%."""
    import numpy as np

    ranks = np.argsort(np.argsort([rates, goodput], axis=1), axis=1)
    together = float(np.asarray(np.corrcoef(ranks[0], ranks[1]))[0, 1])
    return together * math.sqrt(len(rates) - 1) > Z90


def predicted(cc: str, found: Sequence[Replayed]) -> Answer:
    """The median of the runs, and an interval that contains one more transfer with 90%."""
    import numpy as np

    goodput = np.array([one.goodput_bps for one in found])
    median = float(np.median(goodput))
    low, high = interval(goodput.tolist(), APART)
    again = float(np.median([one.retransmitted for one in found]))
    return Answer(cc, median, min(low, median), max(high, median), again, tuple(goodput.tolist()))


def interval(values: Sequence[float], apart: float = 0.0) -> tuple[float, float]:
    """The middle 90% of one more value: by rank if there are enough, otherwise by Student's t on their logarithms.
    ``apart``: by how much the logarithm of the real one differs from a simulated one (standard deviation)."""
    import numpy as np

    middle = float(np.median(values))
    if len(values) >= FEWEST_RANKED:
        low, high = beyond(values, PART), beyond(values, 1 - PART)
    else:
        logs = np.log(np.maximum(values, 1e-9))
        reach = t_quantile(logs.size - 1, 1 - 2 * PART) * float(logs.std(ddof=1)) * math.sqrt(1 + 1 / logs.size)
        low, high = math.exp(logs.mean() - reach), math.exp(logs.mean() + reach)
    if not apart or min(low, middle) <= 0:
        return low, high
    down, up = (math.hypot(math.log(end / middle), Z90 * apart) for end in (low, high))
    return middle * math.exp(-down), middle * math.exp(up)


def self_test(observed: Observed, answers: Sequence[Answer], *, fitted: bool = False) -> SelfTest:
    """Whether the replay reproduces the observation."""
    seen = observed.goodput_bps
    if seen is None:
        return SelfTest("none", math.nan, "not possible, because the input does not say the goodput")
    of = next((answer for answer in answers if answer.cc == observed.cc), None)
    if of is None:
        if observed.cc is not None:
            return SelfTest("none", math.nan, f"not possible, because the simulator has no {observed.cc}")
        narrow = [one for one in answers if one.high_bps < WIDEST * one.low_bps]
        fits = [one.cc for one in narrow if one.low_bps * (1 - AGREES) <= seen <= one.high_bps * (1 + AGREES)]
        if not fits:
            message = (
                "no control explains the goodput on the estimated path: the estimate is wrong somewhere; "
                "do not rely on it"
            )
            return SelfTest("fails", math.nan, message)
        named = " and ".join(fits)
        return SelfTest(
            "none",
            math.nan,
            f"not possible, because the congestion control is unknown (give it with --cc); {named} would "
            "explain the goodput",
        )
    ratio = of.median_bps / seen
    near = abs(math.log(max(ratio, 1e-9))) <= math.log1p(ROUGHLY) or of.low_bps <= seen <= of.high_bps
    if fitted and not near:
        message = f"no path that the input allows lets {of.cc} get near what was observed: the nearest give {ratio:.0%}"
        return SelfTest("fails", ratio, f"{message}; do not rely on the estimate")
    if fitted:
        aim = f"no test, since the path was fitted so that {of.cc} gets the observed goodput"
        return SelfTest("fitted", ratio, f"{aim}; it gets {ratio:.0%} of it")
    apart = f"{of.cc} on the estimated path gets {ratio:.0%} of the observed goodput"
    if abs(ratio - 1) <= AGREES:
        return SelfTest("agrees", ratio, f"{apart}: the estimate agrees")
    if of.low_bps <= seen <= of.high_bps and of.high_bps < WIDEST * of.low_bps:
        return SelfTest(
            "agrees",
            ratio,
            f"{apart}, and its interval contains the observation: chance in one transfer explains the rest",
        )
    if abs(math.log(max(ratio, 1e-9))) <= math.log1p(ROUGHLY):
        return SelfTest("roughly", ratio, f"{apart}, outside its interval: expect the answers to be off by as much")
    return SelfTest("fails", ratio, f"{apart}: the estimate is wrong somewhere; do not rely on the answers")
