"""Figures on pages: the JSON that Python writes, the script built to draw it, and both in a browser."""

import hashlib
import html
import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import palette
import pytest

from dumped import dumped
from sawtooth.figures import Axis, Figure, Mark, Panel, Series, Span, render, static
from sawtooth.figures.packed_columns import column
from sawtooth.figures.page_shell import script, styles

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
BUILT = ROOT / "src" / "sawtooth" / "figures" / "built"
TIME, RATE = Axis("time", "s"), Axis("throughput", "Mbit/s", zero=True)


def figure(*series: Series, name: str = "one", **more: object) -> Figure:
    return Figure(name, "A figure", "A line that rises.", [Panel(TIME, RATE, series)], **more)  # type: ignore[arg-type]


def line(**more: object) -> Series:
    return Series("CUBIC", "#0072b2", [1, 2, 4], [10, 20, 30], **more)  # type: ignore[arg-type]


class TestForm:
    def test_a_column_is_numbers_and_what_is_not_known_is_null(self) -> None:
        assert column([1.0, float("nan"), 0.1234567891, 3]) == [1, None, 0.1234568, 3]
        assert column(np.array([], dtype=float)) == []

    def test_numbers_that_lie_evenly_are_their_rule(self) -> None:
        assert column(np.arange(1, 601) * 0.1) == {"from": 0.1, "step": 0.1, "count": 600}
        assert isinstance(column([1, 2, 3, 4, 5.01]), list)

    def test_what_says_nothing_is_left_out(self) -> None:
        content = figure(line()).json()
        assert set(content) == {"name", "title", "sentence", "panels"}
        assert content["panels"][0]["series"] == [
            {"name": "CUBIC", "colour": "#0072b2", "kind": "line", "x": [1, 2, 4], "y": [10, 20, 30]}
        ]

    def test_a_figure_has_all_that_was_given(self) -> None:
        panel = Panel(
            Axis("control", scale="category", names=("CUBIC", "BBR")),
            Axis("rate", "Mbit/s", "log", ticks=(1, 10)),
            [line(low=[1, 2, 3], high=[2, 3, 4], band=True, dash="dotted", symbol="square")],
            spans=[Span(0, 1, "idle", "#e69f00")],
            marks=[Mark("y", 5, "the rate")],
        )
        content = Figure("a", "b", "c", [panel], 2, True, "group", 200, {"x": [1, float("nan")]}).json()
        assert json.loads(json.dumps(content, allow_nan=False)) == content
        assert (content["across"], content["alike"], content["group"], content["height"]) == (2, True, "group", 200)
        assert content["table"] == {"x": [1, None]}
        assert content["panels"][0]["spans"] == [{"from": 0, "to": 1, "name": "idle", "colour": "#e69f00"}]
        assert content["panels"][0]["marks"] == [{"along": "y", "at": 5, "words": "the rate"}]

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            (Figure("a b", "t", "s", [Panel(TIME, RATE, [])]), "letters"),
            (Figure("a", "t", "", [Panel(TIME, RATE, [])]), "sentence"),
            (Figure("a", "t", "s", []), "no panel"),
            (figure(line(low=[1.0])), "different lengths"),
            (figure(line(kind="boxes")), "boxes"),
            (figure(line(dash="wavy")), "wavy"),
            (figure(Series("x", "red", [1], [1])), "#rrggbb"),
            (Figure("a", "t", "s", [Panel(Axis("x", scale="category"), RATE, [])]), "names"),
            (Figure("a", "t", "s", [Panel(TIME, RATE, [], marks=[Mark("x", float("inf"), "")])]), "inf"),
        ],
    )
    def test_a_figure_that_contradicts_itself_is_refused(self, wrong: Figure, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            wrong.json()

    def test_an_axis_is_named_by_its_title(self) -> None:
        assert (Axis.of("packet loss, %").label, Axis.of("packet loss, %").unit) == ("packet loss", "%")
        assert (Axis.of("size, in all").label, Axis.of("flows").unit) == ("size, in all", "")


class TestBuilt:
    """The committed files match the sources; without npm, their digests show whether the sources have changed."""

    def test_it_was_built_from_the_sources_that_are_there(self) -> None:
        recorded = dict(reversed(one.split("  ")) for one in (BUILT / "SHA256SUMS").read_text().splitlines())
        fixed = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"]
        sources = [WEB / name for name in fixed]
        sources += [path for part in ("draw", "capture", "scoreboard") for path in (WEB / part).iterdir()]
        here = {f"web/{path.relative_to(WEB)}": path for path in sources}
        here |= {name: BUILT / name for name in ("capture.js", "draw.css", "draw.js", "scoreboard.js")}
        found = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in here.items()}
        assert found == recorded, "web/ is not what the committed files were built from: make web"

    def test_npm_builds_the_same_bytes_again(self, npm: str, tmp_path: Path) -> None:
        web = tmp_path / "web"
        shutil.copytree(WEB, web, ignore=shutil.ignore_patterns("node_modules"))
        fetched = subprocess.run(
            [npm, "ci", "--no-audit", "--no-fund", "--prefer-offline"], cwd=web, capture_output=True, text=True
        )
        if fetched.returncode:
            pytest.skip(f"npm cannot fetch what web/ is built with: {fetched.stderr[-300:]}")
        subprocess.run([npm, "run", "check"], cwd=web, check=True)
        out = tmp_path / "built"
        out.mkdir()
        subprocess.run(["node", "build.mjs", str(out)], cwd=web, check=True)
        for name in ("capture.js", "draw.js", "draw.css", "scoreboard.js", "SHA256SUMS"):
            assert (out / name).read_bytes() == (BUILT / name).read_bytes()

    def test_it_is_small_and_has_the_licence_of_what_it_holds(self) -> None:
        assert len(script()) < 100_000
        assert "The MIT License" in script()[:300]
        assert "Leon Sorokin" in script()[:300]

    def test_the_palette_is_python_s(self) -> None:
        for place, text in palette.texts().items():
            assert place.read_text() == text
        assert "--ink: #1f2933" in styles()
        assert "--ink: #e4e9ee" in styles()


