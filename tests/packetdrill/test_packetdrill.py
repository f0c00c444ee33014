"""``sawtooth packetdrill``: scripts on the simulator, and by packetdrill itself in a guest."""

import json
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.kernel import Kernel
from sawtooth.packetdrill import (
    FAILED,
    NOT_APPLICABLE,
    PASSED,
    ScriptResult,
    find_scripts,
    played_on_kernel,
    played_on_sim,
)
from sawtooth.packetdrill.guest import find_program

# A connection that the peer opens with an RTT of 50 ms; the first window then leaves.
SENT = """
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 64000 <mss 1000,sackOK,nop,nop,nop,wscale 8>
+0 > S. 0:0(0) ack 1 <...>
+.05 < . 1:1(0) ack 1 win 1000
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 30000) = 30000
+0 > P. 1:{end}({length}) ack 1
"""
PASSES = SENT.format(end=10001, length=10000)
FAILS = SENT.format(end=9001, length=9000)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "passes.pkt").write_text(PASSES)
    (tmp_path / "sent" / "fails.pkt").write_text(FAILS)
    (tmp_path / "other.pkt").write_text("0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3\n")
    return tmp_path


def test_scripts_of_a_directory_are_found_by_name(scripts: Path) -> None:
    assert [one.name for one in find_scripts([scripts])] == ["other", "sent/fails", "sent/passes"]
    assert [one.name for one in find_scripts([scripts / "sent" / "fails.pkt"])] == ["fails"]


