"""``fast``: what is steady is repeated, adds up, and agrees with the whole run; all else is simulated whole. With an
error of zero, what repeats exactly is skipped."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sawtooth import Scenario
from sawtooth.engines import steady
from sawtooth.engines.sim import Sim
from sawtooth.run import Run
from sawtooth.stats import observed, of_runs
from sawtooth.study.result import rows_of
from tests.engines.test_cc_module import module, source

REGULAR: dict[str, Any] = {
    "duration": "600 s",
    "path": {"rate": "20 Mbit/s", "rtt": "20 ms"},
    "flows": [{"cc": "cubic"}],
    "probes": [{"from": "sender", "to": "receiver", "interval": "300 ms"}],
}


def run(fast: str | None = "3%", **fields: Any) -> Run:
    given = {**REGULAR, **fields} | ({} if fast is None else {"fast": fast})
    return Sim().run(Scenario.from_dict(given))


@pytest.fixture(scope="module")
def short() -> Run:
    return run()


@pytest.fixture(scope="module")
def whole() -> Run:
    return run(None)


def test_a_steady_run_is_simulated_for_a_part_of_its_time_and_says_so(short: Run, whole: Run) -> None:
    fast = short.meta["fast"]
    assert 20 <= fast["simulated_s"] <= 150
    assert fast["from_s"] < fast["until_s"] <= fast["simulated_s"]
    assert short.meta["delivered_packets"] < 0.3 * whole.meta["delivered_packets"]
    assert short.warnings[0].startswith(f"fast: rows after {fast['simulated_s']:g} s repeat those from")
    assert "fast" not in whole.meta


def test_until_then_the_rows_are_those_of_the_whole_run(short: Run, whole: Run) -> None:
    for name in ("intervals", "queues", "tcp_info", "links"):
        one, other = (run.tables[name] for run in (short, whole))
        before = one["t_s"] <= short.meta["fast"]["simulated_s"]
        pd.testing.assert_frame_equal(one[before], other[other["t_s"] <= short.meta["fast"]["simulated_s"]])


def test_it_agrees_with_the_whole_run(short: Run, whole: Run) -> None:
    def seen(run: Run) -> list[float]:
        queue = run.tables["queues"]
        return [
            run.tables["intervals"]["goodput_bps"].mean(),
            queue["drops"].sum(),
            queue["mean_packets"].mean(),
            run.tables["probes"]["rtt_s"].mean(),
        ]

    assert seen(short)[0] == pytest.approx(seen(whole)[0], rel=0.03)
    assert seen(short)[1:] == pytest.approx(seen(whole)[1:], rel=0.15)


def test_every_interval_has_its_rows_and_every_probe_one(short: Run, whole: Run) -> None:
    for name in ("intervals", "queues", "tcp_info", "links"):
        one, other = (run.tables[name] for run in (short, whole))
        assert list(one["t_s"]) == list(other["t_s"])
        assert (one.dtypes == other.dtypes).all()
    assert list(short.tables["probes"]["t_s"].round(6)) == list(whole.tables["probes"]["t_s"].round(6))


def test_what_connections_sent_and_received_is_the_sum_of_the_intervals(short: Run) -> None:
    flow, rows = short.tables["flows"].iloc[0], short.tables["intervals"]
    assert flow["end_s"] == 600
    assert flow["delivered_bytes"] == pytest.approx(
        rows["goodput_bps"].sum() / 8, abs=64 * 1448
    )  # the last are not yet acknowledged
    for name in ("segments_out", "retransmits", "timeouts"):
        assert flow[name] == rows[name].sum()
    delivered = short.tables["tcp_info"]["delivered_segments"].to_numpy()
    assert (np.diff(delivered) > 0).all()
    assert delivered[-1] == pytest.approx(flow["delivered_bytes"] / 1448, rel=0.03)


def test_it_depends_on_the_scenario_only(short: Run) -> None:
    again = run()
    assert all(again.tables[name].equals(short.tables[name]) for name in short.tables)


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        ({"flows": [{"cc": "cubic"}, {"cc": "cubic", "start": "5 s", "duration": "100 s"}]}, 105),
        ({"flows": [{"cc": "cubic", "start": "700 ms"}]}, 1),
        ({"probes": [{"from": "sender", "to": "receiver", "interval": "25 s", "start": "150 ms"}]}, 1),
        ({"path": {"rate": "20 Mbit/s", "rtt": "20 ms", "changes": [{"at": "100200 ms", "rate": "10 Mbit/s"}]}}, 101),
        ({"warmup": "200 s"}, 200),
    ],
    ids=["flow that ends", "late start", "rare probes", "change", "warm-up"],
)
def test_nothing_before_the_last_change_and_the_warm_up_is_judged(fields: dict[str, Any], least: float) -> None:
    later, other = run(**fields), run(None, **fields)
    assert later.meta["fast"]["from_s"] >= least
    for name in ("intervals", "queues", "tcp_info", "probes"):
        assert list(later.tables[name]["t_s"]) == list(other.tables[name]["t_s"])
    assert observed(later) == later.meta["fast"]["simulated_s"] - later.scenario.warmup.seconds > 0


def test_slices_do_not_change_it(short: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sawtooth.engines.sim.EVENTS_A_SLICE", 2_003)
    again = run()
    assert all(again.tables[name].equals(short.tables[name]) for name in short.tables)


def test_progress_ends_at_the_end() -> None:
    seen: list[float] = []
    Sim().run(Scenario.from_dict({**REGULAR, "fast": "3%"}), progress=seen.append)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


def test_datagrams_are_repeated_with_the_rest() -> None:
    flows = [{"cc": "cubic"}, {"source": {"kind": "udp", "rate": "2 Mbit/s"}}]
    one, other = run(flows=flows), run(None, flows=flows)
    sums = [run.tables["datagrams"][["sent", "received"]].sum().to_numpy() for run in (one, other)]
    assert len(one.tables["datagrams"]) == len(other.tables["datagrams"])
    assert sums[0] == pytest.approx(sums[1], rel=0.01)


def test_a_queue_that_grows_after_its_falls_is_judged_whole() -> None:
    queue = np.concatenate([np.tile([80.0, 0], 5), np.linspace(0, 30, 90)])[:, None]
    bounds = steady._batches(queue, np.zeros((100, 0)))
    assert list(bounds) == list(range(0, 101, 10))


def test_a_control_in_c_may_end_early(tmp_path: Path) -> None:
    path = source(tmp_path)
    assert "fast" in run(flows=[{"cc": module(path)}]).meta


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"flows": [{"cc": "cubic", "bytes": "1 GiB"}]}, 'flow "cubic" ends, pauses, asks or is replaced'),
        (
            {"flows": [{"cc": "cubic"}, {"name": "other", "cc": "cubic", "replace": {"lifetime": ["1 s", "2 s"]}}]},
            'flow "other" ends, pauses, asks or is replaced',
        ),
        ({"flows": [{"cc": "cubic", "start": "500 s"}]}, '"600 s" is too short; write duration = "700 s" or more'),
        (
            {"path": {"rate": "20 Mbit/s", "rtt": "20 ms", "loss": {"packets": [100, 90_000]}}},
            '"loss>delay" loses listed packets',
        ),
        (
            {"path": {"rate": "20 Mbit/s", "rtt": "20 ms", "changes": [{"at": "550 s", "rate": "10 Mbit/s"}]}},
            '"600 s" is too short; write duration = "763 s" or more',
        ),
        ({"duration": "24 s"}, '"24 s" is too short; write duration = "75 s" or more'),
        (
            {"flows": [], "path": {"rate": "20 Mbit/s", "rtt": "20 ms", "queue": "100 packets"}},
            "there is no flow",
        ),
        ({"duration": "200500 ms"}, "the duration is not a whole number of intervals"),
        (
            {"path": {"rate": "5 Mbit/s", "rtt": "40 ms", "loss": "1%"}, "duration": "100 s"},
            "goodput ±",
        ),
    ],
)
def test_what_is_not_steady_is_simulated_whole_and_says_why(fields: dict[str, Any], why: str) -> None:
    one, other = run(**fields), run(None, **fields)
    assert "fast" not in one.meta
    assert one.warnings[0].startswith(f"fast: the whole run was simulated: {why}")
    assert all(one.tables[name].equals(other.tables[name]) for name in other.tables)


def test_captures_have_every_packet(tmp_path: Path) -> None:
    given = Scenario.from_dict({**REGULAR, "fast": "3%", "duration": "200 s"})
    assert "fast" in Sim().run(given).meta
    captured = Sim(capture=tmp_path, capture_at=("sender",)).run(given)
    assert "fast" not in captured.meta
    assert captured.warnings[0] == "fast: the whole run was simulated: captures have every packet"


CARD: dict[str, Any] = {
    "topology": "custom",
    "duration": "60 s",
    "hosts": {"a": {}, "b": {}},
    "cards": {"a": {"rate": "100 Mbit/s", "queue": "400 packets"}},
    "links": [{"from": "a", "to": "b", "delay": "1 ms"}],
    "flows": [{"from": "a", "to": "b", "cc": "cubic"}],
}
"""A flow whose own card is the bottleneck."""


def exact(fast: str | None = "0%", engine: Sim | None = None, **fields: Any) -> Run:
    given = {**CARD, **fields} | ({} if fast is None else {"fast": fast})
    return (engine or Sim()).run(Scenario.from_dict(given))


def test_without_an_error_only_what_repeats_exactly_is_skipped_and_no_row_changes() -> None:
    one, other = exact(), exact(None)
    assert all(one.tables[name].equals(other.tables[name]) for name in other.tables)
    skipped, delivered = one.meta["skipped_packets"], one.meta["delivered_packets"]
    assert skipped > 0.3 * delivered
    assert delivered == other.meta["delivered_packets"]
    assert one.meta["events"] < other.meta["events"]
    assert one.warnings[0] == f"fast: {skipped:,} of {delivered:,} packets were skipped"
    assert "fast" not in one.meta
    assert not {"fast", "skipped_packets"} & other.meta.keys()


def test_where_nothing_repeats_exactly_the_whole_run_is_simulated(tmp_path: Path) -> None:
    lossy = run("0%", duration="20 s")
    assert lossy.warnings[0] == "fast: the whole run was simulated: no packets repeat others exactly"
    assert lossy.meta["skipped_packets"] == 0
    captured = exact(engine=Sim(capture=tmp_path, capture_at=("a",)), duration="2 s")
    assert captured.warnings[0] == "fast: the whole run was simulated: captures have every packet"
    flows = [{**CARD["flows"][0], "cc": module(source(tmp_path))}]
    assert exact(flows=flows).warnings[0] == "fast: the whole run was simulated: a control is in C"


BOUNDS = np.arange(0, 101, 10)


def widest(series: np.ndarray[Any, Any], left: float = 0.0) -> float:
    return steady._widest(series[:, None], np.array([0.01]), 0.01, BOUNDS, left)


def test_a_trend_is_not_steady_if_the_time_left_makes_it_large() -> None:
    growing = 100 + 0.001 * np.arange(100.0)
    assert widest(growing) < 0.01
    assert np.isinf(widest(growing, left=100.0))


def test_the_interval_of_independent_samples_holds_their_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    held = sum(abs(one.mean() - 10) <= widest(one) * one.mean() for one in rng.normal(10, 1, (300, 100)))
    assert held >= 275


def test_batches_that_resemble_their_neighbors_say_less() -> None:
    slow = 10 + np.sin(np.arange(100) / 100 * 2 * np.pi)
    fast = 10 + np.sin(np.arange(100) / 100 * 2 * np.pi * 5)
    assert widest(slow) > 3 * widest(np.random.default_rng(2).permutation(slow)) > widest(fast)


def test_batches_begin_where_the_queue_falls() -> None:
    queue = np.tile([10.0, 11, 12, 13, 14, 15, 16], 9)[:, None]
    bounds = steady._batches(queue, np.zeros((63, 0)))
    assert (queue[bounds, 0] == 10).all()
    assert len(bounds) - 1 <= steady.BATCHES


def test_repeated_seconds_count_in_the_mean_and_not_in_its_interval(short: Run) -> None:
    rng = np.random.default_rng(3)
    seen = 10 + rng.normal(size=60)
    repeated = np.concatenate([seen, *[seen] * 9])
    known, wrong = of_runs([repeated], observed=60), of_runs([repeated])
    assert known.mean == wrong.mean == pytest.approx(seen.mean())
    assert known.high - known.low > 2 * (wrong.high - wrong.low)
    row, until = rows_of("sim", [(1, short)])[0], round(short.meta["fast"]["simulated_s"])
    assert row["ci_n"] == of_runs([short.tables["intervals"]["goodput_bps"].to_numpy()[:until]]).n
