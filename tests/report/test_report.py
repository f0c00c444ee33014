"""Reports: every figure with its files and its table, one page that needs no network, the same bytes each time."""

import html.parser
import json
import re
import sys
import warnings

import pandas as pd
import pytest
from PIL import Image

from expected_error import expected_error
from fake_engine import quick
from sawtooth import engines
from sawtooth.figures import static
from sawtooth.figures.fonts import families
from sawtooth.figures.layout import value_text
from sawtooth.report import write_report
from sawtooth.report.figures import figures
from sawtooth.study import Study, StudyResult

pytestmark = pytest.mark.usefixtures("patience")

NAMES = ["mean", "mean-log", "side-by-side", "throughput-over-time", "window-over-time", "distribution"]
ON_PAGE = ["mean", "throughput-over-time", "window-over-time", "distribution"]


def run(out, **changes):
    content = {
        "name": "small",
        "title": "A <small> study",
        "question": "What & why?",
        "scenario": {"topology": "chain", "duration": "20 s"},
        "vary": {
            "flows.cc": ["cubic", "bbr"],
            "topology": ["chain", "chain-asymmetric"],
            "chain.loss": ["0%", "1%", "9%"],
        },
        "columns": {
            "cc": {"field": "flows.cc"},
            "path": {"field": "topology", "labels": {"chain": "symmetric", "chain-asymmetric": "asymmetric"}},
            "loss_percent": {"field": "chain.loss", "unit": "%", "title": "packet loss, %"},
        },
        "published": {"file": "one-percent-loss"},
    }
    return quick(Study.from_dict(content | changes), out=out)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    made = run(tmp_path_factory.mktemp("results"))
    write_report(made)
    return made


@pytest.fixture(scope="module")
def page(result):
    return (result.directory / "report.html").read_text(encoding="utf-8")


class Outline(html.parser.HTMLParser):
    """Tags that fetch something, and the nesting."""

    void = ("meta", "link", "br", "hr", "img", "input")

    def __init__(self):
        super().__init__()
        self.fetched, self.open, self.scripts, self.details = [], [], 0, 0

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        for attribute in ("src", "href"):
            if attribute in named and tag != "a":
                self.fetched.append(named[attribute])
        self.scripts += tag == "script"
        self.details += tag == "details"
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", NAMES)
def test_each_figure_is_there_as_png_svg_and_the_table_it_was_drawn_from(result, name):
    plots = result.directory / "plots"
    with Image.open(plots / f"{name}.png") as image:
        assert image.width > 1000
        assert len(image.convert("RGB").getcolors(1 << 20)) > 20
    assert "<svg" in (plots / f"{name}.svg").read_text()
    (figure,) = (figure for figure in figures(result) if figure.name == name)
    table = pd.read_csv(plots / f"{name}.csv")
    assert list(table.columns) == list(figure.table.columns)
    assert len(table) == len(figure.table) > 0


def test_figures_are_the_same_bytes_each_time(result):
    before = {path.name: path.read_bytes() for path in (result.directory / "plots").iterdir()}
    write_report(StudyResult.load(result.directory))
    assert {path.name: path.read_bytes() for path in (result.directory / "plots").iterdir()} == before


def test_a_line_over_time_has_neighbours_averaged_until_a_page_can_draw_it(result, monkeypatch):
    def over_time():
        return next(figure for figure in figures(result) if figure.name == "throughput-over-time")

    all_of_it = over_time()
    monkeypatch.setattr(sys.modules[figures.__module__], "MOST_POINTS", 7)
    thinned = over_time()
    keys = ["cc", "path", "loss_percent"]
    together = {name: lines["mbps"].to_numpy() for name, lines in all_of_it.table.groupby(keys)}
    for name, line in thinned.table.groupby(keys):
        assert 3 < len(line) <= 7
        means = [together[name][at : at + 3].mean() for at in range(0, len(together[name]), 3)]
        assert line["mbps"].tolist() == pytest.approx(means)
        assert line["t_s"].max() == all_of_it.table["t_s"].max()
    assert "(3 together)" in thinned.caption
    assert "together" not in all_of_it.caption


