"""What `sawtooth lab` adds to its page, in a browser: results to list, open and compare, and the native core."""

import json
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from opened_lab import Opened, serious, serving
from sawtooth import Scenario, Study, run
from sawtooth.lab import Server, Site
from sawtooth.report import write_report
from sawtooth.study import run_study

SHORT: dict[str, Any] = {"duration": "2 s", "interval": "100 ms", "path": {"rate": "10 Mbit/s", "loss": "1%"}}
FOREIGN = "<img src=x onerror=document.title=1> & <script>document.title=2</script>"
HEAVY = (
    '#{"path":{"rate":"1 Gbit/s","rtt":"20 ms"},"flows":[{"cc":"cubic"},{"cc":"bbr"}],"duration":"20 s","alone":true}'
)


@pytest.fixture(scope="module")
def server(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    out = tmp_path_factory.mktemp("served") / "results"
    told = {"name": "small", "title": FOREIGN, "scenario": SHORT, "vary": {"path.loss": ["0%", "1%"]}}
    write_report(run_study(Study.from_dict(told), out=out, jobs=1, quiet=True))
    for name, cc in (("one", "cubic"), ("other", "bbr")):
        run(Scenario.from_dict(SHORT | {"name": name, "flows": [{"cc": cc}]})).save(out / "runs" / name)
    (out / "broken").mkdir()
    (out / "broken" / "study.json").write_text("{")
    for at in range(250):
        shutil.copytree(out / "runs" / "one", out / "many" / f"{at:03}")
    with serving(site, out) as server:
        yield server


@pytest.fixture
def results(browser: Any, server: Server) -> Iterator[Opened]:
    opened = Opened(browser, f"{server.address}results?key={server.key}")
    yield opened
    opened.context.close()
    assert opened.said == []


def shown(opened: Opened) -> Any:
    """The result opened last."""
    opened.page.wait_for_function("() => document.body.dataset.shown === location.hash")
    return opened.page.locator("#shown")


def names(opened: Opened) -> list[str]:
    return list(opened.page.locator("#results td.result button").all_inner_texts())


def test_the_key_leaves_the_address(results: Opened, server: Server) -> None:
    assert results.page.url == f"{server.address}results"
    results.page.reload()
    results.page.wait_for_selector("body[data-ready]")
    assert len(names(results)) == 200


def test_results_are_listed_filtered_and_sorted(results: Opened) -> None:
    assert results.page.inner_text("#listed") == "254 results"
    assert len(names(results)) == 200
    results.page.get_by_role("button", name="Show more").click()
    assert len(names(results)) == 254
    results.page.get_by_label("Find").fill("10 Mbit/s bbr")
    assert names(results) == ["runs/other"]
    assert results.page.inner_text("#listed") == "1 of 254 results"
    results.page.get_by_label("Find").fill("")
    results.page.get_by_label("State").select_option("damaged")
    assert names(results) == ["broken"]
    assert "not" in results.page.locator("#results td.state").inner_text()
    results.page.get_by_label("State").select_option("")
    results.page.get_by_role("button", name="result", exact=True).click()
    assert names(results) == sorted(names(results))
    assert results.page.locator("th[aria-sort=ascending]").count() == 1


def test_text_of_results_is_text(results: Opened) -> None:
    results.page.get_by_label("Find").fill("small")
    assert FOREIGN in results.page.inner_text("#results")
    assert results.page.locator("#results img").count() == 0
    results.page.locator("td.result button").click()
    assert FOREIGN in shown(results).inner_text()
    assert results.page.locator("#shown img").count() == 0
    assert results.page.title() == "Results: sawtooth lab"


def test_a_study_is_opened_with_figures_tables_and_its_report(results: Opened) -> None:
    results.page.get_by_label("Find").fill("small")
    results.page.locator("td.result button").click()
    told = shown(results)
    assert told.locator("canvas").count() > 0
    assert told.get_by_role("region", name="Means, of all seeds together").count() == 1
    with results.context.expect_page() as opening:
        told.get_by_role("link", name="Open its report").click()
    report = opening.value
    report.wait_for_selector("canvas")
    # It cannot reach the page that opened it, nor that page's storage.
    assert report.evaluate("() => { try { return sessionStorage.length } catch { return 'refused' } }") == "refused"
    assert report.evaluate("() => fetch('api/hello').then(() => 'answered', () => 'refused')") == "refused"


def test_runs_are_compared_and_back_leads_back(results: Opened) -> None:
    for name in ("runs/one", "runs/other"):
        results.page.get_by_label("Find").fill(name)
        results.page.get_by_label(f"Compare {name}").check()
    assert results.page.inner_text("#chosen") == "2 chosen; runs/one is the reference."
    results.page.get_by_role("button", name="Compare the chosen").click()
    told = shown(results)
    assert told.locator("h2").inner_text() == "other against one"
    assert "Within 10% of the reference's mean" in told.locator(".lead").inner_text()
    assert told.locator("canvas").count() == 2
    results.page.get_by_label("Within").fill("3")
    results.page.get_by_role("button", name="Compare the chosen").click()
    results.page.wait_for_selector("#wrong:not([hidden])")
    assert 'within: 3 has no unit. Write "3%".' in results.page.inner_text("#wrong")
    results.said.clear()  # A browser logs every answer 400.
    results.page.go_back()
    assert shown(results).locator("h2").inner_text() == "other against one"


def test_without_the_key_there_is_nothing(browser: Any, server: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.address}results")
    page.wait_for_function("() => document.getElementById('listed').textContent !== ''")
    assert "has no key" in page.inner_text("#listed")
    context.close()


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_page(
    browser: Any, server: Server, width: int, scheme: str
) -> None:
    address = f"{server.address}results?key={server.key}"
    opened = Opened(browser, address, width=width, color_scheme=scheme, bypass_csp=True)
    assert serious(opened.page) == []
    opened.page.get_by_label("Find").fill("small")
    opened.page.locator("td.result button").click()
    shown(opened)
    assert serious(opened.page) == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    if (width, scheme) in ((1400, "light"), (390, "dark")):
        for name in ("runs/one", "runs/other"):
            opened.page.get_by_label("Find").fill(name)
            opened.page.get_by_label(f"Compare {name}").check()
        opened.page.get_by_role("button", name="Compare the chosen").click()
        opened.page.wait_for_function("() => location.hash.startsWith('#compare')")
        shown(opened)
        assert serious(opened.page) == []
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.context.close()


def test_what_is_heavy_runs_on_the_native_core_with_the_same_answer(browser: Any, server: Server) -> None:
    opened = Opened(browser, server.opened + HEAVY)
    opened.finish()
    assert opened.page.url.partition("#")[0] == server.address
    in_page, rows = opened.sentence, opened.rows
    with opened.page.expect_request("**/run") as asked:
        opened.page.get_by_label(re.compile("native core")).check()
    assert json.loads(asked.value.post_data or "")["alone"] is True
    opened.page.wait_for_function("() => document.getElementById('native-said').textContent !== ''")
    opened.finish()
    assert (opened.sentence, opened.rows) == (in_page, rows)
    assert re.match(
        r"This ran on the native core(, [\d.]+× faster than the page)?\.", opened.page.inner_text("#native-said")
    )
    # The setting is remembered, and light questions stay in the page.
    opened.page.reload()
    opened.page.wait_for_selector("body[data-ready]")
    assert opened.page.get_by_label(re.compile("native core")).is_checked()
    opened.choose("Start from a question", "one-percent")
    assert opened.page.inner_text("#native-said") == ""
    assert opened.said == []
    opened.context.close()


def test_a_page_of_another_server_offers_neither(browser: Any, address: str) -> None:
    opened = Opened(browser, f"{address}?key=something")
    opened.finish()
    assert opened.page.locator("#served-by").is_hidden()
    opened.context.close()
