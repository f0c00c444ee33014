"""The laboratory's page in a browser: fields, figures, files, heavy simulations."""

import json
import re
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from opened_lab import Opened
from sawtooth import Scenario
from sawtooth.engines import get
from sawtooth.lab import Server, Site
from tests.engines.test_webassembly import served


def test_it_opens_with_an_answer_and_asks_nobody_else(page: Opened, address: str) -> None:
    page.finish()
    assert re.search(r"cubic gets [\d.]+ Mbit/s, .*bbr gets [\d.]+ Mbit/s", page.sentence)
    assert page.page.locator("#figures canvas").count() == 6
    assert all(one.startswith((address, "data:", "blob:")) for one in page.asked)


def test_it_names_no_host_and_has_the_licences_of_what_it_holds(site: Site) -> None:
    script = site.files["page.js"].decode()
    assert set(re.findall(r"https?://([A-Za-z0-9.-]+)", script)) <= {"www.w3.org"}
    assert "Leon Sorokin" in script[:4000]
    assert "Permission is hereby granted" in script[:4000]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', site.files["index.html"].decode())
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert not {"*", "'unsafe-inline'", "'unsafe-eval'", "http:", "https:"} & set(policy[1].replace(";", " ").split())


def test_written_out_it_works_from_any_server_under_any_path(site: Site, browser: Any, tmp_path: Path) -> None:
    site.export(tmp_path / "some" / "where")
    with served(tmp_path) as address:
        opened = Opened(browser, f"{address}/some/where/")
        opened.finish()
        assert "bbr gets" in opened.sentence
        opened.context.close()


def test_its_numbers_are_those_of_the_command_line(page: Opened) -> None:
    page.finish()
    (cubic, *_), (bbr, *_) = page.rows
    assert (cubic, bbr) == ("cubic", "bbr")
    scenario = json.loads(page.page.evaluate("decodeURIComponent(location.hash.slice(1))"))
    assert scenario.pop("alone") is True
    for row, flow in zip(page.rows, scenario["flows"], strict=True):
        alone = Scenario.from_dict(scenario | {"flows": [flow], "interval": "50 ms"})
        mean = get("sim").run(alone).tables["intervals"]["goodput_bps"].mean() / 1e6
        assert float(row[1].removesuffix(" Mbit/s")) == pytest.approx(mean, rel=0.006)


def test_a_slider_writes_text_with_its_unit_and_the_answer_follows(page: Opened) -> None:
    page.finish()
    before = page.sentence
    slider = page.page.get_by_label("Loss, slider", exact=True)
    slider.focus()
    for _ in range(5):
        page.page.keyboard.press("PageDown")
    written = page.page.get_by_label("Loss", exact=True).input_value()
    assert re.fullmatch(r"0\.\d+%", written)
    page.finish()
    assert page.sentence != before
    assert f"{written} loss" in page.sentence


@pytest.mark.parametrize(
    ("label", "wrong", "words"),
    [
        ("Rate", "100", 'Write "100 Mbit/s"'),
        ("Rate", "100 Mbps", "write Mbit/s"),
        ("Loss", "120%", "outside 0% … 100%"),
        ("Queue", "0 packets", "the smallest queue"),
        ("Round-trip time", "2 h", "outside 0 s … 3600 s"),
        ("Duration", "0 s", "outside 1 ms … 30 d"),
    ],
)
def test_wrong_input_is_reported_at_its_field_and_the_last_answer_stays(
    page: Opened, label: str, wrong: str, words: str
) -> None:
    page.finish()
    field = page.page.get_by_label(label, exact=True)
    right = field.input_value()
    page.set(label, wrong)
    told = page.page.locator(f"#{field.get_attribute('aria-describedby')}")
    assert words in told.inner_text()
    assert field.get_attribute("aria-invalid") == "true"
    assert page.rows[0][0] == "cubic"
    page.set(label, right)
    assert told.is_hidden()
    assert field.get_attribute("aria-invalid") is None


def test_flows_are_added_changed_and_removed(page: Opened) -> None:
    page.page.get_by_role("button", name="Add a flow").click()
    page.choose("Flow 3: congestion control", "reno")
    assert [row[0] for row in page.rows] == ["cubic", "bbr", "reno"]
    page.page.get_by_label("each flow by itself on the path").uncheck()
    page.finish()
    together = [float(row[1].split()[0]) for row in page.rows]
    assert sum(together) < 100
    page.page.get_by_role("button", name="Remove flow 2").click()
    page.finish()
    assert [row[0] for row in page.rows] == ["cubic", "reno"]