@pytest.mark.parametrize("given", ["missing", "missing.pkt", "empty"])
def test_a_path_without_scripts_is_refused(tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").mkdir()
    with expected_error(code="file-not-found", file=str(tmp_path / given)):
        find_scripts([tmp_path / given])


def test_sim_names_the_first_difference(scripts: Path) -> None:
    other, fails, passes = [played_on_sim(one) for one in find_scripts([scripts])]
    assert (passes.verdict, passes.packets) == (PASSED, 1)
    assert (fails.verdict, fails.line) == (FAILED, 10)
    assert "1:9001(9000)" in fails.reason
    assert other.verdict == NOT_APPLICABLE
    assert other.reason


def test_the_command_lists_what_did_not_pass_and_ends_with_1(scripts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["packetdrill", str(scripts)]) == 1
    said = capsys.readouterr().out
    assert "sent/fails" in said
    assert "sent/passes" not in said
    folded = " ".join(said.split())
    assert "sim: 1 of 2 applicable scripts passed, 1 failed; 1 are not applicable." in folded
    assert "Of 2 data-path scripts 1 passed" in folded
    assert "sent sim 1 1 0" in folded
    assert status_of(["packetdrill", str(scripts / "sent" / "passes.pkt"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["script"], row["engine"], row["verdict"], row["data_path"]) == ("passes", "sim", "passed", True)


@pytest.mark.parametrize("given", ["model", "sim,model", "sim,"])
def test_an_engine_that_plays_no_scripts_is_refused(
    scripts: Path, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    assert status_of(["packetdrill", str(scripts), "--engine", given]) == 2
    assert "error[bad-usage]: --engine" in capsys.readouterr().err


def test_engines_may_be_listed_with_commas(
    scripts: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = [ScriptResult(one.name, "kernel", PASSED) for one in find_scripts([scripts])]
    monkeypatch.setattr("sawtooth.cli.packetdrill_command._on_kernel", lambda *_: played)
    assert status_of(["packetdrill", str(scripts), "--engine", "sim,kernel"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "sim: 1 of 2 applicable" in said
    assert "kernel: 3 of 3 applicable" in said


def test_a_tolerance_of_0_holds_for_scripts_that_state_none(tmp_path: Path) -> None:
    late = f"{PASSES}+.05 < . 1:1(0) ack 10001 win 1000\n+.002 > . 10001:30001(20000) ack 1\n"
    (tmp_path / "late.pkt").write_text(late)
    (tmp_path / "states.pkt").write_text(f"--tolerance_usecs=4000\n{late}")
    scripts = find_scripts([tmp_path])
    assert [played_on_sim(one).verdict for one in scripts] == [PASSED, PASSED]
    assert [played_on_sim(one, tolerance_us=0).verdict for one in scripts] == [FAILED, PASSED]


def test_a_script_about_calls_is_outside_the_data_path(tmp_path: Path) -> None:
    (tmp_path / "calls.pkt").write_text(PASSES + "+0 splice(4, NULL, 6, NULL, 99, 0) = 99\n")
    (tmp_path / "data.pkt").write_text(PASSES)
    calls, data = find_scripts([tmp_path])
    assert calls.outside_data_path() == "line 11: system call splice"
    assert data.outside_data_path() is None


def test_without_packetdrill_the_kernel_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with expected_error(code="tool-missing"):
        find_program()


STAND_IN = """#!/bin/sh
# Ends as packetdrill does, by the script's name; the last argument is the script.
for script; do :; done
got="Expected result 0 but got -1 with errno 92"
case "$(basename "$script")" in
passes.pkt) [ -c /dev/net/tun ] && ! ip route | grep . && exit 0 ;;
differs.pkt) echo "differs.pkt:7: error handling packet: live packet field tcp_seq: expected: 1 vs actual: 2" ;;
asserts.pkt) printf 'asserts.pkt:9: error in Python code\\nTraceback\\nAssertionError: 36\\nstatus 1\\n' ;;
needs.pkt) printf 'sh: cannot create /sys/x\\nneeds.pkt: error executing init command: non-zero status 2\\n' ;;
lacks.pkt) echo "lacks.pkt:3: runtime error in setsockopt call: $got (Protocol not available)" ;;
stated.pkt | unstated.pkt) echo "$*" | grep -o -- '--tolerance.*' ;;
routes.pkt) printf 'RTNETLINK answers: No route to host\\nroutes.pkt:1: bad value\\n' ;;
six.pkt) echo "$*" | grep -q -- '--ip_version=ipv6' && exit 0 ;;
unsent.pkt) echo "unsent.pkt:3: error handling packet" ;;
writes.pkt) echo 3 >/sys/module/tcp_cubic/parameters/hystart_detect && exit 0 ;;
refuses.pkt) echo "refuses.pkt:4: error in socket call: Expected -1 (Operation not supported) but got 3" ;;
esac >&2
exit 1
"""


def test_on_the_kernel_each_script_has_a_namespace_and_a_verdict(kernel: Kernel, tmp_path: Path) -> None:
    texts = {
        "six": "--ip_version=ipv6\n",
        "unsent": "+.1 < . 1:1(0) ack 1 win 9\n+0 < . 1:10(9) win 9\n+0 > . 1:1(0)\n",
    }
    for name in ("asserts", "differs", "lacks", "needs", "passes", "refuses", "routes", "six", "unsent", "writes"):
        (tmp_path / f"{name}.pkt").write_text(texts.get(name, "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n"))
    program = tmp_path / "packetdrill"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    played = played_on_kernel(find_scripts([tmp_path]), program=program)
    assert [(one.script, one.verdict, one.line) for one in played] == [
        ("asserts", FAILED, 9),
        ("differs", FAILED, 7),
        ("lacks", NOT_APPLICABLE, 3),
        ("needs", NOT_APPLICABLE, None),
        ("passes", PASSED, None),
        ("refuses", FAILED, 4),
        ("routes", NOT_APPLICABLE, 1),
        ("six", PASSED, None),
        ("unsent", NOT_APPLICABLE, 3),
        ("writes", PASSED, None),
    ]
    assert [one.reason for one in played[:2]] == [
        "AssertionError: 36",
        "error handling packet: live packet field tcp_seq: expected: 1 vs actual: 2",
    ]


def test_on_the_kernel_the_given_tolerance_is_for_scripts_that_state_none(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "stated.pkt").write_text("--tolerance_usecs=9000\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n")
    (tmp_path / "unstated.pkt").write_text("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n")
    program = tmp_path / "packetdrill"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    stated, unstated = played_on_kernel(find_scripts([tmp_path]), program=program, tolerance_us=0)
    assert "tolerance" not in stated.reason
    assert unstated.reason.startswith("--tolerance_usecs=1 --tolerance_percent=0 ")
