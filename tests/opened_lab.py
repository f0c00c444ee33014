"""The laboratory's page open in a browser, and the violations that axe-core finds on it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_MS = 120_000
"""Time limit of waits: the machine may be busy."""


class Opened:
    """An open page, and all messages of its console."""

    def __init__(self, browser: Any, address: str, *, width: int = 1400, ready: bool = True, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.loaded: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("requestfinished", lambda request: self.loaded.append(request.url.rsplit("/", 1)[-1]))
        self.page.goto(address)
        if ready:
            self.page.wait_for_selector("body[data-ready]")

    def finish(self) -> None:
        """Waits until the latest question is answered."""
        self.page.wait_for_function(
            "() => document.body.dataset.finished !== undefined"
            " && location.hash.slice(1) === document.body.dataset.finished"
        )

    def more(self) -> None:
        """Opens the fields that are under "More"."""
        if self.page.get_attribute("#more", "open") is None:
            self.page.locator("#more > summary").click()

    def choose(self, field: str, option: str | None = None, **by: str) -> None:
        """Chooses an option of a list, and waits for the answer."""
        self.page.get_by_label(field).select_option(option, **by)
        self.finish()

    def set(self, label: str, text: str) -> None:
        field = self.page.get_by_label(label, exact=True)
        if not field.is_visible():
            self.more()
        field.fill(text)

    @property
    def sentence(self) -> str:
        return str(self.page.inner_text("#sentence"))

    @property
    def rows(self) -> list[list[str]]:
        return [row.split("\t") for row in self.page.inner_text("#numbers").splitlines()[1:]]


def serious(page: Any) -> list[Any]:
    """Violations that axe-core rates serious or critical."""
    axe = Path(__file__).parents[1] / "web" / "node_modules" / "axe-core" / "axe.min.js"
    page.evaluate(axe.read_text())
    found = "async () => (await axe.run()).violations.map(({ id, impact, nodes }) => [impact, id, nodes[0].html])"
    return [one for one in page.evaluate(found) if one[0] in ("serious", "critical")]


CONTROLS = """(within) => {
  const kinds = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  const all = [...document.querySelectorAll(within)].flatMap((one) => [...one.querySelectorAll(kinds)]);
  const shown = (one) => (one.type === "file" ? one.closest(".button") : one).checkVisibility();
  window.controls = all.filter((one) => !one.disabled && shown(one));
  return controls.length;
}"""
FOCUSED = """() => {
  const on = document.activeElement;
  const seen = on.type === "file" ? on.closest(".button") : on;
  const { outlineStyle, outlineWidth } = getComputedStyle(seen);
  const { top, bottom } = seen.getBoundingClientRect();
  const rim = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  return [controls.indexOf(on), rim && bottom > 0 && top < innerHeight ? "" : on.outerHTML.slice(0, 200)];
}"""


def by_keyboard(page: Any, within: str) -> list[str]:
    """Presses Tab through all controls `within`, and returns those that are not reached or whose focus is invisible.
    The page has reduced motion from the first key on: a smooth scroll started by one key would continue under the next
    ones and move the focused control out of sight.
    """
    assert page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
    count = page.evaluate(CONTROLS, within)
    assert count > 1
    page.evaluate("controls[0].focus()")
    # Only keyboard focus is visible. A scrolling area is a stop on the way, too.
    for key in ("Tab", "Shift+Tab"):
        page.keyboard.press(key)
    reached, unseen = set(), []
    for _ in range(2 * count):
        if len(reached - {-1}) == count:
            break
        at, wrong = page.evaluate(FOCUSED)
        page.keyboard.press("Tab")
        reached.add(at)
        unseen += [wrong] if wrong else []
    missed = [at for at in range(count) if at not in reached]
    outer = [page.evaluate("(at) => controls[at].outerHTML.slice(0, 200)", at) for at in missed]
    return [f"not seen: {one}" for one in unseen] + [f"not reached: {one}" for one in outer]


@contextmanager
def serving(site: Any, results: Path | None = None) -> Iterator[Any]:
    """The laboratory's server, with these results, in a thread."""
    from sawtooth.lab import Server

    with Server(site, results=results) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
