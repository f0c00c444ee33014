"""The laboratory's figures: smoothed goodput, the response to loss as a control, names of flows, one playhead; and what
Why? says beside losses."""

import csv
import json
import math
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from opened_lab import Opened

LIGHT = {"duration": "2 s", "path": {"rate": "2 Mbit/s", "rtt": "20 ms", "loss": "1%"}, "alone": True}


def asking(address: str, **asked: Any) -> str:
    return f"{address}#{quote(json.dumps(asked))}"


def saved(page: Any, figure: str) -> list[dict[str, str]]:
    """The rows of a figure's CSV."""
    with page.expect_download() as taken:
        page.get_by_role("button", name=f"CSV of {figure}", exact=True).click()
    lines = Path(taken.value.path()).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def swept(page: Any) -> None:
    page.wait_for_function("() => document.getElementById('swept').textContent.startsWith('Drag')")


def test_goodput_is_its_mean_over_200_ms_and_each_interval_by_itself_on_demand(page: Opened) -> None:
    page.finish()
    figure = page.page.locator("#figures > div").first
    raw = figure.get_by_role("button", name="raw")
    assert raw.get_attribute("aria-pressed") == "false"
    assert figure.locator(".panel-title").inner_text() == "Goodput (mean over 200 ms)"
    smooth = [float(row["y"]) for row in saved(page.page, "Goodput") if row["series"] == "cubic"]
    raw.click()
    assert raw.get_attribute("aria-pressed") == "true"
    assert "in order" in figure.locator(".panel-title").inner_text()
    each = [float(row["y"]) for row in saved(page.page, "Goodput") if row["series"] == "cubic"]
    assert len(each) == len(smooth) == 200
    # Intervals of 50 ms.
    for at in (0, 2, 3, 50, 199):
        last = each[max(0, at - 3) : at + 1]
        assert smooth[at] == pytest.approx(sum(last) / len(last), abs=1e-9)
    # It stays so for other questions.
    page.set("Loss", "2%")
    page.finish()
    assert raw.get_attribute("aria-pressed") == "true"
    # Where an interval is as long as that, there is nothing to smooth.
    page.set("Duration", "80 s")
    page.finish()
    assert raw.is_hidden()


def test_now_is_dragged_to_another_loss_and_the_curve_stays(browser: Any, address: str) -> None:
    opened = Opened(browser, asking(address, **LIGHT, flows=[{"cc": "cubic"}]))
    swept(opened.page)
    points = [row for row in saved(opened.page, "Response to loss") if row["series"] == "cubic"]
    over = opened.page.locator("#response .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None

    def x(percent: float) -> float:
        return box["x"] + box["width"] * math.log(percent / 0.001) / math.log(20 / 0.001)

    mouse, middle = opened.page.mouse, box["y"] + box["height"] / 2
    mouse.move(x(1), middle)
    mouse.down()
    mouse.move(x(0.3), middle, steps=3)
    mouse.move(x(0.1), middle)
    mouse.up()
    # Places of the slider are 2.5% apart, and pixels are wide.
    loss = float(opened.page.get_by_label("Loss", exact=True).input_value().removesuffix("%"))
    assert loss == pytest.approx(0.1, rel=0.05)
    opened.finish()
    assert f"{loss:g}% loss" in opened.sentence
    assert [row for row in saved(opened.page, "Response to loss") if row["series"] == "cubic"] == points
    mouse.move(x(loss), middle)
    mouse.down()
    mouse.move(box["x"] - 5, middle, steps=2)
    mouse.up()
    assert opened.page.get_by_label("Loss", exact=True).input_value() == "0%"
    # Another path has another curve.
    opened.set("Rate", "3 Mbit/s")
    opened.page.wait_for_function("() => document.getElementById('swept').textContent.includes('of 12 losses')")
    assert opened.said == []
    opened.context.close()


def test_the_formula_is_drawn_over_the_response(browser: Any, address: str) -> None:
    opened = Opened(browser, asking(address, **LIGHT, flows=[{"cc": "reno"}]))
    swept(opened.page)
    drawn = [row for row in saved(opened.page, "Response to loss") if row["series"].startswith("1/√p")]
    assert len(drawn) == 12
    for row in drawn:
        window = math.sqrt(3 / 2) / math.sqrt(float(row["x"]) / 100)
        assert float(row["y"]) == pytest.approx(min(2 * 1448 / 1514, window * 1448 * 8 / 0.02 / 1e6))
    opened.context.close()


def why(opened: Opened) -> list[str]:
    opened.page.locator("#understand summary").click()
    opened.page.wait_for_selector("#understand[data-watched]")
    return [str(one) for one in opened.page.locator("#understand .stories p").all_inner_texts()]


def test_why_tells_of_rivals_and_of_the_queue(browser: Any, address: str) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "queue": "4 bdp"}
    flows = [{"cc": "cubic", "name": "mine"}, {"cc": "reno", "name": "theirs"}]
    opened = Opened(browser, asking(address, duration="6 s", path=path, flows=flows))
    opened.finish()
    mine, theirs = why(opened)
    assert "The line is full, and it is not alone there: it gets " in mine
    assert "theirs gets " in mine
    assert "mine gets " in theirs
    assert "in the queue on average: a round trip takes " in mine
    assert opened.said == []
    opened.context.close()