def test_the_numbers_have_no_column_that_says_nothing(page: Opened) -> None:
    def heads() -> list[str]:
        return page.page.locator("#numbers th").all_inner_texts()

    page.finish()
    always = ["flow", "mean goodput", "of the rate", "sent again", "timeouts", "mean RTT", "limit"]
    assert heads() == always
    page.choose("Start from a question", "short-transfer")
    assert set(heads()) - set(always) == {"done after"}
    page.choose("Start from a question", "ecn")
    assert set(heads()) - set(always) == {"marked"}
    assert "cubic, 2 connections together, gets" in page.sentence


def test_lines_that_share_an_entry_of_the_legend_are_distinguished(page: Opened) -> None:
    page.finish()
    figure = page.page.locator("#figures > div").nth(1)
    assert figure.locator(".entry").all_inner_texts() == ["cubic", "lost on the path", "bbr"]
    figure.locator(".plot").first.focus()
    page.page.keyboard.press("ArrowLeft")
    named = figure.locator(".readout-row span").all_inner_texts()
    drawn = [name for name in named if name != "lost on the path"]
    assert drawn == ["cubic", "cubic, ssthresh", "bbr", "bbr, ssthresh"]
    with page.page.expect_download() as taken:
        figure.get_by_role("button", name="CSV").click()
    lines = [one for one in Path(taken.value.path()).read_text().splitlines() if not one.startswith("#")]
    assert {line.split(",")[1].strip('"') for line in lines[1:]} >= {"bbr"}
    assert any('"bbr, ssthresh"' in line for line in lines)


def test_panels_of_a_row_stand_at_one_height(page: Opened) -> None:
    page.finish()
    # Read at one instant, because content above moves them.
    goodput, window, below, *others = page.page.eval_on_selector_all(
        "#figures .plot", "all => all.map((one) => one.getBoundingClientRect().top)"
    )
    assert goodput == pytest.approx(window, abs=1)
    assert below > window + 100
    assert others == [pytest.approx(others[0], abs=1)] * 3


def test_a_transfer_reports_when_it_is_done(page: Opened) -> None:
    page.choose("Start from a question", "short-transfer")
    assert all(re.fullmatch(r"[\d.]+ s", row[6]) for row in page.rows)
    assert page.rows[0][7] == "loss on the path, taken for congestion"
    # 1 MB in the time that the flow took.
    for row in page.rows:
        assert float(row[1].split()[0]) == pytest.approx(8 / float(row[6].split()[0]), rel=0.02)
    assert "is done after" in page.sentence


def test_a_flow_that_comes_late_is_reported_by_the_time_that_it_was_there(page: Opened) -> None:
    page.choose("Start from a question", "late-comer")
    means = [float(row[1].split()[0]) for row in page.rows]
    # The first flow was alone on the path for a sixth of the time.
    assert 46.5 < means[0] + means[1] * 25 / 30 < 48


def test_the_queue_s_field_is_its_kind_s_limit(page: Opened) -> None:
    kind, limit = page.page.get_by_label("Kind of queue"), page.page.get_by_label("Queue", exact=True)
    asked = "() => JSON.parse(decodeURIComponent(document.body.dataset.finished)).path.queue"
    page.more()
    limit.fill("3 bdp")
    kind.select_option("fq_codel")
    assert (limit.input_value(), limit.get_attribute("placeholder")) == ("", "10240 packets")
    limit.fill("500 packets")
    page.finish()
    assert page.page.evaluate(asked) == {"kind": "fq_codel", "limit": "500 packets"}
    assert kind.input_value() == "fq_codel"
    limit.fill("50 ms")
    assert "is no limit of this kind of queue" in page.page.inner_text("#f-path-queue-wrong")
    limit.fill("")
    page.page.get_by_label("marks packets of ECN flows").uncheck()
    page.page.get_by_label("Marks above", exact=True).fill("2 ms")
    page.finish()
    assert page.page.evaluate(asked) == {"kind": "fq_codel", "ecn": False, "ce_threshold": "2 ms"}
    kind.select_option("tbf")
    page.page.get_by_label("Queue, longest wait", exact=True).fill("")
    assert "needs exactly one of latency and limit" in page.page.inner_text(
        "#f-path-queue-wrong"
    ) or "latency" in page.page.inner_text("#f-path-queue-wrong")
    kind.select_option("")
    assert limit.input_value() == "3 bdp"