def test_the_page_is_well_formed_and_fetches_nothing(page):
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert outline.fetched == ["data:,"]
    assert "@import" not in page.split("<script>")[0]


def shapes(page):
    """The figures in a page, by name."""
    found = re.search(r'<script type="application/json" class="figures">(.*?)</script>', page, re.DOTALL)
    return {figure["name"]: figure for figure in json.loads(found[1])}


def test_the_page_has_a_place_and_the_numbers_of_each_figure_and_the_mean_against_what_varies_once_and_first(page):
    assert list(shapes(page)) == ON_PAGE
    assert re.findall(r'<figure data-figure="([^"]*)"', page) == ON_PAGE
    for name in NAMES:
        assert f'href="plots/{name}.png"' in page
    for name in ON_PAGE:
        assert f'href="plots/{name}.csv"' in page


def test_the_page_begins_with_a_list_of_its_parts(page):
    links = re.findall(r'<a href="#(part-\d+)">(.*?)</a>', page, re.DOTALL)
    assert links == re.findall(r'<h2 id="(part-\d+)">(.*?)</h2>', page, re.DOTALL)
    assert len(links) > 3
    assert page.index('aria-label="On this page"') < page.index("<figure")


def test_how_often_a_page_expands_its_study_does_not_grow_with_its_points(result, monkeypatch):
    expanded, points = [], Study.points
    monkeypatch.setattr(Study, "points", lambda *given, **named: expanded.append(1) or points(*given, **named))
    write_report(StudyResult.load(result.directory))
    assert len(expanded) < 5 < len(result.records)


def test_the_page_is_small(page):
    assert len(page) < 300_000


def test_published_means_are_hollow_and_misprints_crosses_beside_the_results(page):
    first, second = shapes(page)["mean"]["panels"]
    names = ["CUBIC", "CUBIC, published", "BBR", "BBR, published"]
    assert [one["name"] for one in first["series"]] == names
    assert [one.get("open", False) for one in first["series"]] == [False, True, False, True]
    (misprint,) = (one for one in second["series"] if one["name"] == "misprint")
    assert (misprint["symbol"], misprint["x"], misprint["y"]) == ("cross", [9], [36.59])


def test_a_card_says_against_what(page):
    cards = page[page.index('<ul class="cards">') : page.index("</ul>", page.index('<ul class="cards">'))]
    assert cards.count("<li>") == 4
    assert re.search(r"CUBIC, symmetric<b>−71.6%</b>", cards), cards
    assert re.search(r"<span>[0-9.]+ Mbit/s, RTT 2 ms at 9% packet loss</span>", cards)
    assert re.search(r"<span>against [0-9.]+ Mbit/s, RTT 2 ms at 0% packet loss</span>", cards)


def test_the_path_is_above_the_answer(page):
    path = page[page.index('aria-label="the path"') : page.index('<ul class="cards">')]
    assert re.findall(r"<span>([^<]*)</span>([^<]*)</li>", path) == [
        ("flows, varies", "CUBIC | BBR"),
        ("queue", "1,000 packets"),
        ("rate", "1 Gbit/s"),
        ("round trip", "0.4 ms"),
        ("loss, varies", "0% … 9%"),
    ]


def test_every_figure_s_table_is_in_the_page(page):
    outline = Outline()
    outline.feed(page)
    assert outline.details == len(ON_PAGE) + 1


def test_the_page_says_what_was_asked_run_and_published(page, result):
    assert "A &lt;small&gt; study" in page
    assert "What &amp; why?" in page
    assert "Kemal Šanjta" in page
    assert "235.51" in page
    assert "made up" in page
    assert result.description["started"] in page
    assert result.description["versions"]["core"] in page


