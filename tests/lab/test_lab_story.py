"""The laboratory's first screen: what each control keeps of the same line, a guess, three steps, and sharing."""

import re
import struct
from pathlib import Path
from typing import Any

import pytest

from opened_lab import Opened
from sawtooth import Scenario
from sawtooth.engines import get
from sawtooth.lab import Site

STEP = "#cc=cubic,bbr&rate=100Mbit/s&rtt=20ms&loss={}%25&step={}"


def told(cc: str, loss: str = "1%") -> Any:
    """The command line's result for one of the story's flows."""
    path = {"rate": "100 Mbit/s", "rtt": "20 ms", "loss": loss}
    return get("sim").run(Scenario.from_dict({"duration": "10 s", "path": path, "flows": [{"cc": cc}]})).tables


def headline(page: Opened) -> str:
    return str(page.page.inner_text("#story-said"))


def test_it_opens_with_a_guess_and_reports_the_simulation_s_numbers_after_it(page: Opened) -> None:
    page.finish()
    assert headline(page) == "Same line, same 1% loss: CUBIC ?, BBR ? Mbit/s"
    assert page.page.inner_text("#story-sentences") == ""
    page.page.get_by_role("button", name="50%", exact=True).click()
    means = [row[1].removesuffix(" Mbit/s") for row in page.rows]
    assert headline(page) == f"Same line, same 1% loss: CUBIC {means[0]}, BBR {means[1]} Mbit/s"
    guessed = page.page.inner_text("#story-guessed")
    assert guessed.startswith("You guessed 50%: CUBIC keeps ")
    assert guessed.endswith(f", {means[0]} Mbit/s.")
    assert page.page.locator("#story-guess").is_hidden()
    for cc, mean in zip(("cubic", "bbr"), means, strict=True):
        assert float(mean) == pytest.approx(told(cc)["intervals"]["goodput_bps"].mean() / 1e6, rel=0.01)


def test_a_guess_is_not_asked_for_where_a_link_asks(browser: Any, address: str) -> None:
    opened = Opened(browser, address + STEP.format(1, 2))
    opened.finish()
    assert opened.page.locator("#story-guess").is_hidden()
    assert "?" not in headline(opened)
    opened.context.close()


@pytest.mark.parametrize(("loss", "step", "cc"), [(0, 1, "cubic"), (1, 2, "cubic"), (1, 3, "bbr")])
def test_each_step_is_a_link_and_its_numbers_are_the_simulation_s(
    browser: Any, address: str, loss: int, step: int, cc: str
) -> None:
    opened = Opened(browser, address + STEP.format(loss, step))
    opened.finish()
    assert opened.page.evaluate("location.hash") == STEP.format(loss, step)
    current = opened.page.locator("#story-steps [aria-current='step']")
    assert current.inner_text().startswith(f"{step}. ")
    sentences = opened.page.inner_text("#story-sentences")
    tables = told(cc, f"{loss}%")
    dropped, lost = int(tables["queues"]["drops"].sum()), int(tables["links"]["lost"].sum())
    if step != 2:
        assert f"the full queue dropped {dropped:,} packets" in sentences
    if loss:
        assert f": {lost:,} of {cc.upper()}'s in 10 s." in sentences
    # Goes from one step to the next by its link, and back.
    other = step % 3 + 1
    opened.page.locator("#story-steps a").nth(other - 1).click()
    opened.page.locator(f"#story-steps[data-step='{other}']").wait_for()
    opened.finish()
    opened.page.go_back()
    opened.page.locator(f"#story-steps[data-step='{step}']").wait_for()
    opened.finish()
    assert opened.page.inner_text("#story-sentences") == sentences
    assert opened.said == []
    opened.context.close()


def test_the_slider_reveals_and_the_headline_follows(page: Opened) -> None:
    page.finish()
    slider = page.page.get_by_label("Packets lost", exact=True)
    slider.focus()
    slider.press("Home")
    page.page.wait_for_function("() => document.getElementById('story-said').textContent.includes('same 0% loss')")
    page.finish()
    assert page.page.locator("#story-guess").is_hidden()
    means = [row[1].removesuffix(" Mbit/s") for row in page.rows]
    assert headline(page) == f"Same line, same 0% loss: CUBIC {means[0]}, BBR {means[1]} Mbit/s"
    assert page.page.get_by_label("Loss", exact=True).input_value() == "0%"
    assert slider.get_attribute("aria-valuetext") == "0%"


