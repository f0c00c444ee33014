"""Programs on a scenario's hosts: what they see, when they run, what is kept from them; on the real kernel."""

import contextlib
import json
import math
import os
import pty
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sawtooth
from executed import KERNEL, Executed, execute, program
from expected_error import expected_error
from sawtooth.assertions import judge
from sawtooth.cli.program import status_of
from sawtooth.engines import kernel as engine_kernel
from sawtooth.engines.netns import Netns
from sawtooth.errors import SawtoothError
from sawtooth.programs import Finished, finished
from sawtooth.programs.measure import value_of
from sawtooth.report import write_report
from sawtooth.scenario import Scenario
from sawtooth.study import Study, run_study, terminal
from sawtooth.testbed.programs import Supervisor
from sawtooth.testbed.pseudo_terminal import Keys, Terminal
from sawtooth.testing import network

SERVER = "head -c 1000000 /dev/zero > file; exec python3 -m http.server 8000"
GET = ["curl", "-so", "/dev/null", "-w", "%{json}", "http://server:8000/file"]


def path(duration: str = "30 s", **more: Any) -> Scenario:
    about = {"rate": "20 Mbit/s", "rtt": "40 ms", "loss": "1%", **more}
    return Scenario.from_dict({"topology": "path", "duration": duration, "interval": "100 ms", "path": about})


def told(one: Executed | Finished) -> str:
    one = one if isinstance(one, Finished) else one.programs[-1]
    assert one.status == 0, one.stderr.decode()
    return one.stdout.decode()


def printed(stdout: str, stderr: str = "", status: int | None = 0) -> Finished:
    return Finished("client", "client", "true", 0.0, 1.5, status, stdout.encode(), stderr.encode())


def on_client(command: str, **more: Any) -> Executed:
    return execute(path(), [program("client", command, **more)])


UDP = "import socket, time; s = socket.socket(2, 2); time.sleep(1); s.bind(('', 8000)); time.sleep(1000)"
ASKED = ["hostname", "getent hosts server | tr -s ' '", "cat /proc/sys/net/ipv4/tcp_congestion_control"]
ASKED += ["ls /proc | grep -c '^[0-9]'"]
APART: dict[str, dict[str, Any]] = {
    # The file that they print into appears a moment after their start.
    "ready 1": program("server", "sleep 1; echo now; sleep 1000", ready="now"),
    "ready 2": program("server", "sleep 1; echo now >&2; sleep 1000", ready="now"),
    "tcp": program("server", SERVER, ready="listening"),
    "udp": program("server", ["python3", "-c", UDP], ready="listening"),
    "date": program("client", "date -u '+%F %R'"),
    "given": program("client", 'cat; echo "$GIVEN"', stdin="typed ", environment={"GIVEN": "set"}),
    "addresses": program("client", "ip -4 -o address"),
    "killed": program("client", "kill -9 $$"),
    "absent": program("client", ["no-such-program"]),
    "failed": program("client", "echo 5; exit 3", measure={"load_s": "stdout:(.)", "code": "status"}),
    # Alone at its time.
    "host": program("client", "; ".join(ASKED), start="5 s"),
    "full": program("client", "dd if=/dev/zero of=full bs=1M count=2048; echo status $?", start="10 s"),
}
"""Programs that do not disturb each other."""


@pytest.fixture(scope="module")
def apart(kernel: object) -> Executed:
    """All of them in one guest: its start takes longer than they do."""
    return execute(path(loss="0%"), list(APART.values()))


def one_of(apart: Executed, name: str) -> Finished:
    return apart.programs[list(APART).index(name)]


@pytest.fixture(scope="module")
def transfers(kernel: object) -> dict[str, Executed]:
    """One HTTP transfer: twice the same, with another control, with another seed."""
    programs = [program("server", SERVER, ready="port 8000"), program("client", GET)]
    asked = {"once": {}, "again": {}, "bbr": {"cc": "bbr"}}
    found = {name: execute(path(), programs, **more) for name, more in asked.items()}
    return found | {"other": execute(path().set({"seed": 2}), programs)}


