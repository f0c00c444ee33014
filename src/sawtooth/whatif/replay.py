"""Replay: draws paths from the estimate and simulates each congestion control on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from sawtooth.io.parallel import fan_out
from sawtooth.scenario import GilbertElliott, Loss, LossPattern, Queue, Rate, Scenario, Size, Span
from sawtooth.whatif.estimate import Estimate
from sawtooth.whatif.observation import CONTROLS, Observed
from sawtooth.whatif.quantity import NONE_COUNTED, Estimated

if TYPE_CHECKING:
    import numpy as np

DRAWS = 24
FEWEST_DRAWS = 8
CANDIDATES = 4
"""If the loss is found by replay, this many times the draws are tried; the nearest are kept."""
PACKETS = 200e6
"""Simulated packets for a whole answer: one or two minutes of one core. Fast paths get fewer draws."""
LONGEST_S = 60.0
WARMUP_S = 8.0
"""Seconds before the measured part of a replay, if the observation does not include the transfer's start."""
MOMENTS = 10
"""Moments at which a replay's round trip is sampled, as in a window of ``sawtooth watch``."""
AGREES = 0.1
ROUGHLY = 0.3
OPEN = 2.0
"""If an interval spans more than this factor and only a lower bound of the rate is known, the answer depends on the
rate that was tried."""
WIDEST = 10.0
"""An interval that spans more than this factor contains everything, and is no test."""
WINDOW_SHARE = 162 / 256
"""The part of a receive buffer that becomes window with full segments on Linux 6.12 (``tcp_win_from_space``, veth
frames)."""


@dataclass(frozen=True)
class Answer:
    """What one congestion control gets: median and middle 90% over the draws.

    Each draw is one run, so the interval covers the uncertainty of the path and the chance in one transfer. ``open``:
    the answer depends on the bottleneck's rate, of which only a lower bound is known; only ``low_bps`` is valid.
    """

    cc: str
    median_bps: float
    low_bps: float
    high_bps: float
    retransmitted: float
    draws: tuple[float, ...]
    open: bool = False

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "cc": self.cc,
            "goodput_bps": None if self.open else self.median_bps,
            "low_bps": self.low_bps,
            "high_bps": None if self.open else self.high_bps,
            "retransmitted": self.retransmitted,
            "draws_bps": list(self.draws),
        }


@dataclass(frozen=True)
class SelfTest:
    """The observed congestion control, replayed, compared with the observation.

    ``verdict``: "agrees" (within 10% or the interval), "roughly" (within 30%), "fails", "fitted" (the loss was chosen
    to make it agree) or "none".
    """

    verdict: str
    ratio: float
    words: str

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {"verdict": self.verdict, "ratio": None if math.isnan(self.ratio) else self.ratio, "words": self.words}


@dataclass(frozen=True)
class Drawn:
    """One possible path, and the seed for its runs."""

    seed: int
    rate_bps: float
    rtt_s: float
    queue: float
    loss: float
    burst: float
    ack_loss: float
    window: float | None = None


class Replayed(NamedTuple):
    """The result of one run: payload in bit/s, the share of segments retransmitted, and the mean and largest of
    smoothed round trips sampled as often as ``sawtooth watch`` does."""

    goodput_bps: float
    retransmitted: float
    rtt_mean_s: float
    rtt_max_s: float


def draw(estimate: Estimate, count: int, seed: int) -> list[Drawn]:
    """Draws ``count`` paths. The same ``seed`` gives the same paths; all runs of a path use its seed."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return [_one(estimate, rng, seed * 1000 + at) for at in range(count)]


def middle(estimate: Estimate, seed: int = 1) -> Drawn:
    """The path with the estimate's middle values."""
    values = estimate.quantities
    chosen = {name: values[name].value for name in ("queue", "loss", "burst", "ack_loss")}
    window = None if estimate.window is None else estimate.window.value
    return Drawn(seed=seed, rate_bps=estimate.rate.value, rtt_s=estimate.rtt.value, window=window, **chosen)


def _one(estimate: Estimate, rng: np.random.Generator, seed: int) -> Drawn:
    return Drawn(
        seed=seed,
        rate_bps=estimate.rate.draw(rng),
        rtt_s=estimate.rtt.draw(rng),
        queue=estimate.queue.draw(rng),
        loss=estimate.loss.draw(rng),
        burst=estimate.burst.draw(rng),
        ack_loss=estimate.ack_loss.draw(rng),
        window=None if estimate.window is None else estimate.window.draw(rng),
    )


