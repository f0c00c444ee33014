"""What if: from one measurement to the path behind it and the goodput of other congestion controls."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sawtooth.capture.identify import Identification
from sawtooth.cli.whatif_command import whatif
from sawtooth.errors import SawtoothError
from sawtooth.scenario import LossPattern, Scenario
from sawtooth.whatif import Estimated, estimate, from_numbers, observe, replay, save_scenario, words
from sawtooth.whatif.estimate import poisson_interval
from sawtooth.whatif.iperf3 import from_iperf3
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.replay import BY_TOTALS, Answer, predicted, self_test
from sawtooth.whatif.replayable import identified
from sawtooth.whatif.runs import Drawn, Runs, draw, middle, scenario
from sawtooth.whatif.ss import from_ss, looks

MEASURED = Path(__file__).parents[1] / "measured"
SS = """\
State Recv-Q Send-Q  Local Address:Port   Peer Address:Port
ESTAB 0      0           10.0.0.1:22          10.0.0.9:50000
\t cubic wscale:7,7 rto:204 rtt:0.3/0.1 mss:1448 cwnd:10 bytes_acked:4000 data_segs_out:30 busy:10ms minrtt:0.2
ESTAB 0      2896000     10.0.0.1:41000       192.0.2.7:5201
\t ts sack cubic wscale:7,7 rto:264 rtt:61.5/1.2 mss:1448 pmtu:1500 cwnd:420 ssthresh:390 bytes_sent:119000000 \
bytes_retrans:144800 bytes_acked:118000000 segs_out:82000 data_segs_out:82000 send 79Mbps pacing_rate 95Mbps \
delivery_rate 94.5Mbps delivered:81400 busy:10400ms rwnd_limited:52ms(0.5%) unacked:420 retrans:0/100 snd_wnd:6291456 \
minrtt:40.1
"""
SS_S = 10.4 - 0.0401 / 2
"""The time over which what that socket counts was delivered."""
BBR = """\
ESTAB 0 0 [2001:db8::1]:443 [2001:db8::2]:5000
\t bbr wscale:7,7 rtt:50.2/2 mss:1428 cwnd:800 bytes_acked:60000000 data_segs_out:43000 retrans:0/400 busy:10000ms \
bbr:(bw:50Mbps,mrtt:40.1,pacing_gain:1,cwnd_gain:2) delivery_rate 49Mbps minrtt:40.1
"""


def iperf3(mbps: list[float], *, retransmits: int = 10, target: float = 0, sender: bool = True) -> dict[str, object]:
    """A report of one stream with these rates per second."""
    total = sum(mbps) * 1e6 / 8
    intervals = []
    for at, rate in enumerate(mbps):
        stream: dict[str, object] = {"socket": 5, "bits_per_second": rate * 1e6, "seconds": 1.0, "sender": sender}
        if sender:
            stream |= {"retransmits": retransmits // len(mbps), "rtt": 40_000 + at * 500, "snd_cwnd": 400_000}
        intervals.append({"streams": [stream], "sum": {**stream, "omitted": False}})
    sums = {"bytes": total, "bits_per_second": total * 8 / len(mbps), "seconds": float(len(mbps))}
    start = {"protocol": "TCP", "num_streams": 1, "omit": 0, "target_bitrate": target}
    return {
        "start": {"test_start": start, "tcp_mss_default": 1448},
        "intervals": intervals,
        "end": {
            "streams": [],
            "sum_sent": {**sums, "retransmits": retransmits},
            "sum_received": sums,
            "sender_tcp_congestion": "cubic",
        },
    }


def test_ss_chooses_the_connection_with_the_most_data_acknowledged() -> None:
    seen = from_ss(SS)
    assert "192.0.2.7:5201" in seen.what
    assert seen.cc == "cubic"
    assert seen.goodput_bps == pytest.approx(118e6 * 8 / SS_S)
    assert (seen.rtt_min_s, seen.rtt_mean_s) == (pytest.approx(0.0401), pytest.approx(0.0615))
    assert (seen.retransmits, seen.segments, seen.window_bytes) == (100, 82000, 6291456)
    assert seen.limited == {"receive window": pytest.approx(0.005)}
    assert seen.delivery_bps == pytest.approx(94.5e6)


def test_ss_chooses_the_connection_that_is_named_and_refuses_one_that_is_not_there() -> None:
    assert "10.0.0.9:50000" in from_ss(SS, connection="50000").what
    with pytest.raises(SawtoothError) as caught:
        from_ss(SS, connection="203.0.113.5")
    assert caught.value.code == "unknown-name"


def test_ss_on_one_line_is_read_as_on_two() -> None:
    assert from_ss(SS.replace("\n\t", " ")) == from_ss(SS)
    assert [look.cc for look in looks(SS)] == ["cubic", "cubic"]


def test_what_ss_counts_was_delivered_from_the_first_data_until_half_a_round_trip_ago() -> None:
    observed = from_ss(SS)
    path = middle(estimate(observed))
    asked = scenario(observed, estimate(observed), path, "cubic")
    assert observed.duration_s == pytest.approx(SS_S)
    assert observed.goodput_bps == pytest.approx(118e6 * 8 / observed.duration_s)
    assert asked.duration.seconds == pytest.approx(observed.duration_s + path.rtt_s, abs=1e-3)


def test_bbrs_own_filter_is_the_bottleneck_in_ss() -> None:
    seen = from_ss(BBR)
    found = estimate(seen)
    assert seen.cc == "bbr"
    assert found.rate.bound == ""
    assert found.rate.value == pytest.approx(50e6 * (1428 + 66) / 1428)
    assert found.rtt.value == pytest.approx(0.0401, rel=0.02)


def test_a_standing_queue_makes_the_delivery_rate_the_bottlenecks() -> None:
    found = estimate(from_ss(SS))
    assert found.rate.low < 94.5e6 * 1514 / 1448 < found.rate.high
    assert found.by_replay, "100 retransmissions may be random or at the full queue"
    assert found.queue.low > 100


def test_a_socket_that_waits_for_its_application_is_refused() -> None:
    idle = SS.replace("busy:10400ms", "app_limited busy:10400ms")
    with pytest.raises(SawtoothError) as caught:
        estimate(from_ss(idle))
    assert caught.value.code == "application-limited"


@pytest.mark.parametrize("text", ["", "hello", "State Recv-Q\n", "ESTAB 0 0 a:1 b:2\n\t cubic rtt:1/1 cwnd:10\n"])
def test_text_without_a_sending_socket_is_no_measurement(text: str) -> None:
    with pytest.raises(SawtoothError) as caught:
        from_ss(text)
    assert caught.value.code == "not-a-measurement"


def test_a_socket_without_any_throughput_is_no_measurement() -> None:
    bare = SS.replace("delivery_rate 94.5Mbps", "").replace("busy:10400ms", "")
    with pytest.raises(SawtoothError) as caught:
        estimate(from_ss(bare))
    assert caught.value.code == "not-a-measurement"


def test_iperf3s_plateau_is_the_bottleneck() -> None:
    found = estimate(from_iperf3(iperf3([60, 94, 94.2, 94.1, 94, 94.1, 94.2, 94, 94.1, 94])))
    assert found.rate.bound == ""
    assert found.rate.value == pytest.approx(94.1e6 * 1514 / 1448, rel=0.005)
    assert found.rtt.bound == "at most", "a queue may stand in a smoothed round trip"


def test_a_window_that_is_full_all_the_time_is_the_limit_and_no_plateau() -> None:
    report = iperf3([94.0] * 10)
    for one in report["intervals"]:
        one["streams"][0]["snd_wnd"] = 94e6 * 0.0425 / 8
    found = estimate(from_iperf3(report))
    assert found.rate.bound == "at least"
    assert found.window is not None


def test_without_a_plateau_the_rate_is_a_lower_bound() -> None:
    found = estimate(from_iperf3(iperf3([5, 9, 4, 7, 11, 6, 8, 5, 9, 6])))
    assert found.rate.bound == "at least"
    assert found.rate.low == pytest.approx(11e6 * 1514 / 1448)
    assert any("lower bound" in said for said in found.cannot_tell)


def test_any_part_of_the_retransmissions_may_be_of_a_full_queue() -> None:
    found = estimate(from_iperf3(iperf3([5, 9, 4, 7, 11, 6, 8, 5, 9, 6])))
    assert found.by_replay
    assert (found.loss.low, found.loss.bound) == (0, "at most")


def test_what_a_send_buffer_took_in_at_once_did_not_get_through_as_fast() -> None:
    report = iperf3([40, 9, 11, 9, 11, 9, 11, 9, 11, 10])
    report["end"]["sum_received"]["bytes"] -= 30e6 / 8
    assert from_iperf3(report).delivery_bps == pytest.approx(10e6)
    assert from_iperf3(iperf3([40, 9, 11, 9, 11, 9, 11, 9, 11, 10], sender=False)).delivery_bps == 40e6


@pytest.mark.parametrize("file", ["iperf3.json", "ss-cubic.txt", "ss-bbr.txt", "ss-one-line.txt"])
def test_the_intervals_of_a_measured_path_hold_what_it_was(file: str) -> None:
    # 20 Mbit/s of frames, 40 ms, 0.1% random loss, a queue of 66 packets: iperf3 3.12 with CUBIC and ss of iproute2
    # 6.1 over a path emulated between two network namespaces, Linux 6.18.
    seen = observe(MEASURED / file)
    assert seen.cc == ("bbr" if "bbr" in file else "cubic")
    found = estimate(seen)
    for quantity, value in ((found.rate, 20e6), (found.rtt, 0.040), (found.loss, 0.001)):
        assert quantity.low <= value <= quantity.high, quantity.how


@pytest.mark.parametrize(
    "rtt", ["rtt:61.5/12", "rtt:43/0.1"], ids=["that may be its jitter", "that is nearly the least"]
)
def test_a_round_trip_shows_no_standing_queue(rtt: str) -> None:
    assert estimate(from_ss(SS.replace("rtt:61.5/1.2", rtt))).rate.bound == "at least"


def test_the_time_to_send_two_segments_is_no_queue_in_ss() -> None:
    # 2 * 1448 bytes take 7.2 ms at 3.2 Mbit/s, and 1.2 ms at 19 Mbit/s.
    for rate, standing in (("3.2Mbps", 0), ("19Mbps", pytest.approx(0.77, abs=0.01))):
        look = SS.replace("94.5Mbps", rate).replace("rtt:61.5/1.2", "rtt:49/0.1")
        assert from_ss(look).standing == standing


def test_samples_whose_delivery_rates_differ_or_are_below_the_mean_show_no_busy_bottleneck() -> None:
    slower = SS.replace("delivery_rate 94.5Mbps", "delivery_rate 60Mbps")
    assert (from_ss(SS + SS).standing_bps, from_ss(SS + SS).standing) == (pytest.approx(94.5e6), 1)
    assert from_ss(slower + SS).standing == 0
    assert estimate(from_ss(slower)).rate.low == pytest.approx(118e6 * 8 / SS_S * 1514 / 1448)


def identification(*ranked: tuple[str, float], unknown: str | None = None) -> Identification:
    return Identification(tuple(((name,), share) for name, share in ranked), ranked, unknown)


@pytest.mark.parametrize(
    ("found", "cc", "how"),
    [
        (identification(("cubic", 0.72), ("htcp", 0.28)), "cubic", "identified, 89%"),
        (identification(("bbr", 0.9999)), "bbr", "identified, over 99%"),
        (identification(("reno", 0.6)), "reno", "identified as dctcp, lp or reno, 82%"),
        (identification(("htcp", 0.4), ("cubic", 0.3)), None, "not identified; best guess: cubic, 56%"),
        (identification(("yeah", 0.95)), None, "not identified; best guess: yeah, 95%"),
        (identification(("cubic", 0.99), unknown="too short"), None, "not identified: too short"),
    ],
)
def test_a_control_is_replayed_where_it_is_likely_and_the_simulator_has_it(
    found: Identification, cc: str | None, how: str
) -> None:
    assert identified(found) == (cc, how)


def test_the_text_says_how_the_control_is_known_or_why_it_is_not() -> None:
    seen = from_ss(BBR)
    found, test = estimate(seen), self_test(seen, [])
    for cc, how, said in (
        ("bbr", "identified, 97%", "bbr (identified, 97%)"),
        (None, "not identified: too short", "unknown (not identified: too short)"),
    ):
        assert said in words(dataclasses.replace(seen, cc=cc, cc_how=how), found, test, [answer("reno", 9, 9, 9)])


def test_nothing_of_an_estimate_is_below_what_got_through() -> None:
    assert Estimated(10, 5, 20, "").above(12) == Estimated(12, 12, 20, "")
    assert Estimated(10, 5, 20, "").above(4) == Estimated(10, 5, 20, "")
    assert Estimated(10, 5, 20, "").above(30) == Estimated(30, 30, 30, "")


def test_a_receivers_report_leaves_round_trip_and_loss_open() -> None:
    report = iperf3([94.0] * 10, sender=False)
    seen = from_iperf3(report)
    assert (seen.rtt_min_s, seen.retransmits) == (None, None)
    found = estimate(seen)
    assert found.rtt.low < 0.01 < found.rtt.high
    assert found.loss.bound == "at most"


def test_a_rate_that_iperf3_was_set_to_keep_says_nothing_of_the_path() -> None:
    with pytest.raises(SawtoothError) as caught:
        estimate(from_iperf3(iperf3([10.0] * 10, target=10e6)))
    assert caught.value.code == "application-limited"


@pytest.mark.parametrize(
    "report",
    [
        {},
        [],
        {"error": "unable to connect"},
        {"start": {"test_start": {"protocol": "UDP"}}},
        {"start": {"test_start": {"protocol": "TCP"}}, "end": {}, "intervals": []},
        {"start": {"test_start": {"protocol": "TCP"}}, "end": {"sum_sent": {"bytes": 1}}, "intervals": [{}]},
    ],
)
def test_json_that_is_no_whole_tcp_report_is_no_measurement(report: object) -> None:
    with pytest.raises(SawtoothError) as caught:
        from_iperf3(report)
    assert caught.value.code == "not-a-measurement"


def test_short_transfers_are_refused() -> None:
    seen = from_iperf3(iperf3([94.0, 94.0]))
    for short in (dataclasses.replace(seen, duration_s=1.0), dataclasses.replace(seen, segments=50)):
        with pytest.raises(SawtoothError) as caught:
            estimate(short)
        assert caught.value.code == "too-short"


def test_a_receive_window_that_was_the_limit_is_part_of_the_replay_and_reported() -> None:
    limited = SS.replace("rwnd_limited:52ms(0.5%)", "rwnd_limited:9000ms(86.5%)")
    seen = from_ss(limited)
    found = estimate(seen)
    assert found.window is not None
    assert found.window.value == 6291456
    assert any("receive window" in said for said in found.cannot_tell)
    host = scenario(seen, found, middle(found), "bbr").host
    assert host.receive_buffer.bytes == pytest.approx(6291456 * 256 / 162, rel=1e-6)


def test_a_send_buffer_that_was_the_limit_keeps_its_flight_in_the_replay() -> None:
    found = estimate(from_ss(SS.replace("rwnd_limited:52ms(0.5%)", "sndbuf_limited:9000ms(86.5%)")))
    assert found.window is not None
    assert found.window.value == pytest.approx(118e6 / SS_S * 0.0615)
    assert any("send buffer" in said for said in found.cannot_tell)


def test_plain_numbers_are_the_path() -> None:
    found = estimate(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="0.1%", queue="1 bdp"))
    assert (found.rate.value, found.rtt.value, found.loss.value, found.queue.value) == (50e6, 0.04, 0.001, 165)
    asked = scenario(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="0.1%"), found, middle(found), "reno")
    assert (
        asked.path_table
        == Scenario(path={"rate": "50 Mbit/s", "rtt": "40 ms", "loss": "0.1%"})
        .set({"path.queue": "165 packets"})
        .path_table
    )


@pytest.mark.parametrize(
    ("queue", "packets"), [("100 packets", 100), ("20 ms", 82), ("15140 bytes", 10), ("2 bdp", 330)]
)
def test_a_queue_in_any_unit_is_counted_in_packets(queue: str, packets: int) -> None:
    assert estimate(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="0%", queue=queue)).queue.value == packets


def test_the_interval_of_a_count_is_jeffreys() -> None:
    assert poisson_interval(0) == (0.0, pytest.approx(1.9207, abs=1e-3))
    low, high = poisson_interval(100)
    assert (low, high) == (pytest.approx(84.5, abs=1), pytest.approx(117.4, abs=1))


def test_draws_lie_in_their_interval_nine_times_of_ten() -> None:
    one = Estimated(10.0, 8.0, 20.0, "")
    rng = np.random.default_rng(1)
    drawn = np.array([one.draw(rng) for _ in range(4000)])
    assert ((drawn > 8) & (drawn < 20)).mean() == pytest.approx(0.9, abs=0.02)
    assert np.median(drawn) == pytest.approx(10, rel=0.03)


def test_a_bound_is_tried_up_to_its_other_end_and_a_share_never_below_nothing() -> None:
    rng = np.random.default_rng(1)
    bounded = [Estimated(10.0, 10.0, 50.0, "", "at least").draw(rng) for _ in range(1000)]
    assert 10 <= min(bounded) < 11
    assert 45 < max(bounded) <= 50
    none = [Estimated(0.0, 0.0, 1e-4, "").draw(rng) for _ in range(1000)]
    assert min(none) >= 0
    assert max(none) <= 1e-4
    assert min(Estimated(0.001, 0.0, 0.003, "").draw(rng) for _ in range(1000)) >= 0


def test_the_same_seed_draws_the_same_paths() -> None:
    found = estimate(from_ss(BBR))
    assert draw(found, 5, 3) == draw(found, 5, 3)
    assert draw(found, 5, 3) != draw(found, 5, 4)


def test_runs_of_losses_become_gilberts_model() -> None:
    found = estimate(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="1%"))
    bursty = dataclasses.replace(middle(found), burst=2.5)
    loss = scenario(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="1%"), found, bursty, "reno").path_table.loss
    assert isinstance(loss, LossPattern)
    assert loss.gilbert_elliott is not None
    p, r = loss.gilbert_elliott.p.probability, loss.gilbert_elliott.r.probability
    assert (r, p / (p + r)) == (pytest.approx(0.4), pytest.approx(0.01, rel=1e-4))


def test_replays_depend_on_the_seed_alone() -> None:
    seen = from_numbers(rate="10 Mbit/s", rtt="20 ms", loss="0.5%", duration="5 s", throughput="8 Mbit/s", cc="cubic")
    found = estimate(seen)
    first, second = (replay(seen, found, draws=3) for _ in range(2))
    assert (first.test, first.answers) == (second.test, second.answers)


def test_a_replay_of_numbers_gives_what_the_simulator_gives() -> None:
    seen = from_numbers(rate="20 Mbit/s", rtt="30 ms", loss="0%", queue="2 bdp", duration="10 s")
    replayed = replay(seen, estimate(seen), draws=2)
    test, answers = replayed.test, replayed.answers
    assert [one.cc for one in answers] == ["reno", "cubic", "bbr", "bbr3"]
    assert test.verdict == "none"
    for one in answers:
        assert 0.9 * 20e6 * 1448 / 1514 < one.median_bps < 20e6 * 1448 / 1514
        assert one.low_bps <= one.median_bps <= one.high_bps


def test_losses_that_only_the_replay_can_place_are_fitted_and_called_so() -> None:
    seen = dataclasses.replace(from_ss(SS), duration_s=6.0)
    replayed = replay(seen, estimate(seen), draws=3)
    test, answers = replayed.test, replayed.answers
    assert test.verdict == "fitted"
    assert len(answers[1].draws) == 3


def test_what_bbr_lost_may_spare_controls_that_follow_losses_if_only_totals_are_known() -> None:
    seen = dataclasses.replace(from_ss(BBR.replace("retrans:0/400", "retrans:0/2600")), duration_s=6.0)
    replayed = replay(seen, estimate(seen), controls=("cubic", "bbr"), draws=20)
    cubic, bbr = replayed.answers
    spared = [dataclasses.replace(path, loss=0.0) for path in replayed.paths]
    alone = predicted("cubic", replayed.results["cubic"])
    without = predicted("cubic", replayed.runs.of(spared, "cubic"))
    below, above = BY_TOTALS["another"]
    assert math.log(alone.low_bps / cubic.low_bps) == pytest.approx(below)
    assert math.log(cubic.high_bps / max(alone.high_bps, without.high_bps)) == pytest.approx(above)
    assert cubic.median_bps == alone.median_bps
    assert without.high_bps > 1.5 * alone.high_bps
    same = predicted("bbr", replayed.results["bbr"])
    below, above = BY_TOTALS["the same"]
    assert dataclasses.replace(bbr, low_bps=same.low_bps, high_bps=same.high_bps) == same
    assert math.log(same.low_bps / bbr.low_bps) == pytest.approx(below)
    assert math.log(bbr.high_bps / same.high_bps) == pytest.approx(above)


FAST = """\
ESTAB 0 774680 10.99.1.1:46106 198.51.100.7:443
\t cubic wscale:10,10 rto:264 rtt:{rtt}/{deviation} mss:1448 cwnd:40 bytes_acked:{acked} data_segs_out:{segments} \
retrans:0/{again} busy:{busy}ms rwnd_limited:{closed}ms({share}%) delivery_rate {delivery}bps minrtt:{least} \
snd_wnd:{window}
"""
LOOK: dict[str, float] = {
    "rtt": 60.233,
    "deviation": 0.4,
    "acked": 6_250_000,
    "segments": 4350,
    "again": 10,
    "busy": 10_000,
    "closed": 0,
    "share": 0,
    "delivery": 4.995e6,
    "least": 20.008,
    "window": 2_310_144,
}


def look(**given: float) -> Observed:
    """5 Mbit/s for 10 s, as ss prints it; other fields are as in ``LOOK``."""
    return from_ss(FAST.format(**LOOK | given))


def steps(field: str, low: float, high: float) -> list[dict[str, float]]:
    """One field, varied in steps of 1%."""
    count = math.ceil(math.log(high / low) / math.log(1.01))
    return [{field: low * (high / low) ** (at / count)} for at in range(count + 1)]


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [
        ("rtt", 21, 120),
        ("deviation", 0.1, 30),
        ("least", 10, 59),
        ("delivery", 3e6, 9e6),
        ("acked", 4e6, 9e6),
        ("busy", 6000, 14000),
        ("share", 5, 60),
        ("window", 1e4, 1e6),
    ],
)
def test_no_threshold_of_ss_flips_an_estimate(field: str, low: float, high: float) -> None:
    # Around each other threshold, too: a queue that barely persists, a bottleneck that is barely the fastest.
    for others in ({}, {"rtt": 23.7}, {"delivery": 4.3e6}, {"share": 20.0}):
        asked = [LOOK | others | one for one in steps(field, low, high)]
        # No smoothed round trip is below the minimum.
        seen = [look(**one) for one in asked if one["least"] <= one["rtt"]]
        found = [estimate(one) for one in seen]
        for one, next_ in itertools.pairwise(found):
            assert one.by_replay == next_.by_replay
            for name in ("rate", "rtt", "queue", "loss", "window"):
                before, after = one.quantities.get(name), next_.quantities.get(name)
                if before is None or after is None:
                    continue
                slack = 0.011 * after.value
                assert before.low - slack <= after.value <= before.high + slack, (name, before, after)
                assert after.low - slack <= before.value <= after.high + slack, (name, before, after)


@pytest.mark.parametrize("field", [name for name, value in LOOK.items() if value])
@pytest.mark.usefixtures("patience")
def test_one_percent_of_any_field_of_ss_changes_no_answer_by_more_than_its_interval(field: str) -> None:
    # The delivery rate is just below and just above goodput, where one comparison used to decide.
    told = []
    for part in (1.0, 0.99, 1.01):
        seen = look(**{field: LOOK[field] * part if field != "again" else round(LOOK[field] * 10 * (part - 0.9))})
        replayed = replay(seen, estimate(seen), draws=5)
        test, answers = replayed.test, replayed.answers
        told.append((test.verdict, {one.cc: one for one in answers}))
    (verdict, answers), *others = told
    assert answers
    for other, changed in others:
        assert (other, changed.keys()) == (verdict, answers.keys())
        for cc, one in answers.items():
            assert one.low_bps * 0.99 <= changed[cc].median_bps <= one.high_bps * 1.01
            assert changed[cc].open == one.open


def test_intervals_of_whole_blocks_tell_the_rate_within_one_block() -> None:
    block = 128 * 1024 * 8.0
    equal = Observed("iperf3", "", goodput_bps=7.6e6, duration_s=10.0, rates_bps=np.full(10, 7 * block), rtt_min_s=0.05)
    coarse = estimate(dataclasses.replace(equal, rates_step_bps=block)).rate
    assert (coarse.low / coarse.value, coarse.high / coarse.value) == pytest.approx((6 / 7, 8 / 7))
    fine = estimate(equal).rate
    assert fine.high == pytest.approx(1.01 * fine.value)


def test_a_delivery_rate_half_a_percent_apart_gives_the_same_answers() -> None:
    below, above = (estimate(look(delivery=bps)) for bps in (4.9946e6, 5.021e6))
    assert below.rate.value == pytest.approx(above.rate.value, rel=0.01)
    assert below.rate.bound == above.rate.bound == ""


@pytest.mark.usefixtures("patience")
def test_where_the_rate_is_only_a_lower_bound_what_follows_it_has_no_number() -> None:
    # There is no standing queue, and it may be five times as fast.
    seen = look(rtt=20.5, delivery=4e6, again=0)
    found = estimate(seen)
    replayed = replay(seen, found, draws=6)
    test, answers = replayed.test, replayed.answers
    assert found.rate.bound == "at least"
    said = words(seen, found, test, answers)
    # Reno and CUBIC would have to have been this slow for another reason, which limits them at any rate.
    (one,) = [one for one in answers if one.cc == "bbr"]
    assert one.open
    assert one.describe()["goodput_bps"] is None
    assert "not answered: what bbr gets" in said
    assert "bbr  " not in said.split("expected goodput")[-1]


def test_a_fit_that_does_not_come_near_fails() -> None:
    seen = look()
    for median, verdict in ((5.2e6, "fitted"), (7.4e6, "fails")):
        got = [answer("cubic", median, median * 0.98, median * 1.02)]
        assert self_test(seen, got, fitted=True).verdict == verdict


def answer(cc: str, median: float, low: float, high: float) -> Answer:
    return Answer(cc, median, low, high, 0.0, (low, median, high))


@pytest.mark.parametrize(
    ("seen", "verdict"), [(100.0, "agrees"), (93.0, "agrees"), (80.0, "roughly"), (40.0, "fails"), (170.0, "fails")]
)
def test_the_self_test_says_how_far_the_replay_is_off(seen: float, verdict: str) -> None:
    observed = Observed("ss", "", goodput_bps=seen, cc="cubic")
    found = self_test(observed, [answer("cubic", 100, 95, 105)])
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(100 / seen)


def test_without_the_control_the_self_test_names_those_that_explain_the_throughput() -> None:
    answers = [answer("reno", 10, 9, 11), answer("cubic", 11, 9, 12), answer("bbr", 90, 80, 95)]
    unknown = Observed("capture", "", goodput_bps=10)
    assert "reno and cubic would explain" in self_test(unknown, answers).words
    assert self_test(dataclasses.replace(unknown, goodput_bps=500), answers).verdict == "fails"
    assert math.isnan(self_test(dataclasses.replace(unknown, cc="vegas"), answers).ratio)


def test_the_saved_scenario_is_the_estimates_middle(tmp_path: Path) -> None:
    seen = from_ss(BBR)
    found = estimate(seen)
    asked = save_scenario(tmp_path / "path.toml", seen, found)
    loaded = Scenario.load(tmp_path / "path.toml")
    assert loaded == asked
    assert loaded.flows[0].cc == "bbr"
    assert loaded.path_table.rate.bps == round(found.rate.value)


def test_the_text_has_the_observation_first_then_the_estimate_the_test_and_the_controls() -> None:
    seen = from_ss(BBR)
    found = estimate(seen)
    said = words(seen, found, self_test(seen, []), [answer("reno", 10e6, 9e6, 11e6)])
    order = [said.index(part) for part in ("observed", "estimate of the path", "self-test", "expected goodput")]
    assert order == sorted(order)
    assert "48.1 Mbit/s" in said
    assert "9 Mbit/s … 11 Mbit/s" in said


def test_the_command_answers_from_numbers(tmp_path: Path) -> None:
    arguments = ["--rate", "5 Mbit/s", "--rtt", "20 ms", "--loss", "0.5%", "--queue", "1 bdp", "--duration", "4 s"]
    arguments += ["--throughput", "4 Mbit/s", "--cc", "reno", "--draws", "2", "--scenario", str(tmp_path / "s.toml")]
    done = CliRunner().invoke(whatif, [*arguments, "--json"], catch_exceptions=False)
    told = json.loads(done.output)
    assert told["observed"]["goodput_bps"] == 4e6
    assert told["estimate"]["rate"]["value"] == 5e6
    assert told["self_test"]["verdict"] in ("agrees", "roughly", "fails")
    assert [one["cc"] for one in told["answers"]] == ["reno", "cubic", "bbr", "bbr3"]
    assert Scenario.load(tmp_path / "s.toml").flows[0].cc == "reno"


@pytest.mark.parametrize(
    "arguments",
    [[], ["--rate", "5 Mbit/s"], ["FILE", "--rate", "5 Mbit/s"], ["--connection", "1", "--rate", "1 Mbit/s"]],
)
def test_the_command_takes_an_input_or_the_numbers(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "ss.txt"
    file.write_text(SS)
    given = [str(file) if one == "FILE" else one for one in arguments]
    done = CliRunner().invoke(whatif, given)
    assert isinstance(done.exception, SawtoothError)
    assert done.exception.code == "bad-usage"


def test_inputs_are_distinguished_by_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(json.dumps(iperf3([94.0] * 10)))
    (tmp_path / "b").write_text(SS)
    assert observe(tmp_path / "a").source == "iperf3"
    assert observe(tmp_path / "b").source == "ss"
    for content in ("{", "neither"):
        (tmp_path / "c").write_text(content)
        with pytest.raises(SawtoothError) as caught:
            observe(tmp_path / "c")
        assert (caught.value.code, caught.value.file) == ("not-a-measurement", str(tmp_path / "c"))
    with pytest.raises(SawtoothError) as caught:
        observe(tmp_path / "absent")
    assert caught.value.code == "file-not-found"


def test_standard_input_is_read_whole(tmp_path: Path) -> None:
    done = CliRunner().invoke(whatif, ["-", "--draws", "2", "--json"], input=BBR, catch_exceptions=False)
    assert json.loads(done.output)["observed"]["cc"] == "bbr"


def test_round_trips_that_contradict_each_other_are_refused() -> None:
    observed = Observed(source="capture", what="", duration_s=20.0, segments=5000, rtt_min_s=0.422, rtt_mean_s=0.266)
    with pytest.raises(SawtoothError, match="contradict") as caught:
        observed.check()
    assert caught.value.code == "not-a-measurement"


def test_a_replay_whose_handshake_never_ends_gets_nothing() -> None:
    seen = look()
    lossy = Drawn(seed=1, rate_bps=5e6, rtt_s=0.02, queue=20, loss=0.0, burst=1.0, ack_loss=1.0)
    (one,) = Runs(seen, estimate(seen)).of([lossy], "reno")
    assert (one.goodput_bps, one.rtt_mean_s) == (0.0, 0.02)
    assert predicted("reno", [one] * 24).low_bps == 0.0