def test_a_misprint_is_in_brackets_and_without_a_ratio(page, result):
    assert "(36.59)" in page
    (row,) = (
        row for row in result.records if (row["cc"], row["path"], row["loss_percent"]) == ("cubic", "asymmetric", 9)
    )
    assert row["ratio"] != row["ratio"]


def test_a_figure_shows_misprints_apart_from_published_means(result):
    (mean,) = (figure for figure in figures(result) if figure.name == "mean")
    misprints = mean.table["misprint_mbps"].dropna()
    assert misprints.to_list() == [36.59]
    assert mean.table.loc[misprints.index, "published_mean_mbps"].isna().all()


def test_over_time_shows_the_baseline_and_the_value_of_interest_of_one_seed(result):
    (time,) = (figure for figure in figures(result) if figure.name == "throughput-over-time")
    assert sorted(time.table["loss_percent"].unique()) == [0, 9]
    assert len(time.table) == 2 * 2 * 2 * 20


def test_no_panel_s_values_leave_the_scale_that_all_panels_share(tmp_path):
    vary = {"flows.cc": ["cubic", "bbr"], "topology": ["chain", "chain-asymmetric"], "chain.loss": ["9%", "0%"]}
    made = run(tmp_path, vary=vary, report={"x": "cc", "series": "path"}, published=None)
    found = {figure.name: static.canvas(figure) for figure in figures(made)}
    assert list(found) == NAMES
    # Each quantity within runs has its own scale.
    del found["window-over-time"]
    for canvas in found.values():
        lowest, *_, highest = canvas.axes
        assert highest.dataLim.ymax > 2 * lowest.dataLim.ymax
        assert highest.dataLim.ymax <= highest.get_ylim()[1]


def test_only_the_figures_asked_for_are_made(tmp_path):
    made = run(tmp_path, report={"plots": ["mean"]})
    write_report(made)
    assert {path.stem for path in (made.directory / "plots").iterdir()} == {"mean"}


@pytest.mark.parametrize(
    "changes",
    [
        {"vary": {}, "columns": {}, "published": None},
        {"vary": {"flows.cc": ["cubic", "bbr"]}, "columns": {}, "published": None},
        {"vary": {"chain.rtt": ["1 ms", "2 ms"]}, "columns": {"rtt_ms": {"field": "chain.rtt", "unit": "ms"}}},
        {"vary": {"chain.rtt": ["1 ms", "2 ms"], "host.hz": [100, 250]}, "columns": {}},
    ],
    ids=["nothing-varies", "names-only", "one-number", "no-columns"],
)
def test_any_study_has_a_report(tmp_path, changes):
    page = write_report(run(tmp_path, **changes)).read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    # A single box is five numbers, which are in a table.
    assert ("distribution" in shapes(page)) == bool(changes["vary"])


def test_a_scenario_by_itself_is_named_by_its_control_and_has_neither_changes_nor_empty_intervals(tmp_path):
    page = write_report(run(tmp_path, vary={}, columns={}, published=None)).read_text(encoding="utf-8")
    assert re.search(
        r"<li>CUBIC<b>[0-9.]+ Mbit/s</b><span>[0-9.]+% of the bottleneck&#39;s rate; at most [0-9.]+% is possible", page
    )
    assert "<th>change</th>" not in page
    table = page[page.index(">All points</h2>") :]
    assert "<th" in table[: table.index("</thead>")]
    assert "study</th>" not in table
    assert "– … –" not in page
    assert "−0.0%" not in page
    (window,) = shapes(page).values()
    assert [panel["y"]["label"] for panel in window["panels"]] == ["goodput", "round-trip time"]
    assert {one["name"] for panel in window["panels"] for one in panel["series"]} == {"CUBIC"}


