"""A guest runs one program on the user-mode kernel, in virtual time, identically each time, and leaves nothing."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sawtooth
from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.kernel import Guest, GuestResult, Kernel, find
from waiting import until

RANDOM = "od -An -tx1 -N32 /dev/urandom; cat /proc/sys/kernel/random/uuid"


@pytest.fixture
def guest(kernel: Kernel) -> Guest:
    return Guest(kernel, cpu=min(os.sched_getaffinity(0)))


def run(guest: Guest, share: Path, script: str, **options) -> GuestResult:
    return guest.run(["sh", "-c", script], share=share, **{"timeout_s": 60, **options})


def said(guest: Guest, share: Path, script: str, **options) -> str:
    result = run(guest, share, script, **options)
    assert result.exit_code == 0, (share / "stderr").read_text() + result.console
    return (share / "stdout").read_text()


class Watched:
    """A guest that its seed and directory distinguish from all others on this machine."""

    def __init__(self, kernel: Kernel, directory: Path) -> None:
        self.seed = time.time_ns()
        self.directory = directory
        self.guest = Guest(kernel, seed=self.seed)

    def left(self) -> list[str]:
        """Its processes, and its directory."""
        found = [str(path) for path in self.directory.iterdir()]
        for status in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = status.read_bytes().decode(errors="replace")
                if f"sawtooth.seed={self.seed}" in words:
                    found.append(words)
        return found

    def wait_until_gone(self) -> None:
        until(lambda: self.left() == [])


@pytest.fixture
def watched(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    monkeypatch.setenv("TMPDIR", str(directory))
    return Watched(kernel, directory)


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_is_the_programs(guest: Guest, tmp_path: Path, status: int) -> None:
    assert run(guest, tmp_path, f"exit {status}").exit_code == status


def test_output_errors_and_files_come_back_through_the_share(guest: Guest, tmp_path: Path) -> None:
    result = run(guest, tmp_path, "echo out; echo err >&2; cat /run/sawtooth/given > /run/sawtooth/new; pwd; exit 2")
    assert result.exit_code == 2  # there is no such file yet
    (tmp_path / "given").write_text("a file")
    assert run(guest, tmp_path, "echo out; echo err >&2; cp /run/sawtooth/given /run/sawtooth/new").exit_code == 0
    assert (tmp_path / "stdout").read_text() == "out\n"
    assert (tmp_path / "stderr").read_text() == "err\n"
    assert (tmp_path / "new").read_text() == "a file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given", "new", "stderr", "stdout"]


def test_arguments_and_environment_arrive_as_they_are(guest: Guest, tmp_path: Path) -> None:
    odd = ["a b", "'", '"', "$HOME", "ü", "-", ""]
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ODD'], sorted(os.environ)]))"
    result = guest.run(["/usr/bin/python3", "-c", code, *odd], share=tmp_path, timeout_s=60, env={"ODD": "x ' $y"})
    assert result.exit_code == 0
    arguments, value, names = json.loads((tmp_path / "stdout").read_text())
    assert (arguments, value) == (odd, "x ' $y")
    assert set(names) == {"HOME", "LC_ALL", "ODD", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"}


def test_a_share_may_have_any_name(guest: Guest, tmp_path: Path) -> None:
    odd = tmp_path / "with space, comma and ü"
    odd.mkdir()
    assert said(guest, odd, "echo here") == "here\n"


def test_the_program_is_root_in_a_network_of_its_own(guest: Guest, tmp_path: Path) -> None:
    script = "id -u; ip netns add a; ip netns list; ip -br link show | cut -d ' ' -f 1"
    lines = said(guest, tmp_path, script).split()
    assert lines[:2] == ["0", "a"]
    assert "eth0" not in lines


def test_the_hosts_files_are_read_only(guest: Guest, tmp_path: Path) -> None:
    target = tmp_path / "not-shared"
    target.mkdir()
    share = tmp_path / "share"
    share.mkdir()
    assert run(guest, share, f"touch {Path(sawtooth.__file__).parent}/x").exit_code != 0
    assert "Read-only" in (share / "stderr").read_text()


def test_an_hour_of_sleep_takes_no_time(guest: Guest, tmp_path: Path) -> None:
    result = run(guest, tmp_path, "date +%s; sleep 3600; date +%s; cut -d . -f 1 /proc/uptime")
    before, after, up = map(int, (tmp_path / "stdout").read_text().split())
    assert (after - before, up) == (3600, 3600)
    assert before == 1_767_225_600
    assert result.wall_s < 20
    assert 0 < result.cpu_s < 20


def test_computing_takes_no_virtual_time(guest: Guest, tmp_path: Path) -> None:
    code = "import time; a = time.monotonic(); sum(range(300_000)); print(time.monotonic() - a < 0.001)"
    guest.run(["/usr/bin/python3", "-c", code], share=tmp_path, timeout_s=60)
    assert (tmp_path / "stdout").read_text() == "True\n"


CLOCKS = """
import ctypes, mmap, signal, time
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("0f31 48c1e220 4809d0 c3 90 0f01f9 48c1e220 4809d0 c3"))
start = ctypes.addressof(ctypes.c_char.from_buffer(code))
rdtsc, rdtscp = (ctypes.CFUNCTYPE(ctypes.c_uint64)(start + at) for at in (0, 11))
asked = (ctypes.c_int64 * 2)()
def monotonic_by_system_call():
    ctypes.CDLL(None).syscall(228, 1, asked)
    return asked[0] * 10**9 + asked[1]
