"""Loads a page in headless Chromium and prints the page's own measures as JSON: a program for a scenario's client.

    sawtooth-browser [--http3] URL

It needs the standard library and an installed Chromium only. Chromium is driven by its DevTools protocol over a pipe.
Certificates are not checked, because a scenario's servers make their own.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import itertools
import json
import os
import selectors
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = (
    *("--headless", "--no-sandbox", "--no-zygote", "--single-process", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions"),
    *("--disable-default-apps", "--disable-sync", "--mute-audio", "--ignore-certificate-errors", "--no-proxy-server"),
    *("--remote-debugging-pipe", "--window-size=1280,720"),
)
_STARTS = 3
"""In a single process Chromium now and then ends while it starts, before it has asked for anything."""
_MEASURES = """
new Promise(done => {
    let largest = null;
    new PerformanceObserver(list => { largest = list.getEntries().at(-1).startTime; })
        .observe({type: 'largest-contentful-paint', buffered: true});
    const seconds = time => time ? time / 1000 : null;
    const tell = () => {
        const [page] = performance.getEntriesByType('navigation');
        const parts = performance.getEntriesByType('resource');
        done(JSON.stringify({
            ttfb_s: seconds(page.responseStart),
            first_contentful_paint_s: seconds(performance.getEntriesByName('first-contentful-paint')[0]?.startTime),
            largest_contentful_paint_s: seconds(largest),
            dom_content_loaded_s: seconds(page.domContentLoadedEventEnd),
            load_s: seconds(page.loadEventEnd),
            protocol: page.nextHopProtocol,
            protocols: [...new Set(parts.map(part => part.nextHopProtocol))].sort(),
            resources: parts.length,
            bytes: [page, ...parts].reduce((sum, part) => sum + part.encodedBodySize, 0),
        }));
    };
    // Paints are reported some frames after the load, later where the processor is busy. Not every page has one.
    const painted = () => largest !== null && performance.getEntriesByName('first-contentful-paint').length > 0;
    let tries = 0;
    const settle = () => setTimeout(() => painted() || ++tries === 20 ? tell() : settle(), 500);
    document.readyState === 'complete' ? settle() : addEventListener('load', settle);
})
"""


class BrowserError(Exception):
    """The browser or the page failed."""


class EndedError(BrowserError):
    """The browser ended by itself."""


class Browser:
    """A running Chromium. ``limit_s``: longest wait for an answer."""

    def __init__(self, program: str, options: Sequence[str], profile: str, limit_s: float) -> None:
        self._limit_s = limit_s
        self._numbers = itertools.count(1)
        self._rest = b""
        self.failed = 0
        """Requests that failed."""
        self.navigated = False
        """Whether it was asked for a page."""
        theirs, self._asks = os.pipe()
        self._output, output = os.pipe()
        os.set_blocking(self._output, False)
        # Chromium reads descriptor 3 and writes descriptor 4. By name, because dash knows no numbers of two digits.
        ends = f"3</proc/self/fd/{theirs} 4>/proc/self/fd/{output}"
        command = ["/bin/sh", "-c", f'exec "$@" {ends}', "sh", program, *options]
        command += [f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(theirs, output),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        os.close(output)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def load(self, url: str) -> dict[str, Any]:
        """Opens the page and waits until it has loaded. Raises BrowserError."""
        targets = self._ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        session = self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self._ask("Network.enable", session)
        self._ask("Page.enable", session)
        self.navigated = True
        went = self._ask("Page.navigate", session, url=url)
        if error := went.get("errorText"):
            raise BrowserError(f"{url}: {error}")
        parameters = {"expression": _MEASURES, "awaitPromise": True, "returnByValue": True}
        found = self._ask("Runtime.evaluate", session, **parameters)
        if "exceptionDetails" in found:
            raise BrowserError(f"{url}: {found['exceptionDetails']['text']}")
        measured: dict[str, Any] = json.loads(found["result"]["value"])
        return {**measured, "failed": self.failed}

    def close(self) -> None:
        """Ends all processes of the browser."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        request = {"id": number, "method": method, "params": parameters}
        if session is not None:
            request["sessionId"] = session
        # If it has ended, its closed output shows that below.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._asks, json.dumps(request).encode() + b"\0")
        end_s = time.monotonic() + self._limit_s
        while True:
            message = self._read(method, end_s)
            if message.get("method") == "Network.loadingFailed":
                self.failed += 1
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error'].get('message')}")
                result: dict[str, Any] = message["result"]
                return result

    def _read(self, method: str, end_s: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left_s = end_s - time.monotonic()
            if left_s <= 0 or not self._selector.select(left_s):
                raise BrowserError(f"{method}: no answer within {self._limit_s:g} s")
            piece = os.read(self._output, 1 << 16)
            if not piece:
                raise EndedError(f"{method}: the browser ended")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


def load(url: str, *, http3: bool = False, browser: str | None = None, limit_s: float = 60.0) -> dict[str, Any]:
    """The page's measures: ``load_s``, ``ttfb_s``, ``dom_content_loaded_s``, ``first_contentful_paint_s`` and
    ``largest_contentful_paint_s``, in seconds from the start of the navigation; ``protocol`` of the page and
    ``protocols`` of its parts, ``resources`` and ``bytes``; and how many requests ``failed``.

    ``http3``: QUIC from the first packet. The server must answer TLS over TCP on the same port, too, because Chromium
    wants to know the key of a server whose certificate nobody signed. Raises BrowserError.
    """
    program = browser or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise BrowserError(f"no browser is installed: there is none of {', '.join(NAMES)}")
    options = list(_OPTIONS)
    if http3:
        place = urlsplit(url)
        host, port = place.hostname or "", place.port or 443
        options.append(f"--origin-to-force-quic-on={host}:{port}")
        options.append(f"--ignore-certificate-errors-spki-list={_key_of(host, port)}")
    for left in reversed(range(_STARTS)):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            started = Browser(program, options, profile, limit_s)
            try:
                return started.load(url)
            except EndedError:
                if not left or started.navigated:
                    raise
            finally:
                started.close()
    raise AssertionError("the last start returns or raises")


def _key_of(host: str, port: int) -> str:
    """SHA-256 of the server's public key (SubjectPublicKeyInfo), in Base64. Raises BrowserError."""
    try:
        certificate = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, port)))
    except OSError as error:
        raise BrowserError(f"https://{host}:{port}: no certificate over TCP: {error}") from None
    # RFC 5280: Certificate { tbsCertificate { [0] version, serial, signature, issuer, validity, subject, key … } … }
    at = _inside(certificate, _inside(certificate, 0))
    for _ in range(6):
        at = _end(certificate, at)
    return base64.b64encode(hashlib.sha256(certificate[at : _end(certificate, at)]).digest()).decode()


def _inside(der: bytes, at: int) -> int:
    """Where the content of the element at ``at`` begins."""
    return at + 2 + (der[at + 1] & 0x7F if der[at + 1] & 0x80 else 0)


def _end(der: bytes, at: int) -> int:
    """Where the element at ``at`` ends."""
    begin = _inside(der, at)
    return begin + (int.from_bytes(der[at + 2 : begin]) if der[at + 1] & 0x80 else der[at + 1])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``sawtooth-browser``."""
    parser = argparse.ArgumentParser(prog="sawtooth-browser", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--http3", action="store_true", help="Use QUIC from the first packet.")
    parser.add_argument("--browser", metavar="FILE", help=f"The browser (default: the first of {', '.join(NAMES)}).")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="Longest wait (default: 60).")
    given = parser.parse_args(arguments)
    try:
        print(json.dumps(load(given.url, http3=given.http3, browser=given.browser, limit_s=given.limit)))
    except BrowserError as error:
        print(f"sawtooth-browser: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