def test_marks_are_counted_and_a_control_that_gets_none_is_warned_of(page: Opened) -> None:
    page.choose("Start from a question", "l4s")
    prague, _ = page.rows
    assert float(prague[4].rstrip("%")) > 1
    assert page.page.inner_text("#warnings") == ""
    page.choose("ECN of the hosts", "0")
    assert [row[4] for row in page.rows] == ["0%", "0%"]
    assert "without ECN, prague slows down only after losses" in page.page.inner_text("#warnings")


def test_a_variant_of_a_control_is_chosen_like_a_control(page: Opened) -> None:
    page.choose("Flow 2: congestion control", "bbr3-ecn")
    assert [row[0] for row in page.rows] == ["cubic", "bbr3-ecn"]
    scenario = json.loads(page.page.evaluate("decodeURIComponent(location.hash.slice(1))"))
    assert scenario["flows"][1]["cc"] == {"name": "bbr3", "variant": "ecn"}


def test_a_flow_s_wrong_field_is_marked_and_what_stands_below_is_of_the_last_valid_input(page: Opened) -> None:
    page.finish()
    start = page.page.locator("input[name=start]").nth(1)
    start.fill("soon")
    told = page.page.locator(f"#{start.get_attribute('aria-describedby')}")
    assert start.get_attribute("aria-invalid") == "true"
    assert page.page.locator("input[name=start]").nth(0).get_attribute("aria-invalid") is None
    assert "soon" in told.inner_text()
    assert "The results below are from the last valid input." in page.sentence
    assert page.page.locator("#answer.stale").count() == 1
    start.fill("0 s")
    assert start.get_attribute("aria-invalid") is None
    assert page.page.locator("#answer.stale").count() == 0


def test_opened_from_a_file_it_says_that_it_must_be_served(
    site: Site, browser: Any, tmp_path: Path, address: str
) -> None:
    site.export(tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / "index.html").as_uri())
    page.wait_for_function("() => getComputedStyle(document.getElementById('served')).visibility === 'visible'")
    assert "python -m http.server" in page.inner_text("#served")
    page.goto(address)
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    assert page.locator("#served").count() == 0
    page.close()


def test_a_thousand_flows_are_refused_and_what_is_little_has_its_unit(page: Opened, tmp_path: Path) -> None:
    page.finish()
    file = tmp_path / "many.toml"
    file.write_text('duration = "1 s"\n' + '[[flows]]\ncc = "cubic"\n' * 1000)
    page.page.locator("#open").set_input_files(file)
    page.page.wait_for_function("() => document.getElementById('sentence').textContent.startsWith('flows:')")
    assert "the page draws at most 100 flows, and these are 1000. Give flows that are alike a count" in page.sentence
    file.write_text('duration = "1 s"\n' + '[[flows]]\ncc = "cubic"\nbytes = "1 B"\n' * 8)
    page.page.locator("#open").set_input_files(file)
    page.page.wait_for_function("() => document.getElementById('sentence').textContent.includes('more flows')")
    assert "cubic gets 0.300 kbit/s" in page.sentence or "cubic gets 0.200 kbit/s" in page.sentence
    assert page.sentence.endswith("2 more flows are in the table.")
    assert len(page.rows) == 8


