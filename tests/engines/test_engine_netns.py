"""Engine netns: real time on this host's kernel, its safety, and the same code in a guest with netem."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.engines.netns import Netns
from sawtooth.errors import SawtoothError
from sawtooth.io import tempdirs
from sawtooth.kernel import Guest, Kernel
from sawtooth.scenario import Scenario
from sawtooth.testbed import kernel_features, names
from sawtooth.testbed.target_kernel import Place

_PR_CAPBSET_DROP, _CAP_SYS_RESOURCE = 24, 24
root_only = pytest.mark.usefixtures("namespaces")

# Without a delay it works on kernels without netem, too.
SCENARIO: dict[str, Any] = {
    "topology": "chain",
    "chain": {"rate": "100 Mbit/s", "rtt": "0 s"},
    "host": {"hz": kernel_features.hz() or 250},
    "duration": "2 s",
    "traffic": "native",
}


def ours() -> list[str]:
    return [path.name for path in names.NAMESPACES.glob("st-*")] if names.NAMESPACES.exists() else []


@contextlib.contextmanager
def run_elsewhere(code: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def programs(process: int) -> list[str]:
    """Names of the programs in a process's namespaces."""
    found = []
    for one in names.residents([name for name in ours() if name.startswith(f"st-{process}-")]):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append(Path(f"/proc/{one}/comm").read_text().strip())
    return found


LONG = f"""
from sawtooth import engines
from sawtooth.io import tempdirs
from sawtooth.scenario import Scenario
engines.get("netns").run(Scenario(**{ {**SCENARIO, "duration": "60 s", "traffic": "iperf3"}!r}))
"""


def wait_for_traffic(process: subprocess.Popen[str]) -> None:
    """Waits until iperf3 runs in that process's namespaces."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if "iperf3" in programs(process.pid):
            return
        time.sleep(0.1)
    raise AssertionError("it never came to sending")


@root_only
def test_a_chain_is_measured_on_this_hosts_kernel_and_nothing_is_left() -> None:
    before = ours()
    made = engines.get("netns").run(Scenario(**SCENARIO))
    # The upper limit is the share of payload in a frame, 95.6%; acknowledgements on the same cards and real timers
    # cost more.
    assert 75 < made.tables["intervals"]["goodput_bps"].mean() / 1e6 < 95.7
    assert made.meta["system"]["kernel"].split()[1] == os.uname().release
    # Leftovers of killed runs are removed, too.
    assert set(ours()) <= set(before)


@root_only
def test_losses_are_per_packet_and_counted() -> None:
    made = engines.get("netns").run(Scenario(**{**SCENARIO, "chain": {**SCENARIO["chain"], "loss": "2%"}}))
    lost, sent = made.tables["links"]["lost"].sum(), made.tables["intervals"]["segments_out"].sum()
    assert lost == pytest.approx(0.02 * sent, rel=0.4)
    assert made.tables["intervals"]["retransmits"].sum() == pytest.approx(lost, rel=0.3, abs=20)


@root_only
def test_iperf3_runs_in_real_time_with_both_ends_reports() -> None:
    made = engines.get("netns").run(Scenario(**{**SCENARIO, "traffic": "iperf3", "flows": [{"cc": "reno"}]}))
    assert made.meta["congestion_control_used"] == {"reno": "reno"}
    received = made.meta["iperf3"]["reno"]["server"]["received"]["bits_per_second"]
    assert made.tables["intervals"]["goodput_bps"].mean() == pytest.approx(received, rel=0.1)


@root_only
def test_ctrl_c_leaves_neither_namespace_nor_process() -> None:
    with run_elsewhere(LONG) as process:
        wait_for_traffic(process)
        mine = [name for name in ours() if name.startswith(f"st-{process.pid}-")]
        inside = names.residents(mine)
        process.send_signal(signal.SIGINT)
        process.wait(30)
    assert process.returncode != 0
    assert not [name for name in ours() if name.startswith(f"st-{process.pid}-")]
    assert not [one for one in inside if Path(f"/proc/{one}").exists()]


@root_only
def test_stop_ends_it() -> None:
    begun = time.monotonic()
    with expected_error(code="interrupted"):
        engines.get("netns").run(
            Scenario(**{**SCENARIO, "duration": "60 s"}), stop=lambda: time.monotonic() > begun + 2
        )
    assert not [name for name in ours() if name.startswith(f"st-{os.getpid()}-")]


@root_only
def test_clean_removes_what_a_kill_left_and_nothing_else() -> None:
    subprocess.run(["ip", "netns", "add", "st-not-ours"], check=True)
    try:
        with run_elsewhere(LONG) as process, run_elsewhere(LONG) as living:
            wait_for_traffic(process)
            wait_for_traffic(living)
            process.kill()
            process.wait()
            left = [name for name in ours() if name.startswith(f"st-{process.pid}-")]
            kept = [name for name in ours() if name.startswith(f"st-{living.pid}-")]
            inside = names.residents(left)
            assert len(left) == 5
            assert inside
            clean = "from sawtooth.cli import main; main(['clean'])"
            done = subprocess.run([sys.executable, "-c", clean], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert not set(left) & set(ours())
            assert not tempdirs.orphans()
            assert {*kept, "st-not-ours"} <= set(ours())
            time.sleep(0.5)
            assert not [one for one in inside if Path(f"/proc/{one}/ns/net").exists()]
            assert "iperf3" in programs(living.pid)
    finally:
        subprocess.run(["ip", "netns", "del", "st-not-ours"], check=True)


@root_only
def test_the_hosts_own_settings_stay_as_they_are() -> None:
    paths = [*Path("/proc/sys/net/ipv4").glob("tcp_*mem"), Path("/proc/sys/net/ipv4/ip_forward")]
    before = {path: path.read_text() for path in paths}
    devices = sorted(os.listdir("/sys/class/net"))
    engines.get("netns").run(Scenario(**{**SCENARIO, "duration": "1 s", "host": {**SCENARIO["host"], "sack": False}}))
    assert {path: path.read_text() for path in paths} == before
    assert sorted(os.listdir("/sys/class/net")) == devices


@root_only
def test_where_no_more_files_may_be_open_the_field_is_named_that_has_fewer_of_them() -> None:
    source = {"kind": "arrivals", "every": "1 ms", "sizes": "10 MB"}
    code = f"""
