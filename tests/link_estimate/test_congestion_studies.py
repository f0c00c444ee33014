"""The controlled experiments are studies; figures of probes compare RTTs with what flows got."""

import tomllib

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from expected_error import expected_error
from fake_engine import quick
from sawtooth.errors import InputError
from sawtooth.link_estimate.wrong_rtt import ASSUMED_RTT_S
from sawtooth.report import write_report
from sawtooth.report.figures import figures
from sawtooth.run import Run
from sawtooth.study import Study, StudyResult
from sawtooth.study.estimates import Fit
from sawtooth.study.shipped import shipped

pytestmark = pytest.mark.usefixtures("patience")

STUDIES = [file for name, file in shipped().items() if name.startswith("persistent-congestion")]
FLOW = {"cc": "cubic", "replace": {"lifetime": ["1 s", "5 s"]}}
PROBE = {"from": "a", "to": "b", "interval": "100 ms", "count": 1000, "start": "5 s"}


class Probed:
    """A queue that varies more with fewer flows. A connection gets 12 or 3 Mbit/s."""

    name = "probed"

    def check(self, scenario):
        """It takes the whole rate."""

    def run(self, scenario, *, progress=None, stop=None):
        compiled = scenario.compile()
        ends = np.arange(1, scenario.duration.seconds + 1)
        rows = []
        for index, flow in enumerate(compiled.flows):
            alive = ends > flow.start_ns / 1e9
            goodput_bps = np.where(alive, flow.count * (12e6 if index % 2 == 0 else 3e6), 0.0)
            rows.append(pd.DataFrame({"t_s": ends.astype(float), "flow": index, "goodput_bps": goodput_bps}))
        random = np.random.default_rng(scenario.seed)
        probes = []
        for index, probe in enumerate(compiled.probes):
            size_s = 0.02 / sum(flow.count for flow in compiled.flows) ** 0.5
            walk = np.convolve(random.normal(0, size_s, probe.count + 4), np.exp(-np.arange(5) / 2), "valid")
            rtt_s = 0.06 + walk - walk.min()
            rtt_s[random.random(len(rtt_s)) < 0.02] = np.nan
            sent_s = probe.start_ns / 1e9 + np.arange(probe.count) * probe.interval_ns / 1e9
            probes.append(pd.DataFrame({"t_s": sent_s, "probe": index, "rtt_s": rtt_s + 0.01 * index}))
        info = pd.DataFrame({"t_s": [1.0], "flow": [0], "connection": [0], "srtt_s": [0.02], "rwnd_limited_s": [0.0]})
        tables = {"intervals": pd.concat(rows), "tcp_info": info, "probes": pd.concat(probes)}
        names = ("connection", "generation", "start_s", "end_s", "delivered_bytes")
        tables["flows"] = pd.DataFrame({"flow": [0, 1], **{name: [0.0, 0.0] for name in names}})
        return Run(scenario, self.name, tables, {})


def study(**changes):
    content = {
        "name": "probed",
        "scenario": {
            "topology": "custom",
            "duration": "105 s",
            "warmup": "5 s",
            "hosts": {"a": {}, "b": {}},
            "links": [{"from": "a", "to": "b", "rate": "1 Gbit/s", "queue": "3963 packets"}],
            "flows": [
                {**FLOW, "name": "fast", "from": "a", "to": "b", "count": 10},
                {**FLOW, "name": "slow", "from": "a", "to": "b", "count": 30, "start": "55 s"},
            ],
            "probes": [{**PROBE, "name": "near"}, {**PROBE, "name": "far"}],
        },
        "vary": {"flows.cc": ["cubic", "reno"], "flows.fast.count": [10, 40]},
        "report": {"x": "fast_count", "plots": ["probe-curves", "probe-estimates", "probe-rtts", "assumed-rtt"]},
    }
    return Study.from_dict(content | changes)


def made(out, **changes):
    result = quick(study(**changes), engine=Probed(), out=out)
    write_report(result)
    return result


