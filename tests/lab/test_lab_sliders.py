"""The page's sliders: each position has its own text, and the keyboard moves a slider from position to position."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opened_lab import Opened
from tests.lab.test_lab_language import ask

SLIDERS = {
    "Rate": r"[\d.]+ [kMG]bit/s",
    "Round-trip time": r"[\d.]+ (us|ms|s)",
    "Loss": r"[\d.]+%",
    "Loss on the return path": r"[\d.]+%",
    "Queue": r"[\d.]+ bdp",
    "Rate of the return path": r"([\d.]+ [kMG]bit/s)?",
    "Duration": r"[\d.]+ s",
}
"""By the label of its field: the texts that a slider writes."""


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Iterator[Opened]:
    opened = Opened(browser, address)
    opened.finish()
    yield opened
    opened.context.close()
    assert opened.said == []


def test_each_place_has_another_text_and_each_text_its_place(lab: Path) -> None:
    told = ask(lab, "sliders", None)
    assert set(told) == {"rate", "limit", "rtt", "loss", "duration", "queue"}
    for name, places in told.items():
        assert [found for _, found in places] == list(range(len(places))), name
        assert len({text for text, _ in places}) == len(places) > 150, name
    ends = {name: (places[0][0], places[-1][0]) for name, places in told.items()}
    assert ends["rate"] == ("100 kbit/s", "10 Gbit/s")
    assert ends["limit"] == ("100 kbit/s", "")
    assert ends["loss"] == ("0%", "20%")
    assert ends["duration"] == ("1 s", "120 s")


def test_a_text_between_two_places_has_the_nearer_one(lab: Path) -> None:
    places = {name: [text for text, _ in found] for name, found in ask(lab, "sliders", None).items()}
    asked = [("rtt", "20.1 ms"), ("rate", "1 Tbit/s"), ("rate", "1 kbit/s"), ("loss", "1e-7 %"), ("queue", "7 packets")]
    rtt, most, least, little, none = ask(lab, "places", asked)
    assert places["rtt"][rtt] == "20 ms"
    assert places["rate"][most] == "10 Gbit/s"
    assert places["rate"][least] == "100 kbit/s"
    assert places["loss"][little] == "0%"
    assert none is None


@pytest.mark.parametrize("label", SLIDERS)
def test_by_keyboard_a_slider_goes_through_its_places_and_its_field_says_each(page: Opened, label: str) -> None:
    slider = page.page.get_by_label(f"{label}, slider", exact=True)
    field = page.page.get_by_label(label, exact=True)
    last = int(slider.get_attribute("max") or 0)
    page.more()
    slider.focus()

    def press(key: str) -> tuple[int, str]:
        page.page.keyboard.press(key)
        place, text = int(slider.input_value()), field.input_value()
        assert re.fullmatch(SLIDERS[label], text), (key, text)
        # A screen reader hears the unit, too; for an empty field, it hears the default.
        assert slider.get_attribute("aria-valuetext") == (text or field.get_attribute("placeholder"))
        assert slider.is_enabled()
        assert field.get_attribute("aria-invalid") is None
        return place, text

    first, seen = press("Home")
    assert first == 0
    texts = [seen, *(press("ArrowRight")[1] for _ in range(5))]
    assert press("ArrowUp")[0] == 6
    assert press("ArrowDown")[0] == 5
    assert len(set(texts)) == len(texts)
    assert [press("ArrowLeft")[1] for _ in range(5)] == texts[-2::-1]
    up, _ = press("PageUp")
    assert last / 20 < up < last / 5
    assert press("PageDown")[0] < last / 20
    assert press("End")[0] == last
    assert press("ArrowLeft")[0] == last - 1


def test_answers_come_while_a_slider_moves(page: Opened) -> None:
    page.set("Duration", "5 s")
    page.finish()
    # An event every few ms, each before the previous one can be answered.
    moved = page.page.evaluate(
        """async () => {
          const slider = document.querySelector("input[aria-label='Loss, slider']");
          let drawn = 0;
          new MutationObserver(() => { drawn += 1; }).observe(document.getElementById("sentence"), { childList: true });
          let events = 0;
          while (drawn < 3 && events < 1_000) {
            slider.value = String(10 + (events % 60));
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            events += 1;
            await new Promise((go) => setTimeout(go, 2));
          }
          return [drawn, events];
        }"""
    )
    assert moved[0] >= 3
    page.finish()
    loss = page.page.get_by_label("Loss", exact=True).input_value()
    assert f", {loss} loss: " in page.sentence
