"""The doctor reports which engines work here and why others do not, which settings of this host matter to TCP, and
changes nothing.
"""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sawtooth.cli.program import status_of
from sawtooth.doctor import examination, examine, host, probe, words
from sawtooth.kernel import Guest, Kernel

HERE = frozenset(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def found(kernel: Kernel) -> dict:
    return examine()


def state() -> tuple[str, ...]:
    """What an examination must leave unchanged."""
    commands = (
        ["ip", "-d", "link"],
        ["ip", "netns"],
        ["tc", "qdisc"],
        ["sh", "-c", "cat /proc/modules | cut -f 1 -d ' '"],
    )
    texts = [subprocess.run(command, capture_output=True, text=True).stdout for command in commands]
    return (*texts, *(Path(f"/proc/sys/net/ipv4/tcp_{name}").read_text() for name in ("congestion_control", "rmem")))


@pytest.mark.usefixtures("patience")
def test_an_examination_changes_nothing() -> None:
    before = state()
    examine()
    assert state() == before


def test_every_engine_works_or_says_why_not(found: dict) -> None:
    assert list(found["engines"]) == ["model", "sim", "kernel", "netns"]
    for engine in found["engines"].values():
        assert engine["works"] == (engine["reasons"] == [])
    for name in ("model", "sim", "kernel"):
        assert found["engines"][name]["works"], found["engines"][name]["reasons"]


def test_what_a_guest_needs_of_the_processor_is_reported(found: dict) -> None:
    told = found["tracing"]
    assert told["ptrace"] is True
    features = Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()
    if "xsave" in features:
        # At least the legacy part and the header; AMX adds two kinds of state, one of 8 KiB.
        assert told["xstate_bytes"] >= (576 + 8192 if "amx_tile" in features else 576)
    line = next(line for line in words(found).splitlines() if line.startswith("  guests"))
    assert "ptrace works" in line
    assert told["xstate_bytes"] is None or f"{told['xstate_bytes']:,} bytes" in line


@pytest.mark.parametrize(("length", "wide"), [(11_008, True), (2_696, False), (2_440, False), (None, False)])
def test_a_state_longer_than_older_kernels_know_is_named(found: dict, length: int | None, wide: bool) -> None:
    told = words({**found, "tracing": {"ptrace": "Operation not permitted", "xstate_bytes": length}})
    line = next(line for line in told.splitlines() if line.startswith("  guests"))
    assert "need ptrace, which does not work: Operation not permitted" in line
    assert ("more than Linux up to 6.12 expects" in line) == wide


@pytest.mark.usefixtures("patience")
def test_without_a_kernel_the_command_that_builds_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told = examine()["engines"]["kernel"]
    assert not told["works"]
    assert "sawtooth kernel build" in told["reasons"][0]


def test_what_a_guest_can_do_is_what_its_kernel_was_built_with(kernel: Kernel, tmp_path: Path) -> None:
    tools = [f"/usr/sbin/{name}" for name in ("ip", "tc", "nft")]
    order = json.dumps([*tools, list(probe.QDISCS)])
    script = Path(probe.__file__).read_text()
    (tmp_path / "probe.py").write_text(script)
    guest = Guest(kernel, cpu=min(HERE))
    guest.run(["env", "PATH=/usr/sbin:/sbin:/usr/bin", "/usr/bin/python3", "/run/sawtooth/probe.py", order],
              share=tmp_path, timeout_s=60)  # fmt: skip
    told = json.loads((tmp_path / "stdout").read_text())
    assert told["qdiscs"] == dict.fromkeys(probe.QDISCS, True)
    assert told["links"] == dict.fromkeys(probe.LINKS, True)
    assert told["nftables"] == {"numgen": True}


def test_a_qdisc_that_this_kernel_lacks_has_a_reason(found: dict) -> None:
    for name, told in found["capabilities"]["qdiscs"].items():
        assert told in (True, examination.MODULE) or (isinstance(told, str) and told), name


@pytest.mark.usefixtures("patience")
def test_a_module_that_is_not_loaded_is_reported_and_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "modules", lambda: frozenset({"sch_fq", "sch_netem", "tcp_bbr", "tcp_diag", "tcp_vegas"}))
    told = examine()
    assert told["capabilities"]["qdiscs"]["fq"] == examination.MODULE
    assert "modprobe sch_fq" in told["enable_bbr"]["commands"]
    assert "vegas" in told["congestion_control"]["modules"]
    assert "diag" not in told["congestion_control"]["modules"]


def test_the_commands_for_bbr_are_those_of_the_study(found: dict) -> None:
    commands = found["enable_bbr"]["commands"]
    assert commands[-2:] == [
        "sysctl -w net.core.default_qdisc=fq",
        "sysctl -w net.ipv4.tcp_congestion_control=bbr",
    ]


def test_the_commands_for_bbr_work_in_a_guest(kernel: Kernel, found: dict, tmp_path: Path) -> None:
    show = "cat /proc/sys/net/ipv4/tcp_congestion_control; ip link add d0 numtxqueues 1 type ifb; ip link set d0 up"
    script = "; ".join(
        ["PATH=$PATH:/usr/sbin:/sbin", *found["enable_bbr"]["commands"][-2:], show, "tc qdisc show dev d0"]
    )
    Guest(kernel).run(["sh", "-c", script], share=tmp_path, timeout_s=60)
    told = (tmp_path / "stdout").read_text()
    assert "\nbbr\n" in told
    assert "qdisc fq " in told


