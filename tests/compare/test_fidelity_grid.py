"""The fidelity harness: its grid, its ledger, when it has enough runs, and how it describes differences."""

import itertools
import math
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.compare.fidelity import Grid, campaign, compare_on, outside
from sawtooth.compare.fidelity import measurements as ledgers
from sawtooth.compare.fidelity import record as records
from sawtooth.compare.fidelity.campaign import Campaign, enough
from sawtooth.compare.fidelity.differences import Estimate, answers, compare, summary
from sawtooth.compare.fidelity.grid import Budget, Budgets, Point
from sawtooth.compare.fidelity.measurements import COLUMNS, Ledger, Row
from sawtooth.compare.fidelity.measures import NAMES
from sawtooth.errors import SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import Scenario, Span

GRID = Path(__file__).resolve().parents[2] / "fidelity" / "grid.toml"
SMALL = """
[scenario]
duration = "5 s"
path = { rate = "10 Mbit/s", rtt = "10 ms", loss = "1%" }
[budget]
sim = { runs = 3 }
[[blocks]]
name = "one"
columns = ["path.rate", "duration"]
rows = [["10 Mbit/s", "4 s"], ["20 Mbit/s", "5 s"]]
vary = { "flows.cc" = ["reno", "cubic"] }
[[blocks]]
name = "two"
scenario = { flows = [{ name = "a", cc = "cubic" }, { name = "b", cc = "bbr" }] }
vary = { "host.hz" = [100], "host.sack" = [false] }
[tags]
ci = ["one:reno-20M"]
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small grid file, and a separate cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "grid.toml"
    path.write_text(SMALL)
    return path


def rows(question: str, means: list[float], **others: Any) -> list[Row]:
    plain = dict.fromkeys(NAMES, 100.0) | {"shares": "1", "cpu_s": 1.0, "engine": "e", "date": "2026-01-31"} | others
    return [
        {"point": "p", "question": question, "seed": seed, **plain, "mean_mbps": mean}
        for seed, mean in enumerate(means, 1)
    ]


# The grid in the repository.


def test_the_grid_has_at_least_120_points_each_with_a_question_of_its_own() -> None:
    points = Grid.load(GRID).points()
    assert len(points) >= 120
    assert len({point.question for point in points}) == len({point.name for point in points}) == len(points)


@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr"])
def test_the_grid_covers_each_pair_of_rate_rtt_loss_and_queue_for_each_congestion_control(cc: str) -> None:
    wanted = {
        "rate": ("10 Mbit/s", "100 Mbit/s", "1 Gbit/s", "2.5 Gbit/s"),
        "rtt": ("0.4 ms", "2 ms", "10 ms", "20 ms", "40 ms", "80 ms", "140 ms"),
        "loss": ("0%", "0.01%", "0.1%", "0.5%", "1%", "2%", "5%", "10%"),
        "queue": ("0.3 bdp", "1 bdp", "3 bdp", "8 bdp"),
    }
    points = [point for point in Grid.load(GRID).points() if point.block in ("loss", "bbr")]
    tables = [point.scenario.to_dict() for point in points]
    there = [Scenario(path=table["path"]).path_table for table in tables if table["flows"][0]["cc"] == cc]
    for one, other in itertools.combinations(wanted, 2):
        pairs = {(getattr(path, one), getattr(path, other)) for path in there}
        values = [Scenario(path={axis: text}).path_table for axis in (one,) for text in wanted[axis]]
        others = [Scenario(path={axis: text}).path_table for axis in (other,) for text in wanted[axis]]
        expected = {(getattr(a, one), getattr(b, other)) for a in values for b in others}
        assert expected <= pairs, (one, other)


def test_the_grid_covers_what_is_not_a_single_flow_on_a_path() -> None:
    scenarios = [point.scenario for point in Grid.load(GRID).points()]
    compiled = [scenario.compile() for scenario in scenarios]
    assert {scenario.topology for scenario in scenarios} == {"path", "chain", "chain-asymmetric", "dumbbell"}
    assert {one.hosts[0].hz for one in compiled} == {100, 250, 1000}
    assert any(scenario.path_table.ack_loss.ppb for scenario in scenarios if scenario.topology == "path")
    meeting = {tuple(sorted({flow.cc for flow in one.flows})) for one in compiled}
    assert {("bbr", "cubic"), ("cubic", "reno")} <= meeting
    assert {flow.count for one in compiled for flow in one.flows if flow.lifetime_ns} >= {10, 100}


# Grid files.


def test_a_point_is_named_by_its_block_and_what_distinguishes_it_there(small: Path) -> None:
    points = Grid.load(small).points()
    names = ["one:reno-10M", "one:cubic-10M", "one:reno-20M", "one:cubic-20M", "two:hz100-sack=false"]
    assert [point.name for point in points] == names
    assert [point.scenario.duration for point in points[1:4]] == [Span.parse(text) for text in ("4 s", "5 s", "5 s")]
    assert points[2].tags == {"one", "ci"}
    assert [point.name for point in Grid.load(small).points("ci")] == ["one:reno-20M"]


def test_a_question_depends_on_what_is_asked_not_on_name_seed_or_spelling(small: Path) -> None:
    before = Grid.load(small).points()
    small.write_text(
        SMALL.replace('name = "one"', 'name = "uno"').replace("one:", "uno:").replace('"5 s"', '"5000 ms"')
    )
    renamed = Grid.load(small).points()
    assert [point.question for point in renamed] == [point.question for point in before]
    small.write_text(SMALL.replace('rtt = "10 ms"', 'rtt = "11 ms"'))
    assert not {point.question for point in Grid.load(small).points()} & {point.question for point in before}


@pytest.mark.parametrize(
    ("old", "new", "code", "field"),
    [
        ('"10 Mbit/s", "4 s"', '"10 Mbit/s"', "wrong-type", "blocks.0.rows.0"),
        ('"10 Mbit/s", "4 s"', '"10 Mbps", "4 s"', "unknown-unit", "blocks.0: path.rate"),
        ('"10 Mbit/s", "4 s"', '"20 Mbit/s", "4 s"', "duplicate-name", "blocks.0"),
        ("one:reno-20M", "one:reno-21M", "unknown-name", "tags.ci"),
        ('name = "one"', 'name = "one"\nnames = 1', "unknown-field", "blocks.0.names"),
        ("runs = 3", "runs = 1", "out-of-range", "budget.sim.runs"),
        ("[100]", "[]", "empty-axis", "blocks.1.vary.host.hz"),
    ],
)
def test_what_is_wrong_in_a_grid_is_reported_with_its_place(
    small: Path, old: str, new: str, code: str, field: str
) -> None:
    small.write_text(SMALL.replace(old, new))
    with expected_error(code=code, field=field, file=str(small)):
        Grid.load(small)


def test_an_unknown_tag_is_refused(small: Path) -> None:
    with expected_error(code="unknown-name", match='no point has the tag "cj"'):
        Grid.load(small).points("cj")


# Enough runs.


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([], False),
        ([100.0], False),
        ([100.0, 100.0], False),
        ([100.0, 100.0, 100.0], True),
        ([100.0, 100.7, 101.4], True),  # 95% interval: ± 1.74
        ([100.0, 101.0, 102.0], False),  # ± 2.48
        ([100.0, 101.0, 102.0, 101.0, 100.5], True),  # ± 0.93
        ([50.0, 100.0, 150.0, 70.0], False),
        ([50.0, 100.0, 150.0, 70.0, 60.0], True),  # the most that are allowed
    ],
)
def test_runs_are_enough_when_the_95_percent_interval_is_within_2_percent_of_the_mean(
    means: list[float], expected: bool
) -> None:
    assert enough(rows("q", means), Budget(runs=5)) is expected


def test_processor_time_ends_a_point_after_two_runs_and_before_it_is_exceeded() -> None:
    budget = Budget(runs=10, cpu=Span.parse("10 s"))
    noisy = [50.0, 100.0, 150.0, 70.0]
    assert not enough(rows("q", noisy[:1], cpu_s=60.0), budget)
    assert enough(rows("q", noisy[:2], cpu_s=4.0), budget)
    assert not enough(rows("q", noisy[:2], cpu_s=3.3), budget)
    assert enough(rows("q", noisy[:3], cpu_s=3.3), budget)


# The ledger.


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "kernel.csv")
    for row in [*rows("b", [1.5, 2.5]), *rows("a", [3.0], timeouts=math.nan), *rows("gone", [1.0])]:
        ledger.append(row)
    ledger.about = {"e": {"version": "6.12"}, "other": {}}
    ledger.write(["a", "b", "none"])
    again = Ledger.load(tmp_path / "kernel.csv")
    assert list(again.rows) == ["a", "b"]
    assert again.of("b") == rows("b", [1.5, 2.5])
    assert math.isnan(again.of("a")[0]["timeouts"])
    assert again.about == {"e": {"version": "6.12"}}
    assert again.of("b", "another build") == []


def test_a_run_that_a_killed_process_wrote_in_half_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "cache.csv"
    ledger = Ledger(path)
    for row in rows("a", [1.0, 2.0]):
        ledger.append(row)
    path.write_text(path.read_text()[:-30])
    again = Ledger.load(path)
    assert again.of("a") == rows("a", [1.0])
    again.append(rows("a", [1.0, 5.0])[1])
    assert Ledger.load(path).of("a") == rows("a", [1.0, 5.0])


def test_another_table_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "kernel.csv").write_text("a,b\n1,2\n")
    with expected_error(code="not-a-result"):
        Ledger.load(tmp_path / "kernel.csv")


# Campaigns.


def test_a_campaign_that_is_interrupted_keeps_its_runs_and_continues(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = Grid.load(small).points()
    real = campaign.get("sim")
    seen: list[tuple[str, int]] = []

    class Engine:
        name = "sim"
        breaks = True

        def check(self, scenario: Scenario) -> None:
            real.check(scenario)

        def run(self, scenario: Scenario, **options: Any) -> Run:
            seen.append((scenario.name, scenario.seed))
            if self.breaks and len(seen) == 6:
                raise KeyboardInterrupt
            return real.run(scenario, **options)

    engine = Engine()
    monkeypatch.setattr(campaign, "get", lambda name: engine)
    done: dict[str, list[Row]] = {}
    first = Campaign("sim", 1, lambda point, rows: done.update({point.name: rows}), quiet=True)
    with expected_error(code="interrupted", match="interrupted"):
        first.run(points)
    kept = set(seen[:5])
    engine.breaks = False
    seen.clear()
    again = Campaign("sim", 1, lambda point, rows: done.update({point.name: rows}), quiet=True)
    again.run(points)
    assert not kept & set(seen)
    assert {name: [row["seed"] for row in rows] for name, rows in done.items()} == {
        point.name: [1, 2, 3] for point in points
    }


def test_points_with_a_tag_get_its_budget_and_the_others_the_grids(small: Path) -> None:
    small.write_text(SMALL + "[budgets.ci]\nsim = { runs = 5 }\n")
    points = Grid.load(small).points()
    assert {point.name: point.budget.of("sim").runs for point in points if "ci" in point.tags} == {
        "one:reno-20M": 5,
    }
    assert {point.budget.of("sim").runs for point in points if "ci" not in point.tags} == {3}
    small.write_text(SMALL + "[budgets.cy]\nsim = { runs = 5 }\n")
    with expected_error(code="unknown-name", field="budgets.cy"):
        Grid.load(small)


def test_a_point_that_fails_does_not_end_the_others(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = Grid.load(small).points()
    real = campaign.get("sim")

    class Engine:
        name = "sim"

        def check(self, scenario: Scenario) -> None: ...

        def run(self, scenario: Scenario, **options: Any) -> Run:
            if scenario.name.startswith("two"):
                raise SawtoothError("guest-failed", "it fell over")
            return real.run(scenario, **options)

    monkeypatch.setattr(campaign, "get", lambda name: Engine())
    done: list[Point] = []
    with expected_error(code="guest-failed", field="point two:hz100-sack=false", match="it fell over"):
        Campaign("sim", 2, lambda point, rows: done.append(point), quiet=True).run(points)
    assert {point.name for point in done} == {point.name for point in points[:4]}


@pytest.mark.usefixtures("patience")
def test_the_result_does_not_depend_on_how_many_run_side_by_side(small: Path, tmp_path: Path) -> None:
    points = Grid.load(small).points()
    found = []
    for jobs in (1, 3):
        ledgers.cache("sim", "x").parent.mkdir(parents=True, exist_ok=True)
        for file in ledgers.cache("sim", "x").parent.iterdir():
            file.unlink()
        done: dict[str, list[Row]] = {}
        Campaign("sim", jobs, lambda point, rows, done=done: done.update({point.name: rows})).run(points)
        strip = ("cpu_s", "date")
        found.append(
            {name: [{k: repr(r[k]) for k in COLUMNS if k not in strip} for r in done[name]] for name in sorted(done)}
        )
    assert found[0] == found[1]
    # Those that write files stay.
    assert sum(not thread.name.startswith("sync") for thread in threading.enumerate()) < 10


# Differences.


def point() -> Point:
    return Point("p", "b", frozenset(), Scenario(traffic="native"), Budgets())


def differences(kernel: list[float], sim: list[float], **others: Any) -> pd.DataFrame:
    one = point()
    given = {"kernel": rows(one.question, kernel), "sim": rows(one.question, sim, **others)}
    return compare(*(answers([one], name, {one.question: of}) for name, of in given.items()))


def test_an_estimate_is_mean_standard_error_and_half_of_the_95_percent_interval() -> None:
    found = Estimate.of([1.0, 2.0, 3.0, math.nan])
    assert (found.mean, found.runs) == (2.0, 3)
    assert found.error == pytest.approx(1 / math.sqrt(3))
    assert found.half == pytest.approx(4.302653 / math.sqrt(3))


def test_a_difference_within_the_noise_of_both_sides_is_shown_as_such() -> None:
    near = differences([99.0, 100.0, 101.0], [101.0, 102.0, 103.0]).set_index("measure").loc["mean_mbps"]
    far = differences([99.0, 100.0, 101.0], [109.0, 110.0, 111.0]).set_index("measure").loc["mean_mbps"]
    assert near["ln_ratio"] == pytest.approx(math.log(1.02))
    assert near["ln_noise"] == pytest.approx(4.302653 / math.sqrt(3) * math.hypot(1 / 100, 1 / 102), rel=1e-6)
    assert near["in_noise"]
    assert not far["in_noise"]


def test_shares_are_those_of_congestion_controls_where_several_meet() -> None:
    flows = [{"cc": "cubic"}, {"cc": "bbr"}, {"cc": "cubic"}]
    one = Point("p", "b", frozenset(), Scenario(flows=flows), Budgets())
    kernel = answers([one], "kernel", {one.question: rows(one.question, [1.0, 1.0], shares="0.2 0.5 0.3")})
    sim = answers([one], "sim", {one.question: rows(one.question, [1.0, 1.0], shares="0.1 0.6 0.3")})
    found = compare(kernel, sim).query("measure == 'share'").set_index("share_of")
    assert dict(found["kernel"]) == pytest.approx({"cubic": 0.5, "bbr": 0.5})
    assert dict(found["sim"]) == pytest.approx({"cubic": 0.4, "bbr": 0.6})
    assert "share" not in set(differences([1.0, 1.0], [1.0, 1.0])["measure"])


def test_counts_of_up_to_50_in_all_runs_say_nothing() -> None:
    one = point()
    for timeouts, expected in ((16.0, False), (17.0, True)):
        kernel = answers([one], "kernel", {one.question: rows(one.question, [1.0, 1.0, 1.0], timeouts=timeouts)})
        sim = answers([one], "sim", {one.question: rows(one.question, [1.0, 1.0, 1.0], timeouts=0.0)})
        row = compare(kernel, sim).set_index("measure").loc["timeouts"]
        assert row["enough"] == expected
        assert row["ln_ratio"] == -math.inf


def test_the_summary_holds_the_goals_against_the_points() -> None:
    frames = []
    for at, ratio in enumerate([1.0, 1.01, 0.99, 1.02, 1.03, 0.98, 1.0, 1.01, 1.07, 1.3]):
        frames.append(differences([100.0] * 3, [100.0 * ratio] * 3).assign(point=f"p{at}"))
    table = pd.concat(frames, ignore_index=True)
    row = summary(table).set_index("measure").loc["mean_mbps"]
    assert (row["points"], row["worst_point"], row["met"]) == (10, "p9", False)
    assert row["median"] == pytest.approx(0.02)
    assert row["p90"] == row["worst"] == pytest.approx(0.3)
    assert list(outside(table, 0.06)["point"]) == ["p8", "p9"]
    assert summary(table[table["point"] != "p9"]).set_index("measure").loc["mean_mbps", "met"]


# The command.


@pytest.fixture
def recorded(small: Path) -> Path:
    """A record of all points of the small grid but one, made from the simulator's results with other seeds."""
    grid = Grid.load(small)
    record = Ledger(records.beside(small))

    def keep(point: Point, found: list[Row]) -> None:
        record.replace(point.question, [row | {"engine": "kernel"} for row in found])

    Campaign("sim", 2, keep, quiet=True).run(grid.points()[:4])
    record.about = {"kernel": {"version": "6.12"}}
    record.write([point.question for point in grid.points()])
    return small


