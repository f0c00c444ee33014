"""The server of ``sawtooth lab``: the page's files, results by id, and simulations on request. It only answers this
machine and its own page.

The address that ``sawtooth lab`` prints contains a key. Without the key, only the page's files are served.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sawtooth.errors import BAD_INPUT, InputError, SawtoothError
from sawtooth.lab import requests
from sawtooth.lab.results import Results
from sawtooth.lab.site import KINDS, Site
from sawtooth.lab.workers import ClientGone, Workers

LOOPBACK = "127.0.0.1"
LARGEST = 1 << 20
"""Largest accepted scenario, in bytes."""
_PASSED_OVER = 4 << 20
RUN_S, LOOK_S = 600.0, 300.0
"""Time limits in seconds: for a simulation, and for opening or comparing results."""
MOST_COMPARED = 12
_MOST_CONNECTIONS = 256
"""Maximum number of open connections. If all are in use, the oldest one that has not sent a request yet is closed for a
new one."""
_HEAD_S = 5.0
"""Time limit for receiving a request's head, in seconds, from the moment the connection is accepted."""
_PATIENCE_S = 30.0
_MOST_FIELDS = 8
_JSON = "application/json; charset=utf-8"
_LINES = "application/x-ndjson; charset=utf-8"
# A report may come from anybody. It gets a separate origin, no network access, and no access to the window that
# opened it.
_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"


