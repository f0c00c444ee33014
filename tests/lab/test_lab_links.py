"""Links to the laboratory's page, and its history: what they hold, and what damaged ones do."""

import json
import re
from typing import Any
from urllib.parse import quote, unquote

import pytest

from opened_lab import Opened


def test_back_and_forward_lead_through_the_questions(page: Opened) -> None:
    page.finish()
    first = page.sentence
    page.choose("Start from a question", "sawtooth")
    assert "20 Mbit/s" in page.sentence
    page.page.go_back()
    page.page.wait_for_function("text => document.getElementById('sentence').textContent === text", arg=first)
    page.page.go_forward()
    page.page.wait_for_function("() => document.getElementById('sentence').textContent.includes('20 Mbit/s')")
    assert page.page.get_by_label("Start from a question").input_value() == "sawtooth"


def test_an_address_whose_event_is_late_is_not_written_over(page: Opened) -> None:
    page.finish()
    asked = [{"path": {"rate": f"{mbps} Mbit/s"}, "duration": "1 s", "flows": [{"cc": "reno"}]} for mbps in (2, 3)]
    page.page.evaluate("asked => { location.hash = asked }", quote(json.dumps(asked[0])))
    page.page.wait_for_function("() => document.getElementById('sentence').textContent.startsWith('2 Mbit/s')")
    page.page.evaluate(
        "asked => { addEventListener('hashchange', (event) => event.stopImmediatePropagation(), true);"
        " location.hash = asked }",
        quote(json.dumps(asked[1])),
    )
    # In the background the response is computed when the address would have been written.
    page.page.wait_for_function("() => document.getElementById('swept').textContent.startsWith('Drag')")
    assert "3%20Mbit/s" in page.page.evaluate("location.hash")


def test_a_link_holds_the_whole_question(page: Opened, browser: Any) -> None:
    page.set("Rate", "33 Mbit/s")
    page.set("Queue", "50 packets")
    page.choose("Kind of queue", "codel")
    other = Opened(browser, page.page.url)
    other.finish()
    assert other.sentence == page.sentence
    assert other.page.get_by_label("Kind of queue").input_value() == "codel"
    other.context.close()


def test_a_link_is_written_so_that_it_is_taken_whole_and_older_ones_open_too(page: Opened, browser: Any) -> None:
    asked = {"name": "(a) *b* ~c's~ [d]!", "duration": "1 s", "path": {"rate": "30 Mbit/s", "queue": {"kind": "codel"}}}
    page.page.evaluate("asked => { location.hash = asked }", quote(json.dumps(asked | {"flows": [{"cc": "reno"}]})))
    page.finish()
    page.page.locator("#take summary").click()
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.page.get_by_role("button", name="Copy a link").click()
    page.page.get_by_text("The link is copied.").wait_for()
    link = page.page.evaluate("navigator.clipboard.readText()")
    whole, hash_ = link.split("#")
    assert re.fullmatch(r"[A-Za-z0-9%_.,:/-]+[A-Za-z0-9]", hash_), hash_
    assert json.loads(unquote(hash_)) == asked | {"flows": [{"cc": "reno"}]}
    for older in (unquote(hash_), quote(unquote(hash_)), quote(unquote(hash_), safe="{}[]:,/")):
        other = Opened(browser, f"{whole}#{older}")
        other.finish()
        assert other.sentence == page.sentence
        assert other.said == []
        other.context.close()


@pytest.mark.parametrize(
    ("hash_", "words"),
    [
        ("#%7Bbroken", "breaks off before its end"),
        ("#%7B%2", 'a "%" in it is not followed by two digits'),
        ("#nonsense", "no question of this page"),
        ("#[1,2]", "no question of this page"),
        ("#null", "no question of this page"),
        ('#{"flows":{}}', "flows: a list is needed"),
        ("#" + "x" * 30_000, "30000 characters"),
    ],
)
def test_a_damaged_link_is_reported_and_kept_until_something_is_changed(
    browser: Any, address: str, hash_: str, words: str
) -> None:
    opened = Opened(browser, address + hash_)
    told = opened.page.locator("#link-wrong")
    assert words in told.inner_text()
    opened.page.wait_for_selector("#response canvas")
    kept = opened.page.evaluate("location.hash")
    assert len(kept) == len(
        opened.page.evaluate("new URL(arguments_, location.href).hash".replace("arguments_", json.dumps(hash_)))
    )
    opened.choose("Start from a question", "sawtooth")
    assert told.is_hidden()
    opened.page.go_back()
    told.wait_for(state="visible")
    assert opened.page.evaluate("location.hash") == kept
    opened.page.go_forward()
    told.wait_for(state="hidden")
    assert opened.said == []
    opened.context.close()


@pytest.mark.parametrize(
    "hash_", ['#{"path":{"rate":7}}', '#{"flows":[]}', '#{"path":{"queue":null},"flows":[{"cc":null}]}']
)
def test_a_broken_link_is_no_harm(browser: Any, address: str, hash_: str) -> None:
    opened = Opened(browser, address + hash_)
    opened.choose("Start from a question", "one-percent")
    assert [row[0] for row in opened.rows] == ["cubic", "bbr"]
    assert opened.said == []
    opened.context.close()


def test_a_name_of_somebody_else_s_link_is_one_word_of_the_command_line(browser: Any, address: str) -> None:
    for name, command in (
        ("a; rm -rf ~", "sawtooth run 'a; rm -rf ~.toml'"),
        ("it's", "sawtooth run 'it'\\''s.toml'"),
        ("--out/../x", "sawtooth run out-..-x.toml"),
        ("wan+1", "sawtooth run wan+1.toml"),
    ):
        opened = Opened(browser, f"{address}#{quote(json.dumps({'name': name, 'duration': '1 s'}))}")
        opened.finish()
        assert opened.page.text_content("#command") == command
        opened.context.close()


def test_back_and_forward_in_a_hurry_end_where_the_address_is(page: Opened) -> None:
    # A browser may lose one of several steps taken at once; three steps back never leave the page.
    for name in ("sawtooth", "late-comer", "fq-codel", "ecn", "reverse"):
        page.choose("Start from a question", name)
    page.page.evaluate(
        "addEventListener('hashchange', () => { document.body.dataset.moved = true });"
        "for (const step of [-1, -1, 1, -1]) history.go(step)"
    )
    page.page.wait_for_selector("body[data-moved]")
    # The browser's last step may arrive after other questions are answered.
    page.page.wait_for_timeout(300)
    page.page.wait_for_function(
        """() => {
          if (document.body.dataset.finished !== location.hash.slice(1)) return false;
          const asked = JSON.parse(decodeURIComponent(location.hash.slice(1)));
          const told = document.getElementById("sentence").textContent;
          return document.getElementById("preset").value === asked.name && told.includes(asked.path.rate);
        }"""
    )


def test_a_link_written_by_hand_is_one_step_of_the_history(page: Opened) -> None:
    page.finish()
    first, steps = page.page.url, page.page.evaluate("history.length")
    asked = {"path": {"rate": "10 Mbit/s"}, "duration": "1 s", "flows": [{"cc": "reno"}]}
    page.page.evaluate("asked => { location.hash = asked }", quote(json.dumps(asked)))
    page.finish()
    assert page.sentence.startswith("10 Mbit/s")
    page.page.wait_for_timeout(1000)
    assert page.page.evaluate("history.length") == steps + 1
    page.page.go_back()
    page.finish()
    assert page.page.url == first