import ctypes, resource
from sawtooth import engines
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario
assert not ctypes.CDLL(None).prctl({_PR_CAPBSET_DROP}, {_CAP_SYS_RESOURCE})
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
try:
    engines.get("netns").run(Scenario(**{ {**SCENARIO, "flows": [{"source": source}]}!r}))
except SawtoothError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("error[testbed-failed]: flows.0.source.open: more than 256 files"), done.stderr


@root_only
def test_another_timer_tick_than_the_hosts_is_refused() -> None:
    own = kernel_features.hz()
    if own is None:
        pytest.skip("this host's kernel does not tell its HZ")
    other = 1000 if own != 1000 else 250
    with expected_error(field="host.hz", match=f"HZ {own}"):
        engines.get("netns").check(Scenario(**{**SCENARIO, "host": {"hz": other}}))


@root_only
def test_a_queueing_discipline_that_this_hosts_kernel_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel_features.lacking(["pfifo", "prio-of-nobody"]) == {"prio-of-nobody"}
    monkeypatch.setattr(kernel_features, "lacking", lambda kinds: {"codel"} & set(kinds))
    path = {"rtt": "0 s", "queue": {"kind": "codel"}}
    with expected_error(code="unsupported", field="links.queue", match="of kind codel"):
        engines.get("netns").check(Scenario(topology="path", path=path, host=SCENARIO["host"]))


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with expected_error(code="tool-missing", match="needs root"):
        engines.get("netns").check(Scenario(**SCENARIO))


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_features, "place", lambda: Place(virtual=False))
    monkeypatch.setattr(kernel_features, "lacking", lambda kinds: set())
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(SawtoothError, match="iperf3 is not installed"):
        engines.get("netns").check(Scenario(**{**SCENARIO, "traffic": "iperf3"}))
    with pytest.raises(SawtoothError, match="tcpdump"):
        Netns(capture=Path("x")).check(Scenario(**SCENARIO))


def test_a_name_belongs_to_a_process_that_began_at_a_certain_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(names, "NAMESPACES", tmp_path)
    own = names.prefix() + "h1"
    reused = f"st-{os.getpid()}-1-1-h1"
    gone = "st-4194304-1-1-h1"
    for name in (own, reused, gone, "st-foreign", "other"):
        (tmp_path / name).touch()
    assert names.orphans() == sorted([reused, gone])


def test_in_a_guest_that_has_netem_it_delays_loses_and_tidies_up(kernel: Kernel, tmp_path: Path) -> None:
    code = """
import json, os, time
from pathlib import Path
from sawtooth import engines
from sawtooth.io import tempdirs
from sawtooth.scenario import Scenario
from sawtooth.testbed import kernel_features
Path("/run/cache").mkdir()
os.environ["XDG_CACHE_HOME"] = "/run/sawtooth/cache"
place = kernel_features.place()
made = engines.get("netns").run(Scenario(path={"rate": "20 Mbit/s", "rtt": "40 ms", "loss": "1%"}, duration="5 s",
                                         traffic="native", probes=[{"interval": "500 ms"}]))
print(json.dumps({"netem": place.netem, "vlan": place.vlan, "rtt": made.tables["probes"]["rtt_s"].min(),
                  "lost": int(made.tables["links"]["lost"].sum()),
                  "bps": made.tables["intervals"]["goodput_bps"].mean(),
                  "left": os.listdir("/run/netns")}))
"""
    (tmp_path / "code.py").write_text(code)
    from sawtooth.testbed.compiler import source

    compiled = source()
    cache = tmp_path / "cache" / "sawtooth" / "source"
    cache.mkdir(parents=True)
    (cache / compiled.name).write_bytes(compiled.read_bytes())
    (cache / compiled.name).chmod(0o755)
    ended = Guest(kernel).run([sys.executable, "/run/sawtooth/code.py"], share=tmp_path, timeout_s=300)
    assert ended.exit_code == 0, (tmp_path / "stderr").read_text()
    said = json.loads((tmp_path / "stdout").read_text())
    assert (said["netem"], said["vlan"], said["left"]) == (True, True, [])
    assert said["rtt"] == pytest.approx(0.04, rel=0.05)
    assert said["lost"] > 0
    assert 1e6 < said["bps"] < 19.2e6
