"""Engine kernel on all features of scenarios beyond one flow on one path, against arithmetic and the simulator."""

from typing import Any

import numpy as np
import pytest

from sawtooth import engines
from sawtooth.engines.kernel import series
from sawtooth.run import Run
from sawtooth.scenario import LINUX_CONTROLS, Scenario
from tests.one_guest import OneGuest

pytestmark = pytest.mark.usefixtures("kernel")

FRAME_BYTES, PAYLOAD_BYTES, SYN_BYTES, PROBE_BYTES = 1514, 1448, 74, 98
"""As Linux counts them: a full segment, what it carries, a SYN, an echo request of 64 bytes."""
CLOCK_S = 10e-6
"""The most that a guest's clock advances while programs read it, in the worst case seen."""


GUEST = OneGuest()


@pytest.fixture
def both(measured: Run) -> tuple[Run, Run]:
    """On the kernel and on the simulator."""
    return measured, engines.get("sim").run(measured.scenario)


def run(engine: str, **tables: Any) -> Run:
    return engines.get(engine).run(Scenario(**{"traffic": "native", **tables}))


def mbps(run: Run, flow: int | None = None) -> float:
    """Mean goodput in the second half of the run, of all flows or one, in Mbit/s."""
    table = run.tables["intervals"]
    kept = table[table["t_s"] > table["t_s"].max() / 2]
    kept = kept if flow is None else kept[kept["flow"] == flow]
    return float(kept.groupby("t_s")["goodput_bps"].sum().mean() / 1e6)


def custom(hosts: str, links: list[dict[str, Any]], **tables: Any) -> dict[str, Any]:
    return {"topology": "custom", "hosts": {name: {} for name in hosts}, "links": links, **tables}


