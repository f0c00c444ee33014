"""The page without a network: a service worker keeps its files. And how its core comes: packed, compiled meanwhile."""

import gzip
import os
from pathlib import Path
from typing import Any

from opened_lab import Opened
from sawtooth.lab import Site
from sawtooth.lab.site import KINDS, SERVED
from tests.engines.test_webassembly import served


def test_it_opens_again_without_its_server(site: Site, browser: Any, tmp_path: Path) -> None:
    site.export(tmp_path / "some")
    with served(tmp_path) as address:
        opened = Opened(browser, f"{address}/some/")
        opened.page.evaluate("async () => void (await navigator.serviceWorker.ready)")
        names = "async () => (await (await caches.open('sawtooth-lab')).keys()).map((one) => new URL(one.url).pathname)"
        kept = opened.page.evaluate(names)
        assert set(kept) == {"/some/", *(f"/some/{name}" for name in KINDS if name not in SERVED)}
        (tmp_path / "some" / "other.txt").write_text("no file of the page")
        assert opened.page.evaluate("async () => (await fetch('other.txt')).status") == 200
        assert set(opened.page.evaluate(names)) == set(kept)
    opened.page.goto("about:blank")
    opened.page.goto(f"{address}/some/#cc=cubic,bbr&rate=100Mbit/s&rtt=20ms&loss=2%25")
    opened.page.wait_for_selector("body[data-ready]")
    opened.finish()
    assert "2% loss" in opened.sentence
    opened.page.locator("#understand summary").click()
    opened.page.wait_for_selector("#understand[data-watched]")
    opened.context.close()


def test_what_the_server_has_anew_is_shown(site: Site, browser: Any, tmp_path: Path) -> None:
    site.export(tmp_path)
    with served(tmp_path) as address:
        opened = Opened(browser, f"{address}/")
        opened.page.evaluate("async () => void (await navigator.serviceWorker.ready)")
        index = tmp_path / "index.html"
        index.write_text(index.read_text().replace("<h1>sawtooth lab</h1>", "<h1>another version</h1>"))
        # Last-Modified has whole seconds: a change within the second in which the page was exported would not be seen.
        os.utime(index, (index.stat().st_mtime + 2,) * 2)
        opened.page.reload()
        assert opened.page.inner_text("h1") == "another version"
        opened.context.close()


def test_with_its_server_on_this_machine_it_keeps_nothing(site: Site, browser: Any) -> None:
    from opened_lab import serving

    with serving(site, Path("none")) as server:
        opened = Opened(browser, server.opened)
        opened.finish()
        opened.page.evaluate("() => new Promise((done) => requestIdleCallback(done))")
        assert opened.page.evaluate("async () => (await navigator.serviceWorker.getRegistrations()).length") == 0
        opened.context.close()


def test_the_core_is_packed_and_asked_for_at_once(site: Site) -> None:
    assert gzip.decompress(site.files["simulator.wasm.gzip"])[:4] == b"\0asm"
    head = site.files["index.html"].decode().split("</head>")[0]
    assert '<link rel="preload" as="fetch" href="simulator.wasm.gzip" crossorigin>' in head