class Server(ThreadingHTTPServer):
    """Serves the page on the loopback interface, on a port chosen by the system. Start it with ``serve_forever``. If a
    directory is given, the results below it are served too."""

    daemon_threads = True
    # As many as Linux allows by default: a connection that finds the queue full is tried again only a second later.
    request_queue_size = 4096

    def __init__(self, site: Site, port: int = 0, results: Path | None = None) -> None:
        self.workers = Workers()
        super().__init__((LOOPBACK, port), _Handler)
        self.site = site
        self.key = secrets.token_urlsafe(24)
        self.results = None if results is None else Results(results)
        self._open: dict[Any, bool] = {}
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """The page's address, without the key."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    @property
    def opened(self) -> str:
        """The page's address with the key, which allows running simulations and showing results."""
        return f"{self.address}?key={self.key}"

    def key_of(self, result: str) -> str:
        """The key for one report only. The report itself may know it."""
        return hmac.new(self.key.encode(), result.encode(), hashlib.sha256).hexdigest()[:32]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accept a connection. If the limit is reached, close the oldest one that has not sent a request yet."""
        with self._lock:
            if len(self._open) >= _MOST_CONNECTIONS:
                silent = next((one for one, has_requested in self._open.items() if not has_requested), None)
                if silent is None:
                    self.shutdown_request(request)
                    return
                del self._open[silent]
                # The connection's thread sees the end of input and closes it.
                with contextlib.suppress(OSError):
                    silent.shutdown(socket.SHUT_RDWR)
            self._open[request] = False
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)

    def note_request(self, request: Any) -> None:
        """Note that the first request of a connection was received."""
        with self._lock:
            if request in self._open:
                self._open[request] = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a browser that disconnects is normal."""

    def server_close(self) -> None:
        """Close the server and end its workers."""
        super().server_close()
        self.workers.close()


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "sawtooth"
    sys_version = ""
    timeout = _HEAD_S

    def setup(self) -> None:
        super().setup()
        # A timer for the whole head: with a limit per read, a client could send one byte at a time and never be closed.
        self._late = threading.Timer(_HEAD_S, self._end_late)
        self._late.daemon = True
        self._late.start()

    def _end_late(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def parse_request(self) -> bool:
        """Parse the head as the base class does. After it, the time limit for the head no longer applies."""
        parsed = super().parse_request()
        self._late.cancel()
        self.server.note_request(self.request)
        self.connection.settimeout(_PATIENCE_S)
        return parsed

    def finish(self) -> None:
        self._late.cancel()
        super().finish()

    def do_GET(self) -> None:
        """Serve a file of the page, or, with the key, results."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Serve the head for a file of the page."""
        self._answer(body=False)

    def do_POST(self) -> None:
        """Run a simulation: ``run``."""
        with self._telling():
            if not self._is_here() or not self._has_key():
                return
            if urlsplit(self.path).path != "/run":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            text, kind = self._sent()
            every_ms = min(60_000.0, max(20.0, _number(self.headers.get("X-Sawtooth-Every"), 100.0)))
            question = {"do": "run", "text": text, "type": kind, "every_ms": every_ms}
            page = (self.headers.get("X-Sawtooth-Page") or "")[:64] or None
            with self.server.workers.start(question, self.connection, RUN_S, page) as worker:
                next_frame = worker.frame()
                while next_frame is not None:
                    head, _, frame = next_frame
                    if head["kind"] == "error" and not self._begun:
                        raise _error(head)
                    if not self._begun:
                        self._begin("application/octet-stream", policy=_POLICY)
                    self.wfile.write(frame)
                    next_frame = worker.frame()

    def _answer(self, *, body: bool) -> None:
        with self._telling():
            if not self._is_here():
                return
            path = urlsplit(self.path).path
            name = "results.html" if path == "/results" else path.removeprefix("/") or "index.html"
            content = self.server.site.files.get(name)
            if content is not None:
                self._begin(KINDS[name], len(content))
                if body:
                    self.wfile.write(content)
                return
            first, _, last = path.removeprefix("/").partition("/")
            if body and first == "report" and last:
                self._report(last)
            elif body and first == "api" and last:
                if self._has_key():
                    self._send_known(last)
            else:
                self.send_error(HTTPStatus.NOT_FOUND)

    def _send_known(self, wanted: str) -> None:
        results = self.server.results
        query = self._query()
        if wanted == "hello":
            self._json({"results": results is not None, "controls": _controls()})
        elif results is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif wanted == "results":
            self._begin(_LINES, policy=_POLICY)
            for row in results.rows():
                if row.get("report"):
                    row = row | {"report": f"report/{row['id']}?key={self.server.key_of(row['id'])}"}
                self.wfile.write(json.dumps(row).encode() + b"\n")
        elif wanted.startswith("result/"):
            directory = results.place(wanted.removeprefix("result/"))
            self._send_answer({"do": "open", "directory": str(directory)})
        elif wanted == "compare":
            ids = query.get("ids", [""])[0].split(",")
            if not 2 <= len(ids) <= MOST_COMPARED:
                fix = f"choose 2 to {MOST_COMPARED}"
                raise InputError("bad-usage", f"{len(ids)} results cannot be compared", field="ids", fix=fix)
            directories = [str(results.place(one)) for one in ids]
            within, omit = query.get("within", ["10%"])[0], query.get("omit", [None])[0]
            self._send_answer({"do": "compare", "directories": directories, "within": within, "omit": omit})
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _query(self) -> dict[str, list[str]]:
        """The parameters of the address. Raises InputError."""
        try:
            return parse_qs(urlsplit(self.path).query, max_num_fields=_MOST_FIELDS)
        except ValueError as error:
            fix = f"send at most {_MOST_FIELDS} parameters"
            raise InputError("bad-usage", "there are too many parameters", field="query", fix=fix) from error

    def _send_answer(self, question: dict[str, Any]) -> None:
        """Send a worker's answer about results."""
        with self.server.workers.start(question, self.connection, LOOK_S) as worker:
            found = worker.frame()
            if found is None or found[0]["kind"] == "error":
                raise _error(found[0] if found else {})
            self._begin(_JSON, len(found[1]), policy=_POLICY)
            self.wfile.write(found[1])

    def _report(self, wanted: str) -> None:
        key = self._query().get("key", [""])[0]
        if self.server.results is None or not hmac.compare_digest(key.encode(), self.server.key_of(wanted).encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        page = self.server.results.report(wanted)
        self._begin("text/html; charset=utf-8", len(page), policy=_REPORT_POLICY)
        self.wfile.write(page)

    def _is_here(self) -> bool:
        """Whether the request comes from this page or from a followed link. If not, an error is sent."""
        here = [f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")]
        # Another host name that resolves to this address is a DNS rebinding attack, so refuse it.
        if self.headers.get("Host") not in here:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return False
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{self.headers['Host']}":
            self.send_error(HTTPStatus.FORBIDDEN)
            return False
        return True

    def _has_key(self) -> bool:
        given = self.headers.get("X-Sawtooth-Key") or ""
        if hmac.compare_digest(given.encode("latin-1", "replace"), self.server.key.encode()):
            return True
        self.send_error(HTTPStatus.FORBIDDEN, "the address that sawtooth lab printed has the key")
        return False

    def _sent(self) -> tuple[str, str]:
        """The text of the request's body and its type. Raises InputError."""
        kind = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if kind not in (requests.JSON, requests.TOML):
            fix = f"send {requests.TOML}, or {requests.JSON}"
            raise InputError("wrong-type", "that is not a scenario", field="Content-Type", fix=fix)
        length = self.headers.get("Content-Length") or ""
        size = int(length) if length.isascii() and length.isdigit() and len(length) < 13 else None
        if size is None or size > LARGEST:
            # Read the rest of the body first: a client that is still writing would not read the answer.
            self.rfile.read(min(size or 0, _PASSED_OVER))
            fix = f"send at most {LARGEST >> 20} MiB, with its length"
            raise InputError("out-of-range", "that is too long for a scenario", field="Content-Length", fix=fix)
        try:
            return self.rfile.read(size).decode(), kind
        except UnicodeDecodeError as error:
            raise InputError("not-toml", "it is not UTF-8 text", fix="save it as UTF-8") from error

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Send an error as JSON, if no part of an answer has been sent yet."""
        self._begun = False
        try:
            yield
        except (ClientGone, ConnectionError, TimeoutError):
            self.close_connection = True
        except SawtoothError as error:
            if self._begun:
                # The stream ends without its last rows; the reader detects this.
                self.close_connection = True
                return
            status = HTTPStatus.BAD_REQUEST if error.exit_status == BAD_INPUT else HTTPStatus.INTERNAL_SERVER_ERROR
            fields = {name: getattr(error, name) for name in ("code", "message", "file", "field", "fix")}
            self._json({"error": fields}, status)

    def _json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        content = json.dumps(value).encode()
        self._begin(_JSON, len(content), policy=_POLICY, status=status)
        self.wfile.write(content)

    def _begin(
        self, kind: str, length: int | None = None, *, policy: str = "", status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        """Send the head of an answer. The page's own files contain their content security policy themselves."""
        self._begun = True
        self.send_response(status)
        headers = {"Content-Type": kind, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        headers |= {"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"}
        headers |= {"X-Frame-Options": "DENY"}
        if policy:
            headers["Content-Security-Policy"] = policy
        if length is not None:
            headers["Content-Length"] = str(length)
        for header, value in headers.items():
            self.send_header(header, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing: requests are not logged."""


def _error(head: dict[str, Any]) -> SawtoothError:
    """The error that a worker reported."""
    if not head:
        return SawtoothError("worker-died", "nothing was answered", fix="try the same on the command line")
    return SawtoothError(
        head["code"], head["message"], file=head.get("file"), field=head.get("field"), fix=head.get("fix")
    )


def _number(text: str | None, default: float) -> float:
    try:
        return float(text) if text else default
    except ValueError:
        return default


def _controls() -> list[str]:
    from sawtooth.engines import sim

    return list(sim.controls())
