"""The report on probed links: the page, its figures, and the table beside each."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.link_estimate import RttSeries, save_series
from sawtooth.link_estimate.calibrate import Measurement, make, read
from sawtooth.link_estimate.estimate import estimate
from sawtooth.link_estimate.features import FEATURES, unscaled, vector
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.report import Assumed, Link, page, write_report
from sawtooth.link_estimate.report.figures import ALIKE, EACH, figures
from sawtooth.link_estimate.report.verdict import checks, notes, training, verdict

pytestmark = pytest.mark.usefixtures("patience")

CONGESTED = Measurement(100_000_000, 396, 0.02, 12, 0, seed=4711)
ASSUMED = Assumed(rate_bps=1e8)
START = 1_763_683_200.0
"""A midnight, UTC."""


@pytest.fixture(scope="module")
def model() -> CongestionModel:
    return CongestionModel.default()


@pytest.fixture(scope="module")
def congested(tmp_path_factory: pytest.TempPathFactory) -> RttSeries:
    directory = tmp_path_factory.mktemp("corpus")
    make(directory, [CONGESTED], jobs=1, quiet=True)
    probes = next(found.series for found in read(directory))
    return replace(probes, source="link.csv", label="")


def idle(count: int, pace_s: float = 0.1) -> RttSeries:
    rtt_s = 0.02 + np.random.default_rng(1).exponential(3e-5, count)
    return RttSeries(START + np.arange(count) * pace_s, rtt_s, pace_s, "idle.csv", clock="unix")


def mixed(congested: RttSeries) -> RttSeries:
    """Congested, idle, a route that changes, nothing answered: one window each, and 50 more probes."""
    rtt_s = np.concatenate([congested.rtt_s, idle(3050).rtt_s + 0.01])
    rtt_s[2500:] += 0.03
    rtt_s[3000:4000] = np.nan
    return RttSeries(START + np.arange(len(rtt_s)) * 0.1, rtt_s, 0.1, "mixed.csv", clock="unix")


def table(directory: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(directory / "plots" / f"{name}.csv")


class Page(HTMLParser):
    """The page's words, and what it would fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.scripted = False
        self.fetched: list[str] = []
        self.feed(html)

    def handle_data(self, data: str) -> None:
        if not self.scripted:
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.scripted = self.scripted and tag != "script"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripted = tag == "script"
        if tag in ("img", "script", "link"):
            self.fetched += [str(value) for name, value in attrs if name in ("src", "href")]


def words(file: Path) -> str:
    return re.sub(r"\s+", " ", "".join(Page(file.read_text()).words))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, congested: RttSeries, model: CongestionModel) -> Path:
    return write_report([mixed(congested)], tmp_path_factory.mktemp("whole") / "out", model, ASSUMED)