def test_the_same_seed_gives_the_same_bytes_and_times(transfers: dict[str, Executed]) -> None:
    once, again, other = transfers["once"], transfers["again"], transfers["other"]
    assert told(once) == told(again) != told(other)
    assert [(one.start_s, one.end_s) for one in once.programs] == [(one.start_s, one.end_s) for one in again.programs]
    assert once.connections.equals(again.connections)
    for name, table in once.run.tables.items():
        assert table.equals(again.run.tables[name]), name


def test_the_run_ends_with_the_last_program_that_nobody_waits_for(transfers: dict[str, Executed]) -> None:
    server, client = transfers["once"].programs
    assert server.start_s is not None
    assert server.start_s < 0
    assert (server.status, server.end_s) == (None, None)
    assert client.start_s == pytest.approx(0, abs=0.01)
    assert transfers["once"].run.end_s == pytest.approx(client.end_s, abs=1e-3)


def test_connections_name_control_program_and_peer_and_count_to_the_end(transfers: dict[str, Executed]) -> None:
    for name, cc in (("once", "cubic"), ("bbr", "bbr")):
        table = transfers[name].connections
        sent = table[(table["host"] == "server") & (table["sent_bytes"] > 1_000_000)].iloc[-1]
        assert (sent["cc"], sent["program"], sent["peer_host"]) == (cc, "server", "client")
        assert sent["retransmits"] > 0
        assert sent["min_rtt_s"] == pytest.approx(0.040, rel=0.05)


def test_a_number_of_the_output_is_a_measure(transfers: dict[str, Executed]) -> None:
    client = transfers["once"].programs[-1]
    # A megabyte over 20 Mbit/s, and some round trips.
    assert 0.4 < client.value("stdout:/time_total") < 10
    assert client.value(r'stdout:"http_code":(\d+)') == 200


@pytest.mark.parametrize(
    "wanted", ["time_total", "stdout:", "stdout:/none", "stdout:(", "stdout:http", "nowhere:/a", "stdout:/url"]
)
def test_what_is_no_number_of_the_output_is_refused(wanted: str) -> None:
    with expected_error(code="bad-measure"):
        value_of(wanted, printed('{"a": [1], "url": "http://x"}'))


def test_numbers_are_found_by_pointer_and_by_the_last_match() -> None:
    assert value_of("stdout:/a/1/b~1c", printed('{"a": [0, {"b/c": 2.5}]}')) == 2.5
    assert value_of("stderr:(\\d+) ms", printed("", "rtt 10 ms, then 20 ms")) == 20
    assert value_of("seconds", printed("")) == 1.5
    assert value_of("status", printed("", status=-9)) == 137


class TestWhatAProgramSees:
    def test_its_host(self, apart: Executed) -> None:
        name, server, control, processes = told(one_of(apart, "host")).split("\n")[:4]
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

    def test_the_time_of_day_that_was_asked_for(self, kernel: object, apart: Executed) -> None:
        assert told(one_of(apart, "date")).strip() == "2026-01-01 00:00"
        scenario = path("2 s").set({"date": "2031-05-06 07:08:09"})
        assert told(execute(scenario, [APART["date"]])).strip() == "2031-05-06 07:08"

    def test_its_standard_input_and_environment(self, apart: Executed) -> None:
        assert told(one_of(apart, "given")) == "typed set\n"

    def test_nothing_of_a_link_out_of_it_is_collected(self, kernel: object, tmp_path: Path) -> None:
        command = "ln -s /etc/shadow link; mkfifo pipe; echo kept > plain"
        done = on_client(command, directory=str(tmp_path), collect=["*"])
        assert done.collected == {"client": {"plain": b"kept\n"}}