def test_why_tells_of_the_receive_window(browser: Any, address: str) -> None:
    asked = {"duration": "2 s", "path": {"rate": "50 Mbit/s", "rtt": "50 ms"}, "host": {"receive_buffer": "64 KiB"}}
    opened = Opened(browser, asking(address, **asked, flows=[{"cc": "cubic"}]))
    opened.finish()
    (told,) = why(opened)
    assert "The receiver's window held it back for " in told
    assert "a window of about 22 segments, and 206 fill this path" in told
    opened.context.close()


def test_a_flow_has_a_name_of_its_own(page: Opened) -> None:
    page.page.locator("#flows input[name=name]").first.fill("upload")
    page.finish()
    assert [row[0] for row in page.rows] == ["upload", "bbr"]
    assert "upload gets" in page.sentence
    assert page.page.inner_text("#story-said").startswith("Same line, same 1% loss: upload ")
    page.page.locator("#flows input[name=name]").nth(1).fill("upload")
    assert page.page.locator("#flows input[name=name][aria-invalid]").count() == 1
    for name in page.page.locator("#flows input[name=name]").all():
        name.fill("")
    page.finish()
    assert [row[0] for row in page.rows] == ["cubic", "bbr"]


def test_one_playhead_goes_through_the_windows_and_the_figures(browser: Any, address: str) -> None:
    link = "#cc=cubic,bbr&rate=100Mbit/s&rtt=20ms&loss=1%25&step=2"
    opened = Opened(browser, address + link, reduced_motion="reduce")
    opened.page.wait_for_selector("#story[data-drawn]")
    heads = "() => [...document.querySelectorAll('#story-window .at, #figures .at')].map((one) => !one.hidden)"
    assert opened.page.evaluate(heads) == [True] * 8
    # Why? has it when it is open.
    opened.page.locator("#understand summary").click()
    opened.page.wait_for_selector("#understand[data-watched]")
    place = "(id) => document.querySelector(`${id} .at`).style.transform"
    windows, figures = (opened.page.evaluate(place, one) for one in ("#story-window", "#figures"))
    opened.page.get_by_role("button", name="Next ▶").click()
    assert opened.page.evaluate(place, "#story-window") != windows
    assert opened.page.evaluate(place, "#figures") != figures
    opened.context.close()


def test_saved_figures_carry_the_scenario_and_units(browser: Any, address: str) -> None:
    opened = Opened(browser, asking(address, **LIGHT, flows=[{"cc": "cubic", "name": "one"}]))
    opened.finish()
    figure = opened.page.locator("#figures > div").first
    files = {}
    for kind in ("CSV", "SVG"):
        with opened.page.expect_download() as taken:
            figure.get_by_role("button", name=kind).click()
        files[kind] = Path(taken.value.path()).read_text()
    above = [line[2:] for line in files["CSV"].splitlines() if line.startswith("#")]
    scenario = tomllib.loads("\n".join(above))
    assert (scenario["path"], scenario["duration"]) == (LIGHT["path"], LIGHT["duration"])
    assert scenario["flows"] == [{"cc": "cubic", "name": "one"}]
    rows = list(csv.DictReader(files["CSV"].splitlines()[len(above) :]))
    assert {(row["x_unit"], row["y_unit"]) for row in rows} == {("s", "Mbit/s")}
    picture = ElementTree.fromstring(files["SVG"])
    held = picture.find("{http://www.w3.org/2000/svg}metadata")
    assert held is not None
    assert tomllib.loads(held.text or "") == scenario
    words = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "2 Mbit/s, 20 ms round trip, 1% loss, 2 s; simulated by sawtooth" in words
    opened.context.close()


def test_up_to_four_flows_have_a_window_panel_each(browser: Any, address: str) -> None:
    link = "#cc={}&rate=20Mbit/s&rtt=20ms&loss=1%25&duration=1s{}"
    panels = "#figures > .wide:nth-child(2) canvas"
    for count, together, seen in ((1, "", 1), (2, "", 2), (4, "&together=1", 4), (5, "&together=1", 1)):
        opened = Opened(browser, address + link.format(",".join(["cubic"] * count), together))
        opened.finish()
        assert opened.page.locator(panels).count() == seen
        opened.context.close()
