"""The prober on real kernels: loopback, routers in this host's namespaces, and in a guest's virtual time."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sawtooth
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.kernel import Guest, Kernel
from sawtooth.link_estimate import check, difference, read_series
from sawtooth.link_estimate.series_checks import rate_limited
from sawtooth.probe import Prober, Recording, open_transport, resolve
from sawtooth.testbed import names
from waiting import until

ICMP = ["icmp", "udp"]
SOURCES = Path(sawtooth.__file__).parents[1]
SAWTOOTH = [sys.executable, "-c", "from sawtooth.cli import main; main()"]

CHAIN = """set -e
# A source, three routers, a target: links 10.0.1.0/24 to 10.0.4.0/24, left end .1, right end .2; IPv6 likewise.
P=$1
for n in 0 1 2 3 4; do
  ip netns add ${P}n$n
  ip -n ${P}n$n link set lo up
  ip netns exec ${P}n$n sh -c 'cd /proc/sys/net
    echo 1 > ipv4/ip_forward; echo 1 > ipv6/conf/all/forwarding; echo 0 > ipv6/conf/all/accept_dad
    echo 0 > ipv6/conf/default/accept_dad; echo 0 > ipv4/icmp_ratelimit; echo 0 > ipv6/icmp/ratelimit'
done
for n in 1 2 3 4; do
  ip -n ${P}n$((n - 1)) link add r$n type veth peer name l$n netns ${P}n$n
  ip -n ${P}n$((n - 1)) addr add 10.0.$n.1/24 dev r$n
  ip -n ${P}n$((n - 1)) addr add fd00:$n::1/64 dev r$n nodad
  ip -n ${P}n$((n - 1)) link set r$n up
  ip -n ${P}n$n addr add 10.0.$n.2/24 dev l$n
  ip -n ${P}n$n addr add fd00:$n::2/64 dev l$n nodad
  ip -n ${P}n$n link set l$n up
done
for n in 0 1 2 3 4; do
  [ $n = 4 ] || ip -n ${P}n$n route add default via 10.0.$((n + 1)).2
  [ $n = 4 ] || ip -n ${P}n$n route add default via fd00:$((n + 1))::2
  [ $n = 0 ] && continue
  m=1
  while [ $m -lt $n ]; do
    ip -n ${P}n$n route add 10.0.$m.0/24 via 10.0.$n.1
    ip -n ${P}n$n route add fd00:$m::/64 via fd00:$n::1
    m=$((m + 1))
  done
