"""What if, from totals: what ss and iperf3 show of a path, and how sure that is."""

import dataclasses
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from expected_error import expected_error
from sawtooth.whatif import Estimated, estimate, observe, replay, words
from sawtooth.whatif.arrivals import Arrival, arrival, queued
from sawtooth.whatif.iperf3 import from_iperf3
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.replay import BY_TOTALS, predicted
from sawtooth.whatif.runs import middle, scenario
from sawtooth.whatif.ss import from_ss, parse_sockets

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
    with expected_error(code="unknown-name"):
        from_ss(SS, connection="203.0.113.5")


def test_ss_on_one_line_is_read_as_on_two() -> None:
    assert from_ss(SS.replace("\n\t", " ")) == from_ss(SS)
    assert [look.cc for look in parse_sockets(SS)] == ["cubic", "cubic"]


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
    with expected_error(code="application-limited"):
        estimate(from_ss(idle))


@pytest.mark.parametrize("text", ["", "hello", "State Recv-Q\n", "ESTAB 0 0 a:1 b:2\n\t cubic rtt:1/1 cwnd:10\n"])
def test_text_without_a_sending_socket_is_no_measurement(text: str) -> None:
    with expected_error(code="not-a-measurement"):
        from_ss(text)


def test_a_socket_without_any_throughput_is_no_measurement() -> None:
    bare = SS.replace("delivery_rate 94.5Mbps", "").replace("busy:10400ms", "")
    with expected_error(code="not-a-measurement"):
        estimate(from_ss(bare))


def test_iperf3s_plateau_is_the_bottleneck() -> None:
    found = estimate(from_iperf3(iperf3([60, 94, 94.2, 94.1, 94, 94.1, 94.2, 94, 94.1, 94])))
    assert found.rate.bound == ""
    assert found.rate.value == pytest.approx(94.1e6 * 1514 / 1448, rel=0.005)
    assert found.rtt.bound == "at most", "a smoothed round trip may include a queue"


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
    # The mean of the last six seconds: a single one may have filled the send buffer.
    assert found.rate.low == pytest.approx(7.5e6 * 1514 / 1448)
    assert any("lower bound" in said for said in found.cannot_tell)


def test_any_part_of_the_retransmissions_may_be_of_a_full_queue() -> None:
    found = estimate(from_iperf3(iperf3([5, 9, 4, 7, 11, 6, 8, 5, 9, 6])))
    assert found.by_replay
    assert (found.loss.low, found.loss.bound) == (0, "at most")


def test_what_a_send_buffer_took_in_at_once_did_not_get_through_as_fast() -> None:
    report = iperf3([40, 9, 11, 9, 11, 9, 11, 9, 11, 10])
    report["end"]["sum_received"] |= {"bytes": 100e6 / 8, "bits_per_second": 10e6}
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


def test_a_receivers_report_leaves_round_trip_and_loss_open() -> None:
    report = iperf3([94.0] * 10, sender=False)
    seen = from_iperf3(report)
    assert (seen.rtt_min_s, seen.retransmits) == (None, None)
    found = estimate(seen)
    assert found.rtt.low < 0.01 < found.rtt.high
    assert found.loss.bound == "at most"


def test_a_rate_that_iperf3_was_set_to_keep_says_nothing_of_the_path() -> None:
    with expected_error(code="application-limited"):
        estimate(from_iperf3(iperf3([10.0] * 10, target=10e6)))


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
    with expected_error(code="not-a-measurement"):
        from_iperf3(report)


def test_short_transfers_are_refused() -> None:
    seen = from_iperf3(iperf3([94.0, 94.0]))
    for short in (dataclasses.replace(seen, duration_s=1.0), dataclasses.replace(seen, segments=50)):
        with expected_error(code="too-short"):
            estimate(short)


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


@pytest.mark.usefixtures("patience")
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
    # On a changed path the observed control is no surer than another.
    changed = replayed.answer("bbr", replayed.results["bbr"], replayed.paths, {})
    assert math.log(same.low_bps / changed.low_bps) == pytest.approx(BY_TOTALS["another"][0])


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


def socket_took(arrived: float, held: list[float], block: float = 131072.0) -> Arrival:
    """A transfer of ten seconds at ``arrived`` bytes/s, of which the socket held so much after each second. Windows are
    a quarter of that."""
    buffer = np.array([0.0, *held])
    taken = arrived + np.diff(buffer)
    found = arrival(
        np.ones(10),
        np.round(taken.cumsum() / block) * block - np.concatenate([[0], np.round(taken.cumsum() / block) * block])[:-1],
        np.array(held) / 4,
        uncounted=held[-1],
        after_s=0.02,
        goodput_bps=arrived * 8 * 0.98,
        block=block,
    )
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(20))
def test_what_arrived_is_within_what_the_send_buffer_may_have_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # The buffer is between two thirds and all of what it can hold, from the first second on.
    capacity = rng.uniform(0.1e6, 2e6)
    found = socket_took(rate := rng.uniform(1e6, 20e6), (capacity * rng.uniform(2 / 3, 1, 10)).tolist())
    assert found.low <= rate * 8 <= found.high
    assert found.low <= found.value <= found.high
    assert found.consistent


