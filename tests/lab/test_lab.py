"""The laboratory's server and its files; the page itself is in test_lab_page.py."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from expected_error import expected_error
from opened_lab import serving
from sawtooth.cli.lab_command import serve
from sawtooth.cli.program import sawtooth
from sawtooth.errors import SawtoothError
from sawtooth.lab import Server, Site, built
from sawtooth.lab.site import KINDS, SERVED

SITE = Site({name: f"<title>sawtooth lab</title> {name}".encode() for name in KINDS})


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(SITE) as server:
        yield server


def asked(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def test_every_file_of_the_page_is_served_as_what_it_is(server: Server) -> None:
    for name, content in SITE.files.items():
        status, headers, body = asked(server, f"/{name}")
        assert (status, body) == (200, content)
        assert headers["Content-Type"] == KINDS[name]
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert asked(server, "/")[2] == SITE.files["index.html"]
    assert asked(server, "/page.js?v=1")[0] == 200
    status, headers, body = asked(server, "/page.js", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(len(SITE.files["page.js"])), b"")


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/%2e%2e/x", "//etc/passwd", "/index.html/", "/lab", "/__init__.py"]
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    assert asked(server, path)[0] == 404


def test_only_this_machine_is_answered_by_its_own_name(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert asked(server, "/", Host="evil.example")[0] == 421
    assert asked(server, "/", Host=f"localhost:{server.server_port}")[0] == 200


def test_nothing_is_taken_without_the_key(server: Server) -> None:
    assert asked(server, "/", "POST")[0] == 403
    assert asked(server, "/", "PUT")[0] == 501


def test_two_servers_take_two_ports() -> None:
    with Server(SITE) as one, Server(SITE) as other:
        assert one.server_port != other.server_port
        assert one.address == f"http://127.0.0.1:{one.server_port}/"


def test_the_page_is_written_for_any_web_server_and_again_over_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("stays")
    for _ in range(2):
        assert {path.name for path in SITE.export(tmp_path)} == set(KINDS) - set(SERVED)
    assert (tmp_path / "simulator.wasm.gzip").read_bytes() == SITE.files["simulator.wasm.gzip"]
    assert (tmp_path / "mine.txt").read_text() == "stays"


def test_another_page_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>mine</title>")
    with expected_error(code="conflict", match="another page"):
        SITE.export(tmp_path)
    assert (tmp_path / "index.html").read_text() == "<title>mine</title>"


def test_an_installation_without_the_page_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sawtooth.lab.site.resources.files", lambda _: tmp_path)
    with expected_error(code="lab-missing", fix="build it: make lab, in a checkout of the source", match="not built"):
        built()


def test_the_command_writes_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sawtooth.lab.built", lambda: SITE)
    told = CliRunner().invoke(sawtooth, ["lab", "--export", str(tmp_path / "www"), "--json"], catch_exceptions=False)
    assert {Path(one).name for one in json.loads(told.output)["written"]} == set(KINDS) - set(SERVED)
    assert (tmp_path / "www" / "index.html").read_bytes() == SITE.files["index.html"]


def test_a_port_that_is_taken_is_reported() -> None:
    with Server(SITE) as server, pytest.raises(SawtoothError, match="port") as refused:
        serve(SITE, server.server_port, browser=False, as_json=False)
    assert refused.value.code == "port-taken"
