"""A page load in headless Chromium: what it measures, and what it reports when it cannot."""

import base64
import hashlib
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from executed import execute, program
from sawtooth import browser
from sawtooth.scenario import Scenario

PAGE = (
    "<!doctype html><link rel=icon href=data:,><h1>A page</h1><script src=1.js></script><script src=none.js></script>"
)


def write(site: Path) -> None:
    (site / "index.html").write_text(PAGE)
    (site / "1.js").write_text("document.title = 'loaded'")


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    write(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_pages_own_measures(chromium: str, address: str) -> None:
    told = browser.load(address, browser=chromium)
    times = [told[name] for name in ("ttfb_s", "dom_content_loaded_s", "load_s")]
    assert times == sorted(times)
    assert told["first_contentful_paint_s"] > 0
    assert told["largest_contentful_paint_s"] >= told["first_contentful_paint_s"]
    # A missing script did not load.
    assert (told["resources"], told["failed"]) == (2, 1)
    assert told["bytes"] >= len(PAGE)


def test_a_page_that_is_not_there_is_an_error(chromium: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert browser.main(["http://127.0.0.1:9/", "--browser", chromium]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "http://127.0.0.1:9/: net::ERR_" in told.err


def test_a_browser_that_ends_is_an_error() -> None:
    with pytest.raises(browser.BrowserError, match="the browser ended"):
        browser.load("http://127.0.0.1:9/", browser="/bin/true")


def test_no_browser_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(browser.BrowserError, match="no browser is installed"):
        browser.load("http://127.0.0.1:9/")


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("kind", ["rsa:2048", "rsa:4096", "ec -pkeyopt ec_paramgen_curve:P-256"])
def test_the_key_of_a_server_is_what_openssl_says(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = f"openssl req -x509 -newkey {kind} -nodes -keyout key -out cert -days 9 -subj /CN=server"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    command = "openssl x509 -in cert -pubkey -noout | openssl pkey -pubin -outform der"
    key = subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True).stdout
    monkeypatch.setattr(ssl, "get_server_certificate", lambda _: (tmp_path / "cert").read_text())
    assert browser._key_of("server", 443) == base64.b64encode(hashlib.sha256(key).digest()).decode()


def test_in_virtual_time(kernel: object, chromium: str, tmp_path: Path) -> None:
    write(tmp_path)
    scenario = Scenario.from_dict({"topology": "path", "path": {"rate": "20 Mbit/s", "rtt": "40 ms"}})
    server = program("server", "exec python3 -m http.server 80", ready="port 80", directory=str(tmp_path))
    measure = {"load_s": "stdout:/load_s", "paint_s": "stdout:/largest_contentful_paint_s"}
    client = program("client", "sawtooth-browser http://server/", memory="3 GiB", measure=measure)
    done = execute(scenario, [server, client])
    told = json.loads(done.programs[-1].stdout)
    assert told["resources"] == 2
    # A handshake and a request for the page, and at least one more round trip for what it loads.
    assert 0.08 <= round(told["ttfb_s"], 3) < 0.12 < told["load_s"] < 1
