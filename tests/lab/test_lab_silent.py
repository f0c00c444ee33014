"""Connections to the laboratory's server that send nothing, or too much: real requests are still answered."""

import contextlib
import http.client
import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from sawtooth.errors import SawtoothError
from sawtooth.lab import Server, Site
from sawtooth.lab.site import KINDS
from sawtooth.lab.workers import ClientGone, _Worker


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(Site({name: name.encode() for name in KINDS}))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def answer(server: Server, path: str) -> tuple[int, bytes]:
    asking = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=100)
    with contextlib.closing(asking):
        asking.request("GET", path, headers={"X-Sawtooth-Key": server.key})
        told = asking.getresponse()
        return told.status, told.read()


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"], ids=["silent", "half a head"])
@pytest.mark.parametrize("count", [200, 400])
def test_half_open_connections_shut_nobody_out(
    server: Server, said: bytes, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An answer shows that the server did not wait for the half-open connections to end.
    monkeypatch.setattr("sawtooth.lab.server._HEAD_S", 1000.0)
    monkeypatch.setattr("sawtooth.lab.server._Handler.timeout", 1000.0)
    with contextlib.ExitStack() as ending:
        for _ in range(count):
            half = ending.enter_context(socket.create_connection(("127.0.0.1", server.server_port), 10))
            half.sendall(said)
        for _ in range(3):
            assert answer(server, "/")[0] == 200


def test_a_head_that_trickles_is_cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sawtooth.lab.server._HEAD_S", 0.5)
    with socket.create_connection(("127.0.0.1", server.server_port), 10) as slow:
        before = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - before < 100:
                slow.sendall(b"G")
                slow.settimeout(0.1)
                with contextlib.suppress(TimeoutError):
                    if not slow.recv(1000):
                        break
        assert time.monotonic() - before < 100


@pytest.mark.parametrize("count", [9, 100, 2000])
def test_too_many_parameters_are_answered_with_words(server: Server, count: int) -> None:
    status, told = answer(server, "/api/hello?" + "&".join(f"a{number}=1" for number in range(count)))
    assert status == 400
    error = json.loads(told)["error"]
    assert (error["code"], error["field"], error["fix"]) == ("bad-usage", "query", "send at most 8 parameters")


@pytest.mark.parametrize("goes", [False, True])
def test_what_a_client_says_meanwhile_costs_nothing_and_that_it_goes_is_seen(goes: bool) -> None:
    near, far = socket.socketpair()
    with near, far:
        worker = _Worker(near, None, 1.0)
        worker._until = time.monotonic() + (1000.0 if goes else 1.0)
        worker._process = subprocess.Popen(
            ["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        far.sendall(b"more than was asked for")
        if goes:
            threading.Timer(0.3, far.close).start()
        try:
            used = time.thread_time()
            with pytest.raises(ClientGone if goes else SawtoothError):
                worker.frame()
            assert time.thread_time() - used < 0.1
        finally:
            worker.close()