"""
"""``rdtsc`` and ``rdtscp`` are the two instructions, each with its halves joined."""


def test_the_processors_counter_is_virtual_time_in_nanoseconds(guest: Guest, tmp_path: Path) -> None:
    code = CLOCKS + "print(rdtsc()); time.sleep(1); print(rdtscp()); print(rdtsc())"
    seen = []
    for _ in range(2):
        guest.run(["/usr/bin/python3", "-c", code], share=tmp_path, timeout_s=60)
        seen.append([int(line) for line in (tmp_path / "stdout").read_text().split()])
    assert seen[0] == seen[1], "the processor's own differs"
    first, second, third = seen[0]
    assert 10**9 < second - first < 1.01 * 10**9
    assert 0 < third - second < 10**6


def test_each_reading_of_the_clock_takes_as_long_with_a_system_call_as_without(guest: Guest, tmp_path: Path) -> None:
    code = CLOCKS + (
        "readings = [read() for _ in range(20) for read in (time.monotonic_ns, monotonic_by_system_call)]\n"
        "print(*(after - before for before, after in zip(readings, readings[1:])))\n"
        "print(time.time_ns() - time.clock_gettime_ns(time.CLOCK_REALTIME))"
    )
    guest.run(["/usr/bin/python3", "-c", code], share=tmp_path, timeout_s=60)
    steps, other = (tmp_path / "stdout").read_text().splitlines()
    assert set(steps.split()) == {"256"}
    assert other == "-256"


def test_a_timer_ends_a_program_that_only_reads_the_clock(guest: Guest, tmp_path: Path) -> None:
    code = CLOCKS + (
        "signal.signal(signal.SIGALRM, lambda *_: print(time.monotonic() - begun) or exit(0))\n"
        "begun = time.monotonic()\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
        "while True: time.monotonic()"
    )
    result = guest.run(["/usr/bin/python3", "-c", code], share=tmp_path, timeout_s=60)
    assert result.exit_code == 0
    assert 0.01 <= float((tmp_path / "stdout").read_text()) < 0.011


def test_every_boot_of_a_seed_draws_the_same_random_numbers(kernel: Kernel, tmp_path: Path) -> None:
    drawn = [said(Guest(kernel, seed=seed), tmp_path, RANDOM) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_connections_of_two_boots_have_the_same_ports_and_sequence_numbers(guest: Guest, tmp_path: Path) -> None:
    script = """