ACTS = """
// A browser without a screen has frames when it likes.
window.requestAnimationFrame = (call) => setTimeout(call, 16);
const chart = sawtooth.charts.get("one"), [panel] = chart.panels, found = {};
const shows = () => [panel.plot.scales.x.min, panel.plot.scales.x.max].map((at) => Math.round(at));
const soon = () => new Promise((done) => setTimeout(done, 60));
const entries = () => [...document.querySelectorAll(".legend button")];
const plot = () => document.querySelector(".plot");
const key = (name) => plot().dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
(async () => {
  await soon();
  found.legend = entries().map((one) => one.textContent);
  found.label = plot().getAttribute("aria-label");
  found.whole = shows();
  found.high = panel.plot.scales.y.max;
  entries()[1].click();
  await soon();
  found.pressed = entries().map((one) => one.getAttribute("aria-pressed"));
  found.lower = panel.plot.scales.y.max;
  panel.plot.setSelect({ left: 0, top: 0, width: panel.plot.over.clientWidth / 2, height: 10 });
  await soon();
  found.zoomed = shows();
  found.together = sawtooth.charts.get("two").panels[0].plot.scales.x.max < 40;
  key("Escape");
  found.again = shows();
  key("ArrowRight");
  found.readout = document.querySelector(".readout").textContent;
  found.said = document.querySelector(".unseen").textContent;
  found.svg = (await sawtooth.svg(chart).text()).slice(1, 4);
  found.csv = sawtooth.csv(chart.figure).split("\\n")[1];
  const times = Float64Array.from({ length: 5000 }, (_, at) => at / 10);
  const wave = times.map((at) => 50 + 10 * Math.sin(at));
  const { panels: [first] } = chart.figure;
  for (let time = 0; time < 3; time++) {
    chart.set({ ...chart.figure, panels: [{ ...first, series: [{ ...first.series[0], x: times, y: wave }] }] });
    await soon();
  }
  found.live = shows();
  document.body.dataset.found = JSON.stringify(found);
})();
"""


Act = Callable[[str, list[Figure]], Any]


