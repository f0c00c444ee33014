"""Fitting: paths whose replays resemble the observation, and the interval for the next transfer."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sawtooth.whatif import Estimate, Estimated, Observed
from sawtooth.whatif.estimate import no_ack_loss, single_losses
from sawtooth.whatif.fitting import fit
from sawtooth.whatif.replay import FEWEST_RANKED, Replays, SelfTest, predicted
from sawtooth.whatif.runs import DRAWS, FEWEST_DRAWS, FEWEST_FULL, Drawn, Replayed, Runs, draw

SECONDS = 6.0
TRUE = Drawn(seed=77, rate_bps=6e6, rtt_s=0.02, queue=20, loss=0.002, burst=1.0, ack_loss=0.0)
OPEN = Estimate(
    rate=Estimated(6e6, 4e6, 9e6, "", "at least"),
    rtt=Estimated(0.02, 0.0195, 0.0205, "", "at most"),
    queue=Estimated(20, 5, 80, "", "at least"),
    loss=Estimated(0.01, 0.0, 0.02, "", "at most"),
    burst=single_losses(),
    ack_loss=no_ack_loss(""),
)


def window(path: Drawn) -> Observed:
    """What cubic did on a path, as a window reports it."""
    asked = Observed("watch", "", duration_s=SECONDS, from_start=False, cc="cubic", segments=3000, retransmits=0)
    (got,) = Runs(asked, OPEN).of([path], "cubic")
    segments = round(got.goodput_bps * SECONDS / 8 / 1448)
    return Observed(
        "watch",
        "",
        goodput_bps=got.goodput_bps,
        duration_s=SECONDS,
        from_start=False,
        cc="cubic",
        segments=segments,
        retransmits=round(got.retransmitted * segments),
        rtt_min_s=0.02,
        rtt_mean_s=got.rtt_mean_s,
        rtt_max_s=got.rtt_max_s,
    )


@pytest.fixture(scope="module")
def fitted() -> list[Drawn]:
    seen = window(TRUE)
    return fit(seen, OPEN, Runs(seen, OPEN), draws=12, seed=3)


def test_what_is_kept_is_near_the_path_that_was_observed_and_within_the_estimate(fitted: list[Drawn]) -> None:
    def spread(name: str) -> float:
        return float(np.std([math.log(getattr(one, name)) for one in fitted]))

    assert len(fitted) == 12
    assert np.median([one.rate_bps for one in fitted]) == pytest.approx(TRUE.rate_bps, rel=0.1)
    # A uniform distribution over everything left open has a deviation of the width over the root of twelve.
    assert spread("rate_bps") < 0.5 * math.log(9 / 4) / math.sqrt(12)
    assert spread("queue") < math.log(80 / 5) / math.sqrt(12)
    for name in ("rate", "rtt", "queue", "loss"):
        of, ends = {"rate": "rate_bps", "rtt": "rtt_s"}.get(name, name), getattr(OPEN, name)
        assert all(ends.low * 0.999999 <= getattr(one, of) <= ends.high * 1.000001 for one in fitted), name


def test_another_transfer_has_other_random_losses(fitted: list[Drawn]) -> None:
    seen = window(TRUE)
    seeds = {one.seed for one in fitted}
    assert len(seeds) == len(fitted)
    assert TRUE.seed not in seeds
    assert fit(seen, OPEN, Runs(seen, OPEN), draws=12, seed=3) == fitted


@pytest.mark.parametrize("count", [8, FEWEST_RANKED, 24])
def test_an_interval_holds_nine_in_ten_of_transfers_to_come(count: int) -> None:
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(2000):
        *goodput, later = np.exp(rng.normal(15, 0.3, count + 1))
        told = predicted("cubic", [Replayed(one, 0.0, 0.0, 0.0) for one in goodput])
        inside += told.low_bps <= later <= told.high_bps
    assert inside / 2000 == pytest.approx(0.9, abs=0.02)


class Counted(Runs):
    """Every transfer gets this share of the bottleneck and has this many segments."""

    def __init__(self, estimate: Estimate, share: float, segments: float) -> None:
        super().__init__(Observed("capture", "", duration_s=SECONDS, cc="cubic", path=estimate), estimate, answers=8)
        self.share, self.segments = share, segments

    def _run(self, path: Drawn, cc: str, change: Mapping[str, Any]) -> Replayed:
        goodput = self.share * self.payload * path.rate_bps
        return Replayed(goodput, 0.0, 0.02, 0.02, self.segments, path.rate_bps)


KNOWN = replace(OPEN, rate=Estimated(1e9, 0.99e9, 1.01e9, ""))


@pytest.mark.parametrize(
    ("share", "segments", "count"),
    [(0.5, 1e3, DRAWS), (0.5, 1e5, 7), (0.5, 1e6, FEWEST_DRAWS), (1.0, 1e5, 7), (1.0, 1e6, FEWEST_FULL)],
)
def test_draws_are_as_many_as_the_packets_of_an_answer_allow(share: float, segments: float, count: int) -> None:
    assert len(Counted(KNOWN, share, segments).some(draw(KNOWN, DRAWS, 1), "cubic")) == count


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_expensive_rate_that_is_only_bounded_is_tried_at_its_low_end(share: float) -> None:
    bounded = replace(OPEN, rate=Estimated(2e9, 1e9, 5e9, "", "at least"))
    runs, paths = Counted(bounded, share, 1e6), draw(bounded, DRAWS, 1)
    found = runs.some(paths, "cubic", at_lowest=True)
    tried = {one.rate_bps for one in found}
    assert (tried == {1e9}, len(found)) == ((True, FEWEST_FULL) if share == 1.0 else (False, FEWEST_DRAWS))
    told = Replays(SelfTest("agrees", 1.0, ""), [], bounded, paths, {}, runs).answer("cubic", found, paths)
    assert told.open


def test_few_runs_of_a_capture_do_not_exceed_the_bottleneck() -> None:
    runs, paths = Counted(KNOWN, 1.0, 1e6), draw(KNOWN, DRAWS, 1)
    found = [Replayed(share * runs.payload * 1e9, 0.0, 0.02, 0.02, 1e6, 1e9) for share in (0.7, 0.9, 0.95)]
    told = Replays(SelfTest("agrees", 1.0, ""), [], KNOWN, paths, {}, runs).answer("cubic", found, paths)
    assert told.high_bps == pytest.approx(1.01e9 * runs.payload, rel=0.011)