def scenario(observed: Observed, estimate: Estimate, drawn: Drawn, cc: str) -> Scenario:
    """A scenario with one transfer like the observed one over the drawn path, for any engine."""
    warmup = 0.0 if observed.from_start else WARMUP_S
    duration = min(observed.duration_s or LONGEST_S, LONGEST_S) + warmup + _handshake_s(observed, drawn)
    host: dict[str, Any] = {
        "mss": observed.mss,
        "timestamps": observed.timestamps,
        "delayed_ack": estimate.delayed_ack,
    }
    if drawn.window is not None:
        host["receive_buffer"] = _buffer(drawn.window / WINDOW_SHARE)
    return Scenario(
        name=f"what if {cc}",
        topology="path",
        duration=Span(round(duration * 1000) * 10**6),
        warmup=Span(round(warmup * 1000) * 10**6),
        interval="500 ms",
        seed=drawn.seed,
        traffic="native",
        path={
            "rate": Rate(min(Rate.HIGH, max(Rate.LOW, round(drawn.rate_bps)))),
            "rtt": Span(min(Span.HIGH, round(drawn.rtt_s * 1e6) * 10**3)),
            "queue": Queue("packets", Fraction(min(Queue.HIGH["packets"], max(1, round(drawn.queue))))),
            "loss": _loss(drawn.loss, drawn.burst, estimate.burst_loss),
            "ack_loss": _share(drawn.ack_loss),
        },
        host=host,
        flows=[{"cc": cc, "count": observed.connections}],
    )


def _handshake_s(observed: Observed, drawn: Drawn) -> float:
    """How long a replay carries no data at first, if the observed time begins with the first data."""
    return drawn.rtt_s if observed.from_start and observed.since_data else 0.0


def _buffer(size: float) -> Size:
    return Size(min(2**30, max(4096, round(size))))


def _share(of_packets: float) -> Loss:
    return Loss(round(min(1.0, max(0.0, of_packets)) * 1e9))


def _loss(share: float, burst: float, within: float = 1.0) -> Loss | LossPattern:
    """A loss process. Bursts longer than chance need a state: Gilbert's, whose bad state loses the share ``within``."""
    if burst <= 1.05 or share <= 0:
        return _share(share)
    leave = 1 / burst
    # The share of packets in the bad state is the total loss divided by the loss within the state.
    taken = min(0.99, share / within)
    model = GilbertElliott(p=_share(min(1.0, taken * leave / (1 - taken))), r=_share(leave), bad=_share(within))
    return LossPattern(gilbert_elliott=model)