def test_a_browser_that_keeps_nothing_for_pages_has_the_whole_page(browser: Any, site: Site) -> None:
    with Server(site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        context = browser.new_context()
        context.add_init_script(
            "for (const name of ['localStorage', 'sessionStorage'])"
            " Object.defineProperty(window, name, { get() { throw new DOMException('', 'SecurityError'); } });"
        )
        page = context.new_page()
        page.goto(server.opened)
        page.wait_for_selector("body[data-finished]", timeout=60_000)
        assert "bbr gets" in page.inner_text("#sentence")
        page.check("#native")
        context.close()
        server.shutdown()
        thread.join()


def test_what_of_the_page_does_not_come_is_reported(browser: Any, address: str) -> None:
    for part, words in (("worker.js", "the worker could not be loaded"), ("simulator.wasm.gzip", "WebAssembly")):
        page = browser.new_context().new_page()
        page.route(f"**/{part}", lambda route: route.fulfill(status=200, body="not that"))
        page.goto(address)
        page.wait_for_function("() => !document.getElementById('wrong').hidden")
        told = page.inner_text("#wrong")
        assert told.startswith("the simulator could not be loaded: "), told
        assert words in told or part == "worker.js"
        page.context.close()


def test_what_is_too_heavy_is_reported_with_what_is_lighter_and_can_be_run_anyway(page: Opened) -> None:
    page.finish()
    page.set("Rate", "10 Gbit/s")
    page.set("Duration", "30 s")
    offer = page.page.locator("#heavy")
    assert "about 17 million packets, which take about" in page.sentence
    assert page.page.locator("#answer.stale").count() == 1
    assert "sawtooth run scenario.toml" in offer.inner_text()
    assert offer.get_by_role("button").all_inner_texts() == ["8 s of it", "Run it anyway"]
    offer.get_by_role("button", name="Run it anyway").click()
    assert offer.is_hidden()
    page.set("Loss", "2%")
    assert offer.is_visible()
    offer.get_by_role("button", name="8 s of it").click()
    assert offer.is_hidden()
    page.finish()
    assert "10 Gbit/s, 20 ms, 2% loss" in page.sentence
    assert page.page.get_by_label("Duration", exact=True).input_value() == "8 s"


HEAVY = ("Duration", "90000 s")
"""For the first question: minutes of simulation on any machine, which the tests cancel."""


def test_what_takes_long_reports_how_far_it_is_and_is_cancelled_by_button_or_escape(page: Opened) -> None:
    page.finish()
    line, bar = page.page.locator("#running"), page.page.locator("#run-progress")
    assert line.is_hidden()
    page.set(*HEAVY)
    page.page.get_by_role("button", name="Run it anyway").click()
    line.wait_for()
    early = float(bar.get_attribute("value") or 0)
    assert 0 < early < 1
    page.page.wait_for_function("early => document.getElementById('run-progress').value > early", arg=early)
    assert re.fullmatch(r"Simulated: [\d.]+ s of 90000 s", page.page.inner_text("#run-far"))
    button = page.page.locator("#run-cancel")
    for end in (lambda: page.page.keyboard.press("Escape"), button.click):
        end()
        assert page.sentence.startswith("Cancelled.")
        assert page.page.locator("#answer.stale").count() == 1
        assert page.page.locator("#figures canvas").count() == 6
        stood = page.page.inner_text("#run-far")
        page.page.wait_for_timeout(300)
        assert page.page.inner_text("#run-far") == stood
        assert button.inner_text() == "Run it again"
        button.click()
        assert page.page.locator("#answer.stale").count() == 0
        line.wait_for()
        assert button.inner_text() == "Cancel"
    assert page.page.evaluate("document.body.dataset.finished") is None


def test_another_input_does_not_wait_for_what_runs(page: Opened) -> None:
    page.finish()
    page.set(*HEAVY)
    page.page.get_by_role("button", name="Run it anyway").click()
    page.page.locator("#running").wait_for()
    before = float(page.page.locator("#run-progress").get_attribute("value") or 0)
    assert before < 0.5
    page.set("Duration", "2 s")
    page.finish()
    assert page.page.locator("#running").is_hidden()
    # The response to loss starts after the question is answered.
    page.page.wait_for_function("() => document.querySelector('#response canvas') !== null")


def test_the_file_is_one_that_the_command_line_runs_and_the_page_opens_again(page: Opened, tmp_path: Path) -> None:
    page.choose("Start from a question", "late-comer")
    before = page.sentence
    page.page.locator("#take summary").click()
    with page.page.expect_download() as taken:
        page.page.locator("#download").click()
    file = tmp_path / "late.toml"
    taken.value.save_as(file)
    assert taken.value.suggested_filename == "late-comer.toml"
    scenario = Scenario.load(file)
    assert [flow.start.ns for flow in scenario.flows] == [0, 5_000_000_000]
    page.choose("Start from a question", "one-percent")
    page.page.locator("#open").set_input_files(file)
    page.page.wait_for_function("text => document.getElementById('sentence').textContent === text", arg=before)
    assert "is open" in page.page.inner_text("#took")


def test_a_comparison_is_a_study_for_the_command_line(page: Opened, tmp_path: Path) -> None:
    from sawtooth.study import Study

    page.finish()
    file = tmp_path / "one.toml"
    file.write_text(page.page.text_content("#file") or "")
    study = Study.load(file)
    assert [point.scenario.flows[0].cc for point in study.points()] == ["cubic", "bbr"]
    page.page.get_by_label("each flow by itself on the path").uncheck()
    page.page.locator("#take summary").click()
    page.page.locator("#open").set_input_files(file)
    page.page.wait_for_function("() => document.getElementById('took').textContent.includes('is open')")
    page.finish()
    assert page.page.get_by_label("each flow by itself on the path").is_checked()


def test_variants_of_a_control_are_compared_as_a_study_too(page: Opened, tmp_path: Path) -> None:
    from sawtooth.study import Study

    page.finish()
    file = tmp_path / "variants.toml"
    compared = '["cubic", { name = "bbr3", variant = "draft" }]'
    file.write_text(f'name = "v"\n[scenario]\n[[scenario.flows]]\nname = "one"\n[vary]\n"flows.one.cc" = {compared}\n')
    page.page.locator("#take summary").click()
    page.page.locator("#open").set_input_files(file)
    page.page.wait_for_function("() => document.getElementById('file').textContent.includes('draft')")
    file.write_text(page.page.text_content("#file") or "")
    study = Study.load(file)
    assert [point.scenario.flows[0].control for point in study.points()] == ["cubic", "bbr3-draft"]
    assert [point.key["compared_cc"] for point in study.points()] == ["cubic", "bbr3-draft"]


def test_a_file_with_what_the_page_has_not_is_refused_by_its_field(page: Opened, tmp_path: Path) -> None:
    file = tmp_path / "chain.toml"
    page.page.locator("#take summary").click()
    for text, words in (('topology = "chain"', "topology"), ("rate = = 1", "it is not TOML")):
        file.write_text(text)
        page.page.locator("#open").set_input_files(file)
        page.page.wait_for_function("words => document.getElementById('took').textContent.includes(words)", arg=words)


def test_a_mean_over_part_of_the_run_is_marked(page: Opened) -> None:
    page.finish()
    assert page.page.locator("#means").is_hidden()
    page.choose("Start from a question", "late-comer")
    assert "the command line's mean goodput is over the whole run" in page.page.inner_text("#means")


def test_the_response_to_loss_says_of_how_much_its_points_are(page: Opened) -> None:
    page.set("Rate", "2 Mbit/s")
    page.set("Duration", "1 s")
    said = "Each point is one run, of one seed, of 30 s, whatever the duration above."
    page.page.wait_for_function("said => document.getElementById('swept').textContent.includes(said)", arg=said)


def test_the_response_to_loss_is_filled_in_the_background(page: Opened) -> None:
    page.page.get_by_label("Start from a question").select_option("long-fat-path")
    page.page.wait_for_selector("#response canvas")
    assert "of 12 losses" in page.page.inner_text("#swept") or "published" in page.page.inner_text("#swept")


@pytest.mark.parametrize("width", [1400, 390])
def test_a_long_legend_leaves_figures_of_a_row_beside_each_other(browser: Any, address: str, width: int) -> None:
    flows = [{"cc": "cubic", "name": f"a-name-of-a-flow-that-has-forty-letters{at}"} for at in range(6)]
    asked = {"duration": "1 s", "path": {"rate": "20 Mbit/s"}, "flows": flows, "alone": True}
    opened = Opened(browser, f"{address}#{quote(json.dumps(asked))}", width=width)
    opened.page.wait_for_selector("body[data-finished]")
    places = "all => all.map(one => one.getBoundingClientRect()).map(({ left, top, height }) => [left, top, height])"
    plots = opened.page.eval_on_selector_all("#figures .plot", places)
    rows = len({top for _, top, _ in plots})
    assert rows == (2 if width == 1400 else 5)
    legends = opened.page.eval_on_selector_all("#figures .legend", places)
    assert all(height <= 120 for *_, height in legends)
    # Clipped content can be scrolled to.
    last = opened.page.locator("#figures .legend").last.get_by_role("button").last
    last.click()
    assert last.get_attribute("aria-pressed") == "false"
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.context.close()
