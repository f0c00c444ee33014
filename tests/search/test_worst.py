"""Worst: the network on which a measure is smallest is found, and simplified to the fields that matter."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sawtooth
from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.search import save_worst, worst, worst_words
from sawtooth.search.ranges import Ranges
from sawtooth.study import Study

VARY = ("path.rate=5..200Mbit/s", "path.rtt=1..200ms", "path.loss=0%..5%", "path.queue=0.1..4bdp")
OFFICE = {"name": "office", "duration": "20 s", "path": {"rate": "50 Mbit/s", "rtt": "20 ms", "queue": "1 bdp"}}


@dataclass(frozen=True)
class Brittle:
    """Gets the rate, with noise; a twentieth of it where the loss is above 2% and the RTT above 50 ms."""

    name: str = "brittle"
    breaks: bool = True
    reno: float = 0.9

    def check(self, scenario):
        pass

    def run(self, scenario, *, progress=None, stop=None):
        path, rng = scenario.path, np.random.default_rng(scenario.seed)
        part = 0.05 if self.breaks and path.loss.probability > 0.02 and path.rtt.ns > 50e6 else 0.9
        if scenario.flows[0].cc == "reno":
            part = self.reno
        return self.ran(scenario, path.rate.bps * part * (1 + 0.02 * rng.standard_normal(20)))

    def ran(self, scenario, goodput):
        ends = np.arange(20) + 1.0
        counted = dict.fromkeys(("segments_out", "retransmits", "timeouts", "tail_probes"), 1)
        tables = {"intervals": pd.DataFrame({"t_s": ends, "flow": 0, "goodput_bps": goodput, **counted})}
        return Run(scenario, self.name, tables, {})


def searched(measure: str = "goodput / path.rate", **options):
    given = {"vary": VARY, "engine": Brittle(), "jobs": 1, "most": 120} | options
    return worst(Scenario.from_dict(OFFICE), measure, **given)


@pytest.mark.usefixtures("patience")
def test_only_the_fields_that_matter_stay_changed() -> None:
    found = searched()
    assert found.enough
    assert set(found.simplest.values) == {"path.rtt", "path.loss"}
    assert found.simplest.values["path.loss"] > 2
    assert found.simplest.values["path.rtt"] > 50
    assert found.own.measured.mean == pytest.approx(0.9, abs=0.02)
    assert found.simplest.measured.mean == pytest.approx(0.05, abs=0.01)
    assert found.simplest.measured.mean < found.limit
    assert found.scenario["path"]["rate"] == "50 Mbit/s"
    # Rounded as far as the measure stays low.
    assert all(value == float(f"{value:.1g}") for value in found.simplest.values.values())


def test_a_measure_may_compare_two_controls() -> None:
    found = searched("goodput / goodput(cc='reno')", most=240)
    assert set(found.simplest.values) == {"path.rtt", "path.loss"}
    assert found.own.measured.mean == pytest.approx(1, abs=0.01)


@dataclass(frozen=True)
class Stalls(Brittle):
    """Gets a tenth of the rate if all of four certain packets are lost, less for each of them."""

    def run(self, scenario, *, progress=None, stop=None):
        pattern = scenario.compile().links[2].loss_pattern
        lost = set(pattern.packets if pattern else ())
        part = 0.1 if lost >= {700, 701, 702, 703} else 0.9 - 0.01 * len(lost & {700, 701, 702, 703})
        bps = scenario.path.rate.bps
        for change in scenario.path.changes or ():
            bps = min(bps, min(rate.bps for rate in change.rate))
        return self.ran(scenario, bps * part * np.ones(20))


def test_two_fields_over_time_are_one_list_of_changes() -> None:
    scenario = Scenario(path={"rate": "10 Mbit/s", "rtt": "20 ms"}, duration="8 s")
    texts = ["path.changes.rate=2 of 1..5Mbit/s", "path.changes.loss=4 of 1%..2%"]
    ranges = Ranges.parse(texts, None, scenario)
    changes = scenario.set(ranges.settings(ranges.corners[0])).path.changes
    assert [str(one.at) for one in changes] == ["0 s", "4 s", "0 s", "2 s", "4 s", "6 s"]
    assert [one.rate is None for one in changes] == [False, False, True, True, True, True]


@pytest.mark.parametrize("loss", ["1%", {"every": 100}, "0%"])
def test_lost_packets_replace_another_kind_of_loss(loss: Any) -> None:
    scenario = Scenario(path={"rate": "10 Mbit/s", "rtt": "20 ms", "loss": loss})
    ranges = Ranges.parse(["path.loss.packets=3 of 10..50"], None, scenario)
    assert scenario.set(ranges.settings(ranges.corners[0])).to_dict()["path"]["loss"] == {"packets": [10]}


def test_a_field_over_time_is_logarithmic_over_a_decade() -> None:
    scenario = Scenario(path={"rate": "10 Mbit/s", "rtt": "20 ms"})
    [wide] = Ranges.parse(["path.changes.delay=2 of 1..500ms"], None, scenario).unknowns
    assert wide.spans == [(math.log(1), math.log(500))] * 2


@pytest.mark.usefixtures("patience")
def test_of_lost_packets_only_those_that_matter_stay() -> None:
    found = searched(vary="path.loss.packets=9 of 100..2000", engine=Stalls(), most=2000)
    assert found.simplest.values == {"path.loss.packets": (700, 701, 702, 703)}
    assert found.scenario["path"]["loss"] == {"packets": [700, 701, 702, 703]}
    assert "path.loss.packets = 700–703" in worst_words(found)
    assert json.loads(json.dumps(found.describe()))["ranges"] == {"path.loss.packets": ["100", "2000"]}
    # Never more than were allowed, and each in the range.
    numbers = [one for [(_, packets)] in found_settings(found) for one in packets]
    assert max(len(packets) for [(_, packets)] in found_settings(found)) == 9
    assert 100 <= min(numbers) <= max(numbers) <= 2000


def found_settings(found):
    """The candidates, from the table's short text."""
    for text in found.table["path.loss.packets"]:
        runs = [[int(end) for end in run.split("–")] for run in text.split(", ")]
        yield [("path.loss.packets", [number for run in runs for number in range(run[0], run[-1] + 1)])]


