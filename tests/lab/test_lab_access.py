"""The laboratory's page with a keyboard, with a screen reader, and on narrow screens; checked by axe-core."""

import re
from typing import Any

import pytest

from opened_lab import Opened, by_keyboard, serious


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "light"), (1400, "dark")])
def test_axe_finds_nothing_serious(browser: Any, address: str, width: int, scheme: str) -> None:
    opened = Opened(browser, address, width=width, color_scheme=scheme, bypass_csp=True)
    opened.choose("Start from a question", "l4s")
    opened.page.locator("#take summary").click()
    assert serious(opened.page) == []
    opened.set("Rate", "fast")
    assert opened.page.locator("[aria-invalid]").count() == 1
    assert serious(opened.page) == []
    opened.context.close()


def test_a_question_is_asked_by_keyboard_only_and_nothing_moves_by_itself(browser: Any, address: str) -> None:
    opened = Opened(browser, address, reduced_motion="reduce")
    keys = opened.page.keyboard
    named = "name => [document.activeElement].some((on) => [on.id, on.ariaLabel, on.innerText].includes(name))"

    def tab_to(name: str) -> None:
        for _ in range(60):
            keys.press("Tab")
            if opened.page.evaluate(named, name):
                return
        raise AssertionError(f"Tab does not lead to {name}")

    tab_to("preset")
    keys.press("ArrowDown")
    opened.finish()
    assert "20 Mbit/s, 40 ms" in opened.sentence
    tab_to("f-path-loss")
    keys.press("Control+A")
    keys.type("1%")
    tab_to("Add a flow")
    keys.press("Enter")
    assert opened.page.evaluate(named, "Flow 2: congestion control")
    keys.type("d")
    tab_to("alone")
    keys.press("Space")
    opened.finish()
    assert [row[0] for row in opened.rows] == ["reno", "dctcp"]
    assert "1% loss" in opened.sentence
    assert opened.page.evaluate("document.getAnimations().length") == 0
    assert opened.page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert opened.said == []
    opened.context.close()


def test_on_a_narrow_screen_nothing_is_wider_than_it(browser: Any, address: str) -> None:
    opened = Opened(browser, address, width=390, has_touch=True)
    opened.finish()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.said == []
    opened.context.close()


def test_on_a_narrow_screen_the_answer_stays_in_sight_of_the_fields(browser: Any, address: str) -> None:
    opened = Opened(browser, address, width=390)
    opened.finish()
    for label in ("Rate", "Loss", "Duration"):
        opened.page.get_by_label(label, exact=True).scroll_into_view_if_needed()
        box = opened.page.locator("#sentence").bounding_box()
        assert box is not None
        assert 0 <= box["y"] < box["y"] + box["height"] <= 901
        assert box["height"] < 0.36 * 900
    opened.context.close()


@pytest.mark.parametrize("width", [1400, 390])
def test_by_keyboard_the_page_is_gone_through_in_its_order_and_the_focus_is_seen(
    browser: Any, address: str, width: int
) -> None:
    opened = Opened(browser, address, width=width, reduced_motion="reduce")
    opened.finish()
    where = """() => {
      const on = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(on.type === "file" ? on.closest(".button") : on);
      const { top, bottom } = on.getBoundingClientRect();
      const over = document.getElementById("sentence").getBoundingClientRect();
      const hidden = !on.closest("#answer") && over.top < bottom && over.bottom > top && innerWidth < 800;
      const name = on.ariaLabel ?? on.labels?.[0]?.innerText ?? on.innerText;
      const rim = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
      return [name.trim(), rim && bottom > 0 && top < innerHeight && !hidden];
    }"""
    reached: list[str] = []
    # After a click, the focus would start there.
    opened.page.evaluate("document.getElementById('more').open = true")
    while not reached or not reached[-1].startswith("Goodput"):
        opened.page.keyboard.press("Tab")
        name, seen = opened.page.evaluate(where)
        assert seen, name
        reached.append(name)
        assert len(reached) < 90
    order = ["Open a capture", "Start from a question", "Rate", "Loss", "Loss, slider", "Kind of queue", "Duration"]
    order += ["Flow 1: congestion control", "Remove flow 1", "Flow 2: congestion control", "Add a flow"]
    order += ["each flow by itself on the path", "Export", "Numbers"]
    assert [name for name in reached if name in order] == order
    assert reached[reached.index("Numbers") + 1].startswith("Why? Understand")
    opened.context.close()


def test_a_screen_reader_gets_the_answer(page: Opened) -> None:
    page.finish()
    heard = page.page.locator("#answer").aria_snapshot()
    assert 'region "Result"' in heard
    assert f'paragraph: "{page.sentence}"' in heard
    assert page.page.locator("#sentence").get_attribute("aria-live") == "polite"
    for name in ("Congestion window", "Round-trip time", "Queue at the bottleneck"):
        assert re.search(f"img .*{name}", heard)
    # A screen reader also hears which figure a button saves, because five figures have the same three buttons.
    for figure in ("Goodput", "Window", "Round-trip time", "Queue", "Packets lost and dropped"):
        assert all(f'button "{kind} of {figure}"' in heard for kind in ("PNG", "SVG", "CSV"))
    page.set("Rate", "fast")
    assert 'path.rate: "fast" is not a rate' in page.page.locator("#sentence").aria_snapshot().replace("\\", "")


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(page: Opened) -> None:
    unnamed = page.page.evaluate(
        "[...document.querySelectorAll('#ask input, #ask select, #ask button')]"
        ".filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim()).map((one) => one.outerHTML)"
    )
    assert unnamed == []
    reached = set()
    page.page.get_by_label("Start from a question").focus()
    for _ in range(12):
        page.page.keyboard.press("Tab")
        reached.add(page.page.evaluate("document.activeElement.id || document.activeElement.ariaLabel"))
    assert {"f-path-rate", "Rate, slider", "f-path-rtt", "f-path-loss"} <= reached


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_the_story_is_accessible_with_its_guess_its_steps_and_sharing(
    browser: Any, address: str, width: int, scheme: str
) -> None:
    options = {"width": width, "color_scheme": scheme, "bypass_csp": True, "reduced_motion": "reduce"}
    opened = Opened(browser, address, **options)
    opened.finish()
    assert serious(opened.page) == []
    assert by_keyboard(opened.page, "#story") == []
    opened.page.get_by_role("button", name="Just tell me").click()
    opened.page.get_by_role("button", name="Share", exact=True).click()
    assert serious(opened.page) == []
    assert by_keyboard(opened.page, "#story") == []
    opened.context.close()
