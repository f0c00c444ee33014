"""The server: the page's files and nothing else, to this machine and nobody else."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sawtooth.lab.site import KINDS, Site

LOOPBACK = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Serves a site on loopback, at a port that the system chooses, by ``serve_forever``."""

    daemon_threads = True

    def __init__(self, site: Site, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.site = site

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{LOOPBACK}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "sawtooth"
    sys_version = ""

    def do_GET(self) -> None:
        """A file of the page by its name."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """The same without the file."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        # A name that somebody else's server resolves to this address is not this page's.
        if self.headers.get("Host") not in (
            f"{LOOPBACK}:{self.server.server_port}",
            f"localhost:{self.server.server_port}",
        ):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        name = self.path.partition("?")[0].removeprefix("/") or "index.html"
        content = self.server.site.files.get(name)
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        headers = {"Content-Type": KINDS[name], "Content-Length": str(len(content)), "Cache-Control": "no-store"}
        headers |= {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
        headers |= {"Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY"}
        for header, value in headers.items():
            self.send_header(header, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what a browser asks for is no news."""