class TestEnds:
    def test_a_program_that_sleeps_forever_ends_with_the_run(self, kernel: object) -> None:
        done = execute(path("3 s"), [program("client", "sleep 1000")])
        assert (done.programs[0].status, done.run.end_s) == (None, pytest.approx(3, abs=0.2))

    def test_a_fork_bomb_ends_with_the_run(self, kernel: object) -> None:
        bomb = "import os, time\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(1000)"
        done = execute(path("2 s"), [program("client", ["python3", "-c", bomb])])
        assert done.programs[0].status is None

    def test_a_full_disk_is_the_programs_own(self, apart: Executed) -> None:
        assert told(one_of(apart, "full")) == "status 1\n"

    def test_status_signal_and_what_cannot_be_started(self, apart: Executed) -> None:
        assert [one_of(apart, name).status for name in ("failed", "killed", "absent")] == [3, -9, 127]
        assert b"no-such-program: No such file" in one_of(apart, "absent").stderr

    def test_a_server_that_is_never_ready_is_an_error(self, kernel: object) -> None:
        for command, why in (
            ("sleep 1000", "was not ready (port 80)"),
            ("echo broken >&2; exit 1", "ended with status 1 before it was ready: broken"),
            (
                "exec no-such-server -d",
                'status 127), by the command "exec no-such-server -d": /bin/sh: 1: exec: no-such',
            ),
        ):
            with expected_error(code="program-not-ready") as raised:
                execute(path(), [program("server", command, ready="port 80"), program("client", GET)])
            assert why in raised.value.message


def test_a_server_is_ready_once_it_has_printed_a_line(apart: Executed) -> None:
    first, second, third = (one_of(apart, name).start_s or 0 for name in ("ready 1", "ready 2", "tcp"))
    assert second - first >= 1
    assert third - second >= 1


def test_a_server_listens_on_udp_too_where_tcp_has_the_same_port(apart: Executed) -> None:
    assert one_of(apart, "date").status == 0
    started = {name: one_of(apart, name).start_s or 0 for name in APART}
    assert started["tcp"] < started["udp"]
    # It binds its socket after a second.
    assert min(at for at in started.values() if at > started["udp"]) - started["udp"] >= 1


class TestAShellOnATerminal:
    KEYS = b"stty -echo; PS1=; echo $((6 * 7)) $(tty) $TERM; stty size; sleep 5; exit 3\n"

    def test_gets_keys_and_a_size_and_its_status_counts(self, kernel: object) -> None:
        keys = iter([self.KEYS])
        terminal = Terminal(30, 90, "xterm", lambda: next(keys, b""))
        scenario = path("60 s").set({"programs": [program("client", ["bash", "--norc"])]})
        (shell,) = finished(replace(KERNEL, terminal=terminal).run(scenario))
        assert (shell.status, shell.stderr) == (3, b"")
        shown = shell.stdout.decode()
        for wanted in ("42 /dev/pts/0 xterm\r\n", "30 90\r\n"):
            assert wanted in shown
        assert shell.seconds is not None
        assert 5 < shell.seconds < 60

    def test_keys_go_nowhere_else(self, tmp_path: Path) -> None:
        share, outside = tmp_path / "share", tmp_path / "outside"
        share.mkdir()
        outside.write_text("mine")
        (share / "typing").symlink_to(outside)
        (share / "typed-1").mkdir()
        keys = Keys(share, Terminal(30, 90, "xterm", lambda: b"secret"))
        for _ in range(3):
            keys.pass_on()
        assert outside.read_text() == "mine"
        assert [(share / f"typed-{number}").read_bytes() for number in (0, 2)] == [b"secret", b"secret"]

    def test_is_what_a_person_gets_who_types_no_more_than_a_shell(self, kernel: object, tmp_path: Path) -> None:
        command = [sys.executable, "-c", "from sawtooth.cli import main; main()", *TestTheCommand.PATH, "--", "bash"]
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(tmp_path)
            os.execv(command[0], command)
        os.write(terminal, b"echo $(hostname) $((6 * 7)); exit 4\n")
        shown = b""
        with contextlib.suppress(OSError):
            while piece := os.read(terminal, 1 << 16):
                shown += piece
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        assert b"client 42\r\n" in shown


def test_a_host_has_its_address_on_its_devices_too(apart: Executed) -> None:
    # dnsmasq answers over TCP only if the device that received a packet has an address.
    found = re.findall(r"^\d+: (\S+) +inet (10\.\S+)", told(one_of(apart, "addresses")), re.MULTILINE)
    devices = [device for device, _ in found]
    assert "lo" in devices
    assert len(devices) > 1
    assert len({address for _, address in found}) == 1