@pytest.mark.usefixtures("patience")
def test_of_a_rate_over_time_only_one_change_stays() -> None:
    found = searched("goodput / 50 Mbit/s", vary="path.changes.rate=4 of 1..100Mbit/s", engine=Stalls(), most=400)
    [change] = found.scenario["path"]["changes"]
    assert change["at"] in ("0 s", "5 s", "10 s", "15 s")
    assert change["rate"] == f"{float(change['rate'].split()[0]):.1g} Mbit/s"


def test_a_range_of_a_decade_is_logarithmic_unless_it_is_said_otherwise() -> None:
    vary = ("path.rtt=1..200ms", "path.queue=0.1..4bdp")
    assert [one.scale for one in searched(vary=vary).ranges.unknowns] == ["log", "log"]
    assert [one.scale for one in searched(vary="path.rtt=30..200ms").ranges.unknowns] == ["linear"]
    assert [one.scale for one in searched(vary=vary, scale="linear").ranges.unknowns] == ["linear", "linear"]


def test_the_same_question_has_the_same_answer() -> None:
    first, second = searched(), searched()
    assert first.describe() | {"seconds": 0} == second.describe() | {"seconds": 0}
    assert first.table.equals(second.table)


def test_the_search_makes_no_more_runs_than_allowed() -> None:
    found = searched(most=100)
    assert len(found.table) <= 100
    with expected_error(code="out-of-range", field="runs") as caught:
        searched(most=10)
    assert "--runs 64" in (caught.value.fix or "")


def test_without_anything_worse_it_says_so() -> None:
    found = searched("0.5 * path.rate / path.rate + 0 * goodput / path.rate")
    assert not found.enough
    assert found.simplest == found.own
    assert "nothing in these ranges is worse" in worst_words(found)


def test_another_engine_is_asked_at_the_simplest_network() -> None:
    found = searched(check=Brittle("sound", breaks=False))
    assert found.checked is not None
    assert found.checked.mean == pytest.approx(0.9, abs=0.02)
    assert "on sound" in worst_words(found)
    assert found.describe()["check"]["engine"] == "sound"


def test_where_a_measure_is_unknown_it_is_not_the_worst() -> None:
    found = searched("goodput / goodput(cc='reno')", engine=Brittle(reno=0.0), most=240)
    assert not found.enough
    assert found.own.measured.mean == math.inf
    assert json.loads(json.dumps(found.describe(), allow_nan=False))["own"]["mean"] is None


