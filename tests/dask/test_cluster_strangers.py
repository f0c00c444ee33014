"""Strangers: whoever reaches a cluster's ports without its certificate is refused, and none of their code runs."""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.dask import Cluster
from sawtooth.dask.secure import Pair
from sawtooth.io.parallel import results
from waiting import until

pytestmark = pytest.mark.usefixtures("patience")


NOBODY = 65534
REFUSED = {"CommClosedError", "FatalCommClosedError", "OSError", "TimeoutError"}
ATTACK = """
import asyncio, json, logging, os, ssl, sys
from distributed.core import rpc
from distributed.protocol.pickle import dumps

logging.disable()
given = json.loads(sys.argv[1])
contexts = {way: ssl.create_default_context() for way in ("plain", "none", "self-made")}
for context in contexts.values():
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
contexts["self-made"].load_cert_chain(given["certificate"])

async def attack(address, way, mark):
    scheme = "tcp" if way == "plain" else "tls"
    told = {}
    for call in ("run", "run_function"):
        there = rpc(f"{scheme}://{address}", connection_args={"ssl_context": contexts[way]}, timeout=5)
        sent = dict(function=dumps(os.system), args=dumps((f"touch {mark}-{way}-{call}",)), kwargs=dumps({}))
        try:
            told[call] = str(await asyncio.wait_for(getattr(there, call)(**sent), 5))
        except Exception as error:
            told[call] = type(error).__name__
        await there.close_rpc()
    return told

async def main():
    # It works where nothing forbids it; and what it needs is loaded.
    control = [await attack(address, "plain", given["mark"] + "-control") for address in given["plain"]]
    uid = given["uid"]
    if uid is not None:
        os.setgroups([]); os.setgid(uid); os.setuid(uid)
    every = [attack(one, way, given["mark"]) for one in given["addresses"] for way in contexts]
    tried = await asyncio.gather(*every)
    read = []
    for process in given["processes"]:
        for name in ("environ", "mem", "fd"):
            path = f"/proc/{process}/{name}"
            try:
                read.append(str(os.listdir(path) if name == "fd" else open(path, "rb").read(1)))
            except PermissionError:
                pass
    print(json.dumps({"control": control, "tried": tried, "read": read}))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def others() -> set[tuple[str, int]]:
    """Ports where this process listens before the cluster starts: servers of other tests."""
    return _listening([psutil.Process()])


@pytest.fixture(scope="module")
def local(others: set[tuple[str, int]]) -> Iterator[Cluster]:
    with Cluster("local:2") as made:
        assert results(abs, [-1, -2, -3], executor=made) == [1, 2, 3]
        yield made


def tree(cluster: Cluster) -> list[psutil.Process]:
    """All processes of a cluster: this one's children, the parent of workers, and the workers."""
    assert cluster._local is not None
    parent = psutil.Process(cluster._local._parent.pid)
    return [psutil.Process(), parent, *parent.children(recursive=True)]


@pytest.fixture
def listening(local: Cluster, others: set[tuple[str, int]]) -> list[tuple[str, int]]:
    """Where the cluster's processes listen, on IPv4 and IPv6."""
    return sorted(_listening(tree(local)) - others)


def _listening(processes: list[psutil.Process]) -> set[tuple[str, int]]:
    every = [one for process in processes for one in process.net_connections("inet")]
    return {(one.laddr.ip, one.laddr.port) for one in every if one.status == psutil.CONN_LISTEN}


