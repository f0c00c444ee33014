"""What the background of ``watch``'s live view takes: processor time per connection, and how near its numbers are to
the whole answers and to what simulated transfers get.

    python experiments/watch_background.py [--connections 1000] [--whole 50] [--seed 1]

Four of five connections have a bottleneck of 5 to 50 Mbit/s, the others of 200 to 900. Each is a transfer in ``sim``,
of which the window is as ``watch`` keeps it: ten seconds, a sample a second. The truth is the same transfer without
the random loss. The first ``--whole`` of them also get the whole answer, which is what the connection under the
cursor gets.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sawtooth import Scenario
from sawtooth.engines.sim import Sim
from sawtooth.watch.estimated import Expected
from sawtooth.watch.expected import expect
from sawtooth.watch.rough import rough
from sawtooth.whatif import Observed
from sawtooth.whatif.standing_queue import above

CONTROLS = ("cubic", "reno", "bbr")
BEFORE_S, WINDOW_S = 12, 10
FAST_SHARE, SLOW, FAST = 0.2, (5e6, 50e6), (200e6, 900e6)
MSS, FRAME = 1448, 1514


@dataclass(frozen=True)
class Case:
    cc: str
    rate_bps: float
    rtt_s: float
    queue: int
    loss: float
    seed: int


def drawn(rng: random.Random, seed: int) -> Case:
    ends = FAST if rng.random() < FAST_SHARE else SLOW
    rate, rtt = between(rng, *ends), between(rng, 0.01, 0.1)
    queue = max(10, round(between(rng, 0.3, 2.0) * rate * rtt / 8 / FRAME))
    loss = between(rng, 1e-5, 1e-2) if rng.random() < 2 / 3 else 0.0
    return Case(rng.choice(CONTROLS), rate, rtt, queue, loss, seed)


def between(rng: random.Random, low: float, high: float) -> float:
    """Uniform in the logarithm."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def transferred(case: Case, loss: float) -> Any:
    scenario = Scenario(
        topology="path",
        duration=f"{BEFORE_S + WINDOW_S} s",
        interval="1 s",
        seed=case.seed,
        traffic="native",
        path={
            "rate": f"{round(case.rate_bps)} bit/s",
            "rtt": f"{round(case.rtt_s * 1e6)} us",
            "queue": f"{case.queue} packets",
            "loss": f"{loss:.7%}",
        },
        flows=[{"cc": case.cc}],
    )
    return Sim().run(scenario)


def window(run: Any) -> dict[str, Any]:
    """The last seconds of a run's intervals and samples."""
    return {name: run.tables[name][run.tables[name]["t_s"] > BEFORE_S + 1e-9] for name in ("intervals", "tcp_info")}


def goodput(run: Any) -> float:
    return float(window(run)["intervals"]["goodput_bps"].mean())


def observed(case: Case, run: Any) -> Observed:
    """The window as ``watch`` would keep it."""
    of = window(run)
    moments = of["tcp_info"]
    moments = moments[
        np.isclose(moments["t_s"] % 1.0, 0.0, atol=1e-6) | np.isclose(moments["t_s"] % 1.0, 1.0, atol=1e-6)
    ]
    trips, least, delivery = (moments[name].to_numpy() for name in ("srtt_s", "min_rtt_s", "delivery_bps"))
    stood = trips > above(least, np.full(len(least), MSS), delivery)
    sent, again = (int(of["intervals"][name].sum()) for name in ("segments_out", "retransmits"))
    return Observed(
        source="watch",
        what="simulated",
        goodput_bps=goodput(run),
        duration_s=float(WINDOW_S),
        from_start=False,
        cc=case.cc,
        cc_how="the kernel says so",
        segments=sent,
        retransmits=again,
        rtt_min_s=float(least[-1]),
        rtt_mean_s=float(trips.mean()),
        rtt_max_s=float(trips.max()),
        delivery_bps=float(max(delivery.max(), goodput(run))),
        standing_bps=float(delivery[stood].max()) if stood.any() else None,
    )


def timed(answer: Callable[[Observed], Expected], seen: Observed) -> tuple[Expected, float]:
    begun = time.process_time()
    return answer(seen), time.process_time() - begun


def number(found: Expected) -> float | None:
    return None if found.lossless is None else found.lossless.goodput_bps


def bound(found: Expected) -> float | None:
    return found.lossless.low_bps if found.lossless is not None and number(found) is None else None


def kind(found: Expected) -> str:
    return "number" if number(found) else "bound" if bound(found) else "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--whole", type=int, default=50, help="how many also get the whole answer")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    took: list[float] = []
    whole_took: list[float] = []
    rows: list[tuple[Case, float, Expected, Expected | None]] = []
    for at in range(options.connections):
        case = drawn(rng, options.seed * 100_000 + at)
        run = transferred(case, case.loss)
        truth = goodput(transferred(case, 0.0)) if case.loss else goodput(run)
        seen = observed(case, run)
        short, seconds = timed(rough, seen)
        took.append(seconds)
        whole = None
        if at < options.whole:
            whole, seconds = timed(expect, seen)
            whole_took.append(seconds)
        rows.append((case, truth, short, whole))
    report("in the background", took, [(truth, short) for _, truth, short, _ in rows])
    report("whole", whole_took, [(truth, whole) for _, truth, _, whole in rows if whole is not None])
    pairs = [(short, whole) for _, _, short, whole in rows if whole is not None]
    kinds = [(kind(short), kind(whole)) for short, whole in pairs]
    for both in sorted(set(kinds)):
        print(f"in the background {both[0]}, whole {both[1]}: {kinds.count(both)}")
    for name, of in (("numbers", number), ("bounds", bound)):
        apart = [abs(math.log(one / two)) for short, whole in pairs if (one := of(short)) and (two := of(whole))]
        if apart:
            print(f"{name} apart: median {np.median(apart):.1%}, nine in ten at most {np.quantile(apart, 0.9):.1%}")


def report(name: str, took: list[float], rows: list[tuple[float, Expected]]) -> None:
    if not took:
        return
    errors = [abs(math.log(value / truth)) for truth, found in rows if (value := number(found))]
    bounds = [truth >= low for truth, found in rows if (low := bound(found))]
    print(
        f"{name}: {len(took)} connections, CPU mean {np.mean(took):.3f} s, median {np.median(took):.3f} s, "
        f"most {max(took):.2f} s, sum {sum(took):.0f} s; {len(errors)} numbers, median error {np.median(errors):.1%}, "
        f"nine in ten at most {np.quantile(errors, 0.9):.1%}; {sum(bounds)} of {len(bounds)} bounds hold"
    )


if __name__ == "__main__":
    main()
