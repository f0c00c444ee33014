"""Randomly drawn links, what is estimated for them, and series without a queue."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sawtooth.link_estimate import RttSeries
from sawtooth.link_estimate.calibrate import corpus, make, read
from sawtooth.link_estimate.features import features
from sawtooth.link_estimate.random_links import ALL, USUAL, Group, Link, draw
from sawtooth.link_estimate.surrogate import surrogates
from sawtooth.scenario import Scenario


def links(count: int = 300) -> list[Link]:
    return [draw("spread", number) for number in range(count)]


def test_a_draw_is_made_by_its_purpose_and_number_alone() -> None:
    assert draw("train", 7) == draw("train", 7)
    assert draw("train", 7) != draw("train", 8)
    assert draw("train", 7).seed != draw("test", 7).seed


def test_draws_reach_over_all_that_nobody_chooses() -> None:
    found = links()
    congested = [one for one in found if one.kind == "congested"]
    assert {one.kind for one in found} == {"congested", "held", "bursts"}
    ends = [(one.rate_bps, one.queue_s) for one in found]
    for values, (low, high) in zip(zip(*ends, strict=True), (ALL.rates_bps, ALL.queues_s), strict=True):
        assert low * 0.99 <= min(values) < 2 * low
        assert high / 2 < max(values) <= high * 1.01
    rtts = [group.rtt_s for one in found for group in one.groups]
    assert ALL.rtts_s[0] <= min(rtts) < 2 * ALL.rtts_s[0]
    assert ALL.rtts_s[1] / 2 < max(rtts) <= ALL.rtts_s[1]
    assert {cc for one in congested for cc in (group.cc for group in one.groups)} == {"cubic", "reno", "bbr"}
    mixed = [one for one in congested if len({group.rtt_s for group in one.groups}) > 1]
    held = [one for one in congested if any(group.window_bytes for group in one.groups)]
    assert 0.3 < len(mixed) / len(congested) < 0.7
    assert 0.1 < len(held) / len(congested) < 0.3
    per_flow = np.array([one.rate_bps / one.flows for one in congested])
    assert per_flow.min() < 0.5e6
    assert per_flow.max() > 80e6


def test_usual_links_have_no_bbr_and_flows_of_one_to_five_seconds() -> None:
    found = [draw("usual", number, USUAL) for number in range(50)]
    assert {one.kind for one in found} == {"congested"}
    assert "bbr" not in {group.cc for one in found for group in one.groups}
    assert {one.lifetime_s for one in found} == {(1.0, 5.0)}


def test_every_draw_is_a_scenario() -> None:
    for one in links(40):
        scenario = Scenario.from_dict(one.scenario(), source=one.name)
        assert scenario.compile().probes[0].count == 1000


@pytest.fixture(scope="module")
def made(patience: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("drawn")
    flows = (Group("cubic", 6, 0.02), Group("reno", 6, 0.04), Group("cubic", 2, 0.02, 60_000))
    busy = (Group("cubic", 4, 0.02, 12_000),)
    full = (Group("cubic", 4, 0.02, 60_000),)
    one = Link("full", "congested", 60_000_000, 200, flows, (1.0, 5.0), 1)
    others = [
        replace(one, name="calm", kind="held", groups=busy),
        replace(one, name="brim", kind="held", groups=full),
        replace(one, name="now-and-then", kind="bursts", groups=flows[:1], bursts=((20.0, 10**6), (70.0, 10**6))),
    ]
    make(directory, [one, *others], jobs=1, quiet=True)
    return directory


def test_what_flows_get_is_that_of_flows_as_fast_as_they_can(made: Path) -> None:
    found = {one.one.name: one for one in read(made)}
    full = found["full"]
    assert full.one.flows == 12
    # Flows with fixed windows get their windows; the others share the rest.
    assert full.throughput_bps * 12 < 0.93 * full.link_bps
    assert full.rtt_s == pytest.approx((0.02 * 0.04) ** 0.5)
    assert full.control == "mixed"


def test_a_link_full_of_held_flows_is_neither_busy_nor_congested(made: Path) -> None:
    states = {one.one.name: one.state for one in read(made)}
    assert states == {"full": "congested", "calm": "busy", "brim": None, "now-and-then": "busy"}
    assert "brim" not in set(corpus(made)["name"])


def test_series_that_no_queue_made_are_of_many_kinds_and_the_same_each_time() -> None:
    like = RttSeries(np.arange(1000) * 0.1, np.full(1000, 0.02), 0.1, "like", clock="start")
    walk = replace(like, rtt_s=0.05 + np.sin(np.arange(1000) / 9) * 0.01)
    twice = [list(surrogates([walk], 24, np.random.default_rng(3), like)) for _ in range(2)]
    assert all((one.rtt_s[one.answered] >= 0).all() for one in twice[0])
    for one, again in zip(*twice, strict=True):
        np.testing.assert_array_equal(one.rtt_s, again.rtt_s)
    assert any(one.loss > 0 for one in twice[0])
    shuffled = [one for one in twice[0] if np.allclose(np.sort(one.rtt_s), np.sort(walk.rtt_s))]
    assert shuffled
    assert abs(features(shuffled[0])["lag1"]) < 0.2