done
"""


@dataclass(frozen=True)
class Chain:
    """Namespaces of this host: ``node`` 0 is the source, 1 to 3 are routers, 4 is the target."""

    prefix: str

    def run(self, node: int, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        words = ["ip", "netns", "exec", f"{self.prefix}n{node}", *command]
        return subprocess.run(words, capture_output=True, text=True, check=check, timeout=120)

    def start(self, *options: str) -> subprocess.Popen[str]:
        words = ["ip", "netns", "exec", f"{self.prefix}n0", *SAWTOOTH, "probe", *options]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def probe(self, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run(0, *SAWTOOTH, "probe", *options, check=check)

    def allow_ping_sockets(self, allow: bool) -> None:
        value = "0 2147483647" if allow else "1 0"
        self.run(0, "sh", "-c", f"echo {value} > /proc/sys/net/ipv4/ping_group_range")


@pytest.fixture(scope="module")
def chain(namespaces: None) -> Iterator[Chain]:
    prefix = names.prefix()
    try:
        made = subprocess.run(["sh", "-c", CHAIN, "sh", prefix], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        yield Chain(prefix)
    finally:
        for node in range(5):
            subprocess.run(["ip", "netns", "del", f"{prefix}n{node}"], capture_output=True)


def target(version: int) -> str:
    return "10.0.4.2" if version == 4 else "fd00:4::2"


def router(hop: int, version: int) -> str:
    return f"10.0.{hop}.2" if version == 4 else f"fd00:{hop}::2"


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("protocol", ICMP)
def test_this_machine_answers_itself(address: str, protocol: str, tmp_path: Path) -> None:
    found = resolve(address)
    try:
        transport = open_transport(found, protocol)
    except SawtoothError as error:
        assert (error.code, protocol, os.geteuid() == 0) == ("missing-capability", "icmp", False)
        return
    with Recording(tmp_path / "a.csv") as recording:
        measured = Prober(transport, found, {"near": 1}, pace_s=0.02, count=50).run(recording)
        recording.finish()
    transport.close()
    (series,) = read_series(tmp_path / "a.csv")
    assert len(series) == 50
    assert series.loss == 0
    assert set(series.address) == {address}
    assert set(series.reply) == {"echo-reply" if protocol == "icmp" else "port-unreachable"}
    assert 0 < series.rtt_s.min() < 0.02
    assert [one.code for one in measured.remarks if one.doubt] == ["target-reached"]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("kind", ["ping", "raw", "udp"])
def test_routers_at_both_ends_of_a_link_answer(chain: Chain, kind: str, version: int, tmp_path: Path) -> None:
    chain.allow_ping_sockets(kind == "ping")
    path = tmp_path / "link.csv"
    protocol = "udp" if kind == "udp" else "icmp"
    options = ("--pace", "20 ms", "--count", "110", "--protocol", protocol, "--out", str(path), "--json")
    found = told(chain.probe("link", target(version), "--hops", "2", *options))
    assert (found["socket"], found["target"], found["whole"]) == (kind, target(version), True)
    near, far = read_series(path)
    for series, hop in ((near, 2), (far, 3)):
        assert series.hop == hop
        assert len(series) == 110
        assert series.loss == 0
        assert set(series.address) == {router(hop, version)}
        assert set(series.reply) == {"time-exceeded"}
        assert 0 < np.median(series.rtt_s) < 0.02
    assert len(difference(far, near)) == len(far)
    assert found["late_answers"] == found["unattributed"] == 0


@pytest.mark.parametrize(("end", "hops", "hop"), [("near", 1, 1), ("near", 3, 3), ("far", 1, 2)])
def test_near_is_the_router_at_that_hop_and_far_the_next(
    chain: Chain, end: str, hops: int, hop: int, tmp_path: Path
) -> None:
    path = tmp_path / "one.csv"
    chain.probe(end, target(4), "--hops", str(hops), "--pace", "10 ms", "--count", "20", "--out", str(path))
    (series,) = read_series(path)
    assert (series.label, series.hop, set(series.address)) == (end, hop, {router(hop, 4)})


def test_the_far_end_may_be_the_target_itself(chain: Chain, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    chain.probe("far", target(4), "--hops", "3", "--pace", "10 ms", "--count", "20", "--out", str(path))
    assert set(read_series(path)[0].reply) == {"echo-reply"}


def test_a_router_that_limits_its_answers_is_detected(chain: Chain, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    chain.run(2, "sh", "-c", "echo 300 > /proc/sys/net/ipv4/icmp_ratelimit")
    try:
        options = ("--pace", "50 ms", "--count", "300", "--timeout", "500 ms", "--out", str(path), "--json")
        found = told(chain.probe("near", target(4), "--hops", "2", *options))
    finally:
        chain.run(2, "sh", "-c", "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit")
    (series,) = read_series(path)
    assert 0.6 < series.loss < 0.95
    assert rate_limited(series)
    assert found["series"][0]["error"]["code"] == "too-few-probes"


def test_a_path_that_changes_is_seen_in_the_answering_routers(chain: Chain, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    options = ("--pace", "20 ms", "--count", "250", "--timeout", "200 ms", "--out", str(path))
    # A router answers from the address that its route back uses.
    chain.run(2, "ip", "addr", "add", "10.9.9.9/32", "dev", "lo")
    try:
        with chain.start("near", target(4), "--hops", "2", *options) as process:
            wait_for_rows(tmp_path, 60)
            chain.run(2, "ip", "route", "replace", "10.0.1.0/24", "via", "10.0.2.1", "src", "10.9.9.9")
            process.communicate(timeout=200)
    finally:
        chain.run(2, "ip", "route", "replace", "10.0.1.0/24", "via", "10.0.2.1")
    (series,) = read_series(path)
    assert set(series.address[series.answered]) == {"10.0.2.2", "10.9.9.9"}
    changed = next(one for one in check(series).remarks if one.code == "path-changed")
    assert changed.at_s == series.sent_s[series.address == "10.9.9.9"][0]


def wait_for_rows(directory: Path, rows: int) -> Path:
    return until(
        lambda: next((one for one in directory.glob(".*.part") if one.read_bytes().count(b"\n") > rows), None), 30
    )


def test_a_silent_router_is_all_lost_its_file_is_whole_and_the_status_says_so(chain: Chain, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    # Probes to an unassigned address on a link get no answer before address resolution fails.
    options = ("--pace", "10 ms", "--count", "110", "--timeout", "100 ms", "--out", str(path), "--json")
    done = chain.probe("near", "10.0.1.99", "--hops", "1", *options, check=False)
    assert done.returncode == 2
    assert "error[all-lost]" in done.stderr
    found = told(done)
    assert found["silent"] == ["near"]
    assert 20 <= len(read_series(path)[0]) + found["unsent"] < 60
    path = tmp_path / "two.csv"
    begun = time.monotonic()
    done = chain.probe(
        "near",
        "10.0.1.99",
        "--hops",
        "1",
        "--duration",
        "1.1 s",
        *options[:2],
        *options[4:6],
        "--out",
        str(path),
        "--json",
        "--insist",
        check=False,
    )
    assert done.returncode == 2
    assert time.monotonic() - begun < 30
    found = told(done)
    assert (found["silent"], found["whole"]) == ([], True)
    assert found["series"][0]["answered"] == 0
    assert "error[all-lost]" in done.stderr
    assert len(read_series(path)[0]) + found["unsent"] + found["skipped"] == 110


def test_no_route_fails_at_once(chain: Chain, tmp_path: Path) -> None:
    done = chain.run(
        4, *SAWTOOTH, "probe", "near", "192.0.2.1", "--hops", "1", "--out", str(tmp_path / "a"), check=False
    )
    assert done.returncode == 1
    assert "error[probe-failed]" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_a_whole_file_of_what_was_measured(chain: Chain, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    options = ("--pace", "20 ms", "--count", "100000", "--timeout", "200 ms", "--out", str(path))
    with chain.start("near", target(4), "--hops", "2", *options) as process:
        wait_for_rows(tmp_path, 20)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
    assert process.returncode == 130
    assert "error[interrupted]" in err
    assert f"series: {path}" in out
    (series,) = read_series(path)
    assert len(series) > 20
    assert series.answered.all()
    assert [one.name for one in tmp_path.iterdir()] == ["one.csv"]


def test_a_kill_leaves_nothing_that_is_taken_for_a_measurement(chain: Chain, tmp_path: Path) -> None:
    options = ("--pace", "20 ms", "--count", "100000", "--timeout", "200 ms", "--out", str(tmp_path / "one.csv"))
    with chain.start("near", target(4), "--hops", "2", *options) as process:
        part = wait_for_rows(tmp_path, 20)
        process.kill()
    assert [one.name for one in tmp_path.iterdir()] == [part.name]
    with pytest.raises(SawtoothError, match="not finished"):
        read_series(part)


def test_without_the_capability_ping_sockets_serve_or_what_is_missing_is_named(chain: Chain, tmp_path: Path) -> None:
    without = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw", "--"]

    def probe(protocol: str, out: str) -> subprocess.CompletedProcess[str]:
        options = ("--count", "20", "--pace", "10 ms", "--protocol", protocol, "--out", str(tmp_path / out), "--json")
        return chain.run(0, *without, *SAWTOOTH, "probe", "near", target(4), "--hops", "2", *options, check=False)

    chain.allow_ping_sockets(True)
    assert told(probe("icmp", "a.csv"))["socket"] == "ping"
    chain.allow_ping_sockets(False)
    refused = probe("icmp", "b.csv")
    assert refused.returncode == 1
    assert "error[missing-capability]" in refused.stderr
    assert "CAP_NET_RAW" in refused.stderr
    assert "net.ipv4.ping_group_range is 1 0, without the group 0" in refused.stderr
    assert told(probe("udp", "c.csv"))["series"][0]["answered"] > 0


GUEST = (
    CHAIN.replace("P=$1", "P=")
    + """
