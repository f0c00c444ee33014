"""Runs: draws paths from an estimate, and simulates transfers like the observed one on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from sawtooth.io.parallel import fan_out
from sawtooth.io.table_store import whole
from sawtooth.scenario import GilbertElliott, Loss, LossPattern, Queue, Rate, Scenario, Size, Span
from sawtooth.whatif.estimate import TAIL_DROP, Estimate
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.quantity import NONE_COUNTED, Estimated

if TYPE_CHECKING:
    import numpy as np

DRAWS = 24
PACKETS = 6e6
"""Simulated packets for a whole answer, about two seconds of one core. Fast paths get fewer draws, and may take
more."""
FEWEST_FITTED, FEWEST_DRAWS, FEWEST_FULL = 8, 5, 3
"""The fewest draws of a fit, of an answer, and of one that fills the bottleneck in all: nothing can be faster."""
FILLS = 0.9
"""A transfer that gets this share of the bottleneck's rate fills it."""
LONGEST_S = 60.0
WARMUP_S = 8.0
"""Seconds before the measured part of a replay, if the observation does not include the transfer's start."""
WINDOW_SHARE = 162 / 256
"""The part of a receive buffer that becomes window with full segments on Linux 6.12 (``tcp_win_from_space``, veth
frames)."""
_COLUMNS = ("t_s", "goodput_bps", "retransmits", "segments_out")
_HALF_A_NANOSECOND = 5e-10


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
    queue_kind: str = TAIL_DROP


class Replayed(NamedTuple):
    """The result of one run: payload in bit/s, the share of segments retransmitted, and the mean and largest of
    smoothed round trips at ``Observed.rtt_samples`` moments. ``segments`` were sent, on a path of ``rate_bps``."""

    goodput_bps: float
    retransmitted: float
    rtt_mean_s: float
    rtt_max_s: float
    segments: float = 0.0
    rate_bps: float = math.inf


def draw(estimate: Estimate, count: int, seed: int) -> list[Drawn]:
    """Draws ``count`` paths. The same ``seed`` gives the same paths; all runs of a path use its seed.

    Every second path has a log-uniform loss, if only its high end is known: the queue may have caused nearly all
    retransmissions, and a tenth of the loss means another window.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    return [_one(estimate, rng, seed * 1000 + at, rarer=at % 2 == 1) for at in range(count)]


def middle(estimate: Estimate, seed: int = 1) -> Drawn:
    """The path with the estimate's middle values."""
    values = estimate.quantities
    chosen = {name: values[name].value for name in ("queue", "loss", "burst", "ack_loss")}
    window = None if estimate.window is None else estimate.window.value
    kind = max(estimate.queue_kinds, key=lambda one: one[1])[0]
    rate, rtt = estimate.rate.value, estimate.rtt.value
    return Drawn(seed=seed, rate_bps=rate, rtt_s=rtt, window=window, queue_kind=kind, **chosen)


def loss_of(estimate: Estimate, queue_kind: str) -> Estimated:
    """The random loss of paths with this kind of queue."""
    managed = estimate.managed_loss
    return estimate.loss if queue_kind == TAIL_DROP or managed is None else managed


def _one(estimate: Estimate, rng: np.random.Generator, seed: int, *, rarer: bool) -> Drawn:
    kinds = [kind for kind, _ in estimate.queue_kinds]
    kind = kinds[0] if len(kinds) == 1 else str(rng.choice(kinds, p=[share for _, share in estimate.queue_kinds]))
    loss = loss_of(estimate, kind)
    drawn = Drawn(
        seed=seed,
        rate_bps=estimate.rate.draw(rng),
        rtt_s=estimate.rtt.draw(rng),
        queue=estimate.queue.draw(rng),
        loss=loss.draw(rng),
        burst=estimate.burst.draw(rng),
        ack_loss=estimate.ack_loss.draw(rng),
        window=None if estimate.window is None else estimate.window.draw(rng),
        queue_kind=kind,
    )
    if rarer and loss.rare:
        return replace(drawn, loss=loss.high * NONE_COUNTED ** (1 - drawn.loss / loss.high))
    return drawn


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
            "queue": _queue(drawn),
            "loss": _loss(drawn.loss, drawn.burst, estimate.burst_loss),
            "ack_loss": _share(drawn.ack_loss),
        },
        host=host,
        flows=[{"cc": cc, "count": observed.connections}],
    )


def _queue(drawn: Drawn) -> Any:
    if drawn.queue_kind != TAIL_DROP:
        return {"kind": drawn.queue_kind}
    return Queue("packets", Fraction(min(Queue.HIGH["packets"], max(1, round(drawn.queue)))))


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


