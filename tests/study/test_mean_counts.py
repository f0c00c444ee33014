"""A row of several seeds has the scale of one run: counts are means per run, in every column of every table."""

import dataclasses
import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sawtooth import engines
from sawtooth.report import write_report
from sawtooth.study import Study, StudyResult, run_study
from sawtooth.study.mean_counts import COUNTS, TOTALS, count_text, per_run

SEEDS = (1, 2, 3)
SOURCES = {
    "asks": {"kind": "requests", "sizes": "20 kB", "think": "30 ms"},
    "reads": {"kind": "pages", "objects": 6, "sizes": "10 kB", "think": "100 ms"},
    "tv": {"kind": "video", "rates": ["1 Mbit/s", "4 Mbit/s"]},
    "call": {"kind": "udp"},
    "mice": {"kind": "arrivals", "every": "100 ms", "sizes": "50 kB"},
}
SCENARIO = {
    "duration": "8 s",
    "traffic": "native",
    "path": {"rate": "8 Mbit/s", "rtt": "20 ms", "loss": "0.5%", "queue": {"kind": "codel", "ecn": True}},
    "host": {"ecn": 1},
    "probes": [{"interval": "50 ms"}],
}


class Alike:
    """Every seed gives what seed 1 does, so three runs must have the numbers of one."""

    name = "alike"

    def check(self, scenario):
        engines.get("sim").check(scenario)

    def run(self, scenario, *, progress=None, stop=None):
        found = engines.get("sim").run(scenario.set({"seed": 1}))
        return dataclasses.replace(found, scenario=scenario)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    flows = [{"cc": "cubic", "name": "bulk"}]
    flows += [{"name": name, "source": source} for name, source in SOURCES.items()]
    study = Study.from_dict({"name": "alike", "scenario": SCENARIO | {"flows": flows}, "repeat": {"seeds": [*SEEDS]}})
    with ThreadPoolExecutor(1) as executor:
        return run_study(
            study, engine=Alike(), out=tmp_path_factory.mktemp("r"), executor=executor, quiet=True, ending=write_report
        )


@pytest.mark.parametrize("name", ["details", "shares", "latency", "completions", "applications"])
@pytest.mark.usefixtures("patience")
def test_three_runs_that_are_alike_say_in_every_column_what_one_says(result: StudyResult, name: str) -> None:
    table = getattr(result, name)
    one, all_of_them = table[table["seed"] == 1], table[table["seed"] == "all"]
    assert 0 < len(one) == len(all_of_them)
    for column in table.columns.drop("seed"):
        for single, every in zip(one[column], all_of_them[column], strict=True):
            if column in TOTALS or column.startswith("ci_"):
                continue
            if isinstance(single, str) or not math.isnan(single):
                # A sum would be three times as large. Deviations divide by n - 1, and quantiles interpolate between
                # samples.
                apart = 1e-9 if column in COUNTS or "mean" in column else 0.2
                same = single == every if isinstance(single, str) else every == pytest.approx(single, rel=apart)
                assert same, (column, single, every)


@pytest.mark.usefixtures("patience")
def test_every_count_of_the_tables_is_tried_here(result: StudyResult) -> None:
    row = result.records[0]
    assert all(row[name] >= 0 for name in COUNTS)
    never = {name for name in COUNTS if row[name] == 0}
    assert never <= {"timeouts", "tail_probes", "queue_drops", "queue_early_drops", "video_stalls"}
    assert row["count"] == 3 * result.details["count"].iloc[0]


def test_a_terminal_a_page_and_json_have_the_mean_and_the_first_two_say_so(result: StudyResult) -> None:
    row, each = result.records[0], result.details["retransmits"].iloc[0]
    assert row["retransmits"] == each
    assert "3 seeds; counts are means per run" in result.table()
    assert count_text(each) in result.table()
    page = (result.directory / "report.html").read_text()
    assert "All seeds together; counts are means per run" in page
    assert json.loads(json.dumps(result.describe()))["rows"][-1]["retransmits"] == each


def test_a_row_of_one_run_keeps_whole_numbers() -> None:
    assert per_run({"retransmits": 7, "mean_mbps": 3.0}, 1) == {"retransmits": 7, "mean_mbps": 3.0}
    assert per_run({"retransmits": 7, "mean_mbps": 3.0}, 2) == {"retransmits": 3.5, "mean_mbps": 3.0}


@pytest.mark.parametrize(("mean", "words"), [(17654, "17654"), (5884.67, "5884.7"), (1 / 3, "0.33"), (0.0, "0")])
def test_a_mean_of_counts_keeps_a_digit_that_matters(mean: float, words: str) -> None:
    assert count_text(mean) == words


def test_compare_has_means_of_counts(result: StudyResult, tmp_path: Path) -> None:
    from sawtooth.compare.subject import Subject

    (cell, *_) = Subject.load(result.directory).cells.values()
    assert cell.counter("retransmits") == result.details["retransmits"].iloc[0]