def test_marks_are_reported_where_a_queue_marks(tmp_path):
    path = {"rate": "10 Mbit/s", "queue": {"kind": "codel", "ecn": True}}
    scenario = {"duration": "5 s", "path": path, "host": {"ecn": True}}
    made = quick(Study.from_dict({"name": "marks", "scenario": scenario}), out=tmp_path, engine=engines.get("sim"))
    page = write_report(made).read_text(encoding="utf-8")
    marks = made.records[0]["queue_marks"]
    assert marks > 0
    assert f"<span>{marks:.0f} ECN marks</span>" in page
    assert "<th>ECN marks</th>" in page


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    flows = [{"name": "old", "cc": "cubic", "count": 2}, {"name": "new", "cc": "bbr"}]
    made = run(
        tmp_path_factory.mktemp("shared"),
        scenario={"topology": "chain", "duration": "20 s", "flows": flows},
        vary={"topology": ["chain", "chain-asymmetric"], "chain.loss": ["0%", "1%", "2%"]},
        columns={"loss_percent": {"field": "chain.loss", "unit": "%", "title": "packet loss, %"}},
        repeat={"seeds": [1, 2]},
        published=None,
    )
    write_report(made)
    return made


def test_the_shares_of_several_flows_are_a_figure_a_line_a_flow_and_a_panel_for_what_else_varies(shared):
    (share,) = (figure for figure in figures(shared) if figure.name == "share")
    assert [panel.title for panel in share.panels] == ["topology: chain", "topology: chain-asymmetric"]
    for panel in share.panels:
        assert [(line.name, list(line.x)) for line in panel.series] == [("old", [0, 1, 2]), ("new", [0, 1, 2])]
    assert len(share.table) == 2 * 3 * 2
    with Image.open(shared.directory / "plots" / "share.png") as image:
        assert image.width > 1000
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 20)}
    assert {(0xCC, 0x79, 0xA7), (0x56, 0xB4, 0xE9)} <= colours


def test_the_shares_are_a_table_of_the_page(shared):
    page = (shared.directory / "report.html").read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert "share" in shapes(page)
    table = page[page.index("<h3>What each flow gets</h3>") :]
    table = table[: table.index("</table>")]
    assert table.count("<tr") == 1 + 2 * 3 * 2
    assert ">66.7<" in table
    assert ">0.900<" in table


def test_several_flows_are_shown_one_by_one_over_time(shared):
    page = (shared.directory / "report.html").read_text(encoding="utf-8")
    window = shapes(page)["window-over-time"]
    # The points at the last value, of six, have a column each; rows are quantities.
    assert [panel["title"] for panel in window["panels"]] == ["chain", "chain-asymmetric"] * 2
    assert [panel["y"]["label"] for panel in window["panels"]] == ["goodput"] * 2 + ["round-trip time"] * 2
    assert [one["name"] for one in window["panels"][0]["series"]] == ["all together", "old", "new"]
    assert "The figure has 2 of 6 points: 2% packet loss." in page
    table = pd.read_csv(shared.directory / "plots" / "window-over-time.csv")
    assert table.groupby(["flow", "topology"]).size().tolist() == [20] * 4


def test_single_flows_have_no_figure_and_no_table_of_shares(result, page):
    assert "share" not in [figure.name for figure in figures(result)]
    assert "What each flow gets" not in page