class Runs:
    """Runs simulations in parallel and counts them for the progress. ``answers``: how many share ``PACKETS``."""

    def __init__(
        self,
        observed: Observed,
        estimate: Estimate,
        total: int = 1,
        progress: Callable[[float], None] | None = None,
        *,
        answers: int = 1,
    ) -> None:
        self.observed, self._estimate, self._total, self._progress = observed, estimate, total, progress
        self.payload = observed.mss / observed.frame_bytes
        self._packets = PACKETS / max(answers, 1)
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

    def some(
        self, paths: Sequence[Drawn], cc: str, change: Mapping[str, Any] | None = None, *, at_lowest: bool = False
    ) -> list[Replayed]:
        """The results of ``cc`` on the first of the paths: on all if that takes few packets, on at least
        ``FEWEST_DRAWS`` of them, and on ``FEWEST_FULL`` if it fills those.

        ``at_lowest``: where that is not few and the rate is only bounded from below, the paths have the lowest rate,
        if ``cc`` fills it there.
        """
        begun = self._done
        found = self._at_lowest(paths, cc, change) if at_lowest else []
        if not found:
            found = self.of(paths[:FEWEST_FULL], cc, change)
            count = int(self._packets * len(found) / max(1.0, sum(one.segments for one in found)))
            if self._estimate.rate.bound or not self._fill(found):
                count = max(count, FEWEST_DRAWS)
            found += self.of(paths[len(found) : count], cc, change)
        self._done = begun + len(paths)
        return found

    def _at_lowest(self, paths: Sequence[Drawn], cc: str, change: Mapping[str, Any] | None) -> list[Replayed]:
        rate = self._estimate.rate
        dear = packets(self.observed, self._estimate) * FEWEST_DRAWS > self._packets
        if rate.bound != "at least" or self._estimate.window is not None or not dear:
            return []
        slowest = self.of([replace(path, rate_bps=rate.low) for path in paths[:FEWEST_FULL]], cc, change)
        return slowest if self._fill(slowest) else []

    def _fill(self, found: Sequence[Replayed]) -> bool:
        return all(one.goodput_bps >= FILLS * self.payload * one.rate_bps for one in found)

    def _stop(self) -> None:
        # Ctrl-C reaches one thread only; the simulating threads check this flag several times a second.
        self._stopped = True

    def _run(self, path: Drawn, cc: str, change: Mapping[str, Any]) -> Replayed:
        import numpy as np

        from sawtooth.engines.sim import Sim

        case = scenario(self.observed, self._estimate, path, cc).set(change)
        tables = Sim().run(case, stop=lambda: self._stopped).tables
        table, moments = whole(tables, "intervals"), whole(tables, "tcp_info")
        begin = max(0.0, case.warmup.seconds)
        measured = table["t_s"] > begin + _HALF_A_NANOSECOND
        ends, goodput, again, sent = (table[name][measured] for name in _COLUMNS)
        lengths = np.diff(ends, prepend=begin)
        carried = (goodput * lengths).sum() / (lengths.sum() - _handshake_s(self.observed, path))
        at = np.searchsorted(moments["t_s"], np.linspace(begin, ends[-1], self.observed.rtt_samples + 1)[1:] - 1e-6)
        # A connection that loses its SYNs until the end has measured no round trip.
        trips = moments["srtt_s"][at.clip(0, len(moments) - 1)] if len(moments) else np.array([path.rtt_s])
        return Replayed(
            float(carried),
            float(again.sum() / max(1, sent.sum())),
            float(trips.mean()),
            float(trips.max()),
            float(table["segments_out"].sum()),
            path.rate_bps,
        )


def affordable(observed: Observed, estimate: Estimate, draws: int, runs: int) -> int:
    """Reduces the draws of a fit on long transfers so that all ``runs`` of each, counted as lossless, take about
    ``PACKETS``; at least ``FEWEST_FITTED`` remain."""
    each = packets(observed, estimate) * runs
    return max(min(FEWEST_FITTED, draws), min(draws, int(PACKETS / max(1.0, each))))


def packets(observed: Observed, estimate: Estimate) -> float:
    """How many a run simulates on average, if it loses none and the path is full."""
    seconds = min(observed.duration_s or LONGEST_S, LONGEST_S) + (0 if observed.from_start else WARMUP_S)
    window = estimate.window.value * 8 / max(estimate.rtt.value, 1e-4) if estimate.window else math.inf
    rate = estimate.rate
    # The mean of what is drawn evenly on a logarithmic scale.
    mean = (
        (rate.high - rate.low) / math.log(rate.high / rate.low)
        if rate.bound and rate.high > rate.low > 0
        else rate.value
    )
    return seconds * min(mean, window) / 8 / observed.frame_bytes