def test_a_sentence_lights_up_what_it_speaks_of(browser: Any, address: str) -> None:
    opened = Opened(browser, address + STEP.format(1, 2))
    opened.page.wait_for_selector("#story[data-drawn]")
    said = opened.page.locator("#story .says")
    lit = "() => document.querySelector('#story .ways').dataset.lit ?? ''"
    for which, part in enumerate(("loss", "window", "link")):
        said.nth(which).focus()
        assert opened.page.evaluate(lit) == part
        assert ("lit" in (opened.page.get_attribute("#story-window", "class") or "")) == (part == "window")
    opened.page.locator("#share").focus()
    assert opened.page.evaluate(lit) == ""
    opened.context.close()


def test_the_packets_move_until_they_are_paused(browser: Any, address: str) -> None:
    opened = Opened(browser, address + STEP.format(1, 2))
    opened.page.wait_for_selector("#story[data-drawn]")
    at = opened.page.get_attribute("#story", "data-drawn")
    opened.page.wait_for_function("at => document.getElementById('story').dataset.drawn !== at", arg=at)
    opened.page.locator("#story-play").click()
    assert opened.page.inner_text("#story-play") == "Move the packets"
    still = opened.page.get_attribute("#story", "data-drawn")
    opened.page.wait_for_timeout(300)
    assert opened.page.get_attribute("#story", "data-drawn") == still
    opened.context.close()


def test_with_reduced_motion_there_are_pictures(browser: Any, address: str) -> None:
    opened = Opened(browser, address + STEP.format(1, 2), reduced_motion="reduce")
    opened.page.wait_for_selector("#story[data-drawn]")
    at = opened.page.get_attribute("#story", "data-drawn")
    opened.page.wait_for_timeout(300)
    assert opened.page.get_attribute("#story", "data-drawn") == at
    opened.page.get_by_role("button", name="Next picture").click()
    opened.page.wait_for_function("at => document.getElementById('story').dataset.drawn !== at", arg=at)
    opened.context.close()


def test_on_a_narrow_screen_paths_and_windows_are_in_sight_of_the_slider(browser: Any, address: str) -> None:
    opened = Opened(browser, address + STEP.format(1, 2), width=390, has_touch=True)
    opened.page.set_viewport_size({"width": 390, "height": 844})
    opened.page.wait_for_selector("#story[data-drawn]")
    for part in ("#story-said", "#story-paths canvas >> nth=1", "#story-loss", "#story-window canvas >> nth=1"):
        box = opened.page.locator(part).bounding_box()
        assert box is not None
        assert 0 <= box["y"] < box["y"] + box["height"] <= 844, part
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.context.close()


def test_another_question_has_no_story_but_can_be_shared(page: Opened) -> None:
    page.choose("Start from a question", "congested")
    assert page.page.locator("#story-said").is_hidden()
    page.page.locator("#share").click()
    link = page.page.input_value("#share-link")
    assert "#%7B" in link


def test_what_is_shared_opens_the_same(browser: Any, address: str, tmp_path: Path) -> None:
    opened = Opened(browser, address, permissions=["clipboard-read", "clipboard-write"])
    opened.set("Loss", "2%")
    opened.finish()
    opened.page.locator("#share").click()
    opened.page.get_by_role("button", name="Copy the link").click()
    opened.page.get_by_text("The link is copied.").wait_for()
    link = opened.page.evaluate("navigator.clipboard.readText()")
    assert link.endswith("#cc=cubic,bbr&rate=100Mbit/s&rtt=20ms&loss=2%25")
    assert re.fullmatch(r"[A-Za-z0-9%_.,:/&=#-]+", link)
    with opened.page.expect_download() as saved:
        opened.page.get_by_role("button", name="Save a picture").click()
    saved.value.save_as(tmp_path / "shared.png")
    assert struct.unpack(">II", (tmp_path / "shared.png").read_bytes()[16:24]) == (1200, 630)
    other = Opened(browser, link)
    other.finish()
    assert other.sentence == opened.sentence
    assert other.page.url == link
    other.context.close()
    frame = opened.page.input_value("#share-embed")
    source = re.search(r'src="([^"]*)"', frame)
    assert source is not None
    embedded = Opened(browser, source[1].replace("&amp;", "&"))
    embedded.finish()
    assert embedded.page.locator("main").is_hidden()
    assert "same 2% loss" in headline(embedded)
    embedded.context.close()
    assert opened.said == []
    opened.context.close()


@pytest.mark.parametrize(
    ("hash_", "words"),
    [
        ("#cc=cubic&speed=1", '"speed" is no part of a link'),
        ("#cc=cubic&loss=1%25&loss=2%25", '"loss" is there twice'),
        ("#cc=cubic&loss=1%", 'a "%" in it is not followed by two digits'),
    ],
)
def test_a_damaged_short_link_is_reported(browser: Any, address: str, hash_: str, words: str) -> None:
    opened = Opened(browser, address + hash_)
    assert words in opened.page.inner_text("#link-wrong")
    assert opened.said == []
    opened.context.close()