def test_each_figure_is_there_as_png_svg_and_the_table_it_was_drawn_from(whole: Path) -> None:
    names = {"rtt", "distribution", "estimates", "calibration"}
    files = {file.name for file in (whole.parent / "plots").iterdir()}
    assert files == {f"{name}.{ending}" for name in names for ending in ("png", "svg", "csv")}
    for name in names:
        assert (whole.parent / "plots" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert ElementTree.parse(whole.parent / "plots" / f"{name}.svg").getroot().tag.endswith("svg")


def figures_of(page: Path) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" class="figures">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    content: list[dict[str, Any]] = json.loads(found[1])
    return content


def test_the_page_fetches_nothing_and_holds_every_figure(whole: Path) -> None:
    text = whole.read_text()
    assert all(one.startswith("data:") for one in Page(text).fetched)
    names = [one["name"] for one in figures_of(whole)]
    assert names == ["rtt", "distribution", "estimates", "calibration"]
    assert all(f'data-figure="{name}"' in text for name in names)
    assert len(text) < 500_000


def test_the_figures_of_the_page_have_what_the_tables_have(whole: Path) -> None:
    found = {one["name"]: one for one in figures_of(whole)}
    rtt, lost = (panel["series"][0] for panel in found["rtt"]["panels"])
    rows = table(whole.parent, "rtt")
    assert [y for y in rtt["y"] if y is not None] == pytest.approx(rows["median_ms"].dropna().tolist(), rel=1e-6)
    assert lost["y"] == pytest.approx((100 * rows["lost"] / rows["probes"]).tolist(), rel=1e-6)
    flows, states = found["estimates"]["panels"]
    windows = table(whole.parent, "estimates")
    told = (windows["throughput_bps"].dropna() / 1e6).tolist()
    assert [y for y in flows["series"][0]["y"] if y is not None] == pytest.approx(told, rel=1e-6)
    assert sum(len(one["y"]) for one in states["series"]) == len(windows)
    assert {span["name"].rpartition(" (")[0] for span in states["spans"]} == set(windows["state"])
    assert len(found["calibration"]["panels"]) == 6


def test_an_answer_of_one_window_is_no_figure(tmp_path: Path, model: CongestionModel) -> None:
    file = write_report([idle(1000)], tmp_path / "out", model, ASSUMED)
    assert "estimates" not in [one["name"] for one in figures_of(file)]
    assert {path.name for path in (file.parent / "plots").glob("estimates.*")} == {"estimates.csv"}


def test_the_table_beside_the_estimates_is_what_estimate_says(
    whole: Path, congested: RttSeries, model: CongestionModel
) -> None:
    said = estimate(mixed(congested), model, rate_bps=1e8)
    drawn = table(whole.parent, "estimates")
    assert drawn["state"].tolist() == ["congested", "idle", "inconclusive", "inconclusive"]
    assert drawn["reason"].fillna("").tolist() == [one.reason or "" for one in said]
    for name in ("start_s", "end_s", "throughput_bps", "low_bps", "high_bps", "distance"):
        values = [np.nan if getattr(one, name) is None else getattr(one, name) for one in said]
        # The table has six digits.
        assert drawn[name].to_numpy() == pytest.approx(values, rel=5e-6, nan_ok=True)


def test_only_congested_windows_have_a_number(whole: Path) -> None:
    drawn = table(whole.parent, "estimates")
    assert (drawn["throughput_bps"].notna() == (drawn["state"] == "congested")).all()
    own = table(whole.parent, "calibration")
    told = own[own["group"].str.startswith("this link")].set_index("group")["throughput_bps"]
    assert told.notna().to_dict() == {"this link, congested": True, "this link, idle": False}


def test_the_verdict_comes_first_with_units_and_what_was_assumed(
    tmp_path: Path, congested: RttSeries, model: CongestionModel
) -> None:
    told = words(write_report([congested], tmp_path / "out", model, ASSUMED))
    one = estimate(congested, model, rate_bps=1e8)[0]
    middle, low, high = (f"{value / 1e6:.3g}" for value in (one.throughput_bps, one.low_bps, one.high_bps) if value)
    sentence = f"Persistently congested: a TCP flow gets {middle} Mbit/s (90% interval {low} … {high} Mbit/s)."
    assert sentence in told
    assert "TCP flows of any base RTT, a link of 100 Mbit/s" in told
    assert f"{one.distance:.2g} times the usual distance" in told
    assert told.index(sentence) < told.index("Assumed") < told.index("What was checked")


def test_several_windows_are_counted_by_state_and_reason(congested: RttSeries, model: CongestionModel) -> None:
    told = verdict(Link.of(mixed(congested), model, ASSUMED), model.level)
    assert told.startswith("In 4 windows of 100 s: congested in 1, idle in 1; inconclusive in 2 (")
    assert told.split("(")[1].startswith(("level-shift: 1, all-lost: 1)", "all-lost: 1, level-shift: 1)"))


def test_windows_are_reported_by_their_distance_in_classes_that_add_up(
    congested: RttSeries, model: CongestionModel
) -> None:
    link = Link.of(congested, model, ASSUMED)
    at = [replace(link.estimates[0], distance=distance) for distance in (0.3, 0.4, 1.0, 1.5, 2.0, 2.6)]
    told = training(replace(link, estimates=tuple(at)), model)
    classes = "3 of 6 within the usual distance, 2 at up to 2 times that; 1 are further, and have no estimate."
    assert told.endswith(f"(median; at most 2.6): {classes}")


def test_a_link_without_congestion_has_no_throughput(tmp_path: Path, model: CongestionModel) -> None:
    file = write_report([idle(2000)], tmp_path / "out", model, ASSUMED)
    told = words(file)
    assert "idle in 2. No window is congested" in told
    assert told.count("a TCP flow gets") == told.count("What a TCP flow gets, over time")
    assert table(file.parent, "estimates")["throughput_bps"].isna().all()


def test_a_one_sided_answer_is_marked_as_such_and_drawn(tmp_path: Path, model: CongestionModel) -> None:
    many, few = (Measurement(100_000_000, 396, 0.02, flows, 0, seed=4711) for flows in (400, 2))
    make(tmp_path / "series", [many, few], jobs=1, quiet=True)
    found = {one.one: replace(one.series, source="link.csv", label="") for one in read(tmp_path / "series")}
    for one, bound, end in ((many, "at-most", "high_bps"), (few, "at-least", "low_bps")):
        file = write_report([found[one]], tmp_path / bound, model, ASSUMED)
        (said,) = estimate(found[one], model, rate_bps=1e8)
        answer = f"a TCP flow gets {bound.replace('-', ' ')} {getattr(said, end) / 1e6:.3g} Mbit/s ("
        assert answer in words(file)
        assert table(file.parent, "estimates")["bound"].tolist() == [bound]
    twice = replace(found[few], rtt_s=np.tile(found[few].rtt_s, 2), sent_s=np.arange(2000) * 0.1)
    assert "; over all congested windows, at least " in verdict(Link.of(twice, model, ASSUMED), model.level)
    page = write_report([twice], tmp_path / "twice", model, ASSUMED)
    assert "A bar that reaches the edge is one-sided" in words(page)
    (flows, _) = {one["name"]: one for one in figures_of(page)}["estimates"]["panels"]
    assert all(high > y for high, y in zip(flows["series"][0]["high"], flows["series"][0]["y"], strict=True))


def test_what_was_checked_is_reported_and_what_is_odd_is_marked(congested: RttSeries, model: CongestionModel) -> None:
    found = {one.what: one for one in checks(Link.of(mixed(congested), model, ASSUMED))}
    assert found["probes"].found.startswith("4,050 sent over 405 s")
    assert "from probe" in found["level shifts"].found
    assert "no step back" in found["clock"].found
    assert {what for what, one in found.items() if one.odd} == {"level shifts", "losses"}
    assert "does not say which router answered" in found["route"].found
    gone = int(np.isnan(mixed(congested).rtt_s).sum())
    assert f"{100 * gone / 4050:.3g}% lost" in found["probes"].found


def test_a_gap_is_reported_and_marked_in_the_table_of_the_rtts(tmp_path: Path, model: CongestionModel) -> None:
    series = idle(2000)
    series = replace(series, sent_s=np.where(np.arange(2000) < 1500, series.sent_s, series.sent_s + 60))
    file = write_report([series], tmp_path / "out", model, ASSUMED)
    assert "1 gap, the longest of 60.1 s" in words(file)
    marked = table(file.parent, "rtt").dropna(subset="remarks")
    assert marked[["t_s", "remarks"]].to_numpy().tolist() == [[pytest.approx(149.9), "gap"]]


def test_a_short_series_is_drawn_probe_by_probe_with_its_losses(
    tmp_path: Path, congested: RttSeries, model: CongestionModel
) -> None:
    file = write_report([congested], tmp_path / "out", model, ASSUMED)
    drawn = table(file.parent, "rtt")
    assert drawn["median_ms"].to_numpy() == pytest.approx(congested.rtt_s * 1e3, abs=1e-5, nan_ok=True)
    assert drawn["lost"].sum() == (~congested.answered).sum() > 0


def test_the_distribution_counts_every_answered_probe(whole: Path, congested: RttSeries) -> None:
    series = mixed(congested)
    drawn = table(whole.parent, "distribution")
    assert drawn["probes"].sum() == series.answered.sum()
    assert drawn["cumulative_percent"].iloc[-1] == pytest.approx(100)
    delay_ms = (series.rtt_s[series.answered] - np.nanmin(series.rtt_s)) * 1e3
    half = drawn["to_ms"].iloc[29]
    assert drawn["cumulative_percent"].iloc[29] == pytest.approx(100 * (delay_ms < half).mean(), abs=0.1)


def test_a_day_is_decimated_and_has_its_hours_and_a_small_page(
    tmp_path: Path, congested: RttSeries, model: CongestionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A day of probes every 100 ms, congested from noon on. Judging all windows would take a minute, so one represents
    # all.
    night, evening = idle(432_000), np.tile(congested.rtt_s, 432)
    series = replace(night, sent_s=START + np.arange(864_000) * 0.1, rtt_s=np.concatenate([night.rtt_s, evening]))
    kinds = estimate(congested, model, rate_bps=1e8) + estimate(idle(1000), model, rate_bps=1e8)

    def judged(one: RttSeries, *_: object, **__: object) -> list[object]:
        windows = enumerate(one.windows())
        return [
            replace(kinds[n < 432], start_s=float(w.sent_s[0]), end_s=float(w.sent_s[-1]), source="day")
            for n, w in windows
        ]

    monkeypatch.setattr("sawtooth.link_estimate.report.link.estimate", judged)
    file = write_report([series], tmp_path / "out", model, ASSUMED)
    assert file.stat().st_size < 5e6
    drawn = table(file.parent, "rtt")
    assert len(drawn) == 2000
    assert drawn["probes"].sum() == 864_000
    assert drawn["largest_ms"].max() == pytest.approx(np.nanmax(series.rtt_s) * 1e3, abs=1e-5)
    assert drawn["lost"].sum() == (~series.answered).sum()
    hours = table(file.parent, "hours")
    assert hours["hour"].tolist() == list(range(24))
    assert (hours["probes"] == 36_000).all()
    assert (hours["idle windows"] == [36] * 12 + [0] * 12).all()
    assert (hours["congested windows"] == [0] * 12 + [36] * 12).all()
    evening_ms = (series.rtt_s[-36_000:] - np.nanmin(series.rtt_s)) * 1e3
    assert hours["delay_p50_ms"].iloc[-1] == pytest.approx(np.nanmedian(evening_ms), abs=1e-5)
    assert hours["flow_p50_mbps"].iloc[-1] == pytest.approx(kinds[0].throughput_bps / 1e6, rel=1e-6)
    assert hours["flow_p50_mbps"].iloc[:12].isna().all()
    assert "too short" not in words(file)


def test_a_series_shorter_than_a_day_says_so_and_draws_no_hours(whole: Path) -> None:
    assert "hours of the day is not drawn: the series is too short, 405 s and the figure needs 23 h" in words(whole)
    assert not (whole.parent / "plots" / "hours.csv").exists()


def test_a_slow_series_of_days_has_its_hours_and_no_number(tmp_path: Path, model: CongestionModel) -> None:
    file = write_report([idle(720, pace_s=240)], tmp_path / "out", model, ASSUMED)
    assert "Inconclusive (too-few-probes)" in words(file)
    assert (table(file.parent, "hours")["probes"] == 30).all()
    assert not (file.parent / "plots" / "estimates.csv").exists()


def bad(kind: str) -> RttSeries:
    series = idle(1500)
    back_s = np.where(np.arange(1500) < 750, 0, 20)
    changes: dict[str, dict[str, object]] = {
        "all-lost": {"rtt_s": np.full(1500, np.nan)},
        "constant-series": {"rtt_s": np.full(1500, 0.02)},
        "clock-step": {"sent_s": series.sent_s - back_s},
        "wrong-unit": {"rtt_s": series.rtt_s * 1e3},
    }
    return replace(series, **changes[kind]) if kind in changes else series.part(slice(0, 600))


@pytest.mark.parametrize("kind", ["all-lost", "constant-series", "clock-step", "wrong-unit", "too-few-probes"])
def test_a_bad_series_has_a_page_that_says_what_estimate_says(
    kind: str, tmp_path: Path, model: CongestionModel
) -> None:
    file = write_report([bad(kind)], tmp_path / "out", model, ASSUMED)
    [said] = estimate(bad(kind), model, rate_bps=1e8)
    told = words(file)
    assert said.reason == kind
    assert f"Inconclusive ({kind}): {said.text}." in told
    assert told.count("a TCP flow gets") == told.count("What a TCP flow gets, over time")
    drawn = {path.stem for path in (file.parent / "plots").glob("*.csv")}
    shown = {"too-few-probes": {"rtt", "distribution"}, "constant-series": {"rtt"}}
    assert drawn == shown.get(kind, set())


def test_the_same_series_give_the_same_bytes(
    whole: Path, tmp_path: Path, congested: RttSeries, model: CongestionModel
) -> None:
    again = write_report([mixed(congested)], tmp_path / "out", model, ASSUMED).parent
    first = {path.relative_to(whole.parent): path.read_bytes() for path in whole.parent.rglob("*.*")}
    assert first == {path.relative_to(again): path.read_bytes() for path in again.rglob("*.*")}


def test_several_links_have_a_section_and_files_each(
    tmp_path: Path, congested: RttSeries, model: CongestionModel
) -> None:
    file = write_report([congested, idle(1000)], tmp_path / "out", model, ASSUMED)
    assert table(file.parent, "1-estimates")["state"].tolist() == ["congested"]
    assert table(file.parent, "2-estimates")["state"].tolist() == ["idle"]
    assert words(file).count("Idle: no traffic.") == 2


def test_names_of_sources_are_text_and_no_markup(tmp_path: Path, model: CongestionModel) -> None:
    series = replace(idle(1000), source="<script>alert(1)</script>")
    html = write_report([series], tmp_path / "out", model, ASSUMED).read_text()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_nothing_is_written_where_something_is_or_where_it_fails(
    tmp_path: Path, model: CongestionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    with expected_error(code="unwritable-output", match="never overwritten"):
        write_report([idle(1000)], tmp_path / "there", model, ASSUMED)
    monkeypatch.setattr(page, "csv_text", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report([idle(1000)], tmp_path / "new", model, ASSUMED)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_too_many_series_are_refused_before_any_work(tmp_path: Path, model: CongestionModel) -> None:
    with expected_error(code="too-many-points"):
        write_report([idle(1000)] * (page.MOST + 1), tmp_path / "out", model, ASSUMED)


def test_the_command_takes_what_estimate_takes(
    tmp_path: Path, congested: RttSeries, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(save_series(tmp_path / "link.csv", [congested]))
    given = [source, "--rate", "100 Mbit/s", "--assumed-rtt", "20 ms"]
    assert status_of(["congestion", "estimate", *given, "--json"]) == 0
    [said] = json.loads(capsys.readouterr().out)["estimates"]
    out = tmp_path / "out"
    assert status_of(["congestion", "report", *given, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"report: {out / 'report.html'}\n"
    drawn = table(out, "estimates")
    assert drawn["throughput_bps"].tolist() == pytest.approx([said["throughput_bps"]], rel=1e-6)


@pytest.mark.parametrize(
    ("given", "code", "option"),
    [
        (["--assumed-rtt", "2 s"], "out-of-range", "--assumed-rtt"),
        (["--rate", "1 kbit/s"], "out-of-range", "--rate"),
        (["--near", "absent.csv"], "file-not-found", "absent.csv"),
    ],
)
def test_the_command_refuses_what_estimate_refuses_and_leaves_nothing(
    given: list[str], code: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(save_series(tmp_path / "link.csv", [idle(1000)]))
    status = status_of(["congestion", "estimate", source, *given])
    said = capsys.readouterr().err
    assert status != 0
    assert said.startswith(f"error[{code}]: {option}")
    assert status_of(["congestion", "report", source, *given, "--out", str(tmp_path / "out")]) == status
    assert capsys.readouterr().err == said
    assert [path.name for path in tmp_path.iterdir()] == ["link.csv"]


def test_the_far_end_less_the_near_is_one_link(tmp_path: Path, congested: RttSeries) -> None:
    near = replace(congested, rtt_s=0.005 + np.random.default_rng(2).exponential(1e-5, 1000), label="near")
    far = replace(congested, rtt_s=congested.rtt_s + near.rtt_s, label="far")
    source = str(save_series(tmp_path / "link.csv", [near, far]))
    out = tmp_path / "out"
    assert status_of(["congestion", "report", source, "--rate", "100 Mbit/s", "--out", str(out)]) == 0
    told = words(out / "report.html")
    assert "Far minus near" in told
    assert told.count("Persistently congested") == 1


def test_the_calibration_curves_are_the_models_own_series(whole: Path, model: CongestionModel) -> None:
    drawn = table(whole.parent, "calibration")
    learnt, known = drawn[drawn["group"].str.startswith("trained")], model.trained()
    assert len(learnt) == len(known) == model.trained_on_["series"]
    assert learnt["std_s"].to_numpy() == pytest.approx(known["std_s"].to_numpy(), abs=1e-6)
    near = learnt[learnt["group"] == "trained, as assumed"]
    assert near["rate_bps"].between(1e8 / ALIKE, 1e8 * ALIKE).all()
    assert set(near["control"]) >= {"cubic", "reno", "mixed"}


def test_a_model_reports_its_congestion_controls_after_it_was_saved(tmp_path: Path, model: CongestionModel) -> None:
    again = CongestionModel.load(model.save(tmp_path / "model.json"))
    assert again.trained()["control"].tolist() == model.trained()["control"].tolist()
    kept = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "short.json").write_text(json.dumps({**kept, "control": ["cubic"]}))
    with pytest.raises(SawtoothError, match="different lengths"):
        CongestionModel.load(tmp_path / "short.json")


def test_a_model_without_controls_has_curves_all_the_same(
    tmp_path: Path, congested: RttSeries, model: CongestionModel
) -> None:
    kept = json.loads(model.save(tmp_path / "model.json").read_text())
    (tmp_path / "none.json").write_text(json.dumps({**kept, "control": []}))
    none = CongestionModel.load(tmp_path / "none.json")
    assert set(none.trained()["control"]) == {""}
    file = write_report([congested], tmp_path / "out", none, ASSUMED)
    assert (table(file.parent, "calibration")["group"] == "trained, as assumed").sum() > 20


def test_unscaled_undoes_the_scale_of_a_model(congested: RttSeries, model: CongestionModel) -> None:
    measured = estimate(congested, model, rate_bps=1e8)[0].measured
    assert measured is not None
    for name, scaled in zip(FEATURES, vector(measured), strict=True):
        assert unscaled(name, np.array([scaled]))[0] == pytest.approx(measured[name])


def test_notes_say_what_is_left_over(congested: RttSeries, model: CongestionModel) -> None:
    told = " ".join(notes(Link.of(mixed(congested), model, ASSUMED)))
    assert "The last 50 probes do not fill a window" in told
    assert "more than one path" in told


def test_figures_of_a_series_at_the_limit_are_drawn_one_by_one(model: CongestionModel) -> None:
    for count, rows in ((EACH, EACH), (EACH + 1, 1334)):
        series = idle(count)
        assert len(figures(Link(series, None, ()), model, ASSUMED)[0].table) == rows