def test_runs_of_one_guest_are_the_same_each_time_and_whatever_ran_before() -> None:
    link = {"from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "10 ms"}
    tables = custom("ab", [link], duration="500 ms", interval="50 ms", traffic="native", host={"processing": "20 us"})
    one = Scenario(**tables, flows=[{"from": "a", "to": "b"}])
    other = Scenario(**tables, flows=[{"from": "a", "to": "b", "cc": "bbr"}])
    runs = [made for made in series([one, other, one]) if isinstance(made, Run)]
    assert len(runs) == 3
    assert runs[0].tables["intervals"].equals(runs[2].tables["intervals"])
    cwnd = [made.tables["tcp_info"]["cwnd_segments"].max() for made in runs]
    assert cwnd[0] == cwnd[2] != cwnd[1]
    again = [made for made in series([one, other, one]) if isinstance(made, Run)]
    for before, after in zip(runs, again, strict=True):
        assert all(before.tables[name].equals(after.tables[name]) for name in before.tables)


@GUEST.scenario(
    topology="dumbbell",
    dumbbell={"pairs": 4, "rate": "50 Mbit/s", "rtt": "20 ms", "loss": "0.2%"},
    duration="15 s",
    flows=[{"from": "s*", "to": "r*", "count": 8}],
    probes=[{"from": "s2", "to": "r3", "interval": "100 ms"}],
)
def test_flows_of_a_dumbbells_pairs_share_the_bottleneck(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    assert measured.meta["names"]["flow"] == [f"cubic@s{pair}" for pair in range(1, 5)]
    assert mbps(measured) == pytest.approx(50 * PAYLOAD_BYTES / FRAME_BYTES, rel=0.01)
    assert all(mbps(measured, flow) > 0.5 * mbps(measured) / 4 for flow in range(4))
    for made in (measured, simulated):
        rtt_s = made.tables["probes"]["rtt_s"]
        assert rtt_s.min() == pytest.approx(0.020 + 2 * PROBE_BYTES * 8 / 50e6, abs=CLOCK_S)
    assert measured.tables["probes"]["rtt_s"].mean() == pytest.approx(
        simulated.tables["probes"]["rtt_s"].mean(), rel=0.05
    )
    assert measured.tables["tcp_info"]["srtt_s"].mean() == pytest.approx(
        simulated.tables["tcp_info"]["srtt_s"].mean(), rel=0.05
    )


SLOW = {"to": "c", "rate": "10 Mbit/s", "queue": "50 packets", "overhead": "24 bytes", "delay": "4 ms"}
SENDING = {"flows": [{"from": "a", "to": "c"}], "duration": "8 s"}


@GUEST.cases(
    sends=custom("ac", [{"from": "a", **SLOW}], **SENDING),
    forwards=custom("abc", [{"from": "a", "to": "b", "delay": "1 ms"}, {"from": "b", **SLOW}], **SENDING),
)
def test_a_links_overhead_takes_its_share_of_the_rate(measured: Run) -> None:
    assert mbps(measured) == pytest.approx(10 * PAYLOAD_BYTES / (FRAME_BYTES + 24), rel=0.001)
    hops_before = len(measured.scenario.links) - 1
    handshake_s = 0.008 + 0.002 * hops_before + 2 * (SYN_BYTES + 24) * 8 / 10e6
    assert measured.tables["tcp_info"]["min_rtt_s"].iloc[-1] == pytest.approx(handshake_s, abs=CLOCK_S)


DELAYS_MS = {"a": 1, "b": 5, "c": 20}


@GUEST.scenario(
    **custom(
        "habc",
        [{"from": "h", "to": name, "delay": f"{delay} ms"} for name, delay in DELAYS_MS.items()],
        cards={"h": {"rate": "100 Mbit/s", "queue": "200 packets"}},
        flows=[{"from": "h", "to": name} for name in DELAYS_MS],
        probes=[{"from": "h", "to": name, "count": 1} for name in DELAYS_MS],
        duration="6 s",
    )
)
def test_links_of_different_delay_on_one_card_share_its_rate_and_keep_their_delays(measured: Run) -> None:
    assert mbps(measured) == pytest.approx(100 * PAYLOAD_BYTES / FRAME_BYTES, rel=0.003)
    for number, delay in enumerate(DELAYS_MS.values()):
        rtt_s = measured.tables["probes"].query("probe == @number")["rtt_s"].item()
        # Three probes and three SYNs leave at once, through one transmitter.
        sent_before_s = 3 * (PROBE_BYTES + SYN_BYTES) * 8 / 100e6
        assert 2e-3 * delay < rtt_s < 2e-3 * delay + sent_before_s + CLOCK_S
        assert mbps(measured, number) > 2
    (sent,) = measured.tables["queues"].groupby("transmitter")["sent_packets"].sum()
    assert sent == pytest.approx(measured.tables["intervals"]["segments_out"].sum(), rel=0.01)


def transmitting(*, shared: bool, loss: str) -> dict[str, Any]:
    """A card of several links, or a link's own transmitter; with loss where TCP sends, if any."""
    transmitter = {"rate": "10 Mbit/s", "queue": "100 packets"}
    link = {"from": "a", "to": "c", "delay": "5 ms", "loss": loss, **({} if shared else transmitter)}
    cards = {"cards": {"a": transmitter}} if shared else {}
    return custom("abc", [{"from": "a", "to": "b"}, link], flows=[{"from": "a", "to": "c"}], duration="4 s", **cards)


@GUEST.cases(
    card=transmitting(shared=True, loss="0%"),
    card_with_loss=transmitting(shared=True, loss="0.001%"),
    own=transmitting(shared=False, loss="0%"),
    own_with_loss=transmitting(shared=False, loss="0.001%"),
)
def test_a_transmitter_has_its_rate_and_packets_wait_in_its_queue_alone(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    assert mbps(measured) == pytest.approx(10 * PAYLOAD_BYTES / FRAME_BYTES, rel=0.001)
    for one, other in zip(measured.tables["tcp_info"]["srtt_s"], simulated.tables["tcp_info"]["srtt_s"], strict=True):
        assert one == pytest.approx(other, abs=100e-6)


@GUEST.cases(
    **{
        kind: {
            "topology": "chain",
            "chain": {"rate": "50 Mbit/s", "rtt": "10 ms", "queue": {"kind": kind}},
            "duration": "6 s",
        }
        for kind in ("codel", "fq_codel", "pie")
    }
)
def test_queues_of_a_kind_on_a_chains_cards_hold_the_delay_down(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    assert mbps(measured) == pytest.approx(mbps(simulated), rel=0.01)
    longest_s = [made.tables["tcp_info"]["srtt_s"].max() for made in (measured, simulated)]
    assert longest_s[0] < 1.1 * longest_s[1]


@GUEST.scenario(path={"rate": "50 Mbit/s", "rtt": "20 ms", "queue": "170 packets", "ack_loss": "20%"}, duration="8 s")
def test_lost_acknowledgements_alone_do_not_slow_a_flow(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    assert mbps(measured) == pytest.approx(50 * PAYLOAD_BYTES / FRAME_BYTES, rel=0.002)
    lost = [int(made.tables["links"]["lost"].sum()) for made in (measured, simulated)]
    assert lost[0] == pytest.approx(lost[1], rel=0.08)
    # At least every other segment is acknowledged.
    assert lost[0] == pytest.approx(0.2 * measured.tables["flows"]["segments_out"].sum() / 2, rel=0.12)


@GUEST.scenario(
    path={"rate": "50 Mbit/s", "rtt": "20 ms", "queue": "170 packets", "loss": "1%", "ack_loss": "10%"},
    duration="20 s",
    flows=[{"count": 8}],
)
def test_losses_in_both_directions_give_the_simulators_throughput(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    means = [made.tables["intervals"]["goodput_bps"].mean() / 1e6 for made in (measured, simulated)]
    assert 20 < means[0] < 47, "the losses are the limit, not the rate"
    assert means[0] == pytest.approx(means[1], rel=0.06)
    forward, backward = (measured.tables["links"].groupby("link")["lost"].sum().sort_index()).tolist()
    segments = measured.tables["flows"]["segments_out"].sum()
    assert forward == pytest.approx(0.01 * segments, rel=0.12)
    assert backward == pytest.approx(0.1 * segments / 2, rel=0.12)


@GUEST.scenario(
    path={"rate": "100 Mbit/s", "rtt": "20 ms", "queue": "170 packets"},
    duration="15 s",
    flows=[{"cc": "cubic", "count": 3}, {"cc": "reno", "count": 2}, {"cc": "bbr"}],
)
def test_congestion_controls_with_counts_share_as_in_the_simulator(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    assert measured.meta["congestion_control_used"] == {"cubic": "cubic", "reno": "reno", "bbr": "bbr"}
    assert measured.tables["flows"].groupby("flow")["connection"].nunique().tolist() == [3, 2, 1]
    assert mbps(simulated) == pytest.approx(100 * PAYLOAD_BYTES / FRAME_BYTES, rel=0.015)
    assert mbps(measured) == pytest.approx(mbps(simulated), rel=0.01)
    for flow, share in enumerate((0.05, 0.03, 0.05)):
        assert mbps(measured, flow) == pytest.approx(mbps(simulated, flow), abs=100 * share)


@GUEST.scenario(
    path={"rate": "100 Mbit/s", "rtt": "20 ms", "queue": "400 packets"},
    duration="4 s",
    flows=[{"count": 1000, "replace": {"lifetime": ["1 s", "3 s"]}}],
    probes=[{"interval": "50 ms"}],
)
def test_a_thousand_short_connections_are_replaced_as_in_the_simulator(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    assert mbps(measured) == pytest.approx(mbps(simulated), rel=0.05)
    ends, others = measured.tables["flows"], simulated.tables["flows"]
    assert len(ends) == pytest.approx(len(others), rel=0.05)
    # A thousand are open at any time.
    for at in (1.5, 2.5, 3.5):
        assert ((ends["start_s"] <= at) & (ends["end_s"] > at)).sum() == pytest.approx(1000, abs=2)
    waits_s = [made.tables["probes"]["rtt_s"].dropna().mean() for made in (measured, simulated)]
    assert waits_s[0] == pytest.approx(waits_s[1], rel=0.05)


ON_AND_OFF = {"kind": "on-off", "rate": "14 Mbit/s", "on": "1 s", "off": "1 s", "write": "64 kB"}


@GUEST.cases(
    **{
        cc: {
            "path": {"rate": "10 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"},
            "duration": "10 s",
            "flows": [{"cc": cc, "source": ON_AND_OFF}],
        }
        for cc in ("reno", "cubic", "bbr")
    }
)
def test_an_application_that_is_on_and_off_is_sent_as_in_the_simulator(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    assert mbps(measured) == pytest.approx(mbps(simulated), rel=0.01)
    ends, others = measured.tables["flows"].iloc[0], simulated.tables["flows"].iloc[0]
    assert ends["delivered_bytes"] == pytest.approx(others["delivered_bytes"], rel=0.01)
    assert ends["retransmits"] == pytest.approx(others["retransmits"], abs=2, rel=0.05)
    infos = [made.tables["tcp_info"]["cwnd_segments"] for made in (measured, simulated)]
    assert infos[0].mean() == pytest.approx(infos[1].mean(), rel=0.05)


@GUEST.scenario(
    path={"rate": "100 Mbit/s", "rtt": "20 ms", "queue": "400 packets"},
    duration="4 s",
    flows=[
        {"bytes": "10 MB"},
        {"bytes": "14480 bytes", "start": "3 s"},
        {"bytes": "300 kB", "count": 20, "start": "1.5 s"},
    ],
)
def test_flows_of_so_many_bytes_deliver_these_and_end(both: tuple[Run, Run]) -> None:
    measured, simulated = both
    table = measured.tables["flows"]
    assert table.groupby("flow")["delivered_bytes"].agg(["min", "max", "size"]).to_numpy().tolist() == [
        [10_000_000, 10_000_000, 1],
        [14_480, 14_480, 1],
        [300_000, 300_000, 20],
    ]
    assert table["completed"].all()
    took = table["end_s"] - table["start_s"]
    line_rate_s = 10e6 * 8 / (100e6 * PAYLOAD_BYTES / FRAME_BYTES)
    assert line_rate_s < took[table["flow"] == 0].item() < line_rate_s + 8 * 0.02, "slow start costs a few round trips"
    # SYN, ten segments of the initial window, FIN and its answer.
    assert took[table["flow"] == 1].item() == pytest.approx(0.06, abs=0.002)
    others = simulated.tables["flows"]
    last = [made[made["flow"] == 2]["end_s"].max() - 1.5 for made in (table, others)]
    assert last[0] == pytest.approx(last[1], rel=0.1)


@GUEST.scenario(
    path={"rate": "10 Mbit/s", "rtt": "30 ms", "loss": "10%", "ack_loss": "20%"},
    duration="10 s",
    flows=[{"bytes": "1448 bytes", "start": "9.9 s"}],
    probes=[{"interval": "10 ms", "count": 900}],
)
def test_probes_take_the_sum_of_delays_and_are_lost_both_ways(measured: Run) -> None:
    rtt_s = measured.tables["probes"]["rtt_s"]
    assert len(rtt_s) == 900
    # Four standard deviations of 900 draws.
    assert rtt_s.isna().mean() == pytest.approx(1 - 0.9 * 0.8, abs=0.06)
    expected_s = 0.030 + PROBE_BYTES * 8 / 10e6
    assert rtt_s.min() == pytest.approx(expected_s, abs=CLOCK_S)
    assert rtt_s.max() == pytest.approx(expected_s, abs=CLOCK_S)


def test_tail_probes_are_counted_by_host_where_flows_share_one() -> None:
    path = {"rate": "50 Mbit/s", "rtt": "20 ms", "loss": "5%"}
    short = {"bytes": "100 kB", "count": 20}
    alone = run("kernel", path=path, duration="5 s", flows=[short])
    counted = alone.tables["intervals"][["timeouts", "tail_probes", "window_probes"]].sum().to_dict()
    assert alone.meta["hosts"] == {"sender": counted}
    assert counted["tail_probes"] > 5
    shared = run("kernel", path=path, duration="5 s", flows=[short, {**short, "cc": "reno"}])
    assert shared.tables["intervals"]["tail_probes"].isna().all()
    assert shared.tables["flows"]["tail_probes"].isna().all()
    assert shared.meta["hosts"]["sender"]["tail_probes"] > 10


PAUSING = {"rate": "20 Mbit/s", "read": "64 kB", "on": "1 s", "off": "6 s"}


@GUEST.cases(
    **{
        cc: {
            "path": {"rate": "20 Mbit/s", "rtt": "40 ms"},
            "duration": "21 s",
            "flows": [{"cc": cc, "reader": PAUSING}],
        }
        for cc in ("reno", "bbr")
    }
)
def test_a_reader_that_pauses_closes_the_window_which_is_probed_about_as_often_on_both_engines(
    both: tuple[Run, Run],
) -> None:
    measured, simulated = (one.tables["intervals"][["goodput_bps", "window_probes"]].sum() for one in both)
    assert simulated["goodput_bps"] == pytest.approx(measured["goodput_bps"], rel=0.02)
    assert simulated["window_probes"] == pytest.approx(measured["window_probes"], abs=2)
    assert measured["window_probes"] >= 6
    limited_s = [one.tables["tcp_info"]["rwnd_limited_s"].max() for one in both]
    assert limited_s[1] == pytest.approx(limited_s[0], rel=0.02)
    assert limited_s[0] > 10


@GUEST.scenario(path={"queue": "1000 packets"}, duration="3 s", flows=[{"cc": cc} for cc in LINUX_CONTROLS])
def test_every_congestion_control_of_linux_carries_data(measured: Run) -> None:
    # Without ECN the kernel's DCTCP is its Reno.
    assert measured.meta["congestion_control_used"] == {cc: cc for cc in LINUX_CONTROLS} | {"dctcp": "dctcp-reno"}
    assert measured.tables["flows"]["delivered_bytes"].min() > 10 * PAYLOAD_BYTES


OPPORTUNITIES = {"rate": "80 kbit/s", "queue": "50 packets", "opportunity": "500 bytes"}


@GUEST.scenario(
    **custom(
        "ab",
        [{"from": "a", "to": "b", "forward": OPPORTUNITIES}],
        flows=[{"from": "a", "to": "b", "start": "3.9 s"}],
        probes=[{"from": "a", "to": "b", "interval": "5 ms"}],
        duration="4 s",
    )
)
def test_a_link_of_opportunities_lets_so_many_bytes_leave_together(measured: Run) -> None:
    # Ten probes in flight; of their 98 bytes each opportunity takes five.
    answered_s = (measured.tables["probes"]["t_s"] + measured.tables["probes"]["rtt_s"]).round(3)
    together = answered_s.value_counts().sort_index().iloc[3:20]
    assert together.median() == pytest.approx(6, abs=1)
    assert np.diff(together.index).mean() == pytest.approx(0.05, rel=0.02)


@GUEST.scenario(
    **custom(
        "abc",
        [
            {"from": "a", "to": "b", "rate": "2 Mbit/s", "queue": "50 packets", "forward": {"aggregation": "50 ms"}},
            {"from": "b", "to": "c", "delay": "10 ms"},
        ],
        flows=[{"from": "a", "to": "c", "start": "3.9 s"}],
        probes=[{"from": "a", "to": "c", "interval": "7 ms"}],
        duration="4 s",
    )
)
def test_a_link_that_aggregates_lets_packets_leave_together(measured: Run) -> None:
    rtt_s = measured.tables["probes"]["rtt_s"]
    assert rtt_s.min() >= 0.020
    assert rtt_s.max() - rtt_s.min() == pytest.approx(0.050, abs=0.008)


READ_PATH = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"}
DRAWN = {"kind": "lognormal", "mean": "30 kB", "sigma": 1}


@GUEST.scenario(
    path={**READ_PATH, "queue": "4 bdp"},
    duration="15 s",
    flows=[
        {"source": {"kind": "requests", "sizes": DRAWN, "think": {"kind": "exponential", "mean": "100 ms"}}},
        {"source": {"kind": "pages", "objects": 8, "sizes": DRAWN, "think": "500 ms"}},
    ],
)
def test_readers_ask_for_the_same_as_in_the_simulator_and_wait_as_long(both: tuple[Run, Run]) -> None:
    answers = [one.tables["responses"] for one in both]
    for flow in range(2):
        of_flow = [table[table["flow"] == flow] for table in answers]
        asked = [table["bytes"].tolist()[:40] for table in of_flow]
        # Over several connections, answers may arrive in another order.
        assert asked[0] == asked[1] if flow == 0 else set(asked[0]) == set(asked[1])
        medians_s = [table["response_s"].median() for table in of_flow]
        assert medians_s[0] == pytest.approx(medians_s[1], rel=0.05)
    pages = [one.tables["pages"] for one in both]
    assert list(pages[0].columns) == list(pages[1].columns)
    assert pages[0]["load_s"].median() == pytest.approx(pages[1]["load_s"].median(), rel=0.05)
    assert pages[0]["bytes"].tolist()[:5] == pages[1]["bytes"].tolist()[:5]


RATES = ["500 kbit/s", "1 Mbit/s", "2 Mbit/s", "4 Mbit/s"]


@GUEST.cases(
    **{
        rule: {
            "path": {**READ_PATH, "rate": "3 Mbit/s"},
            "duration": "60 s",
            "flows": [{"source": {"kind": "video", "rates": RATES, "rule": rule}}],
        }
        for rule in ("buffer", "throughput")
    }
)
def test_a_video_plays_as_in_the_simulator(both: tuple[Run, Run]) -> None:
    segments = [one.tables["segments"] for one in both]
    assert list(segments[0].columns) == list(segments[1].columns)
    assert segments[0]["rate_bps"].tolist() == segments[1]["rate_bps"].tolist()
    for column in ("download_s", "buffer_s"):
        assert segments[0][column].mean() == pytest.approx(segments[1][column].mean(), rel=0.02)
    assert segments[0]["stalled_s"][0] == pytest.approx(segments[1]["stalled_s"][0], rel=0.02)