def test_a_short_link_with_a_wrong_value_is_reported_at_its_field(browser: Any, address: str) -> None:
    opened = Opened(browser, f"{address}#cc=cubic&queue=much")
    assert opened.page.locator("#more").get_attribute("open") is not None
    assert opened.page.locator("#more [aria-invalid]").count() == 1
    opened.context.close()


def test_a_page_that_links_to_it_gets_a_title_a_picture_and_an_icon(site: Site) -> None:
    head = site.files["index.html"].decode()
    assert '<meta property="og:title" content="Same line, same 1% loss' in head
    (picture,) = re.findall(r'<meta property="og:image" content="([^"]*)">', head)
    assert struct.unpack(">II", site.files[picture][16:24]) == (1200, 630)
    assert len(site.files[picture]) < 200_000
    assert re.search(r'<link rel="icon" href="data:image/svg', head)


def test_before_the_core_is_there_it_shows_the_numbers_that_the_core_then_gives(browser: Any, address: str) -> None:
    held: list[Any] = []
    context = browser.new_context()
    context.route("**/simulator.wasm.gzip", lambda route: held.append(route))
    page = context.new_page()
    page.goto(address + STEP.format(1, 3))
    page.wait_for_selector("#story-sentences button")
    before = [page.inner_text(f"#{part}") for part in ("story-said", "story-steps", "story-sentences")]
    loss = page.evaluate("(({ value, max }) => [value, max])(document.getElementById('story-loss'))")
    assert page.locator("#story-window canvas").count() > 0
    assert page.locator("#story-loss").is_disabled()
    # The step without loss also has its answer.
    page.locator("#story-steps a").first.click()
    page.wait_for_selector("#story-steps[data-step='1']")
    assert "the sawtooth" in page.inner_text("#story-sentences")
    page.go_back()
    page.wait_for_selector("#story-steps[data-step='3']")
    assert page.locator("body[data-ready]").count() == 0
    for route in held:
        route.continue_()
    page.wait_for_selector("body[data-finished]", timeout=120_000)
    assert [page.inner_text(f"#{part}") for part in ("story-said", "story-steps", "story-sentences")] == before
    assert page.evaluate("(({ value, max }) => [value, max])(document.getElementById('story-loss'))") == loss
    page.wait_for_selector("#story[data-drawn]", timeout=120_000)
    context.close()


def test_a_guess_is_answered_before_the_core_is_there(browser: Any, address: str) -> None:
    context = browser.new_context()
    context.route("**/simulator.wasm.gzip", lambda route: None)
    page = context.new_page()
    page.goto(address)
    page.get_by_role("button", name="5%", exact=True).click()
    assert page.inner_text("#story-guessed").startswith("You guessed 5%, and you are right: CUBIC keeps ")
    assert "?" not in page.inner_text("#story-said")
    context.close()


def test_five_questions_are_answered_with_a_click_each(page: Opened) -> None:
    # What does 1% do, and why?
    page.finish()
    page.page.get_by_role("button", name="Just tell me").click()
    means = dict(re.findall(r"(CUBIC|BBR) ([\d.]+)", headline(page)))
    assert float(means["CUBIC"]) < 10 < 90 < float(means["BBR"])
    assert "CUBIC treats a loss as congestion and cuts its window" in page.page.inner_text("#story-sentences")
    # Does it hold for my line?
    page.page.get_by_role("button", name="Does it hold for your line?").click()
    assert page.page.evaluate("document.activeElement.id") == "f-path-rate"
    page.page.keyboard.press("Control+A")
    page.page.keyboard.type("20 Mbit/s")
    page.finish()
    assert "20 Mbit/s, 20 ms, 1% loss: cubic gets" in page.sentence
    assert means["BBR"] not in headline(page)
    # What helps?
    page.page.get_by_role("link", name="What helps at 1% loss?").click()
    page.page.wait_for_function("() => document.getElementById('preset').value === 'what-helps'")
    page.finish()
    assert [row[0] for row in page.rows] == ["cubic", "reno", "bbr", "bbr3"]
    page.page.go_back()
    page.page.wait_for_selector("#story:not(.other)")
    page.finish()
    # What does it cost others?
    page.page.get_by_role("link", name="What does BBR cost others?").click()
    page.page.wait_for_function("() => document.getElementById('preset').value === 'cost-to-others'")
    page.finish()
    assert "the limit is the rate, which it shares: bbr takes" in page.sentence