@contextlib.contextmanager
def plain(tmp_path: Path, *options: str) -> Iterator[tuple[str, str]]:
    """Somebody else's scheduler and worker, both without TLS, or with ``options``; returns their addresses."""
    about, port = tmp_path / "scheduler.json", ["--port", "0", "--no-dashboard", *options]
    dask = [sys.executable, "-m"]
    quiet = {"cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    asked = [*dask, "distributed.cli.dask_scheduler", *port, "--scheduler-file", str(about)]
    with contextlib.ExitStack() as stack:

        def start(command: list[str]) -> None:
            process = stack.enter_context(subprocess.Popen(command, **quiet))
            stack.callback(process.kill)

        start(asked)
        address = until(lambda: about.exists() and about.read_text().endswith("}") and json.loads(about.read_text()))
        worker = _free_port()
        command = [*dask, "distributed.cli.dask_worker", address["address"], "--no-nanny", "--nthreads", "1"]
        start([*command, "--worker-port", str(worker), "--no-dashboard", *options])
        until(lambda: any(one.laddr.port == worker for one in psutil.net_connections("tcp")))
        yield address["address"], f"127.0.0.1:{worker}"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def attacked(tmp_path: Path, before: list[str], **asked: Any) -> dict[str, Any]:
    """The answer to an attack with a certificate that has the same name as the cluster's."""
    (tmp_path / "forged.pem").write_text("".join(Pair.made()))
    asked = {"certificate": str(tmp_path / "forged.pem"), "mark": str(tmp_path / "ran"), "processes": [], **asked}
    command = [*before, sys.executable, "-c", ATTACK, json.dumps(asked)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert told.returncode == 0, told.stderr
    return dict(json.loads(told.stdout))


def test_only_the_loopback_address_listens_once_a_process_and_serves_no_pages(
    local: Cluster, listening: list[tuple[str, int]]
) -> None:
    assert len(listening) == 3
    assert {ip for ip, _ in listening} == {"127.0.0.1"}
    assert all(info["services"] == {} for info in local.client.scheduler_info()["workers"].values())
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for at in listening:
        for wrapped in (False, True):
            answer = b""
            with contextlib.suppress(OSError), socket.create_connection(at, 5) as connection:
                stream = context.wrap_socket(connection) if wrapped else connection
                stream.settimeout(5)
                stream.sendall(b"GET /info/main/workers.html HTTP/1.0\r\n\r\n")
                while more := stream.recv(4096):
                    answer += more
            assert b"HTTP" not in answer


def test_the_key_is_in_no_command_line_environment_or_file(local: Cluster) -> None:
    assert local._local is not None
    line = local._local._pair.key.splitlines()[5].encode()
    for process in tree(local):
        for name in ("cmdline", "environ"):
            assert line not in Path(f"/proc/{process.pid}/{name}").read_bytes()
    files = [path for path in local._local._place.rglob("*") if path.is_file()]
    assert files
    assert not any(b"PRIVATE KEY" in path.read_bytes() for path in files)
    assert local._local._place.stat().st_mode & 0o077 == 0


def test_nobody_of_this_machine_runs_anything_without_the_certificate(
    local: Cluster, listening: list[tuple[str, int]], tmp_path: Path, namespaces: None
) -> None:
    addresses = [f"{ip}:{port}" for ip, port in listening]
    with plain(tmp_path) as (scheduler, worker):
        open_to_all = [scheduler.removeprefix("tcp://"), worker]
        processes = [process.pid for process in tree(local)]
        told = attacked(tmp_path, [], plain=open_to_all, addresses=addresses, processes=processes, uid=NOBODY)
    assert len(list(tmp_path.glob("ran-control-plain-*"))) == 2, told["control"]
    assert list(tmp_path.glob("ran-[!c]*")) == []
    assert len(told["tried"]) == 9
    assert {word for one in told["tried"] for word in one.values()} <= REFUSED
    assert told["read"] == []
    assert results(abs, [-1], executor=local) == [1]


def test_another_network_namespace_reaches_no_port(
    listening: list[tuple[str, int]], tmp_path: Path, namespaces: None
) -> None:
    name, near, far = f"strange{os.getpid()}", f"s{os.getpid()}n", f"s{os.getpid()}f"
    ports = [port for _, port in listening]
    commands = [
        f"netns add {name}",
        f"link add {near} type veth peer name {far} netns {name}",
        f"addr add 198.51.100.1/30 dev {near}",
        f"link set {near} up",
        f"-n {name} addr add 198.51.100.2/30 dev {far}",
        f"-n {name} link set {far} up",
    ]
    try:
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        with plain(tmp_path) as (scheduler, _):
            open_to_all = [f"198.51.100.1:{scheduler.rpartition(':')[2]}"]
            addresses = [f"198.51.100.1:{port}" for port in ports]
            before = ["ip", "netns", "exec", name]
            told = attacked(tmp_path, before, plain=open_to_all, addresses=addresses, uid=None)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)
        subprocess.run(["ip", "link", "del", near], check=False, stderr=subprocess.DEVNULL)
    assert len(list(tmp_path.glob("ran-control-plain-run_function"))) == 1, told["control"]
    assert list(tmp_path.glob("ran-[!c]*")) == []
    assert len(told["tried"]) == 9
    assert {word for one in told["tried"] for word in one.values()} <= REFUSED


def test_a_scheduler_with_tls_takes_the_users_files_and_nobody_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Pair.made()
    files = {"ca": tmp_path / "ca.pem", "certificate": tmp_path / "mine.pem", "key": tmp_path / "mine.key"}
    for name, path in files.items():
        path.write_text(pair.key if name == "key" else pair.certificate)
    options = ["--tls-ca-file", files["ca"], "--tls-cert", files["certificate"], "--tls-key", files["key"]]
    with plain(tmp_path, *map(str, options)) as (address, _):
        assert address.startswith("tls://")
        with Cluster(address, **files) as cluster:
            assert results(abs, [-1], executor=cluster) == [1]
        assert "no TLS" not in caplog.text
        both = tmp_path / "both.pem"
        both.write_text("".join(Pair.made()))
        for others in ({}, {"ca": files["ca"], "certificate": both}, {"ca": both, "certificate": both}):
            with expected_error(code="cluster-unreachable"):
                Cluster(address, **others)


def test_a_scheduler_without_tls_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with plain(tmp_path, "--host", "127.0.0.1") as (address, _), Cluster(address) as cluster:
        assert results(abs, [-1], executor=cluster) == [1]
    assert "has no TLS: anybody who reaches it can run programs" in caplog.text


def test_certificates_that_cannot_be_used_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair, text = Pair.made(), tmp_path / "no.pem"
    text.write_text("no certificate\n")
    good = tmp_path / "good.pem"
    good.write_text("".join(pair))

    def told(*options: str) -> str:
        assert status_of(["run", "one-percent-loss", *options]) == 2
        return " ".join(capsys.readouterr().err.split())

    where, ca, mine = ["--cluster", "tls://127.0.0.1:9"], ["--cluster-ca", str(good)], ["--cluster-certificate"]
    assert "TLS needs the certificate, too" in told(*where, *ca)
    assert "TLS needs the ca, too" in told(*where, *mine, str(good))
    assert "there is no such file" in told(*where, *ca, *mine, str(tmp_path / "absent.pem"))
    assert "not a TLS certificate with its key" in told(*where, *ca, *mine, str(text))
    assert "certificates are for tls:// only" in told("--cluster", "tcp://127.0.0.1:9", *ca, *mine, str(good))
    assert "local makes its own certificate" in told("--cluster", "local", *ca, *mine, str(good))
    assert "certificates are for a cluster" in told(*ca, *mine, str(good))


def test_a_kill_leaves_no_key_behind(tmp_path: Path) -> None:
    code = """
import os, signal
from sawtooth.dask import Cluster
from sawtooth.io.parallel import results
with Cluster("local:1") as cluster:
    results(abs, [-1], executor=cluster)
    print(*cluster._local.processes, cluster._local._parent.pid, flush=True)
    # Stopped, it would hear of nothing.
    os.kill(cluster._local.processes[0], signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, timeout=120)
    assert told.returncode == -signal.SIGKILL
    processes = [int(word) for word in told.stdout.split()]
    assert len(processes) == 2
    _, alive = psutil.wait_procs([psutil.Process(one) for one in processes if psutil.pid_exists(one)], timeout=60)
    assert alive == []
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"PRIVATE KEY" in path.read_bytes() for path in left)