@dataclass(frozen=True)
class Replays:
    """All that ``replay`` simulated: the paths, the runs of each control on them, and what they say."""

    test: SelfTest
    answers: list[Answer]
    paths: list[Drawn]
    results: dict[str, list[Replayed]]
    runs: Runs


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

    Uses at least two threads, since the simulator releases the GIL. Raises SawtoothError as the engine ``sim`` does.
    """
    count = affordable(observed, estimate, draws, len(controls) + (CANDIDATES if estimate.by_replay else 0))
    paths = draw(estimate, count * (CANDIDATES if estimate.by_replay else 1), seed)
    if estimate.by_replay:
        paths = _rarer(paths, estimate.loss)
    runs = Runs(observed, estimate, len(paths) + count * (len(controls) + more), progress)
    fitted = estimate.by_replay and observed.cc in CONTROLS
    results: dict[str, list[Replayed]] = {}
    if fitted:
        assert observed.cc is not None
        tried = runs.of(paths, observed.cc)
        nearest = sorted(range(len(paths)), key=lambda at: _distance(observed, tried[at]))[:count]
        paths = [paths[at] for at in nearest]
        results[observed.cc] = [tried[at] for at in nearest]
    for cc in dict.fromkeys((*([observed.cc] if observed.cc in CONTROLS else []), *controls)):
        if cc is not None and cc not in results:
            results[cc] = runs.of(paths[:count], cc)
    answers = [_answer(cc, found) for cc, found in results.items()]
    test = self_test(observed, answers, fitted=fitted)
    # A control gets no number if the replay does not reproduce the observation.
    told = [answer for cc in controls for answer in answers if answer.cc == cc and test.verdict != "fails"]
    follows = estimate.rate.bound != "" and estimate.rate.high > OPEN * estimate.rate.low
    told = [replace(one, open=follows and one.high_bps > OPEN * one.low_bps) for one in told]
    return Replays(test, told, paths[:count], results, runs)


def _rarer(paths: list[Drawn], loss: Estimated) -> list[Drawn]:
    """Gives every second path a log-uniform loss, of which only the high end is known: a full queue may have caused
    nearly all retransmissions, and a tenth of the loss means another window."""
    if loss.bound != "at most" or loss.low > 0 or loss.high <= 0:
        return paths
    rare = [replace(one, loss=loss.high * NONE_COUNTED ** (1 - one.loss / loss.high)) for one in paths]
    return [rare[at] if at % 2 else one for at, one in enumerate(paths)]


class Runs:
    """Runs simulations in parallel and counts them for the progress."""

    def __init__(
        self,
        observed: Observed,
        estimate: Estimate,
        total: int = 1,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.observed, self._estimate, self._total, self._progress = observed, estimate, total, progress
        self._done = 0
        self._stopped = False

    def of(self, paths: Sequence[Drawn], cc: str, change: Mapping[str, Any] | None = None) -> list[Replayed]:
        """The results of ``cc`` on each path; ``change`` has fields of the scenario to set."""
        found: dict[int, Replayed] = {}

        def done(number: int, result: Replayed) -> None:
            found[number] = result
            self._done += 1
            if self._progress is not None:
                self._progress(min(1.0, self._done / self._total))

        # The simulator releases the GIL.
        fan_out(lambda path: self._run(path, cc, change or {}), paths, done=done, stop=self._stop, threads=True)
        return [found[number] for number in range(len(paths))]

    def _stop(self) -> None:
        # Ctrl-C reaches one thread only; the simulating threads check this flag several times a second.
        self._stopped = True

    def _run(self, path: Drawn, cc: str, change: Mapping[str, Any]) -> Replayed:
        import numpy as np

        from sawtooth.engines import get
        from sawtooth.stats.throughput import after_warmup

        asked = scenario(self.observed, self._estimate, path, cc).set(change)
        run = get("sim").run(asked, stop=lambda: self._stopped)
        table = after_warmup(run, run.tables["intervals"])
        ends = table["t_s"].to_numpy()
        length = ends - [max(0.0, asked.warmup.seconds), *ends[:-1]]
        seconds = length.sum() - _handshake_s(self.observed, path)
        goodput = float((table["goodput_bps"].to_numpy() * length).sum() / seconds)
        again = float(table["retransmits"].sum() / max(1, table["segments_out"].sum()))
        moments = run.tables["tcp_info"]
        since = moments["t_s"].to_numpy()
        at = np.searchsorted(since, np.linspace(max(0.0, asked.warmup.seconds), ends[-1], MOMENTS + 1) - 1e-6)
        trips = moments["srtt_s"].to_numpy()[at.clip(0, len(since) - 1)]
        return Replayed(goodput, again, float(trips.mean()), float(trips.max()))


def affordable(observed: Observed, estimate: Estimate, draws: int, runs: int, packets: float = PACKETS) -> int:
    """Reduces the draws on long transfers so that all ``runs`` of each, counted as lossless, take at most
    ``packets``."""
    seconds = min(observed.duration_s or LONGEST_S, LONGEST_S) + (0 if observed.from_start else WARMUP_S)
    window = estimate.window.value * 8 / max(estimate.rtt.value, 1e-4) if estimate.window else math.inf
    each = seconds * min(estimate.rate.value, window) / 8 / observed.frame_bytes
    return max(min(FEWEST_DRAWS, draws), min(draws, int(packets / max(1.0, each * runs))))


def _distance(observed: Observed, one: Replayed) -> float:
    """Distance of a replay from the observation: in goodput, plus half as much in retransmissions."""
    assert observed.goodput_bps is not None
    far = abs(math.log(max(one.goodput_bps, 1.0) / observed.goodput_bps))
    if observed.retransmitted is not None:
        floor = 1 / max(observed.segments or 1, 1)
        far += 0.5 * abs(math.log((one.retransmitted + floor) / (observed.retransmitted + floor)))
    return far


def _answer(cc: str, found: Sequence[Replayed]) -> Answer:
    import numpy as np

    goodput = np.array([one.goodput_bps for one in found])
    low, median, high = np.quantile(goodput, (0.05, 0.5, 0.95)).tolist()
    retransmitted = float(np.median([one.retransmitted for one in found]))
    return Answer(cc, median, low, high, retransmitted, tuple(goodput.tolist()))


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
        aim = f"none: the loss was chosen so that {of.cc} gets the observed goodput"
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
