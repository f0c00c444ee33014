"""Programs on a scenario's hosts: what they see, when they run, what is kept of them; on the real kernel."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.programs import Execution, Program, execute, value_of
from sawtooth.scenario import Scenario
from sawtooth.testing import network

SERVER = "head -c 1000000 /dev/zero > file; exec python3 -m http.server 8000"
GET = ["curl", "-so", "/dev/null", "-w", "%{json}", "http://server:8000/file"]


def path(duration: str = "30 s", **more: Any) -> Scenario:
    about = {"rate": "20 Mbit/s", "rtt": "40 ms", "loss": "1%", **more}
    return Scenario.from_dict({"topology": "path", "duration": duration, "interval": "100 ms", "path": about})


def told(done: Execution, number: int = -1) -> str:
    program = done.programs[number]
    assert program.status == 0, program.stderr.decode()
    return program.stdout.decode()


def on_client(command: str, **more: Any) -> Execution:
    return execute(path(), [Program("client", command, **more)])


@pytest.fixture(scope="module")
def transfers(kernel: object) -> dict[str, Execution]:
    """One HTTP transfer: twice the same, with another control, with another seed."""
    programs = [Program("server", SERVER, ready="port 8000"), Program("client", GET)]
    asked = {"once": {}, "again": {}, "bbr": {"cc": "bbr"}}
    found = {name: execute(path(), programs, **more) for name, more in asked.items()}
    return found | {"other": execute(path().set({"seed": 2}), programs)}


def test_the_same_seed_gives_the_same_bytes_and_times(transfers: dict[str, Execution]) -> None:
    once, again, other = transfers["once"], transfers["again"], transfers["other"]
    assert told(once) == told(again) != told(other)
    assert [(one.start_s, one.end_s) for one in once.programs] == [(one.start_s, one.end_s) for one in again.programs]
    assert once.connections.equals(again.connections)
    for name, table in once.tables.items():
        assert table.equals(again.tables[name]), name


def test_the_run_ends_with_the_last_program_that_nobody_waits_for(transfers: dict[str, Execution]) -> None:
    server, client = transfers["once"].programs
    assert server.start_s is not None
    assert server.start_s < 0
    assert (server.status, server.end_s) == (None, None)
    assert client.start_s == pytest.approx(0, abs=0.01)
    assert transfers["once"].end_s == pytest.approx(client.end_s, abs=1e-3)


def test_connections_name_control_program_and_peer_and_count_to_the_end(transfers: dict[str, Execution]) -> None:
    for name, cc in (("once", "cubic"), ("bbr", "bbr")):
        table = transfers[name].connections
        sent = table[(table["host"] == "server") & (table["sent_bytes"] > 1_000_000)].iloc[-1]
        assert (sent["cc"], sent["program"], sent["peer_host"]) == (cc, 0, "client")
        assert sent["retransmits"] > 0
        assert sent["min_rtt_s"] == pytest.approx(0.040, rel=0.05)


def test_a_number_of_the_output_is_a_measure(transfers: dict[str, Execution]) -> None:
    printed = told(transfers["once"])
    seconds = value_of("stdout:/time_total", printed, "")
    # A megabyte over 20 Mbit/s, and some round trips.
    assert 0.4 < seconds < 10
    assert value_of(r'stdout:"http_code":(\d+)', printed, "") == 200


@pytest.mark.parametrize(
    "wanted", ["time_total", "stdout:", "stdout:/none", "stdout:(", "stdout:http", "nowhere:/a", "stdout:/url"]
)
def test_what_is_no_number_of_the_output_is_refused(wanted: str) -> None:
    with pytest.raises(SawtoothError) as raised:
        value_of(wanted, '{"a": [1], "url": "http://x"}', "")
    assert raised.value.code == "bad-measure"


def test_numbers_are_found_by_pointer_and_by_the_last_match() -> None:
    assert value_of("stdout:/a/1/b~1c", '{"a": [0, {"b/c": 2.5}]}', "") == 2.5
    assert value_of("stderr:(\\d+) ms", "", "rtt 10 ms, then 20 ms") == 20


class TestWhatAProgramSees:
    def test_its_host(self, kernel: object) -> None:
        asked = ["hostname", "getent hosts server | tr -s ' '", "cat /proc/sys/net/ipv4/tcp_congestion_control"]
        command = "; ".join([*asked, "ls /proc | grep -c '^[0-9]'"])
        name, server, control, processes = told(on_client(command)).split("\n")[:4]
        assert (name, server, control) == ("client", "10.0.0.1 server sender", "cubic")
        # Its first process, the shell and the pipe.
        assert int(processes) < 6

    def test_this_machines_files_below_a_layer_of_its_own(self, kernel: object, tmp_path: Path) -> None:
        (tmp_path / "given").write_text("from outside")
        writes = "echo changed > given; cat given; echo x > /usr/own && cat /usr/own"
        command = f"cat given; {writes}; rm /etc/passwd; ls /etc/passwd || true"
        done = on_client(command, directory=str(tmp_path), collect=["given"])
        assert told(done) == "from outsidechanged\nx\n"
        assert (tmp_path / "given").read_text() == "from outside"
        assert not Path("/usr/own").exists()
        assert Path("/etc/passwd").exists()
        assert done.collected == {"client": {"given": b"changed\n"}}

    def test_its_standard_input_and_environment(self, kernel: object) -> None:
        done = on_client('cat; echo "$GIVEN"', stdin=b"typed ", environment={"GIVEN": "set"})
        assert told(done) == "typed set\n"

    def test_nothing_of_a_link_out_of_it_is_collected(self, kernel: object, tmp_path: Path) -> None:
        command = "ln -s /etc/shadow link; mkfifo pipe; echo kept > plain"
        done = on_client(command, directory=str(tmp_path), collect=["*"])
        assert done.collected == {"client": {"plain": b"kept\n"}}


class TestEnds:
    def test_a_program_that_sleeps_for_ever_ends_with_the_run(self, kernel: object) -> None:
        done = execute(path("3 s"), [Program("client", "sleep 1000")])
        assert (done.programs[0].status, done.end_s) == (None, pytest.approx(3, abs=0.2))

    def test_a_fork_bomb_ends_with_the_run(self, kernel: object) -> None:
        bomb = "import os, time\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(1000)"
        done = execute(path("2 s"), [Program("client", ["python3", "-c", bomb])])
        assert done.programs[0].status is None

    def test_a_full_disk_is_the_programs_own(self, kernel: object) -> None:
        done = on_client("head -c 2000000000 /dev/zero > full; echo status $?")
        assert told(done) == "status 1\n"

    def test_status_signal_and_what_cannot_be_started(self, kernel: object) -> None:
        programs = [Program("client", one) for one in ("exit 3", "kill -9 $$", ["no-such-program"])]
        done = execute(path(), programs)
        assert [one.status for one in done.programs] == [3, -9, 127]
        assert b"no-such-program: No such file" in done.programs[2].stderr

    def test_a_server_that_is_never_ready_is_an_error(self, kernel: object) -> None:
        for command, why in (("sleep 1000", "was not ready (port 80)"), ("echo broken >&2; exit 1", "ended: broken")):
            with pytest.raises(SawtoothError) as raised:
                execute(path(), [Program("server", command, ready="port 80"), Program("client", GET)])
            assert raised.value.code == "program-not-ready"
            assert why in raised.value.message


def test_programs_run_beside_listed_flows_and_at_times_of_their_own(kernel: object) -> None:
    scenario = Scenario.from_dict({**path("5 s").to_dict(), "flows": [{"cc": "cubic"}]})
    programs = [Program("client", "date +%s%N", start="1500 ms"), Program("server", "sleep 2")]
    done = execute(scenario, programs)
    assert done.programs[0].start_s == pytest.approx(1.5, abs=1e-3)
    goodput = done.tables["intervals"]["goodput_bps"]
    assert len(goodput) == pytest.approx(20, abs=1)
    assert goodput.mean() > 1e6


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (Program("nobody", "true"), "unknown-name"),
        (Program("client", ""), "bad-program"),
        (Program("client", []), "bad-program"),
        (Program("client", "true", ready="port 0"), "bad-program"),
        (Program("client", "true", ready="port 80", start="1 s"), "bad-program"),
        (Program("client", "true", start="soon"), "bad-quantity"),
    ],
)
def test_a_wrong_program_is_refused_before_anything_starts(program: Program, code: str) -> None:
    with pytest.raises(SawtoothError) as raised:
        execute(path(), [program])
    assert raised.value.code == code
    assert raised.value.fix


def test_a_network_in_a_test_runs_a_command_beside_servers(kernel: object) -> None:
    with network(rate="20 Mbit/s", rtt="40 ms", loss="1%", cc="bbr") as net:
        net.host("server").start(SERVER)
        done = net.host("client").run(GET)
        assert done.seconds == pytest.approx(value_of("stdout:/time_total", done.stdout, ""), abs=0.1)
        with pytest.raises(subprocess.CalledProcessError) as raised:
            net.host("client").run("echo no >&2; exit 4")
        assert (raised.value.returncode, raised.value.stderr) == (4, "no\n")
    with network(rate="20 Mbit/s", rtt="40 ms", duration="1 s") as net, pytest.raises(subprocess.TimeoutExpired):
        net.host("client").run("sleep 5")


class TestTheCommand:
    PATH = ("exec", "--rate", "20 Mbit/s", "--rtt", "40 ms")

    def test_prints_what_the_program_prints_and_exits_as_it_does(
        self, kernel: object, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        command = [*self.PATH, "--server", SERVER, "--out", str(tmp_path / "out"), "--"]
        assert status_of([*command, "sh", "-c", "curl -so /dev/null http://server:8000/file; echo done; exit 3"]) == 3
        told = capfd.readouterr()
        assert told.out == "done\n"
        assert "exited with status 3 after " in told.err
        assert re.search(r"server +client:\d+ +cubic +1,000,\d+ ", told.err)
        assert (tmp_path / "out" / "program-1.out").read_text() == "done\n"
        assert len(pd.read_parquet(tmp_path / "out" / "connections.parquet")) > 0

    def test_time_that_is_up_is_status_124(self, kernel: object, capfd: pytest.CaptureFixture[str]) -> None:
        assert status_of([*self.PATH, "--duration", "1 s", "--json", "--", "sleep", "9"]) == 124
        (only,) = json.loads(capfd.readouterr().out)["programs"]
        assert (only["status"], only["end_s"]) == (None, None)

    def test_several_controls_and_seeds_are_rows_of_a_table(
        self, kernel: object, capfd: pytest.CaptureFixture[str]
    ) -> None:
        asked = ["--cc", "cubic", "--cc", "bbr", "--measure", "control=stdout:(\\d)", "--json", "--seed", "7"]
        command = ["sh", "-c", "grep -c bbr /proc/sys/net/ipv4/tcp_congestion_control; true"]
        assert status_of([*self.PATH, *asked, "--", *command]) == 0
        rows = json.loads(capfd.readouterr().out)
        assert [(row["cc"], row["seed"], row["control"]) for row in rows] == [("cubic", 7, 0), ("bbr", 7, 1)]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ((), "there is no command"),
            (("--cc", "cubic", "--cc", "bbr", "--out", "x", "--", "true"), "--out: it is for one run"),
            (("--seeds", "2", "--collect", "x", "--", "true"), "--collect: it is for one run"),
            (("--seeds", "2", "--seed", "3", "--", "true"), "--seed: it is for one run"),
            (("--measure", "stdout:/a", "--", "true"), "has no name"),
            (("--ready", "port 80", "--", "true"), "there is no server"),
            (("office.toml", "--", "true"), "--rate: FILE has a path already"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, options: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert status_of([*self.PATH, *options]) == 2
        told = capfd.readouterr().err
        assert said in " ".join(told.split())
        assert "fix: " in told

    def test_a_control_that_the_kernel_lacks_is_refused(
        self, kernel: object, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert status_of([*self.PATH, "--cc", "cubik", "--", "true"]) == 2
        assert "cc: this kernel has no cubik" in capfd.readouterr().err


@pytest.mark.parametrize("engine", ["sim", "model"])
def test_engines_without_a_kernel_say_which_have_one(engine: str) -> None:
    with pytest.raises(SawtoothError, match="runs no programs") as raised:
        execute(path(), [Program("client", "true")], engine=engine)
    assert raised.value.fix == "use --engine kernel or netns"


def test_on_this_hosts_kernel(namespaces: None, tmp_path: Path) -> None:
    scenario = Scenario.from_dict(
        {"topology": "path", "duration": "20 s", "path": {"rate": "20 Mbit/s", "rtt": "0 s", "queue": "100 packets"}}
    )
    before = set(os.listdir("/run/netns")) if Path("/run/netns").exists() else set()
    programs = [Program("server", SERVER, ready="port 8000"), Program("client", GET)]
    done = execute(scenario, programs, engine="netns")
    seconds = value_of("stdout:/time_total", told(done), "")
    assert 0.4 < seconds < 2
    assert (set(os.listdir("/run/netns")) if Path("/run/netns").exists() else set()) == before