@pytest.mark.usefixtures("patience")
def test_only_the_simulator_runs_when_the_kernel_is_on_record(recorded: Path, tmp_path: Path) -> None:
    found = compare_on(recorded, quiet=True)
    assert found.unmeasured == ("two:hz100-sack=false",)
    throughput = found.differences.query("measure == 'mean_mbps'")
    assert throughput["ln_ratio"].abs().max() < 1e-6
    assert set(found.table["engine"]) == {"kernel", "sim"}
    assert len(found.table) == 8
    found.save(tmp_path)
    for name in ("engines.csv", "differences.csv", "fidelity.json", "fidelity.md", "fidelity.png", "fidelity.svg"):
        assert (tmp_path / name).stat().st_size > 500, name
    assert len(pd.read_csv(tmp_path / "differences.csv")) == len(found.differences)


@pytest.mark.usefixtures("patience")
def test_the_exit_status_is_3_when_a_mean_is_outside_the_tolerance(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", "--grid", str(recorded), "--quiet"]
    assert status_of(command) == 0
    assert "4 points, sim against kernel" in capsys.readouterr().out
    assert status_of([*command, "--within", "1%"]) == 0
    assert "outside 1% of the kernel's mean throughput: no point" in capsys.readouterr().out
    path = records.beside(recorded)
    table = pd.read_csv(path)
    table.loc[table["point"] == "one:reno-20M", "mean_mbps"] *= 1.5
    table.to_csv(path, index=False)
    assert status_of([*command, "--within", "1%"]) == 3
    assert "outside 1% of the kernel's mean throughput: 1 of 4 points" in capsys.readouterr().out
    assert status_of([*command, "--tag", "ci", "--within", "60%"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--tag", "ci"], "bad-usage"),
        (["a", "--grid", "GRID"], "bad-usage"),
        (["--grid", "none.toml"], "file-not-found"),
        (["--grid", "GRID", "--record", "none.csv"], "not-a-result"),
        (["--grid", "GRID", "--within", "10"], "missing-unit"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    small: Path, arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(small) if argument == "GRID" else argument for argument in arguments]
    assert status_of(["compare", *given]) == 2
    assert f"error[{code}]" in capsys.readouterr().err
