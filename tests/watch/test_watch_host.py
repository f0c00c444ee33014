"""Watch on an unmodified host: as an ordinary user, MPTCP, more ends than the kernel reports, two samples at one
moment.
"""

import importlib
import json
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from sawtooth.errors import SawtoothError
from sawtooth.watch import Connections, Sample, Watcher
from sawtooth.watch.watcher import described
from tests.watch.test_watch import SENT, message, sample
from tests.watch.test_watch_screen import Played

NOBODY = 65534


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def as_nobody(filter: str, namespace: str | None = None) -> dict[str, object]:
    """A sample, described, from a process that has become an ordinary user; or the error."""
    # Late imports may be in a place where only root can read.
    importlib.import_module("sawtooth.testbed.apply")
    watcher = Watcher(Played())
    watcher.sample()
    watcher.sample().first()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            try:
                with Connections(namespace) as source:
                    seen = Watcher(source, filter=filter).sample()
                told = described(seen, seen.first())
            except SawtoothError as error:
                told = {"code": error.code, "fix": error.fix}
            os.write(writing, json.dumps(told).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    found: dict[str, object] = json.loads(told)
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_the_user_nobody_sees_every_connection_and_learns_what_is_hidden(listening: socket.socket) -> None:
    with socket.create_connection(listening.getsockname()) as near, listening.accept()[0]:
        told = as_nobody(f"sport {near.getsockname()[1]}")
    (one,) = told["connections"]
    assert one["rtt_s"] > 0
    assert one["cc"]
    assert any("processes of other users: as root" in line for line in told["unseen"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_nobody_may_not_look_into_the_namespace_of_another_users_process() -> None:
    own = str(os.getpid())
    assert as_nobody("", own) == {"code": "missing-capability", "fix": f"sudo sawtooth watch --netns {own}"}


def test_the_paths_of_an_mptcp_connection_are_marked() -> None:
    try:
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    except OSError:
        pytest.skip("this kernel has no MPTCP")
    with server, socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as near:
        server.bind(("127.0.0.1", 0))
        server.listen()
        near.connect(server.getsockname())
        far, _ = server.accept()
        with far, Connections() as source:
            seen = Watcher(source, filter=f"port {server.getsockname()[1]}").sample()
    assert [one.mptcp for one in seen.first()] == [True, True]


class Ending(Played):
    """Two connections ended, one of which had been seen; there are more than the kernel can report."""

    reports_ends = True

    def ended(self) -> tuple[Sample, bool]:
        gone = [message(SENT, cookie=1), message(SENT, cookie=9), message(cookie=10)]
        return sample(*gone), True


def test_short_connections_are_counted_and_those_that_were_missed_are_reported() -> None:
    watcher = Watcher(Ending())
    assert watcher.sample().short == 0
    seen = watcher.sample()
    # The tenth connection carried nothing.
    assert (seen.short, seen.short_bytes) == (1, SENT["bytes_acked"])
    assert any("the kernel could not report them all" in one for one in seen.unseen)


class Standing(Played):
    """A clock that does not move, as between two samples of a stopped guest."""

    def sample(self) -> Sample:
        found = super().sample()
        object.__setattr__(found, "at_s", 1.0)
        return found


def test_two_samples_at_one_moment_have_no_rate_and_no_error() -> None:
    watcher = Watcher(Standing())
    watcher.sample()
    seen = watcher.sample()
    told = json.dumps(described(seen, seen.first()), allow_nan=False)
    assert [one["goodput_bps"] for one in json.loads(told)["connections"]] == [None, None]


def test_samples_continue_while_sockets_come_and_go(listening: socket.socket) -> None:
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            with socket.create_connection(listening.getsockname()) as near, listening.accept()[0]:
                near.send(b"x")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        with Connections() as source:
            watcher = Watcher(source)
            for _ in range(20):
                seen = watcher.sample()
                json.dumps(described(seen, seen.first()), allow_nan=False)
    finally:
        stop.set()
        thread.join()
