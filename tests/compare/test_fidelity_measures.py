"""The measures that a comparison of engines reads from a run."""

import math
from pathlib import Path
from typing import Any

import pytest

from sawtooth import Scenario, run
from sawtooth.compare.fidelity import Grid
from sawtooth.compare.fidelity.measurements import COLUMNS, Ledger
from sawtooth.compare.fidelity.measures import NAMES, measure
from sawtooth.run import Run

FOLDER = Path(__file__).resolve().parents[2] / "fidelity"


def numbers(found: Run) -> dict[str, float]:
    return {name: float(value) for name, value in measure(found).items() if name in NAMES}


def answered(**tables: object) -> Run:
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "queue": {"kind": "codel", "ecn": True}}
    about = {"duration": "8 s", "warmup": "2 s", "path": path, "host": {"ecn": True}, "flows": [{"count": 4}]}
    return run(Scenario.from_dict(about | tables))


def test_delay_drops_and_marks_are_those_of_the_first_flows_bottleneck_after_the_warmup() -> None:
    found = answered()
    compiled = found.scenario.compile()
    slow = [one.name for one in compiled.transmitters].index("router>loss")
    rows = found.tables["queues"].query(f"transmitter == {slow} and t_s > 2.5")
    delays = rows["delay_mean_s"] * rows["sent_packets"]
    here = numbers(found)
    assert here["delay_ms"] == pytest.approx(1e3 * delays.sum() / rows["sent_packets"].sum())
    assert here["queue_packets"] == pytest.approx(rows["mean_packets"].mean())
    assert here["marks"] == rows["marks"].sum() > 0
    assert here["drops"] == rows["drops"].sum()


def test_a_probes_delay_is_its_round_trip_less_that_of_the_empty_path() -> None:
    busy = numbers(answered(probes=[{"interval": "50 ms"}]))
    idle = numbers(answered(probes=[{"interval": "50 ms"}], flows=[{"start": "7900 ms"}]))
    assert idle["probe_ms"] < 0.2
    assert 1 < busy["probe_ms"] < busy["p95_probe_ms"] < 100
    assert math.isnan(numbers(answered())["probe_ms"])


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "arrivals", "load": "50%", "sizes": "20 kB"},
        {"kind": "pages", "objects": 6, "sizes": "10 kB", "think": "10 ms"},
    ],
)
def test_completion_times_are_of_the_connections_that_ended_and_began_after_the_warmup(source: dict[str, Any]) -> None:
    found = answered(flows=[{"source": source}])
    rows = found.tables["flows"].query("completed > 0 and start_s >= 2")
    took_ms = (rows["end_s"] - rows["start_s"]) * 1e3
    assert len(took_ms) > 50
    assert numbers(found)["fct_ms"] == pytest.approx(took_ms.median())
    assert numbers(found)["p90_fct_ms"] == pytest.approx(took_ms.quantile(0.9))
    assert math.isnan(numbers(answered())["fct_ms"])


def test_a_record_from_before_these_measures_has_none_of_them() -> None:
    record = Ledger.load(FOLDER / "kernel.csv")
    row = next(iter(record.rows.values()))[0]
    assert set(row) == set(COLUMNS)
    assert row["mean_mbps"] > 0
    assert math.isnan(row["delay_ms"])


@pytest.mark.parametrize("name", ["traffic", "ecn", "readers"])
def test_what_a_grid_is_about_is_measured_at_its_points(name: str) -> None:
    wanted = {
        "traffic": {"fct_ms", "p95_probe_ms"},
        "ecn": {"marks", "delay_ms"},
        "readers": {"page_ms", "response_ms"},
    }
    points = Grid.load(FOLDER / f"{name}.toml").points()
    short = [min((p for p in points if p.block == block), key=lambda p: p.name) for block in {p.block for p in points}]
    found = [numbers(run(point.scenario.set({"duration": "5 s"}))) for point in short]
    told = {measured for measured in NAMES if any(not math.isnan(one[measured]) for one in found)}
    assert wanted[name] <= told
