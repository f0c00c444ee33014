"""When every seed gives the same: how much the result depends on when flows start."""

from pathlib import Path

import pandas as pd
import pytest

import sawtooth
from sawtooth.report import write_report
from sawtooth.scenario import Scenario
from sawtooth.study import Study, run_study
from sawtooth.study.result import StudyResult
from sawtooth.study.start_times import MOST_RUNS, latest, shifted, to_try
from sawtooth.study.study import Point

PATH = {"rate": "5 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"}
TWO = ({"name": "a", "cc": "cubic"}, {"name": "b", "cc": "cubic"})


def scenario(*flows: dict[str, str], duration: str = "15 s") -> Scenario:
    return Scenario.from_dict({"name": "two", "duration": duration, "path": PATH, "flows": list(flows)})


def answer(out: Path, *flows: dict[str, str]) -> StudyResult:
    return run_study(
        Study.from_dict({"name": "two", "scenario": scenario(*flows).to_dict()}),
        out=out,
        seeds=[1, 2],
        jobs=1,
        quiet=True,
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    return answer(tmp_path_factory.mktemp("two"), *TWO)


@pytest.mark.usefixtures("patience")
def test_two_flows_that_seeds_do_not_change_are_run_with_other_starts_once_a_seed(two: StudyResult) -> None:
    found = pd.read_csv(two.directory / "starts.csv")
    assert list(found.columns) == ["point", "study", "later_ms", "flow", "mean_mbps"]
    assert list(found["flow"]) == ["b", "a", "all", "a", "b", "all"]
    (moved,) = two.moved
    assert moved is not None
    own = two.shares[two.shares["seed"] == "all"].set_index("flow")["mean_mbps"]
    assert moved.means["a"][0] == pytest.approx(own["a"])
    # The result depends on the start, which the sentence must say.
    assert max(moved.means["a"]) > 1.05 * min(moved.means["a"])


@pytest.mark.usefixtures("patience")
def test_the_table_gives_the_range_instead_of_certainty(two: StudyResult) -> None:
    assert (
        "by start: every seed gives the same, so 2 more runs reverse the flows' order or start them up to 300 ms later"
        in two.table()
    )
    assert "by start" in two.table().splitlines()[5]
    assert "same for every seed" not in two.table()
    (said,) = (one for one in two.warnings if "seeds change nothing" in one)
    assert "The result depends on the order or the starts of the flows" in said
    page = write_report(two).read_text()
    assert "by start" in page
    assert "same for every seed" not in page


@pytest.mark.usefixtures("patience")
def test_the_same_again_is_the_same_to_the_byte_and_loads_alike(two: StudyResult, tmp_path: Path) -> None:
    again = answer(tmp_path, *TWO)
    for name in ("starts.csv", "table.csv", "shares.csv"):
        assert (again.directory / name).read_bytes() == (two.directory / name).read_bytes()
    assert StudyResult.load(two.directory).table() == two.table()


@pytest.mark.usefixtures("patience")
def test_one_flow_and_seeds_that_differ_cost_no_more_runs(tmp_path: Path) -> None:
    alone = answer(tmp_path / "alone", TWO[0])
    assert not (alone.directory / "starts.csv").exists()
    assert "same for every seed" in alone.table()
    random = run_study(
        Study.from_dict({"name": "two", "scenario": scenario(*TWO).to_dict()}),
        out=tmp_path,
        seeds=[1, 2],
        jobs=1,
        quiet=True,
        overrides={"path.loss": "1%"},
    )
    assert not (random.directory / "starts.csv").exists()
    assert not [one for one in random.warnings if "seeds change nothing" in one]


def test_each_flow_is_first_in_turn_and_none_is_later_than_a_mean_bears() -> None:
    for given, most in ((scenario(*TWO, duration="60 s"), 300), (scenario(*TWO, duration="5 s"), 100)):
        assert latest(given).ns == most * 1_000_000
        for number in range(1, 7):
            moved = shifted(given, number)
            assert moved is not None
            starts = [flow.start.ns for flow in moved.flows]
            assert starts[1 - number % 2] == 0
            assert 0 < starts[number % 2] <= most * 1_000_000
            assert shifted(given, number) == moved


def test_the_first_other_run_has_the_flows_in_reverse_order_with_their_names() -> None:
    unnamed = shifted(scenario({"cc": "cubic"}, {"cc": "cubic"}, {"cc": "reno"}), 0)
    assert unnamed is not None
    assert [flow.name for flow in unnamed.flows] == ["reno", "cubic-2", "cubic"]
    assert {flow.start.ns for flow in unnamed.flows} == {0}


def test_more_seeds_than_the_most_runs_are_not_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sawtooth.study.start_times.table_digests", lambda *_: ["one"])
    points = [Point.of(f"0-seed{seed}", {"study": "two"}, scenario(*TWO).with_seed(seed)) for seed in range(1, 21)]
    assert len(to_try(Path(), points, "sim")) == MOST_RUNS
    assert len(to_try(Path(), points[:3], "sim")) == 3


def test_runs_in_python_say_that_other_starts_were_not_tried() -> None:
    runs = sawtooth.run(scenario(*TWO, duration="5 s"), seeds=[1, 2])
    (said,) = (one for one in runs.warnings if "seeds change nothing" in one)
    assert said.endswith("other start times of the flows were not tried")