class TestMemory:
    def test_a_guest_that_does_not_fit_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine_kernel, "_available", lambda: 1 << 30)
        with pytest.raises(SawtoothError) as raised, engine_kernel._room("3072M", lambda: None):
            pass
        assert raised.value.code == "guest-failed"
        assert "a guest of 3.0 GiB does not fit into 1.0 GiB" in raised.value.message

    def test_one_that_fits_alone_waits_for_the_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine_kernel, "_available", lambda: 5 << 30)
        order: list[str] = []

        def second() -> None:
            with engine_kernel._room("3072M", lambda: waits.set()):
                order.append("second")

        waits = threading.Event()
        other = threading.Thread(target=second)
        with engine_kernel._room("3072M", lambda: None):
            other.start()
            assert waits.wait(60)
            order.append("first")
        other.join(60)
        assert order == ["first", "second"]


@pytest.fixture(scope="module")
def beside(kernel: object) -> Executed:
    """Programs beside a flow."""
    scenario = path("5 s", loss="0%").set({"flows": [{"cc": "cubic"}]})
    send = "import socket; s = socket.socket(2, 2); [s.sendto(b'x', ('server', 9)) for _ in range(5)]"
    timed = [program("client", "date +%s%N", start="1500 ms"), program("server", "sleep 2")]
    return execute(scenario, [*timed, program("client", ["python3", "-c", send])])


def test_programs_run_beside_listed_flows_and_at_times_of_their_own(beside: Executed) -> None:
    assert beside.programs[0].start_s == pytest.approx(1.5, abs=1e-3)
    goodput = beside.run.tables["intervals"]["goodput_bps"]
    assert len(goodput) == pytest.approx(20, abs=1)
    assert goodput.mean() > 15e6


def test_datagrams_are_counted_by_host(beside: Executed) -> None:
    udp = beside.run.tables["udp"].set_index("host")
    assert (udp["sent"]["client"], udp["sent"]["server"], udp["no_port"]["server"]) == (5, 0, 5)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (program("nobody", "true"), "unknown-name"),
        (program("client", ""), "bad-program"),
        (program("client", []), "bad-program"),
        (program("client", "true", ready="port 0"), "bad-program"),
        (program("client", "true", ready="port +80"), "bad-program"),
        (program("client", "true", ready="port 80", start="1 s"), "bad-program"),
        (program("client", "true", start="soon"), "bad-quantity"),
    ],
)
def test_a_wrong_program_is_refused_before_anything_starts(wrong: dict[str, Any], code: str) -> None:
    with expected_error(code=code) as raised:
        execute(path(), [wrong])
    assert raised.value.fix


def test_a_network_in_a_test_runs_a_command_beside_servers(kernel: object) -> None:
    with network(rate="20 Mbit/s", rtt="40 ms", loss="1%", cc="bbr") as net:
        net.host("server").start(SERVER)
        done = net.host("client").run(GET)
        assert done.seconds == pytest.approx(json.loads(done.stdout)["time_total"], abs=0.1)
        with pytest.raises(subprocess.CalledProcessError) as raised:
            net.host("client").run("echo no >&2; exit 4")
        assert (raised.value.returncode, raised.value.stderr) == (4, "no\n")
    with network(rate="20 Mbit/s", rtt="40 ms", duration="1 s") as net, pytest.raises(subprocess.TimeoutExpired):
        net.host("client").run("sleep 5")


def test_a_wait_without_sleep_ends(kernel: object) -> None:
    # times() moves no clock, and neither does select() that does not wait.
    busy = "import os\nsince = os.times().elapsed\nwhile os.times().elapsed < since + 0.1: pass"
    with network(rate="20 Mbit/s", rtt="40 ms", duration="10 s") as net:
        first, second = (net.host("client").run(["python3", "-c", busy]) for _ in range(2))
    assert 0.05 < (first.seconds or 0) < 0.2
    assert first.seconds == second.seconds