def test_the_facts_are_those_that_the_host_shows_elsewhere(found: dict) -> None:
    control = found["congestion_control"]
    assert control["in_use"] in control["available"]
    assert found["clock"]["hz"] in (100, 250, 300, 1000)
    assert found["buffers"]["tcp_rmem"] == [int(w) for w in Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()]
    assert set(found["offloads"]) == {path.name for path in Path("/sys/class/net").iterdir()} - {"lo"}
    assert found["tools"]["iperf3"]["version"]
    assert found["privileges"]["uid"] == os.geteuid()


def test_hz_and_offloads_are_read_from_the_kernel_that_runs(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(Path(host.__file__).read_text())
    code = "import json, host; print(json.dumps([host.clock()['hz'], host.offloads()]))"
    script = f"""
PATH=$PATH:/usr/sbin:/sbin; ip link add v0 type veth peer name v1; ethtool -K v0 tso off gso off gro off
cd /run/sawtooth && /usr/bin/python3 -c "{code}" """
    Guest(kernel).run(["sh", "-c", script], share=tmp_path, timeout_s=60)
    hz, offloads = json.loads((tmp_path / "stdout").read_text())
    assert hz == 250
    assert offloads["v0"] == {"TSO": False, "GSO": False, "GRO": False}
    assert offloads["v1"]["TSO"]
    assert offloads["v1"]["GSO"]


def changed(found: dict, **changes: object) -> dict:
    other = copy.deepcopy(found)
    for path, value in changes.items():
        *way, last = path.split("__")
        table = other
        for name in way:
            table = table[name]
        table[last] = value
    return other


def test_netns_names_what_it_lacks(found: dict) -> None:
    able = changed(
        found,
        privileges={"uid": 0, "net_admin": True, "sys_admin": True},
        tools={name: {"path": f"/bin/{name}", "version": "1", "package": name} for name in host.TOOLS},
    )

    def lacks(**changes: object) -> list[str]:
        return examination._netns(changed(able, **changes))[0]

    assert "root" in lacks(privileges__net_admin=False)[0]
    assert "root" in lacks(privileges__sys_admin=False)[0]
    assert "iperf3" in lacks(tools__iperf3__path=None)[0]
    both = lacks(privileges__net_admin=False, tools__iperf3__path=None)
    assert ["root" in both[0], "iperf3" in both[1]] == [True, True]


def test_netns_works_where_its_engine_finds_what_it_needs(found: dict) -> None:
    if os.geteuid() == 0:
        assert found["netns_able"].keys() >= {"netem", "nftables", "vlan"}
        assert found["engines"]["netns"]["works"], found["engines"]["netns"]["reasons"]
    else:
        assert "root" in found["engines"]["netns"]["reasons"][0]


def test_a_kernel_without_netem_is_a_warning_that_says_what_is_left(found: dict) -> None:
    with_nftables = changed(found, netns_able={"netem": False, "nftables": True})
    with_nothing = changed(found, netns_able={"netem": False, "nftables": False})
    with_netem = changed(found, netns_able={"netem": True, "nftables": False})
    assert any(
        "cannot delay packets, and loss comes from nftables" in one for one in examination._warnings(with_nftables)
    )
    assert any("it cannot drop them either" in one for one in examination._warnings(with_nothing))
    assert not any("no netem" in one for one in examination._warnings(with_netem))


def test_segmentation_offload_is_a_warning_that_names_the_card(found: dict) -> None:
    on = changed(found, offloads={"eth7": {"TSO": True, "GSO": True, "GRO": False}})
    off = changed(found, offloads={"eth7": {"TSO": False, "GSO": False, "GRO": True}})
    assert any("eth7" in warning and "super-packets" in warning for warning in examination._warnings(on))
    assert not any("super-packets" in warning for warning in examination._warnings(off))


def test_merged_frames_are_a_warning_that_names_the_card(found: dict) -> None:
    on, off = (changed(found, offloads={"eth7": {"TSO": False, "GSO": False, "GRO": gro}}) for gro in (True, False))
    assert any("GRO is on for eth7" in warning for warning in examination._warnings(on))
    assert not any("GRO" in warning for warning in examination._warnings(off))


def test_the_command_prints_words_or_json(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["doctor", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) >= {"engines", "tools", "capabilities", "buffers", "clock"}
    assert status_of(["doctor"]) == 0
    told = capsys.readouterr().out
    for word in ("sim      works", "congestion control", "sysctl -w net.core.default_qdisc=fq", "tcp_rmem", "HZ"):
        assert word in told


def test_an_ordinary_user_gets_an_examination_too(as_nobody) -> None:
    code = """
import os
os.environ["HOME"] = os.getcwd()
from sawtooth.doctor import examine, words
found = examine()
print(words(found))
assert not found["engines"]["netns"]["works"]
assert "root" in found["engines"]["netns"]["reasons"][0]
"""
    done = as_nobody(code)
    assert done.returncode == 0, done.stderr
    assert "you      user " in done.stdout


def test_the_probe_is_a_program_that_needs_only_the_standard_library() -> None:
    order = json.dumps([None, None, None, ["netem"]])
    done = subprocess.run([sys.executable, "-I", "-S", probe.__file__, order], capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["qdiscs"]["netem"] in ("tc is missing",) or told["qdiscs"]["netem"].startswith(probe.NO_NAMESPACE)