for n in 1 2 3 4; do
  for end in "$((n - 1)) r$n" "$n l$n"; do
    set -- $end
    ip netns exec n$1 tc qdisc add dev $2 root netem delay ${n}ms limit 1000
  done
done
ip netns exec n0 "$PYTHON" -c "from sawtooth.cli import main; main()" \
  probe link TARGET --hops 2 --count 3000 --protocol PROTOCOL --out /run/sawtooth/link.csv --quiet
"""
)


@pytest.mark.parametrize(("protocol", "version"), [("icmp", 4), ("udp", 6)])
def test_five_minutes_in_virtual_time_keep_the_pace_and_find_the_delay_of_each_link(
    kernel: Kernel, protocol: str, version: int, tmp_path: Path
) -> None:
    script = GUEST.replace("TARGET", target(version)).replace("PROTOCOL", protocol)
    done = Guest(kernel).run(
        ["sh", "-c", script], share=tmp_path, timeout_s=300, env={"PYTHON": sys.executable, "PYTHONPATH": str(SOURCES)}
    )
    assert done.exit_code == 0, (tmp_path / "stderr").read_text() + done.console
    near, far = read_series(tmp_path / "link.csv")
    assert (len(near), len(far), near.loss, far.loss) == (3000, 3000, 0, 0)
    # Forward and back over links of 1, 2 and 3 ms.
    assert np.median(near.rtt_s) == pytest.approx(0.006, abs=5e-4)
    assert np.median(far.rtt_s) == pytest.approx(0.012, abs=5e-4)
    assert np.median(difference(far, near).rtt_s) == pytest.approx(0.006, abs=5e-4)
    assert near.sent_s[-1] - near.sent_s[0] == pytest.approx(299.9, abs=0.005)
    assert near.late_s.max() < 0.005


def refused(*words: str) -> object:
    """The exit status of a command that ends before it sends anything, run in this process."""
    return status_of([*words])


def test_the_file_written_exists_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    options = ["127.0.0.1", "--hops", "1", "--protocol", "udp", "--out", str(path)]
    assert refused("probe", "near", *options) == 1
    assert "never overwritten" in capsys.readouterr().err
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--hops", "1", "--pace", "1 ms"], "out-of-range"),
        (["--hops", "1", "--pace", "100"], "missing-unit"),
        (["--hops", "0"], "bad-usage"),
        ([], "bad-usage"),
        (["--hops", "1", "--count", "5", "--duration", "1 s"], "bad-usage"),
        (["--hops", "1", "--duration", "30 d", "--pace", "10 ms"], "out-of-range"),
        (["--hops", "1", "-6"], "bad-target"),
    ],
)
def test_wrong_usage_is_reported_before_a_probe_is_sent(
    options: list[str],
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refused("probe", "near", "127.0.0.1", "--protocol", "udp", *options) == 2
    assert f"error[{code}]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