def table(result: StudyResult, name: str) -> pd.DataFrame:
    return pd.read_csv(result.directory / "plots" / f"{name}.csv")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return made(tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_shipped_study_has_probes_of_one_window_and_figures_of_them(file):
    found = Study.load(file)
    assert {"probe-curves", "probe-rtts"} & set(found.report.plots)
    for point in found.points():
        for probe in point.scenario.compile().probes:
            assert (probe.count, probe.interval_ns) == (1000, 10**8)
    assert len(found.points(full=True)) >= 3 * len(found.points())


def test_the_axes_of_the_source_and_its_future_work_have_a_study_each():
    names = {file.stem.removeprefix("persistent-congestion").lstrip("-") for file in STUDIES}
    source = {"", "mixes", "rate", "flows", "queue", "rtt", "rtt-mix", "through", "kernel"}
    assert names == source | {"bbr", "10g", "changes", "rtt-distribution"}


def test_the_true_throughput_is_over_the_time_that_connections_lived(result):
    whole = table(result, "probe-curves").set_index(["cc", "fast_count", "probe"])
    # 10 connections at 12 Mbit/s all the time, 30 at 3 Mbit/s for half of it.
    assert whole.loc[("cubic", 10, "far"), "true_mbps"] == pytest.approx((10 * 12 + 15 * 3) / 25)


def test_flows_that_the_report_names_are_set_against_each_for_itself(tmp_path):
    report = {"x": "fast_count", "plots": ["probe-estimates"], "flows": ["fast", "slow"]}
    found = table(made(tmp_path, report=report), "probe-estimates")
    assert found.groupby("flow")["true_mbps"].agg(["min", "max"]).to_numpy() == pytest.approx(
        np.array([[12, 12], [3, 3]])
    )


def test_the_headline_of_a_study_of_probes_is_what_a_flow_gets_and_how_the_estimate_fits_it(result):
    told = result.table()
    lines = told.splitlines()
    assert lines[1].startswith("goodput of one flow in Mbit/s")
    header = next(line for line in lines if "a flow gets" in line)
    assert header.split("  ")[-1].strip() == "estimate / truth"
    # 10 flows of 12 Mbit/s, and for half of the time 30 of 3 Mbit/s: 6.6 on average; the headline does not use their
    # sum of 165.
    first = lines[lines.index(header) + 1]
    assert first.split()[:4] == ["cubic", "10", "near", "6.6"]
    assert "165" not in told
    page = (result.directory / "report.html").read_text()
    fit = page.index("median error of the estimate")
    assert fit < page.index(">Estimate and truth</h2>") < page.rindex("All flows together")
    assert "<b>+" not in page


def test_a_study_with_other_figures_too_keeps_the_throughput_of_all_flows_as_its_headline(tmp_path):
    report = {"x": "fast_count", "plots": ["mean", "probe-curves"]}
    told = made(tmp_path, report=report)
    assert "goodput in Mbit/s, means of 100 s" in told.table()
    assert "Estimate and truth" not in (told.directory / "report.html").read_text()


def test_the_fit_counts_errors_intervals_and_windows_without_an_estimate():
    rows = [
        {
            "true_mbps": 10,
            "estimate_mbps": 11,
            "low_mbps": 9,
            "high_mbps": 13,
            "probe_reason": "",
            "probe_state": "busy",
        },
        {
            "true_mbps": 10,
            "estimate_mbps": 15,
            "low_mbps": 12,
            "high_mbps": np.nan,
            "probe_reason": "",
            "probe_state": "",
        },
        {
            "true_mbps": 10,
            "estimate_mbps": np.nan,
            "low_mbps": np.nan,
            "high_mbps": np.nan,
            "probe_reason": "idle",
            "probe_state": "",
        },
        {"true_mbps": 0, "estimate_mbps": 5, "low_mbps": 1, "high_mbps": 9, "probe_reason": "", "probe_state": ""},
    ]
    fit = Fit.of(pd.DataFrame(rows))
    assert (fit.windows, fit.estimated, fit.inside, fit.silent) == (3, 2, 1, {"idle": 1})
    assert (fit.median_error, fit.worst_error) == pytest.approx((0.3, 0.5))
    assert fit.words == (
        "2 of 3 have an estimate, with an error of 30.0% in the median and 50% at worst; 1 of 2 intervals contain the "
        "true value; without one: 1 idle"
    )


def test_near_and_far_series_have_their_difference_beside_them(result):
    found = table(result, "probe-curves")
    assert sorted(set(found["probe"])) == ["far", "far - near", "near"]
    assert len(found) == 4 * 3
    middle = found.groupby("probe")["probe_rtt_ms"].mean()
    assert middle["far - near"] == pytest.approx(middle["far"] - middle["near"], abs=0.5)


def test_estimates_of_the_simulator_s_series_are_near_what_flows_got(tmp_path):
    file = next(file for file in STUDIES if file.stem.endswith("kernel"))
    changes = {"flows.tcp.cc": "cubic", "traffic": "iperf3"}
    simulated = quick(Study.load(file), engine="sim", out=tmp_path, overrides=changes)
    write_report(simulated)
    found = table(simulated, "probe-estimates")
    assert set(found["probe_state"]) == {"congested"}
    assert ((found["low_mbps"] < found["estimate_mbps"]) & (found["estimate_mbps"] < found["high_mbps"])).all()
    assert found["true_mbps"].to_numpy() == pytest.approx(95.5 / np.array([10, 30, 100]), rel=0.02)
    assert (np.abs(np.log(found["estimate_mbps"] / found["true_mbps"])) < np.log(2)).all()
    # One of the 90% intervals may miss.
    assert ((found["low_mbps"] < found["true_mbps"]) & (found["true_mbps"] < found["high_mbps"])).sum() >= 2


def test_a_one_sided_estimate_has_no_end_in_the_table_and_one_in_the_picture(tmp_path):
    file = next(file for file in STUDIES if file.stem.endswith("kernel"))
    content = tomllib.loads(file.read_text()) | {"vary": {"flows.tcp.cc": ["cubic"], "flows.tcp.count": [2, 1000]}}
    simulated = quick(Study.from_dict(content), engine="sim", out=tmp_path, overrides={"traffic": "iperf3"})
    write_report(simulated)
    found = table(simulated, "probe-estimates").sort_values("true_mbps")
    assert found["probe_bound"].tolist() == ["at-most", "at-least"]
    assert found["low_mbps"].tolist()[0] == 0
    assert found["high_mbps"].isna().tolist() == [False, True]
    figure = next(one for one in figures(simulated) if one.name == "probe-estimates")
    ends = [
        value for panel in figure.panels for line in panel.series for value in (*(line.low or ()), *(line.high or ()))
    ]
    assert len(ends) == 4
    assert np.isfinite(ends).all()
    assert min(ends) > 0
    assert "drawn to 4 times" in figure.caption


def test_a_window_without_an_estimate_has_the_reason(result):
    found = table(result, "probe-estimates")
    silent = found[found["estimate_mbps"].isna()]
    assert not silent.empty
    assert (silent["probe_state"].isin(["idle", "busy"]) | silent["probe_reason"].notna()).all()


def test_the_rate_given_to_the_model_is_that_of_the_slowest_link_on_the_way(result):
    found = table(result, "probe-estimates")
    assert set(found["probe_rate_mbps"]) == {1000}


def test_a_rate_that_the_model_was_not_trained_on_is_left_out(tmp_path):
    links = [{"from": "a", "to": "b", "rate": "40 Mbit/s", "queue": "158 packets"}]
    scenario = study().scenario | {"links": links}
    report = {"x": "fast_count", "plots": ["probe-estimates"]}
    found = table(made(tmp_path, scenario=scenario, report=report), "probe-estimates")
    assert found["probe_rate_mbps"].isna().all()


def test_each_rtt_is_assumed_for_each_line(result):
    found = table(result, "assumed-rtt")
    assert sorted(set(found["probe_assumed_rtt_ms"])) == [1e3 * rtt_s for rtt_s in ASSUMED_RTT_S]
    for _, line in found.groupby("line"):
        ratio = line.set_index("probe_assumed_rtt_ms")["estimate_over_true"]
        assert len(ratio) == len(ASSUMED_RTT_S)
        assert (ratio > 0).all()
        assert ratio[10.0] != ratio[80.0]


def test_rtts_over_time_are_those_of_the_run(result):
    found = table(result, "probe-rtts")
    run = result.run(result.places[0])
    far = run.tables["probes"].query("probe == 1")
    first = found[(found["cc"] == "cubic") & (found["fast_count"] == 10)]
    np.testing.assert_allclose(first["probe_rtt_ms"], far["rtt_s"] * 1e3, atol=1e-6)


@pytest.mark.parametrize("name", ["probe-curves", "probe-estimates", "probe-rtts", "assumed-rtt"])
def test_a_figure_is_drawn_as_files_and_in_the_page(result, name):
    with Image.open(result.directory / "plots" / f"{name}.png") as image:
        assert len(image.convert("RGB").getcolors(1 << 20)) > 20
    page = (result.directory / "report.html").read_text(encoding="utf-8")
    assert f'data-figure="{name}"' in page


def test_a_study_without_probes_or_with_unknown_flows_is_refused():
    scenario = {name: value for name, value in study().scenario.items() if name != "probes"}
    with expected_error(code="missing-field", field="report.plots", match="the scenario has none", kind=InputError):
        study(scenario=scenario)
    with expected_error(code="unknown-name", field="report.flows", kind=InputError) as raised:
        study(report={"plots": ["probe-curves"], "flows": ["fats"]})
    assert "fast" in raised.value.fix