def test_characters_that_no_font_has_are_reported_in_the_page_and_nowhere_else(tmp_path):
    unknown = "\U00020000"  # from a Unicode plane that few fonts cover
    made = run(
        tmp_path,
        vary={"chain.loss": ["0%", "1%"]},
        columns={"loss": {"field": "chain.loss", "labels": {"0%": "é Ω none", "1%": f"$x$ {unknown}"}}},
        published=None,
        report={"plots": ["mean"]},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = write_report(made).read_text(encoding="utf-8")
    (mean,) = figures(made)
    names, missing = families(mean.words)
    assert names[0] == "DejaVu Sans"
    assert missing in ("", unknown)
    assert (f"drew it has {unknown}: boxes" in page) == bool(missing)


def test_latin_and_greek_need_no_other_font():
    assert families("aé Ωµ–…%") == (("DejaVu Sans",), "")


def test_a_report_of_something_else_is_refused(tmp_path):
    with expected_error(code="not-a-result"):
        StudyResult.load(tmp_path)


def test_a_value_is_reported_in_words():
    assert value_text("packet loss, %", 1) == "1% packet loss"
    assert value_text("rtt, ms", 20.0) == "20 ms rtt"
    assert value_text("congestion control", "bbr") == "congestion control BBR"


def test_a_response_has_closed_forms_where_there_are_any_and_no_place_for_no_loss(tmp_path):
    made = run(tmp_path, report={"plots": ["response"], "x": "loss_percent"})
    (figure,) = figures(made)
    assert [panel.title for panel in figure.panels] == ["path: symmetric", "path: asymmetric"]
    assert sorted(figure.table["loss_percent"].unique()) == [1, 9]
    known = figure.table.set_index(["cc", "path", "loss_percent"])["formula_mbps"]
    assert known["cubic", "symmetric", 1] < known["bbr", "symmetric", 1] < 1000
    assert {line.name for panel in figure.panels for line in panel.series} == {
        "CUBIC",
        "CUBIC, closed form",
        "BBR",
        "BBR, closed form",
    }
    written = write_report(made)
    assert "closed form" in written.read_text(encoding="utf-8")
    assert (written.parent / "plots" / "response.csv").exists()


def test_a_response_of_many_controls_gives_each_a_panel(tmp_path):
    names = ["reno", "cubic", "bbr", "vegas", "westwood", "bic", "illinois"]
    vary = {"flows.cc": names, "chain.loss": ["0.1%", "1%"]}
    columns = {"cc": {"field": "flows.cc"}, "loss_percent": {"field": "chain.loss", "unit": "%"}}
    plots = {"plots": ["response"], "x": "loss_percent", "series": "cc"}
    made = run(tmp_path, vary=vary, columns=columns, report=plots, published=None)
    (figure,) = figures(made)
    assert [panel.title for panel in figure.panels] == ["Reno", "CUBIC", "BBR", *names[3:]]
    assert figure.table.loc[figure.table["cc"] == "vegas", "formula_mbps"].isna().all()
    assert {line.name for panel in figure.panels for line in panel.series} == {"measured", "closed form", "the others"}


def test_a_report_of_many_series_is_in_columns_that_share_their_scales(tmp_path):
    kinds = [f"{number + 20} ms" for number in range(18)]
    columns = {"rtt_ms": {"field": "chain.rtt", "unit": "ms"}, "loss_percent": {"field": "chain.loss", "unit": "%"}}
    vary = {"chain.rtt": kinds, "chain.loss": ["0.1%", "1%"]}
    plots = {"plots": ["time", "response", "compare"], "x": "loss_percent", "series": "rtt_ms"}
    made = run(tmp_path, vary=vary, columns=columns, report=plots, published=None)
    time, response, compare = figures(made)
    assert [panel.title for panel in time.panels] == [f"rtt ms {number + 20}" for number in range(18)]
    assert time.across == 3
    assert (len(response.panels), response.across, response.alike) == (18, 3, True)
    places = {tuple(axes.get_subplotspec().get_geometry()[:2]) for axes in static.canvas(response).axes}
    assert places == {(6, 3)}
    assert compare.title == "Side by side"
    assert write_report(made).exists()


def test_a_page_has_as_many_rows_over_time_as_are_asked_for(tmp_path):
    names = [
        "reno",
        "cubic",
        "bbr",
        "bbr3",
        "vegas",
        "westwood",
        "bic",
        "illinois",
        "veno",
        "yeah",
        "cdg",
        "lp",
        "htcp",
    ]
    plots = {"plots": ["time"], "x": "loss_percent", "series": "cc"}
    vary = {"flows.cc": names, "topology": ["chain", "chain-asymmetric"], "chain.loss": ["1%"]}
    made = run(tmp_path, vary=vary, report=plots, published=None)
    (time,) = figures(made)
    assert (len(time.panels), time.across) == (2 * len(names), 2)
    assert write_report(made).exists()
