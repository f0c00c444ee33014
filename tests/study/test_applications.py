"""A study's measures of applications: answers, pages, videos, datagrams and calls."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sawtooth
from expected_error import expected_error
from fake_engine import quick
from sawtooth.report.figures import figures
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import Application, applications
from sawtooth.stats.call import mos, rating
from sawtooth.study import Study, StudyResult
from sawtooth.study import application as told

pytestmark = pytest.mark.usefixtures("patience")

PATH = {"rate": "10 Mbit/s", "rtt": "40 ms", "queue": "100 packets"}
REQUESTS = {"name": "ask", "source": {"kind": "requests", "sizes": "20 kB", "think": "100 ms"}}
PAGES = {"name": "web", "source": {"kind": "pages", "objects": 6, "sizes": "10 kB", "think": "100 ms"}}
VIDEO = {"name": "tv", "source": {"kind": "video", "rates": ["1 Mbit/s", "4 Mbit/s"]}}
CALL = {"name": "call", "source": {"kind": "udp"}}


def run(*flows: dict[str, Any], **changes: Any) -> Run:
    given = {"topology": "path", "duration": "10 s", "traffic": "native", "path": PATH, "flows": list(flows)}
    return sawtooth.run(Scenario.from_dict(given | changes))


def made(flow: dict[str, Any], rows: list[dict[str, Any]], **changes: Any) -> Run:
    table = {"requests": "responses", "pages": "pages", "video": "segments", "udp": "datagrams"}[flow["source"]["kind"]]
    given = {"path": PATH, "duration": "60 s", "traffic": "native", "flows": [flow], **changes}
    tables = {"intervals": pd.DataFrame(), table: pd.DataFrame(rows)}
    return Run(Scenario.from_dict(given), "made", tables)


def columns(*runs: Run) -> dict[str, float]:
    return of_all([applications(one) for one in runs])


def of_all(seen: list[list[Application]]) -> dict[str, float]:
    found = dict.fromkeys(told.COLUMNS, math.nan)
    for kind in told.KINDS:
        found |= told.of_kind(kind, seen)
    return found


def test_each_flow_that_is_an_application_is_one_in_the_order_of_the_file() -> None:
    seen = applications(run({}, CALL, PAGES, REQUESTS, VIDEO))
    assert [(one.name, one.kind) for one in seen] == [
        ("call", "udp"),
        ("web", "pages"),
        ("ask", "requests"),
        ("tv", "video"),
    ]
    assert applications(run({})) == []


def test_a_flow_over_the_pairs_of_a_dumbbell_is_one_application() -> None:
    spread = {**REQUESTS, "from": "s*", "to": "r*", "count": 2}
    (seen,) = applications(run(spread, topology="dumbbell", path=None, dumbbell={"pairs": 2, "rtt": "20 ms"}))
    assert (seen.name, set(seen.table["flow"])) == ("ask", {0, 1})


def test_what_was_asked_for_before_the_warm_up_is_left_out() -> None:
    seen = run(REQUESTS, warmup="4 s")
    (kept,) = applications(seen)
    whole = seen.tables["responses"]
    assert len(kept.table) == ((whole["t_s"] - whole["response_s"]) >= 4).sum() < len(whole)


def test_times_are_reported_by_percentiles_and_by_those_only_that_there_are_enough_for() -> None:
    rows = [{"t_s": at / 10 + 1, "flow": 0, "response_s": (at + 1) / 1000} for at in range(100)]
    found = columns(made(REQUESTS, rows))
    assert found["responses"] == 100
    assert found["response_ms_p50"] == pytest.approx(50.5)
    assert found["response_ms_p90"] == pytest.approx(90.1)
    assert found["response_ms_p99"] == pytest.approx(99.01)
    assert math.isnan(found["response_ms_p999"])
    assert math.isnan(found["page_ms_p50"])


def test_seeds_are_one_sample() -> None:
    one, two = ([{"t_s": 9.0, "flow": 0, "load_s": seconds}] for seconds in (1.0, 2.0))
    found = columns(made(PAGES, one), made(PAGES, two))
    assert (found["pages"], found["page_ms_p50"]) == (2, 1500)


def test_columns_are_of_the_first_flow_of_a_kind_and_rows_of_each() -> None:
    slow = {**REQUESTS, "name": "large", "source": {**REQUESTS["source"], "sizes": "200 kB"}}
    seen = [applications(run(REQUESTS, slow))]
    rows = told.rows({"study": "a"}, 1, seen)
    assert [row["flow"] for row in rows] == ["ask", "large"]
    assert of_all(seen)["response_ms_p50"] == rows[0]["response_ms_p50"] < rows[1]["response_ms_p50"]


# Videos


def segment(t_s: float, number: int, buffer_s: float, stalled_s: float = 0.0, mbps: float = 1.0) -> dict[str, Any]:
    about = {"t_s": t_s, "flow": 0, "connection": 0, "number": number, "rate_bps": mbps * 1e6}
    return {**about, "download_s": 0.5, "buffer_s": buffer_s, "stalled_s": stalled_s}


def test_a_video_stalls_between_its_startup_and_the_end() -> None:
    rows = [segment(1.0, 0, 4.0, 1.0), segment(7.0, 1, 4.0, 2.0, mbps=2), segment(10.0, 2, 60.0)]
    found = columns(made(VIDEO, rows))
    assert found["video_startup_s"] == 1
    assert found["video_mbps"] == pytest.approx(4 / 3)
    assert found["video_stalls"] == 1
    assert found["video_stalled_percent"] == pytest.approx(100 * 2 / 59)


def test_a_video_that_has_run_empty_when_the_run_ends_stands_still_since_then() -> None:
    found = columns(made(VIDEO, [segment(1.0, 0, 4.0, 1.0)]))
    assert found["video_stalls"] == 1
    assert found["video_stalled_percent"] == pytest.approx(100 * 55 / 59)


def test_of_a_stall_what_is_after_the_warm_up_counts() -> None:
    rows = [segment(1.0, 0, 4.0, 1.0), segment(25.0, 1, 40.0, 20.0)]
    found = columns(made(VIDEO, rows, warmup="20 s"))
    assert math.isnan(found["video_startup_s"])
    assert found["video_stalled_percent"] == pytest.approx(100 * 5 / 40)


def test_a_video_that_never_began_has_nothing_to_tell() -> None:
    found = columns(run(VIDEO, path={**PATH, "loss": "100%"}))
    assert found["video_segments"] == 0
    assert math.isnan(found["video_stalled_percent"])


# Datagrams


def test_a_call_alone_has_the_delay_of_the_path_and_the_score_that_belongs_to_it() -> None:
    found = columns(run(CALL))
    assert found["udp_delay_p50_ms"] == pytest.approx(20.17, rel=1 / 32)
    assert found["udp_delay_mean_ms"] == pytest.approx(20.17, rel=0.01)
    assert found["udp_lost_percent"] == 0
    assert found["call_mos"] == pytest.approx(float(mos(rating(0.040, 0))), abs=0.01)


def test_datagrams_that_are_no_speech_have_no_score() -> None:
    found = columns(run({"source": {"kind": "udp", "rate": "1 Mbit/s", "size": "1200 bytes"}}))
    assert found["udp_delay_mean_ms"] > 20
    assert math.isnan(found["call_mos"])


def test_the_share_lost_is_of_all_that_were_expected_and_late_ones_make_it_good() -> None:
    row = {"flow": 0, "delay_mean_s": 0.02, "delay_p50_s": 0.02, "delay_p95_s": 0.02, "delay_p99_s": 0.02}
    row |= {"delay_max_s": 0.02, "jitter_s": 0.001}
    found = columns(
        made(CALL, [row | {"t_s": 1.0, "received": 40, "lost": 10}, row | {"t_s": 2.0, "received": 55, "lost": -5}])
    )
    assert found["udp_lost_percent"] == pytest.approx(5)
    assert found["udp_jitter_ms"] == pytest.approx(1)


def test_a_bulk_transfer_beside_it_makes_a_call_worse() -> None:
    slow = {**PATH, "rate": "2 Mbit/s", "queue": "400 ms"}
    beside, alone = (columns(run(*flows, path=slow)) for flows in ((CALL, {}), (CALL,)))
    assert beside["call_mos"] < alone["call_mos"] - 0.3
    assert beside["call_mos_p10"] <= beside["call_mos"]


# In a study


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    bulk = {"name": "bulk", "start": "1 s"}
    flows = [REQUESTS, PAGES, VIDEO, CALL, bulk]
    scenario = {"topology": "path", "duration": "8 s", "traffic": "native", "path": PATH, "flows": flows}
    content = {
        "name": "apps",
        "scenario": {**scenario, "path": {**PATH, "queue": {"kind": "pfifo"}}},
        "vary": {"path.queue.kind": ["pfifo", "fq_codel"]},
        "columns": {"queue": {"field": "path.queue.kind"}},
        "repeat": {"seeds": [1, 2]},
        "report": {
            "plots": ["response-cdf", "page-cdf", "measures", "trade"],
            "measures": ["response_ms_p90", "page_ms_p50", "video_mbps", "call_mos"],
            "trade": ["udp_delay_p95_ms", "video_stalled_percent"],
        },
    }
    return quick(Study.from_dict(content), out=tmp_path_factory.mktemp("results"), engine="sim")


def test_a_study_has_them_as_columns_as_a_table_and_in_the_terminal(result: StudyResult) -> None:
    rows = result.pooled.set_index("queue")
    assert rows.loc["pfifo", "call_mos"] < rows.loc["fq_codel", "call_mos"]
    assert rows.loc["pfifo", "response_ms_p50"] > rows.loc["fq_codel", "response_ms_p50"]
    assert result.applications["seed"].tolist() == [*[1] * 4, *[2] * 4, *["all"] * 4] * 2
    written = pd.read_csv(result.directory / "applications.csv")
    assert list(written.columns) == list(result.applications.columns)
    for kind in told.KINDS.values():
        assert kind.title in result.table()


def test_distributions_are_drawn_from_their_tables(result: StudyResult) -> None:
    drawn = {figure.name: figure for figure in figures(result)}
    assert list(drawn) == ["response-cdf", "page-cdf", "measures", "trade"]
    for name in ("response", "page"):
        table = drawn[f"{name}-cdf"].table
        each = table.groupby("queue")[f"{name}_ms"]
        assert len(each) == 2
        assert each.apply(lambda one: one.is_monotonic_increasing).all()
        medians = table[np.isclose(table["share"], 0.5)].set_index("queue")[f"{name}_ms"]
        assert medians["pfifo"] == pytest.approx(result.pooled.set_index("queue").loc["pfifo", f"{name}_ms_p50"])


def test_the_report_has_a_table_for_each_kind(result: StudyResult) -> None:
    page = sawtooth.report(result).read_text()
    for kind in told.KINDS.values():
        assert kind.title[1:] in page
    assert "applications.csv" in page


def test_a_study_without_applications_has_no_such_table(tmp_path: Any) -> None:
    found = quick(out=tmp_path)
    assert found.applications.empty
    assert not (found.directory / "applications.csv").exists()
    assert found.details[list(told.COLUMNS)].isna().all(axis=None)


def test_a_figure_of_what_no_flow_does_is_refused() -> None:
    content = {"name": "a", "scenario": {"flows": [{}]}, "report": {"plots": ["page-cdf"]}}
    with expected_error(field="report.plots", match='kind "pages"'):
        Study.from_dict(content)
