"""The headline of a study: what its report's first sentence and cards compare, and which figure comes first."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sawtooth
from expected_error import expected_error
from fake_engine import quick
from sawtooth.errors import InputError
from sawtooth.report import write_report
from sawtooth.report.cards import cards
from sawtooth.report.figures import figures
from sawtooth.report.measure_figures import MOST_LINES
from sawtooth.study import Study, shipped
from sawtooth.study.study import SHARE

BOTH_WAYS: dict[str, Any] = {
    "name": "home",
    "scenario": {
        "duration": "6 s",
        "warmup": "2 s",
        "path": {"rate": "10 Mbit/s", "reverse_rate": "5 Mbit/s", "rtt": "20 ms", "queue": "200 ms"},
        "flows": [{"name": "down"}, {"name": "up", "from": "receiver", "to": "sender"}],
        "probes": [{"name": "ping", "interval": "50 ms"}],
    },
    "vary": {"path.queue": ["200 ms", {"kind": "fq_codel"}], "flows.cc": ["cubic", "reno"]},
    "columns": {"cc": {"field": "flows.cc"}, "queue": {"field": "path.queue"}},
    "report": {
        "headline": "latency_p50_ms",
        "x": "queue",
        "plots": ["latency-cdf", "measures"],
        "measures": ["mean_mbps", "latency_p50_ms"],
    },
}


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = quick(Study.from_dict(BOTH_WAYS), engine="sim", out=tmp_path_factory.mktemp("results"))
    write_report(made)
    return made


@pytest.mark.usefixtures("patience")
def test_the_first_sentence_compares_the_headline(both_ways: Any) -> None:
    page = (both_ways.directory / "report.html").read_text("utf-8")
    (answer,) = re.findall(r'<p class="answer">(.*?)</p>', page)
    begun = r"Latency under load, median, from 200 ms queue to .*: CUBIC: ([\d.]+) ms → ([\d.]+) ms \(−.*; Reno: "
    before, after = map(float, re.match(begun, answer).groups())
    row = both_ways.pooled[both_ways.pooled["cc"] == "cubic"]
    assert [before, after] == pytest.approx(row["latency_p50_ms"].tolist(), rel=0.01)
    assert page.index('data-figure="measures"') < page.index('data-figure="latency-cdf"')


@pytest.mark.usefixtures("patience")
def test_cards_have_the_headline_and_each_way_by_itself(both_ways: Any) -> None:
    one = cards(both_ways)[0]
    assert re.fullmatch(r"[\d.]+ → [\d.]+ ms", one.number)
    down, up = (float(part) for part in re.findall(r"→ ([\d.]+)", one.lines[-1]))
    assert one.lines[-1].startswith("goodput down ")
    assert down < 10
    assert up < 5


@pytest.mark.usefixtures("patience")
def test_the_share_of_a_flow_is_told_with_its_name(tmp_path: Path) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "10 ms"}
    content = {
        "name": "two",
        "scenario": {"duration": "2 s", "path": path, "flows": [{"name": "near"}, {"name": "far"}]},
        "vary": {"path.queue": ["20 ms", {"kind": "fq_codel"}]},
        "columns": {"queue": {"field": "path.queue"}},
        "report": {"x": "queue", "headline": SHARE, "plots": ["measures"], "measures": ["mean_mbps"]},
    }
    result: Any = quick(Study.from_dict(content), engine="sim", out=tmp_path)
    (card,) = cards(result)
    assert card.lines[:2] == ("share of the first flow (near)", "from 20 ms queue to kind fq_codel")


def test_no_figure_adds_up_what_goes_both_ways(both_ways: Any) -> None:
    (drawn,) = [figure for figure in figures(both_ways) if figure.name == "measures"]
    titles = [f"{panel.y.label}, {panel.y.unit}" for panel in drawn.panels]
    assert titles == ["latency under load, median, ms", "goodput of down, Mbit/s", "goodput of up, Mbit/s"]
    assert drawn.table["mean_mbps_down"].max() < 10
    assert drawn.table["mean_mbps_up"].max() < 5
    assert "mean_mbps" not in drawn.table


@pytest.mark.usefixtures("patience")
def test_more_lines_than_are_distinguished_get_panels_of_their_own(tmp_path: Path) -> None:
    content = {
        "name": "many",
        "scenario": {"duration": "1 s", "path": {"rate": "5 Mbit/s"}, "flows": [{"name": "bulk"}]},
        "vary": {
            "flows.bulk.cc": ["cubic", "reno", "bbr"],
            "path.rtt": ["5 ms", "10 ms", "20 ms"],
            "path.queue": ["10 ms", "50 ms"],
        },
        "columns": {"cc": {"field": "flows.bulk.cc"}, "rtt": {"field": "path.rtt"}, "queue": {"field": "path.queue"}},
        "report": {"x": "queue", "series": "cc", "plots": ["measures"], "measures": ["mean_mbps", "mean_srtt_ms"]},
    }
    result: Any = quick(Study.from_dict(content), engine="sim", out=tmp_path)
    (drawn,) = figures(result)
    assert len(drawn.panels) == 3 * 2
    assert {len(panel.series) for panel in drawn.panels} == {3}
    assert len({line.name for panel in drawn.panels for line in panel.series}) <= MOST_LINES


@pytest.mark.parametrize("name", sorted(shipped.shipped()))
def test_every_shipped_study_says_what_it_is_about(name: str) -> None:
    study = sawtooth.load(name)
    assert isinstance(study, Study)
    assert study.is_of_probes or study.report.headline in (*study.titles, SHARE)


@pytest.mark.parametrize(
    ("report", "headline"),
    [
        ({}, "mean_mbps"),
        ({"plots": ["measures"], "measures": ["rpm", "mean_mbps"]}, "rpm"),
        ({"plots": ["latency", "measures"], "measures": ["mean_mbps"]}, "latency_p50_ms"),
        ({"headline": "share_percent"}, "share_percent"),
    ],
)
def test_a_study_that_says_none_has_the_one_of_its_figures(report: dict[str, Any], headline: str) -> None:
    assert Study.from_dict({**BOTH_WAYS, "report": {"x": "queue", **report}}).headline == headline


def test_a_headline_that_no_table_has_is_reported() -> None:
    with expected_error(code="unknown-name", field="report.headline", kind=InputError) as told:
        Study.from_dict({**BOTH_WAYS, "report": {"headline": "latency_p50"}})
    assert "latency_p50_ms" in (told.value.fix or "")


def test_tables_give_each_way_its_own_mean_and_no_sum(both_ways: Any) -> None:
    page = (both_ways.directory / "report.html").read_text("utf-8")
    table = page[page.rindex(">All points") :]
    heads = re.findall(r"<th[^>]*>(.*?)</th>", table[: table.index("</thead>")])
    assert [head for head in heads if head.startswith("mean of")] == ["mean of down", "mean of up"]
    assert not {"mean", "95% interval", "change"} & set(heads)
    assert "<h3>Distribution</h3>" not in page
    head, first = str(both_ways).split("\n\n")[1].splitlines()[:2]
    assert "mean of down  mean of up" in head
    assert "95% interval" not in head
    down, up = (float(one) for one in re.findall(r"\d+\.\d+", first)[:2])
    assert 4.8 < down < 10
    assert 2 < up < 5
    sums = both_ways.pooled["mean_mbps"]
    assert f"{sums.iloc[0]:.3f}" not in first


def headings(page: str) -> list[int]:
    """Levels of the headings of a page, in order."""
    return [int(level) for level in re.findall(r"<h([1-6])[ >]", re.sub(r"(?s)<script.*?</script>", "", page))]


def test_headings_of_a_report_skip_no_level(both_ways: Any) -> None:
    levels = headings((both_ways.directory / "report.html").read_text("utf-8"))
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