def test_what_filled_the_buffer_did_not_arrive() -> None:
    found = socket_took(1e6, [1e6 + 0.3e6 * at for at in range(10)])
    assert found.low <= 8e6 <= found.high


def test_a_round_trip_that_follows_the_window_shows_a_queue_and_a_steady_one_does_not() -> None:
    windows = np.array([50.0, 60, 70, 80, 50, 60, 70, 80])
    assert queued(windows, windows / 1000)
    assert not queued(windows, np.full(8, 0.05))
    assert not queued(windows, windows[::-1] / 1000)


def test_without_the_receivers_total_the_window_bounds_the_buffer() -> None:
    report = json.loads((MEASURED / "iperf3.json").read_text())
    whole = from_iperf3(report).arrival
    report["end"]["sum_received"] = {}
    part = from_iperf3(report).arrival
    assert whole is not None
    assert part is not None
    assert part.low < whole.low
    assert part.high > whole.high


@pytest.mark.parametrize("windows", [None, np.zeros(10)])
def test_where_nothing_bounds_the_send_buffer_there_is_no_rate_of_arrival(windows: np.ndarray | None) -> None:
    def found(uncounted: float | None) -> Arrival | None:
        totals = np.ones(10), np.full(10, 1e6)
        return arrival(*totals, windows, uncounted=uncounted, after_s=0.02, goodput_bps=7.8e6, block=131072.0)

    assert found(None) is None
    known = found(0.2e6)
    assert known is not None
    assert known.low <= 8e6 <= known.high


@pytest.mark.parametrize("seconds", [[0.0] * 10, [20.0, 0.5, 0.5, 0.5, 0.5, 0.5]])
def test_intervals_without_a_long_stretch_give_no_rate_of_arrival(seconds: list[float]) -> None:
    report = iperf3([94.0] * len(seconds))
    for one, took in zip(report["intervals"], seconds, strict=True):
        one["sum"]["seconds"] = took
    seen = from_iperf3(report)
    assert seen.arrival is None
    assert estimate(seen).rate.bound == "at least"


def test_a_transfer_that_stopped_has_a_lower_bound() -> None:
    assert estimate(from_iperf3(iperf3([94.0, *[0.0] * 9]))).rate.bound == "at least"


def test_a_receivers_intervals_are_what_arrived() -> None:
    seen = from_iperf3(iperf3([94.0] * 10, sender=False))
    assert seen.arrival is None
    assert estimate(seen).rate.high == pytest.approx(1.01 * estimate(seen).rate.value)


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


def test_an_iperf3_round_trip_bounds_the_base_unless_it_hardly_varies() -> None:
    def base(largest_s: float) -> Estimated:
        seen = Observed(
            "iperf3",
            "a report",
            goodput_bps=20e6,
            duration_s=10.0,
            rtt_min_s=0.04,
            rtt_max_s=largest_s,
            rtt_smoothed=True,
        )
        return estimate(seen).rtt

    varied, steady = base(0.05), base(0.041)
    assert (varied.bound, varied.high) == ("at most", 0.04)
    assert steady.bound == ""
    assert steady.low <= 0.039 <= steady.high


def looks(*mbps: float, rtt: str = "61.5/1.2") -> str:
    return "".join(SS.replace("94.5Mbps", f"{one}Mbps").replace("rtt:61.5/1.2", f"rtt:{rtt}") for one in mbps)


def test_a_delivery_rate_that_never_changes_while_a_queue_stands_shows_that_nobody_else_uses_the_path() -> None:
    seen = from_ss(looks(94.5, 94.5, 94.6, 94.5))
    assert seen.alone
    rate = estimate(seen).rate
    assert (rate.low / rate.value, rate.high / rate.value) == pytest.approx((0.98, 1.02))
    for others in (
        looks(94.5, 94.5, 80, 94.5),
        looks(94.5, 94.0, 93, 95.1),
        looks(94.5, 94.5),
        looks(94.5, 94.5, 94.5, 94.5, rtt="41/0.1"),
    ):
        assert not from_ss(others).alone


@pytest.mark.usefixtures("patience")
def test_where_nobody_else_uses_the_path_an_interval_has_no_margins() -> None:
    alone = look()
    for one, seen in ((BY_TOTALS["another"], alone), ((0.0, 0.0), dataclasses.replace(alone, alone=True))):
        # The same path for both: without a control nothing is fitted.
        seen = dataclasses.replace(seen, cc=None, duration_s=3.0)
        found = replay(seen, estimate(alone), controls=["cubic"], draws=8)
        bare = predicted("cubic", found.results["cubic"])
        (told,) = found.answers
        assert told.low_bps == pytest.approx(bare.low_bps * math.exp(-one[0]))
        assert told.high_bps == pytest.approx(bare.high_bps * math.exp(one[1]))