ip link set lo up
tcpdump -Z root -n -S -i lo -tt tcp > /run/sawtooth/packets 2>/dev/null & dump=$!; sleep 1
/usr/bin/python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 7)); c = socket.create_connection(("127.0.0.1", 7)); a, _ = s.accept()
c.sendall(bytes(100_000)); a.recv(100_000, socket.MSG_WAITALL); c.close(); a.close()'
sleep 1; kill $dump; wait"""
    seen = []
    for _ in range(2):
        said(guest, tmp_path, script)
        seen.append((tmp_path / "packets").read_text())
    assert seen[0].count("\n") > 6
    assert "seq" in seen[0]
    assert "TS val" in seen[0]
    assert seen[0] == seen[1]


def test_iperf3_over_a_link_with_random_loss_reports_the_same_bytes_twice(guest: Guest, tmp_path: Path) -> None:
    script = """
for h in a b; do ip netns add $h; done
ip link add v1 netns a type veth peer name v2 netns b
ip -n a addr add 10.0.0.1/24 dev v1; ip -n b addr add 10.0.0.2/24 dev v2
ip -n a link set v1 up; ip -n b link set v2 up; ip -n b link set lo up
ip netns exec a ethtool -K v1 tso off gso off gro off; ip netns exec b ethtool -K v2 tso off gso off gro off
tc -n a qdisc add dev v1 root netem delay 5ms rate 100mbit limit 100 loss 1%
ip netns exec b iperf3 -s -1 -D; sleep 1
ip netns exec a iperf3 -c 10.0.0.2 -t 3 -C bbr -J; wait"""
    reports = [said(guest, tmp_path, script) for _ in range(2)]
    sent = json.loads(reports[0])["end"]["sum_sent"]
    assert sent["retransmits"] > 0
    assert sent["bits_per_second"] > 50e6
    assert reports[0] == reports[1]


def test_a_guest_stays_on_its_processor(kernel: Kernel, tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    seen: set[str] = set()

    def look() -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes()
                if b"sawtooth.seed=77" in words and words.startswith(bytes(kernel.path)):
                    seen.add(path.with_name("status").read_text().split("Cpus_allowed_list:")[1].split()[0])

    loop = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i > /dev/null; done"
    run(Guest(kernel, cpu=cpu, seed=77), tmp_path, loop, poll=look)
    assert seen == {str(cpu)}


BUSY = "sh -c 'while :; do :; done' & while :; do :; done"


def test_time_that_is_up_ends_the_guest(watched: Watched, tmp_path: Path) -> None:
    begun = time.monotonic()
    with expected_error(code="guest-timeout") as caught:
        run(watched.guest, tmp_path, BUSY, timeout_s=1)
    assert "1 s" in caught.value.message
    assert time.monotonic() - begun < 30
    assert watched.left() == []


def test_a_poll_that_raises_ends_the_guest(watched: Watched, tmp_path: Path) -> None:
    def stop() -> None:
        if len(watched.left()) >= 3:
            raise SawtoothError("interrupted", "enough")

    with pytest.raises(SawtoothError, match="enough"):
        run(watched.guest, tmp_path, BUSY, poll=stop)
    assert watched.left() == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_parent_that_is_killed_leaves_no_process_and_no_directory(
    watched: Watched, tmp_path: Path, how: signal.Signals
) -> None:
    code = (
        "from pathlib import Path; from sawtooth.kernel import Guest, find\n"
        f"Guest(find(), seed={watched.seed}).run(['sh', '-c', {BUSY!r}], share=Path({str(tmp_path)!r}), timeout_s=200)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as parent:
        until((tmp_path / "stdout").exists)
        # The code above, its guest's directory and keeper, and the kernel.
        assert len(watched.left()) >= 4
        parent.send_signal(how)
        parent.wait(60)
    watched.wait_until_gone()


def test_a_keeper_that_is_killed_takes_the_guest_with_it(watched: Watched, tmp_path: Path) -> None:
    def kill() -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline") if (tmp_path / "stdout").exists() else ():
            with contextlib.suppress(OSError):
                words = path.read_bytes()
                if b"kernel/guest_keeper.py" in words and str(watched.seed).encode() in words:
                    os.kill(int(path.parent.name), signal.SIGKILL)

    with expected_error(code="guest-failed"):
        run(watched.guest, tmp_path, BUSY, poll=kill)
    watched.wait_until_gone()


def test_a_kernel_that_does_not_boot_is_a_failed_guest(watched: Watched, kernel: Kernel, tmp_path: Path) -> None:
    with expected_error(code="guest-failed"):
        run(Guest(kernel, memory="4M", seed=watched.seed), tmp_path, "true")
    assert watched.left() == []


@pytest.mark.parametrize(
    ("said", "advised", "not_advised"),
    [
        ("userspace - ptrace set fp regs failed, errno = 14", "sawtooth doctor", "container"),
        ("Checking that ptrace can change system call numbers...check_ptrace : failed", "container", "doctor"),
        ("something else", "run it again", "container"),
    ],
)
def test_the_advice_goes_by_what_the_kernel_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, advised: str, not_advised: str
) -> None:
    monkeypatch.setattr("sawtooth.kernel.guest.Guest._keep", lambda *_: {"timeout": False, "cpu_s": 0, "status": 6})
    monkeypatch.setattr("sawtooth.kernel.guest._tail", lambda _: said)
    with expected_error(code="guest-failed") as caught:
        Guest(Kernel(Path("linux"), "", 0, (), "", "", "", "", "", 0.0)).run(["true"], share=tmp_path, timeout_s=1)
    assert advised in (caught.value.fix or "")
    assert not_advised not in (caught.value.fix or "")


def test_two_guests_run_side_by_side(kernel: Kernel, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def one(number: int) -> str:
        share = tmp_path / str(number)
        share.mkdir()
        return said(Guest(kernel), share, f"sleep 10; {RANDOM}")

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, range(2))
    assert first == second


def test_the_kernel_has_what_a_testbed_needs(guest: Guest, tmp_path: Path) -> None:
    from sawtooth.doctor.probe import LINKS, QDISCS

    links = [f"ip link {words}" for words in LINKS.values()]
    qdiscs = [f"tc qdisc add dev d0 {words} && tc qdisc del dev d0 {words.split()[0]}" for words in QDISCS.values()]
    filters = [
        "tc qdisc add dev d0 ingress",
        "tc filter add dev d0 ingress protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev v0",
        "tc filter add dev d0 ingress protocol all prio 2 matchall action drop",
        "tc filter add dev d0 ingress protocol ip prio 3 flower ip_proto tcp action drop",
        "tc filter add dev d0 ingress protocol all prio 4 basic action drop",
    ]
    nft = "nft 'add table ip t; add chain ip t c { type filter hook forward priority 0; }; "
    nft += "add rule ip t c numgen random mod 1000 < 10 counter drop'"
    run(guest, tmp_path, "\n".join(["ip link set lo up", *links, *qdiscs, *filters, nft, "ss -tin", "ss -uan"]))
    assert (tmp_path / "stderr").read_text() == ""


def test_hz_is_250_and_every_congestion_control_of_the_tree_is_there(
    kernel: Kernel, guest: Guest, tmp_path: Path
) -> None:
    told = "bbr bic cdg cubic dctcp highspeed htcp hybla illinois lp nv reno scalable vegas veno westwood yeah"
    assert kernel.algorithms == tuple(told.split())
    code = "import time; print(round(1 / time.clock_getres(6)))"
    script = f"/usr/bin/python3 -c '{code}'; cat /proc/sys/net/ipv4/tcp_congestion_control; uname -r"
    assert said(guest, tmp_path, script).split() == ["250", "cubic", kernel.version]
    assert find(250) == kernel


def test_an_ordinary_user_gets_the_same_guest(as_nobody) -> None:
    code = f"""
from pathlib import Path
from sawtooth.kernel import Guest, Kernel
Path("share").mkdir(exist_ok=True)
kernel = Kernel(Path("linux").resolve(), "", 250, (), "", "", "", "", "", 0.0)
script = "id -u; ip netns add a && ip netns list; sleep 1000; {RANDOM}"
print(Guest(kernel).run(["sh", "-c", script], share=Path("share"), timeout_s=60).exit_code)
print(Path("share/stdout").read_text(), end="")
"""
    assert int(as_nobody("import os; print(os.geteuid())").stdout) != 0
    done = as_nobody(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0\n0\na\n")
    # With the same Python in the same place, because what a guest sees of the host's /tmp uses random numbers, too.
    assert as_nobody(code, as_root=True).stdout == done.stdout
