"""Understand: how the laboratory explains a simulation step by step, and the path that it draws."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from opened_lab import Opened, by_keyboard, serious
from sawtooth import Scenario, _core

STEP = "section [0-9.]+|draft-"
"""The section that specifies a rule."""


def _open(opened: Opened) -> Opened:
    opened.finish()
    opened.page.locator("#understand > summary").click()
    opened.page.wait_for_selector("#understand[data-watched]")
    opened.page.wait_for_selector("#understand[data-drawn]")
    return opened


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Opened]:
    opened = Opened(browser, address)
    yield _open(opened)
    opened.context.close()
    assert opened.said == []


def cards(opened: Opened) -> list[str]:
    return list(opened.page.locator("#understand .card").all_inner_texts())


def time(opened: Opened) -> float:
    return float(opened.page.inner_text("#understand output").removesuffix(" s"))


def later(opened: Opened, than: float) -> None:
    clock = "parseFloat(document.querySelector('#understand output').textContent)"
    opened.page.wait_for_function(f"() => {clock} > {than}")


def step(opened: Opened, name: str = "Next ▶") -> None:
    opened.page.get_by_role("button", name=name, exact=True).click()
    opened.page.wait_for_selector("#understand[data-drawn]")


def counts(opened: Opened) -> dict[str, list[str]]:
    rows = opened.page.locator("#understand .counts tr").all()[1:]
    cells = (row.locator("td").all_inner_texts() for row in rows)
    return {name: values for name, *values in cells}


def test_nothing_of_it_is_there_before_it_is_opened_or_after_it_is_closed(browser: Any, address: str) -> None:
    opened = Opened(browser, address)
    opened.finish()
    for _ in range(2):
        assert opened.page.locator("#understand > *").count() == 1
        assert opened.page.locator("#understand[data-watched]").count() == 0
        _open(opened)
        before = time(opened)
        opened.page.get_by_role("button", name="Next ▶", exact=True).focus()
        opened.page.keyboard.press("ArrowRight")
        opened.page.keyboard.press("ArrowLeft")
        assert time(opened) == before
        opened.page.locator("#understand > summary").click()
        opened.page.wait_for_function("() => document.querySelectorAll('#understand > *').length === 1")
    assert opened.said == []
    opened.context.close()


def test_the_first_time_it_is_opened_it_needs_no_server(browser: Any, address: str) -> None:
    opened = Opened(browser, address)
    opened.finish()
    for _ in range(600):
        if "watcher.js" in opened.loaded:
            break
        opened.page.wait_for_timeout(100)
    opened.page.wait_for_load_state("networkidle")
    opened.context.set_offline(True)
    _open(opened)
    step(opened)
    assert "found lost" in opened.page.inner_text("#understand .stories")
    opened.page.locator("#understand > summary").click()
    opened.set("Loss", "2%")
    _open(opened)
    assert opened.said == []
    opened.context.close()


def test_what_cannot_be_loaded_is_reported_and_tried_again(browser: Any, address: str) -> None:
    opened = Opened(browser, "about:blank", ready=False)
    opened.context.route("**/watcher.js", lambda route: route.fulfill(status=404, body="gone"))
    opened.page.goto(address)
    opened.page.wait_for_selector("body[data-finished]")
    opened.page.locator("#understand > summary").click()
    opened.page.get_by_text("is the server still there?").wait_for()
    opened.page.locator("#understand > summary").click()
    opened.context.unroute("**/watcher.js")
    _open(opened)
    assert "found lost" in opened.page.inner_text("#understand .stories")
    opened.context.close()


ANSWERS = """async (count) => {
  const field = document.getElementById("f-path-loss"), { dataset } = document.getElementById("understand");
  for (let at = 0; at < count; at += 1) {
    field.value = `${(1 + (at % 50) / 100).toFixed(2)}%`;
    field.dispatchEvent(new Event("input"));
    const begun = performance.now();
    while (dataset.watched === undefined || dataset.drawn === undefined) {
      await new Promise((done) => setTimeout(done, 5));
      if (performance.now() > begun + 60_000) throw new Error(`no answer to ${field.value}`);
    }
  }
}"""
"""Asks with several other losses, each answered, described and drawn."""


def test_open_over_many_answers_it_keeps_nothing_of_those_before(browser: Any, address: str) -> None:
    opened = Opened(browser, address)
    opened.set("Duration", "1 s")
    _open(opened)
    tools = opened.context.new_cdp_session(opened.page)
    tools.send("Performance.enable")

    def held() -> dict[str, float]:
        for _ in range(3):
            tools.send("HeapProfiler.collectGarbage")
        return {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}

    opened.page.evaluate(ANSWERS, 10)
    before = held()
    opened.page.evaluate(ANSWERS, 60)
    after = held()
    # Before answers were released, it was 27 MB, 720 nodes and 120 listeners.
    assert after["JSHeapUsedSize"] - before["JSHeapUsedSize"] < 2e6
    assert after["Nodes"] <= before["Nodes"] + 60
    assert after["JSEventListeners"] <= before["JSEventListeners"] + 5
    assert opened.said == []
    opened.context.close()


LINES = """() => [...document.querySelectorAll("#figures .at, #understand .at")].map(
  (one) => one.hidden ? null : new DOMMatrix(getComputedStyle(one).transform).m41
)"""
"""The position of the line in each figure, in pixels."""


def test_while_it_plays_a_line_goes_along_in_every_figure(page: Opened) -> None:
    # A pixel of a figure is a few milliseconds.
    page.page.get_by_label("Speed").select_option("0.1")
    before = page.page.evaluate(LINES)
    first = time(page)
    page.page.get_by_role("button", name="Play", exact=True).click()
    later(page, first + 0.2)
    page.page.get_by_role("button", name="Pause", exact=True).click()
    after = page.page.evaluate(LINES)
    assert len(before) == len(after) == 7
    widths = page.page.eval_on_selector_all(
        "#figures .u-over, #understand .u-over", "all => all.map((one) => one.clientWidth)"
    )
    for start, end, width in zip(before, after, widths, strict=True):
        assert end == pytest.approx(start + (time(page) - first) * width / 10, abs=1)


def test_a_figure_that_is_pointed_at_keeps_its_own_line_while_it_plays(page: Opened) -> None:
    plot = page.page.locator("#figures .u-over").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.page.evaluate(
        "[...document.querySelectorAll('#understand button')].find((one) => one.textContent === 'Play').click()"
    )
    page.page.mouse.move(box["x"] + box["width"] * 0.1, box["y"] + box["height"] * 0.5)
    pointed = page.page.evaluate(LINES)
    later(page, time(page))
    assert page.page.evaluate(LINES) == pointed
    page.page.mouse.move(box["x"], box["y"] - 40)
    page.page.wait_for_function(f"(before) => ({LINES})()[0] > before + 50", arg=pointed[0])


def test_a_newcomer_reads_why_cubic_falls_and_bbr_does_not(page: Opened) -> None:
    cubic, bbr = page.page.locator("#understand .stories p").all_inner_texts()
    assert re.search(
        r"cubic: \d+ segments were found lost. It treats losses as congestion: \d+ times its window", cubic
    )
    assert "to 70% (RFC 9438 section 4.6)" in cubic
    left, fills = map(int, re.search(r"to (\d+) segments \(medians\); (\d+) fill", cubic).groups())
    assert fills == round(100e6 * 0.02 / 8 / 1514)
    assert left < fills / 5
    assert "does not treat them as congestion" in bbr
    assert "bandwidth × round trip" in bbr
    assert re.search(r"pacing at 9\d\.\d Mbit/s", bbr)


def test_from_the_question_to_the_reason_it_is_two_clicks(browser: Any, address: str) -> None:
    opened = Opened(browser, address)
    opened.choose("Start from a question", label="What does 1% loss do?")
    assert re.search(
        r"cubic gets 4\.\d+ Mbit/s, .* the limit is loss on the path, taken for congestion", opened.sentence
    )
    opened.page.get_by_text("Why? Understand what happened").click()
    cubic, bbr = (opened.page.locator("#understand .stories p").nth(at) for at in range(2))
    cubic.wait_for()
    again = (
        "The path loses the next packet before the window has grown back, so it fills about 5% of the path, and gets"
    )
    assert again in cubic.inner_text()
    assert "it measures the bandwidth that gets through, and sends at that" in bbr.inner_text()
    opened.page.wait_for_selector("#understand[data-watched]")
    card = opened.page.locator("#understand .card").first
    down = r"The window comes down from (\d+) to (\d+) segments, to 70% of it in whole segments"
    before, after = map(int, re.search(down, card.inner_text()).groups())
    assert after == max(2, int(0.7 * before))
    assert opened.said == []
    opened.context.close()


def test_the_sentence_of_the_reason_is_of_losses_on_the_path_only(page: Opened) -> None:
    page.choose("Start from a question", "sawtooth")
    page.page.wait_for_selector("#understand[data-watched]")
    story = page.page.locator("#understand .stories").inner_text()
    assert "It treats losses as congestion" in story
    assert "grown back" not in story


def test_a_line_stays_in_the_figures_and_no_readout_is_in_the_way(page: Opened) -> None:
    step(page)
    assert page.page.locator("#figures .at:visible").count() == 6
    assert page.page.locator("#figures .readout:visible").count() == 0
    page.set("Loss", "2%")
    assert page.page.locator("#figures .at:visible").count() == 0


def test_what_the_pointer_finds_is_named(page: Opened) -> None:
    strip = page.page.locator("#understand .u-over").last
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    assert box is not None
    found: set[str] = set()
    for at in range(12):
        page.page.mouse.move(box["x"] + box["width"] * (0.2 + 0.05 * at), box["y"] + box["height"] * 0.42)
        found |= set(page.page.locator("#understand .readout-row b").all_inner_texts())
    assert any(name.startswith(("cubic: ", "bbr: ")) for name in found), found


def test_its_counts_are_those_of_the_native_core(page: Opened) -> None:
    scenario = json.loads(page.page.evaluate("decodeURIComponent(location.hash.slice(1))"))
    scenario.pop("alone")
    names = _core.event_names()
    shown = counts(page)
    for place, flow in enumerate(scenario["flows"]):
        compiled = Scenario.from_dict(scenario | {"flows": [flow]}).compile()
        simulation = _core.Simulation(compiled.to_json(), watched=True)
        assert simulation.advance(compiled.duration_ns, 2**62)
        events = simulation.take()["events"]
        found: Counter[str] = Counter()
        for event, segments in zip(events["event"], events["segments"], strict=True):
            counted = names[event].startswith(("lost-by", "data-", "ack-"))
            found[names[event]] += int(segments) if counted else 1
        both = "window cut to 70% for a loss; recoveries that keep the model"
        assert shown["packets that the path lost"][place] == str(found["data-lost"])
        assert shown["losses found, by SACK"][place] == str(found["lost-by-sack"])
        assert shown[both][place] == str(found["recovery"])


def test_steps_lead_from_one_to_the_next_each_with_its_section(page: Opened) -> None:
    before = time(page)
    seen = []
    for _ in range(12):
        step(page)
        assert time(page) >= before
        before = time(page)
        seen += [card for card in cards(page) if card.endswith(" now")]
    assert len(seen) >= 12
    ours = [card for card in seen if "The path loses a packet" not in card]
    assert ours
    assert all(re.search(STEP, card) for card in ours)
    step(page, "◀ Before")
    assert time(page) <= before


def test_the_next_of_a_kind_is_where_it_happened(page: Opened) -> None:
    page.page.get_by_role("button", name="window cut to 70% for a loss; recoveries that keep the model").click()
    told = page.page.locator("#understand .unseen[aria-live]").last.text_content() or ""
    assert re.search(r"The window comes down from \d+ to \d+ segments|BBR keeps its model", told)
    page.page.get_by_role("button", name="probes for more bandwidth").click()
    assert "a quarter faster" in cards(page)[1]


def test_the_path_is_drawn_of_the_packets_that_are_there(page: Opened) -> None:
    page.page.get_by_label("Time of the simulation").fill("0.8")
    page.page.wait_for_selector("#understand[data-drawn='8.000000000']")
    told = page.page.locator("#understand figcaption").all_inner_texts()
    queue, there, back = map(int, re.findall(r"\d+(?= packets? in| on the| acknow)", told[1]))
    assert there > 50
    assert queue < 165
    path = {"rate": "100 Mbit/s", "rtt": "20 ms", "loss": "1%"}
    compiled = Scenario.from_dict({"duration": "10 s", "path": path, "flows": [{"cc": "bbr"}]}).compile()
    simulation = _core.Simulation(compiled.to_json(), watched=True)
    simulation.advance(7_900_000_000, 2**62)
    simulation.record(True)
    simulation.advance(8_000_000_000, 2**62)
    tables = simulation.take()
    sent, hops = tables["packets"], tables["hops"]
    # Half of the previous round trip: packets that left the loss then, and acknowledgements that left the receiver.
    data = set(sent["packet"][sent["kind"] == 0])
    left = (hops["host"] == 3) & (hops["fate"] == 0) & (hops["t_s"] > 7.99)
    assert there == sum(number in data for number in hops["packet"][left])
    assert back == ((sent["kind"] == 1) & (sent["t_s"] > 7.99)).sum()
    drawn = page.page.evaluate(
        "[...document.querySelectorAll('#understand canvas')].slice(0, 2).map((one) => one.getContext('2d')"
        ".getImageData(0, 0, one.width, one.height).data.some((value) => value > 0))"
    )
    assert drawn == [True, True]


def test_it_is_played_and_paused_by_keyboard(page: Opened) -> None:
    path = page.page.get_by_role("group", name=re.compile("^The path and its packets"))
    path.focus()
    page.page.keyboard.press("ArrowRight")
    first = time(page)
    page.page.keyboard.press("ArrowRight")
    assert time(page) > first
    page.page.keyboard.press("ArrowLeft")
    assert time(page) == first
    page.page.keyboard.press("Space")
    later(page, first)
    page.page.keyboard.press("Space")
    assert page.page.get_by_role("button", name="Play", exact=True).count() == 1


def test_with_reduced_motion_there_are_stills(browser: Any, address: str) -> None:
    opened = _open(Opened(browser, address, reduced_motion="reduce"))
    before = time(opened)
    # The page itself records when its time changes, and to what.
    opened.page.evaluate(
        """() => {
          const clock = document.querySelector("#understand output");
          window.seen = [];
          const note = () => seen.push([performance.now(), parseFloat(clock.textContent)]);
          addEventListener("click", note, { capture: true, once: true });
          new MutationObserver(note).observe(clock, { childList: true, characterData: true, subtree: true });
        }"""
    )
    opened.page.get_by_role("button", name="Play", exact=True).click()
    opened.page.wait_for_function("() => seen.length > 3")
    seen = opened.page.evaluate("seen.slice(0, 4)")
    # Each picture stays for at least nine tenths of a second, and the next is a quarter of a round trip later.
    assert all(later - earlier > 850 for (earlier, _), (later, _) in pairwise(seen))
    assert [t for _, t in seen] == [pytest.approx(before + 0.005 * still, abs=1e-4) for still in range(4)]
    opened.context.close()


@pytest.mark.parametrize("preset", ["sawtooth", "congested", "fq-codel", "reverse", "l4s", "short-transfer"])
def test_every_kind_of_question_is_reported(page: Opened, preset: str) -> None:
    page.choose("Start from a question", preset)
    page.page.wait_for_selector("#understand[data-watched]")
    page.page.wait_for_selector("#understand[data-drawn]")
    step(page)
    assert all("undefined" not in card and "NaN" not in card for card in cards(page))
    stories = page.page.inner_text("#understand .stories")
    assert "found lost" in stories
    assert "NaN" not in stories


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing_serious(browser: Any, address: str, width: int, scheme: str) -> None:
    opened = _open(Opened(browser, address, width=width, color_scheme=scheme, bypass_csp=True))
    assert serious(opened.page) == []
    opened.context.close()


@pytest.mark.parametrize("width", [1400, 390])
def test_all_of_it_is_reached_by_keyboard_and_the_focus_is_seen(browser: Any, address: str, width: int) -> None:
    opened = _open(Opened(browser, address, width=width, reduced_motion="reduce"))
    assert by_keyboard(opened.page, "main") == []
    opened.context.close()


def test_on_a_narrow_screen_nothing_is_wider_than_it(browser: Any, address: str) -> None:
    opened = _open(Opened(browser, address, width=390, has_touch=True))
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.context.close()
