"""The simulations of one question in several workers: the same answer, whatever their number."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from opened_lab import Opened
from tests.lab.test_lab_figures import saved, swept

ASKED = {
    "duration": "3 s",
    "path": {"rate": "4 Mbit/s", "rtt": "20 ms", "loss": "1%"},
    "flows": [{"cc": "cubic"}, {"cc": "bbr"}, {"cc": "reno"}],
    "alone": True,
}
FIGURES = ("Goodput", "Round-trip time", "Response to loss")

LISTEN = """(processors) => {
  Object.defineProperty(navigator, "hardwareConcurrency", { value: processors });
  window.asked = [];
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (message, ...more) {
    // The page's own questions, not those of the response to loss.
    if (message.everyMs === 100) asked.push(message.runs.length);
    if (message.kind === "stop" && this.busy) asked.push("stopped");
    this.busy = message.everyMs === 100;
    return postMessage.call(this, message, ...more);
  };
}"""


def opened_with(browser: Any, address: str, processors: int, *, loaded: int | None = None) -> tuple[Opened, list[int]]:
    """The page with an answer, on a machine with ``processors``, and how many runs each worker had.

    ``loaded``: the number of workers that can be loaded; None: all.
    """
    opened = Opened(browser, "about:blank", ready=False, accept_downloads=True)
    opened.page.add_init_script(f"({LISTEN})({processors})")
    if loaded is not None:
        opened.page.route("**/worker.js", lambda route: route.fulfill(status=404))
        opened.page.route("**/worker.js", lambda route: route.continue_(), times=loaded)
    opened.page.goto(f"{address}#{quote(json.dumps(ASKED))}")
    opened.page.wait_for_selector("body[data-ready]")
    opened.finish()
    return opened, opened.page.evaluate("asked")


@pytest.fixture(scope="module")
def one(browser: Any, address: str) -> list[Any]:
    """The answer by one worker."""
    opened, runs = opened_with(browser, address, 1)
    assert runs == [3]
    return answer(opened)


def answer(opened: Opened) -> list[Any]:
    swept(opened.page)
    found = [opened.rows, opened.sentence, *(saved(opened.page, figure) for figure in FIGURES)]
    opened.context.close()
    assert all(found)
    return found


@pytest.mark.parametrize(("processors", "runs"), [(2, [2, 1]), (16, [1, 1, 1])])
def test_the_answer_does_not_depend_on_the_number_of_workers(
    browser: Any, address: str, one: list[Any], processors: int, runs: list[int]
) -> None:
    opened, had = opened_with(browser, address, processors)
    assert had == runs
    assert answer(opened) == one
    assert opened.said == []


def test_others_do_the_work_of_workers_that_cannot_be_loaded(browser: Any, address: str, one: list[Any]) -> None:
    opened, had = opened_with(browser, address, 2, loaded=1)
    assert had == [3]
    assert [opened.rows, opened.sentence] == one[:2]
    opened.context.close()


def test_cancelling_ends_all(browser: Any, address: str) -> None:
    opened, _ = opened_with(browser, address, 3)
    opened.set("Duration", "90000 s")
    opened.page.get_by_role("button", name="Run it anyway").click()
    opened.page.locator("#running").wait_for()
    opened.page.evaluate("asked.length = 0")
    opened.page.keyboard.press("Escape")
    assert opened.sentence.startswith("Cancelled.")
    assert opened.page.evaluate("asked") == ["stopped"] * 3
    opened.context.close()
