"""Simulations on the native core, by the laboratory's server."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from expected_error import expected_error
from opened_lab import serving
from sawtooth import Scenario, _core
from sawtooth.lab import Server
from sawtooth.lab.requests import FIELDS, JSON, TOML, read
from tests.lab.lab_client import SHORT, SITE, asked, frames, refused
from waiting import is_running, until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(SITE, tmp_path) as server:
        yield server


def columns(body: bytes) -> list[dict[str, tuple[str, bytes]]]:
    """For each run, by table and column: the type and all bytes."""
    found: list[dict[str, tuple[str, bytes]]] = []
    told = frames(body)
    for head, data in told:
        at = 0
        found += [{} for _ in head["runs"][len(found) :]]
        for which, one in enumerate(head["runs"]):
            for table, names in one["tables"]:
                for name, kind, count in names:
                    size = count * int(kind[1])
                    before = found[which].get(f"{table}.{name}", (kind, b""))[1]
                    found[which][f"{table}.{name}"] = kind, before + data[at : at + size]
                    at += size
        assert at == len(data)
    assert [one["finished"] for one in told[-1][0]["runs"]] == [True] * len(found)
    return found


def alone(scenario: Scenario) -> dict[str, tuple[str, bytes]]:
    """In this process, in one step."""
    compiled = scenario.compile()
    simulation = _core.Simulation(compiled.to_json())
    assert simulation.advance(compiled.duration_ns, 2**62)
    kinds = {np.dtype("?"): "u1"}
    return {
        f"{table}.{name}": (kinds.get(values.dtype, values.dtype.str[1:]), values.tobytes())
        for table, found in simulation.take().items()
        for name, values in found.items()
    }


@pytest.mark.usefixtures("patience")
def test_rows_are_those_of_the_command_line_byte_for_byte(server: Server) -> None:
    flows = [{"cc": "cubic", "count": 2}, {"cc": "bbr"}, {"cc": "cubic"}]
    told = SHORT | {"duration": "5 s", "flows": flows}
    status, _, body = asked(server, "/run", "POST", json.dumps(told), Content_Type=JSON, X_Sawtooth_Every="20")
    assert status == 200
    assert len(frames(body)) > 3
    assert columns(body) == [alone(Scenario.from_dict(told))]
    assert frames(body)[-1][0]["events"] > 1000
    status, _, body = asked(server, "/run", "POST", json.dumps(told | {"alone": True}), Content_Type=JSON)
    names = [flow.name for flow in Scenario.from_dict(told).compile().flows]
    named = [flow | {"name": name} for flow, name in zip(flows, names, strict=True)]
    assert columns(body) == [alone(Scenario.from_dict(told | {"flows": [flow]})) for flow in named]


@pytest.mark.usefixtures("patience")
def test_a_file_is_run_too(server: Server) -> None:
    text = 'duration = "1 s"\n[path]\nrate = "5 Mbit/s"\n[[flows]]\ncc = "reno"\n'
    _, _, body = asked(server, "/run", "POST", text, Content_Type=TOML)
    scenario = Scenario.from_dict({"duration": "1 s", "path": {"rate": "5 Mbit/s"}, "flows": [{"cc": "reno"}]})
    assert columns(body) == [alone(scenario)]


@pytest.mark.parametrize(
    ("told", "code", "field"),
    [
        ({"path": {"rate": "100"}}, "missing-unit", "path.rate"),
        ({"flows": [{}, {"cc": "cubix"}]}, "unknown-name", "flows.1.cc"),
        ({"flows": [{"cc": {"source": "/etc/passwd"}}]}, "unsupported", "flows.0.cc"),
        ({"path": {"trace": "/etc/passwd"}}, "unsupported", "path.trace"),
        ({"flows": [{"source": {"kind": "pages"}}]}, "unsupported", "flows.0.source"),
        ({"topology": "dumbbell"}, "unsupported", "topology"),
        ({"hosts": {}}, "unsupported", "hosts"),
        ({"path": 7}, "wrong-type", "path"),
        ({"flows": 7}, "wrong-type", "flows"),
        ({"flows": [7]}, "wrong-type", "flows.0"),
        ([], "wrong-type", None),
        (None, "wrong-type", None),
    ],
)
def test_what_is_wrong_is_reported_of_its_field(told: Any, code: str, field: str | None) -> None:
    with expected_error(code=code, field=field):
        read(json.dumps(told), JSON)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("told", "code", "field"),
    [
        ({"flows": [{}, {"cc": "cubix"}]}, "unknown-name", "flows.1.cc"),
        ({"topology": "dumbbell"}, "unsupported", "topology"),
        (None, "wrong-type", None),
    ],
)
def test_the_page_is_told_what_is_wrong_with_which_field(
    server: Server, told: Any, code: str, field: str | None
) -> None:
    assert refused(asked(server, "/run", "POST", json.dumps(told), Content_Type=JSON)) == (400, code, field)


@pytest.mark.usefixtures("patience")
def test_a_path_without_a_round_trip_is_run(server: Server) -> None:
    told = {"path": {"rtt": "0 s"}, "duration": "1 s"}
    assert asked(server, "/run", "POST", json.dumps(told), Content_Type=JSON)[0] == 200


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"{", JSON, "wrong-type"),
        (b"[" * 100_000, JSON, "wrong-type"),
        (b"\xff", JSON, "not-toml"),
        (b"x = [", TOML, "not-toml"),
        (b"{}", "text/plain", "wrong-type"),
        (b"{}", "application/x-www-form-urlencoded", "wrong-type"),
        (b" " * ((1 << 20) + 1), JSON, "out-of-range"),
    ],
)
def test_what_is_no_scenario_is_refused(server: Server, body: bytes, kind: str, code: str) -> None:
    assert refused(asked(server, "/run", "POST", body, Content_Type=kind))[:2] == (400, code)


def test_a_page_has_the_same_fields() -> None:
    text = (Path(__file__).resolve().parents[2] / "web" / "lab" / "scenario.ts").read_text()
    told = text.partition("const FIELDS: Record<string, readonly string[]> = {")[2].partition("};")[0]
    found = {
        line.partition(":")[0].strip().strip('"'): tuple(json.loads(line.partition(":")[2].strip().rstrip(",")))
        for line in told.strip().splitlines()
    }
    assert found == FIELDS
    assert [one.topology for one in read("{}", JSON)] == ["path"]


LONG = {"duration": "3000 s", "interval": "10 s", "path": {"rate": "1 Gbit/s"}}


def begun(server_port: int, key: str, page: str, told: Any = LONG) -> socket.socket:
    """A run that has sent its first rows."""
    body = json.dumps(told)
    client = socket.create_connection(("127.0.0.1", server_port), timeout=60)
    head = (
        f"POST /run HTTP/1.0\r\nHost: 127.0.0.1:{server_port}\r\nX-Sawtooth-Key: {key}\r\nX-Sawtooth-Page: {page}\r\n"
    )
    head += f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n"
    client.sendall((head + body).encode())
    assert client.recv(12) == b"HTTP/1.0 200"
    return client


def children(parent: int) -> list[int]:
    """The server's processes that work for a page."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        try:
            above = int((one / "stat").read_text().rpartition(")")[2].split()[1])
            if above == parent and b"sawtooth.lab" in (one / "cmdline").read_bytes():
                found.append(int(one.name))
        except OSError:
            continue
    return found


