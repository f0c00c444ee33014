"""What limited a transfer, what was lost and the round-trip time are determined once, and every output agrees."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sawtooth
from sawtooth.capture import marks
from sawtooth.capture.identify.captured import identify_capture, identify_file
from sawtooth.capture.summary import Judgement
from sawtooth.capture.text import describe
from sawtooth.capture.verdict import verdict
from sawtooth.capture.view import View
from sawtooth.engines.sim import Sim
from sawtooth.scenario import Scenario
from sawtooth.whatif import estimate, observe, replay, words

CAPTURES = Path(__file__).parents[3] / "shared" / "captures"
shared = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures of ../shared are not there")
FULL = CAPTURES / "mlab-ndt-nnwk2_1611335823_00000000000C2DA9.pcap.gz"
BURSTS = CAPTURES / "mlab-ndt-4c6fb_1625899199_000000000121C1A0.pcap.gz"
GATHERED = CAPTURES / "nebby-web-200kbps.pcap"
PATH: dict[str, Any] = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "100 packets", "loss": "0.1%"}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ends")
    Sim(capture=directory).run(Scenario(topology="path", duration="12 s", path=PATH, flows=[{"cc": "cubic"}]))
    return directory


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_the_page_has_the_counts_and_the_median_of_the_text(ends: Path, end: str) -> None:
    capture = sawtooth.read_capture(ends / f"capture-{end}.pcap", connection=0)
    facts = capture.facts["connections"][0]["directions"][0]
    text, page = describe(capture.facts, 0), dict(verdict(View.of(capture, end).judged, identify_capture(capture)))
    again, segments = facts["retransmits"], facts["data_packets"]
    assert f"retransmitted {again} of {segments} segments" in text
    assert f"{again:,} of {segments:,} segments were retransmitted" in page["What was lost, and where?"]
    median = marks.quantity(facts["rtt"]["whole"]["median_s"], "s")
    assert f"median {median}" in text
    assert f"a median of {median}" in page["What did it get?"]
    seen = observe(ends / f"capture-{end}.pcap")
    assert (seen.segments, seen.retransmits) == (facts["data_packets"], facts["retransmits"])
    assert (seen.rtt_min_s, seen.rtt_mean_s) == (facts["rtt"]["whole"]["min_s"], facts["rtt"]["whole"]["mean_s"])


def test_both_ends_tell_the_same_round_trip_and_neither_a_half_of_it(ends: Path) -> None:
    medians = []
    for end in ("sender", "receiver"):
        capture = sawtooth.read_capture(ends / f"capture-{end}.pcap", connection=0)
        (way,) = [way for way in capture.facts["connections"][0]["directions"] if "data_packets" in way]
        assert way["rtt"]["far"] == ("receiver" if end == "sender" else "sender")
        assert way["rtt"]["whole"]["min_s"] == pytest.approx(way["rtt"]["base_s"])
        medians.append(way["rtt"]["whole"]["median_s"])
        told = capture.series["rtt_s"].dropna().to_numpy()
        assert len(told) > 100
        # A zigzag split into two halves would give less than the shortest whole one.
        assert told.min() > 0.99 * way["rtt"]["base_s"]
        steps = np.abs(np.diff(told))
        assert np.median(steps) < 0.1 * np.median(told)
    assert medians[1] == pytest.approx(medians[0], rel=0.05)


def test_shares_add_up_and_the_largest_is_first() -> None:
    limits = {"sender_s": 1.0, "receiver_window_s": 5.0, "path_s": 2.0, "idle_s": 2.0, "unknown_s": 0.0}
    judged = Judgement(0, {"limits": limits})
    assert judged.limit == "receiver_window"
    assert sum(judged.limits.values()) == pytest.approx(1)
    assert (judged.application, judged.receive_window) == pytest.approx((0.3, 0.5))
    assert judged.hides_window() is None
    assert "receive window" in str(Judgement(0, {"limits": limits | {"receiver_window_s": 9.0}}).hides_window())
    assert "idle" in str(Judgement(0, {"limits": limits | {"idle_s": 4.0}}).hides_window())


@shared
def test_a_receiver_that_does_not_read_is_the_limit_for_all_outputs() -> None:
    capture = sawtooth.read_capture(FULL)
    judged = Judgement.of(capture.facts["connections"][0])
    assert judged is not None
    assert judged.limit == "receiver_window"
    assert "receive window" in describe(capture.facts)
    assert "the receive window is the limit" in str(identify_file(FULL).unknown)
    assert judged.receive_window > 0.6
    assert observe(FULL).limited["receive window"] == pytest.approx(judged.receive_window)
    assert estimate(observe(FULL)).window is not None


@shared
def test_a_burst_is_reported_in_time_as_well_as_in_numbers() -> None:
    capture = sawtooth.read_capture(BURSTS)
    loss = capture.facts["connections"][0]["directions"][1]["loss"]
    assert (loss["lost"], loss["runs"], loss["bursts"]) == (39, 36, 4)
    assert 22 <= loss["largest_burst"] <= 25
    assert loss["largest_burst_s"] < 0.04
    # The bad state lasts for tens of packets and loses some of them, so its length is not one packet.
    assert loss["gilbert_elliott"]["r"] < 0.1
    assert loss["gilbert_elliott"]["bad"] < 0.6
    assert capture.losses.groupby("burst")["run"].sum().tolist() == [24, 9, 4, 2]
    assert "4 bursts, the largest of 24 in 30.6 ms" in describe(capture.facts, 0)
    found = estimate(observe(BURSTS))
    assert found.burst.value > 10
    assert found.burst_loss < 0.6


@shared
def test_a_link_that_gathers_packets_is_as_fast_as_its_groups_are_apart_and_a_failed_test_has_no_number() -> None:
    # Labeled as BBR, which would have had twice as much goodput there.
    observed = replace(observe(GATHERED), cc="bbr")
    found = estimate(observed)
    assert found.rate.value == pytest.approx(200e3, rel=0.05)
    replayed = replay(observed, found)
    test, answers = replayed.test, replayed.answers
    assert test.verdict == "fails"
    assert answers == []
    assert "not shown" in words(observed, found, test, answers)