@pytest.fixture
def act(chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Act:
    """What a script finds in a browser on a page with some figures."""
    package = tmp_path / "acted"
    (package / "templates").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "templates" / "acted.html.j2").write_text(
        '{% extends "shell.html.j2" %}{% import "parts.html.j2" as parts %}{% block main %}'
        "{% for name in names %}{{ parts.drawn(name) }}{% endfor %}{% endblock %}"
        "{% block scripts %}<script>{{ acts }}</script>{% endblock %}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from markupsafe import Markup

    def acted(acts: str, figures: list[Figure]) -> Any:
        page = tmp_path / "acted.html"
        names = [figure.name for figure in figures]
        page.write_text(render("acted", "acted.html.j2", {"acts": Markup(acts), "names": names}, figures))
        document, console = dumped(chromium, page)
        assert console == ""
        mark = 'data-found="'
        text = document[document.index(mark) + len(mark) :]
        return json.loads(html.unescape(text[: text.index('"')]))

    return acted


def test_files_have_the_words_of_marks_the_shaded_ranges_and_upright_names() -> None:
    names = tuple(f"point {at}" for at in range(40))
    drawn = Panel(
        Axis("point", scale="category", names=names),
        RATE,
        [Series("one", "#0072b2", range(40), range(40), kind="points")],
        spans=[Span(start, start + 1, name, "#e69f00") for start, name in ((1, "busy"), (3, "busy"), (5, "idle"))],
        marks=[Mark("x", 4, "answer"), Mark("y", 10, "limit")],
    )
    made = static.canvas(Figure("one", "One", "What is seen.", [drawn]))
    [axes] = made.axes
    assert [text.get_text().strip() for text in axes.texts] == ["answer", "limit"]
    assert [one.get_label() for one in axes.collections] == ["busy", "idle"]
    assert [len(one.get_paths()) for one in axes.collections] == [2, 1]
    assert {text.get_rotation() for text in axes.get_xticklabels()} == {90}
    assert [text.get_text() for text in made.legends[0].get_texts()] == ["one", "busy", "idle"]


def test_files_thin_out_the_names_of_a_crowded_axis() -> None:
    names = tuple(f"point {at}" for at in range(250))
    axis = Axis("point", scale="category", names=names)
    points = Series("one", "#0072b2", range(250), range(250), kind="points")
    made = static.canvas(Figure("one", "One", "What is seen.", [Panel(axis, RATE, [points])]))
    [axes] = made.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == list(names[::3])
    assert axes.get_xlim() == (-0.5, 249.5)
    assert made.get_size_inches()[0] == pytest.approx(12)


def test_a_browser_draws_hides_zooms_reads_out_and_takes_other_data(act: Act) -> None:
    times = np.arange(1, 61)
    lower = Series("CUBIC", "#0072b2", times, times)
    higher = Series("BBR", "#d55e00", times, 10 * times, symbol="square")
    found = act(ACTS, [figure(lower, higher, group="time"), figure(lower, name="two", group="time")])
    assert found["legend"] == ["CUBIC", "BBR"]
    assert found["label"] == "A line that rises."
    assert found["whole"] == [-1, 62]
    assert found["high"] > 600
    assert found["lower"] < 70
    assert found["pressed"] == ["true", "false"]
    assert found["zoomed"] == [1, 31]
    assert found["again"] == [1, 60]
    assert found["together"] is True
    assert found["readout"] == "1 sCUBIC1 Mbit/s"
    assert "CUBIC" in found["said"]
    assert found["svg"] == "svg"
    assert found["csv"] == ",CUBIC,1,1,s,Mbit/s"
    assert found["live"] == [0, 500]


SAVED = """
setTimeout(async () => {
  document.body.dataset.found = JSON.stringify(await sawtooth.svg(sawtooth.charts.get("one")).text());
}, 60);
"""


def saved(act: Act, *series: Series, **more: Any) -> ElementTree.Element:
    """The figure as SVG."""
    return ElementTree.fromstring(
        act(SAVED, [Figure("one", "A figure", "A line.", [Panel(TIME, RATE, series, **more)])])
    )


def test_a_value_between_gaps_is_a_dot_and_its_band_a_line(act: Act) -> None:
    y = np.array([1, 2, np.nan, 3, np.nan, 4, 5, np.nan, 6])
    svg = saved(act, Series("CUBIC", "#0072b2", np.arange(9), y, low=y - 1, high=y + 1, band=True))
    paths = [one.attrib for one in svg.iter("{http://www.w3.org/2000/svg}path")]
    dots = [one["d"].count("a2.2 2.2 0 1 1 -4.4 0") for one in paths if one.get("fill") != "none"]
    assert (sum(dots), len([one for one in paths if one.get("stroke-width") == "4.4"])) == (2, 2)


def test_words_of_marks_that_are_near_are_below_each_other(act: Act) -> None:
    marks = [Mark("x", at, f"the {at}th of some percentiles") for at in (2.0, 2.1, 2.2, 3.9)]
    svg = saved(act, line(), marks=marks)
    # Each mark is drawn twice: its rim, and itself.
    heights = {one.text: float(one.attrib["y"]) for one in svg.iter("{http://www.w3.org/2000/svg}text")}
    first, second, third, last = (heights[mark.words] for mark in marks)
    assert (second - first, third - second, last) == (14, 14, first)


def test_the_last_slanted_name_ends_within_the_figure(act: Act) -> None:
    names = (*(f"point {at}" for at in range(30)), "the last of them, which is long")
    axis = Axis("point", scale="category", names=names)
    points = Series("CUBIC", "#0072b2", range(31), range(31), kind="points")
    text = act(SAVED, [Figure("one", "A figure", "A line.", [Panel(axis, RATE, [points])])])
    svg = ElementTree.fromstring(text)
    (last,) = [one for one in svg.iter("{http://www.w3.org/2000/svg}text") if one.text == names[-1]]
    place, degrees = re.findall(r"translate\(([\d.]+)[^)]*\).*rotate\((-?\d+)\)", last.attrib["transform"])[0]
    # A letter is at least 5 pixels wide.
    end = float(place) + 5 * len(names[-1]) * math.cos(math.radians(float(degrees)))
    assert end < float(svg.attrib["width"])