def wait_until_gone(pids: list[int]) -> None:
    until(lambda: not any(map(is_running, pids)))


@pytest.mark.usefixtures("patience")
def test_a_page_that_goes_ends_its_simulation(server: Server) -> None:
    client = begun(server.server_port, server.key, "a")
    running = children(os.getpid())
    assert len(running) == 1
    client.close()
    wait_until_gone(running)


@pytest.mark.usefixtures("patience")
def test_of_a_page_one_simulation_runs_its_latest(server: Server) -> None:
    first = begun(server.server_port, server.key, "a")
    running = children(os.getpid())
    second = begun(server.server_port, server.key, "a")
    wait_until_gone(running)
    assert len(children(os.getpid())) == 1
    first.close()
    second.close()
    wait_until_gone(children(os.getpid()))


@pytest.mark.usefixtures("patience")
def test_many_pages_wait_for_their_turn(server: Server) -> None:
    server.workers._slots = threading.BoundedSemaphore(1)
    first = begun(server.server_port, server.key, "a")
    told: list[int] = []
    thread = threading.Thread(
        target=lambda: told.append(asked(server, "/run", "POST", json.dumps(SHORT), Content_Type=JSON)[0])
    )
    thread.start()
    time.sleep(0.5)
    assert len(children(os.getpid())) == 1
    assert told == []
    first.close()
    thread.join(60)
    assert told == [200]


@pytest.mark.usefixtures("patience")
def test_a_simulation_that_takes_too_long_is_ended(server: Server) -> None:
    client = begun(server.server_port, server.key, "a")
    running = children(os.getpid())
    (worker,) = server.workers._open
    worker._until = 0.0
    while client.recv(1 << 20):
        pass
    wait_until_gone(running)
    client.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.usefixtures("patience")
def test_nothing_is_left_of_a_server_that_ends(how: signal.Signals, tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from sawtooth.cli.lab_command import serve; from sawtooth.lab import Site\n"
        "from sawtooth.lab.site import KINDS\n"
        "serve(Site({name: b'' for name in KINDS}), 0, results=Path('.'), browser=False, as_json=True)"
    )
    server = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["address"]
    port, key = int(address.split(":")[2].partition("/")[0]), address.partition("?key=")[2]
    client = begun(port, key, "a")
    running = children(server.pid)
    assert len(running) == 1
    server.send_signal(how)
    server.wait(60)
    wait_until_gone(running)
    client.close()
    server.stdout.close()