@pytest.mark.parametrize("boot_ns", [2_933_248, 2_940_416, 7_000_001, 99_999_999])
def test_servers_start_at_the_same_nanosecond_whatever_came_before(
    boot_ns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [boot_ns]

    def sleep(seconds: float) -> None:
        now[0] += math.ceil(seconds * 1e9)  # as CPython rounds

    clock = SimpleNamespace(monotonic=lambda: now[0] / 1e9, sleep=sleep)
    monkeypatch.setattr("sawtooth.testbed.programs.time", clock)
    Supervisor({"programs": []}, {}, tmp_path).serve()
    assert now == [100_000_000]


def test_computing_takes_no_time_unless_it_does_not_end(kernel: object) -> None:
    # Each of them makes no system call while it computes.
    some = program("client", ["python3", "-c", "for _ in range(60_000_000): pass"])
    endless = [program("server", ["python3", "-c", "while True: pass"])]
    done = execute(path(), [some])
    assert told(done) == ""
    assert done.programs[0].seconds is not None
    assert done.programs[0].seconds < 0.1
    done = execute(path("5 s"), [*endless, program("client", "sleep 1; echo slept")])
    assert told(done) == "slept\n"
    assert done.programs[0].status is None
    assert done.programs[0].describe().endswith("ran until the run ended")


FILE = {
    "duration": "30 s",
    "path": {"rate": "20 Mbit/s", "rtt": "40 ms"},
    "programs": [
        program("server", SERVER, ready="port 8000"),
        program("client", GET, measure={"load_s": "stdout:/time_total", "took_s": "seconds"}),
    ],
}


class TestAFile:
    def test_lists_programs_which_then_have_the_path_for_themselves(self) -> None:
        scenario = Scenario.from_dict(FILE)
        assert scenario.flows == ()
        assert [one.host for one in scenario.programs] == ["server", "client"]
        compiled = scenario.compile()
        assert (compiled.programs, compiled.program_hosts) == (("server", "client"), ("sender", "receiver"))
        assert dict(compiled.called) == {"sender": "server", "receiver": "client"}
        assert Scenario.from_dict(scenario.to_dict()) == scenario
        assert scenario.set({"programs.client.measure": {}}).programs[1].measure == {}

    def test_starts_them_in_its_own_directory(self, tmp_path: Path) -> None:
        (tmp_path / "site").mkdir()
        (tmp_path / "one.toml").write_text('[[programs]]\nhost = "client"\ncommand = "pwd"\n')
        (tmp_path / "two.toml").write_text('[[programs]]\nhost = "client"\ncommand = "pwd"\ndirectory = "site"\n')
        found = [Scenario.load(tmp_path / name).programs[0].directory for name in ("one.toml", "two.toml")]
        assert found == [str(tmp_path), str(tmp_path / "site")]

    @pytest.mark.parametrize("engine", ["sim", "model"])
    def test_is_refused_by_engines_with_a_simulated_tcp(self, engine: str) -> None:
        with expected_error(code="unsupported", field="programs") as raised:
            sawtooth.run(Scenario.from_dict(FILE), engine=engine)
        assert "--engine kernel" in str(raised.value.fix)

    def test_is_drawn_as_custom_with_flows_only_whose_ends_have_the_names(self) -> None:
        with expected_error(code="unsupported", field="programs"):
            Scenario.from_dict(FILE).as_custom()
        drawn = Scenario.from_dict({**FILE, "flows": [{}]}).as_custom().compile()
        assert dict(drawn.called) == {"sender": "server", "receiver": "client"}

    def test_gives_hosts_a_congestion_control(self) -> None:
        with expected_error(code="unknown-name", field="hosts.sender.cc") as raised:
            Scenario.from_dict({**FILE, "hosts": {"sender": {"cc": "cubik"}}})
        assert "cubic" in str(raised.value.fix)

    def test_is_a_run_that_is_saved_and_loaded(self, transfers: dict[str, Executed], tmp_path: Path) -> None:
        run = transfers["once"].run
        loaded = sawtooth.Run.load(run.save(tmp_path / "run"))
        assert [one.stdout for one in finished(loaded)] == [one.stdout for one in finished(run)]
        assert loaded.end_s == run.end_s < 30

    def test_has_a_measure_that_no_other_column_is(self) -> None:
        wrong = {**FILE, "programs": [program("client", "true", measure={"mean_mbps": "seconds"})]}
        with expected_error(code="conflict"):
            Study.from_dict({"name": "pages", "scenario": wrong, "expect": {"some": "mean_mbps > 1 Mbit/s"}})


class TestWhatGoesWrong:
    def test_a_run_of_servers_only_lasts_as_long_as_its_flows(self, kernel: object) -> None:
        scenario = path("3 s").set({"flows": [{"cc": "cubic"}]})
        done = execute(scenario, [program("server", SERVER, ready="port 8000")])
        assert done.run.end_s == pytest.approx(3, abs=0.01)
        assert done.run.tables["intervals"]["goodput_bps"].mean() > 1e6

    def test_what_a_failed_program_printed_is_no_measurement_and_the_run_warns(self, apart: Executed) -> None:
        assert apart.run.meta["measured"] == {"load_s": None, "code": 3}
        assert any("exited with status 3" in warning for warning in apart.run.warnings)

    def test_a_number_that_is_not_there_is_an_error_with_the_field_and_the_output(self, kernel: object) -> None:
        with expected_error(code="bad-measure", field="programs.0.measure.load_s") as raised:
            execute(path(), [program("client", "echo hello", measure={"load_s": "stdout:(\\d)"})])
        assert 'begins with "hello"' in str(raised.value.fix)

    @pytest.mark.parametrize(
        ("wrong", "code", "field"),
        [
            ({"directory": "/no/such"}, "file-not-found", "programs.1.directory"),
            ({"files": ["/no/such"]}, "file-not-found", "programs.1.files.0"),
            ({"measure": {"one": "seconds"}}, "conflict", "programs.1.measure.one"),
            ({"measure": {"two": "nowhere"}}, "bad-measure", "programs.1.measure.two"),
        ],
    )
    def test_it_is_reported_before_anything_starts(self, wrong: dict[str, Any], code: str, field: str) -> None:
        programs = [program("client", "true", measure={"one": "seconds"}), program("client", "true", **wrong)]
        with expected_error(code=code, field=field):
            execute(path(), programs)

    def test_of_a_file_the_directory_is_shown(self, kernel: object, tmp_path: Path) -> None:
        (tmp_path / "given").write_text("from outside")
        assert told(on_client(f"cat {tmp_path}/given", files=[str(tmp_path / "given")])) == "from outside"


def test_a_study_has_a_column_of_what_programs_measure_and_expects_of_it(kernel: object, tmp_path: Path) -> None:
    study = Study.from_dict(
        {
            "name": "pages",
            "scenario": {**FILE, "host": {"cc": "bbr"}},
            "vary": {"path.loss": ["0%", "2%"]},
            "repeat": {"seeds": [1, 2, 3]},
            "expect": {"quick": "load_s(loss=2%) < 5 s", "slow": "load_s(loss=0%) > 2 s"},
        }
    )
    result = run_study(study, engine="kernel", out=tmp_path, quiet=True, ending=write_report)
    rows = result.details[result.details["seed"] != "all"]
    assert list(rows["load_s"]) == pytest.approx(list(rows["took_s"]), abs=0.1)
    assert study.headline == "load_s"
    assert "load_s" in terminal.table(result)
    assert "Programs of the first run" in (result.directory / "report.html").read_text()
    assert [one.verdict for one in judge(result).verdicts] == ["holds", "fails"]


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
        saved = sawtooth.Run.load(tmp_path / "out")
        assert finished(saved)[1].stdout == b"done\n"
        assert len(saved.tables["connections"]) > 0

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
        assert 'no congestion control is named "cubik"' in capfd.readouterr().err


def test_on_this_hosts_kernel(namespaces: None, tmp_path: Path) -> None:
    scenario = Scenario.from_dict(
        {"topology": "path", "duration": "20 s", "path": {"rate": "20 Mbit/s", "rtt": "0 s", "queue": "100 packets"}}
    )
    before = set(os.listdir("/run/netns")) if Path("/run/netns").exists() else set()
    programs = [program("server", SERVER, ready="port 8000"), program("client", GET)]
    done = execute(scenario, programs, engine=Netns())
    seconds = done.programs[-1].value("stdout:/time_total")
    assert 0.4 < seconds < 2
    assert (set(os.listdir("/run/netns")) if Path("/run/netns").exists() else set()) == before