class Idle(Brittle):
    """Reno gets nothing without loss."""

    def run(self, scenario, *, progress=None, stop=None):
        ran = super().run(scenario)
        if scenario.flows[0].cc == "reno" and scenario.path.loss.probability == 0:
            ran.tables["intervals"]["goodput_bps"] = 0.0
        return ran


def test_a_measure_that_is_unknown_in_the_file_can_be_known_in_the_answer() -> None:
    found = searched("goodput / goodput(cc='reno')", engine=Idle(), most=240)
    assert found.own.measured.mean == math.inf
    assert found.simplest.measured.mean == pytest.approx(0.05 / 0.9, abs=0.02)


def test_the_answer_is_a_scenario_that_runs(tmp_path: Path) -> None:
    found = searched()
    save_worst(found, tmp_path / "out")
    again = Scenario.load(tmp_path / "out" / "worst.toml")
    assert again.to_dict() == found.scenario
    assert json.loads((tmp_path / "out" / "worst.json").read_text())["simplest"]["set"] == {
        one.field: one.setting(found.simplest.values[one.field])
        for one in found.ranges.unknowns
        if one.field in found.simplest.values
    }
    assert len((tmp_path / "out" / "worst.csv").read_text().splitlines()) == 1 + len(found.table)


@pytest.mark.usefixtures("patience")
def test_the_command_finds_that_loss_is_what_hurts_reno(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "office.toml"
    file.write_text('duration = "3 s"\npath = { rate = "5 Mbit/s", rtt = "20 ms" }\nflows = [{ cc = "reno" }]\n')
    ranges = ["--vary", "path.loss=0%..10%", "--vary", "path.queue=1..4bdp"]
    arguments = ["find", str(file), "--worst", "goodput / path.rate", *ranges, "--runs", "68", "--jobs", "1", "--quiet"]
    assert status_of([*arguments, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "answer: path.loss = " in told
    assert "\n[path]\n" in told
    assert sawtooth.load(tmp_path / "out" / "worst.toml").to_dict()["path"]["queue"] == "1 bdp"


@pytest.mark.parametrize(
    ("more", "code", "field"),
    [
        (["--want", "goodput > 1 Mbit/s"], "bad-usage", "--want"),
        (["--within", "5%", "--vary", "path.loss=0%..1%"], "bad-usage", "--within"),
        ([], "missing-field", "vary"),
        (["--vary", "path.loss=0%..1%", "--vary", "path.loss=0%..2%"], "duplicate-name", "vary"),
        (["--vary", "path.lost=0%..1%"], "unknown-field", "path.lost"),
        (["--vary", "path.rtt=3 of 1..20ms"], "bad-override", "path.rtt"),
        (["--vary", "path.loss.packets=101 of 1..2000"], "out-of-range", "path.loss.packets"),
        (["--vary", "path.loss.packets=3 of 1%..2%"], "bad-quantity", "path.loss.packets"),
        (["--vary", "path.loss=0%..1%", "--vary", "path.loss.packets=3 of 1..20"], "duplicate-name", "vary"),
        (
            ["--vary", "path.changes.rate=12 of 1..9Mbit/s", "--vary", "path.changes.loss=13 of 1..9%"],
            "out-of-range",
            "",
        ),
    ],
)
def test_a_wrong_call_is_one_error_with_its_code(more, code, field, tmp_path, capsys) -> None:
    file = tmp_path / "office.toml"
    file.write_text('duration = "3 s"\n')
    assert status_of(["find", str(file), "--worst", "goodput / path.rate", *more]) == 2
    told = capsys.readouterr().err
    assert f"error[{code}]" in told
    assert field in told


def test_a_study_has_no_worst_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.toml"
    file.write_text('name = "study"\nscenario = { duration = "3 s" }\n')
    with pytest.raises(SawtoothError, match="worst case of a study"):
        sawtooth.worst(Study.load(file), "goodput", vary="path.loss=0%..1%")
    assert status_of(["find", str(file), "--worst", "goodput", "--vary", "path.loss=0%..1%"]) == 2
    assert "error[unsupported]" in capsys.readouterr().err
