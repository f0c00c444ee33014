"""Hostile programs with root in a guest: against the host's files, secrets, processes, network, disk and memory. If an
attempt succeeds it does no harm: it targets only this test's own files, port and process.
"""

import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from executed import Executed, execute, program
from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.programs import Finished
from sawtooth.scenario import Scenario
from sawtooth.testbed.program_output import Output

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: an ordinary user's guest is that user")

# $M: the host's files, mounted again; $P: a directory that everybody may write; $S: this run's own share; $H: host's
# addresses; $PORT: a port of the host; $PID: a process of the host. Each succeeds where it ends with status 0.
WRITES = {
    **{f"a file in {top or '/'}": f"touch $M{top}/sawtooth-was-here" for top in ("", "/etc", "/usr", "/var", "/home")},
    **{f"a file in {top}": f"touch $M{top}/sawtooth-was-here" for top in ("/root", "/var/tmp", "/dev/shm", "/dev")},
    **{f"a file in {top}, seen as root": f"touch $M{top}/sawtooth-was-here" for top in ("/tmp", "/run", "/proc")},
    "a file in an open directory": "touch $P/new",
    "an open file": "echo x >$P/file",
    "the end of an open file": "echo x >>$P/file",
    "an open file, cut": "truncate -s 0 $P/file",
    "an open file's time": "touch -d 2000-01-01 $P/file",
    "an open file's mode": "chmod 600 $P/file",
    "an open file's owner": "chown 1:1 $P/file",
    "an open file's name": "mv $P/file $P/other",
    "an open file, gone": "rm $P/file",
    "a hard link to an open file": "ln $P/file $P/link",
    "a hard link into the share": "ln $P/file $S/link",
    "a hard link out of the share": "touch $S/x; ln $S/x $P/link",
    "a name in an open directory": "ln -s /etc $P/link",
    "a pipe in an open directory": "mkfifo $P/pipe",
    "a device in an open directory": "mknod $P/null c 1 3",
    "through a link of the share": "ln -s $P/file $S/through; echo x >$S/through",
    "through a link that is mounted": "ln -s $P $S/way; mount -t hostfs -o $S/way none /tmp/w && touch /tmp/w/new",
    "mounted writable again": "mount -o remount,rw $M; touch $P/new",
    "bound": "mkdir -p /tmp/b; mount --bind $P /tmp/b && touch /tmp/b/new",
    "bound writable": "mkdir -p /tmp/b; mount --bind $P /tmp/b; mount -o remount,bind,rw /tmp/b; touch /tmp/b/new",
    "as an overlay's upper layer": "mkdir -p /tmp/o; mount -t overlay -o "
    "lowerdir=/etc,upperdir=$P/up,workdir=$P/work none /tmp/o && touch /tmp/o/new",
    **{
        f"by the mount {where}": f"mkdir -p /tmp/m; mount -t hostfs -o {where} none /tmp/m && touch /tmp/m$Q/new"
        for where in (
            "/proc/self/root",
            "/proc/1/root",
            "/proc/self/cwd/../../..",
            "../../..",
            "//",
            "/.",
            "/dev/fd/..",
        )
    },
    **{
        f"by the open file {number}": f"mount -t hostfs -o /proc/self/fd/{number} none /tmp/m && touch /tmp/m/new"
        for number in range(3, 9)
    },
}
READS = {
    **{
        f"{top or '/'}…{file}": f"head -c 1 {top}{file}"
        for top in ("", "$M")
        for file in ("/etc/shadow", "/etc/gshadow", "/root/.ssh/id_ed25519", "/root/.bash_history", "/etc/ssh/key")
    },
    "a closed file of ours": "cat $P/closed/secret",
    "a closed file by its mount": "mount -t hostfs -o $Q/closed none /tmp/m && cat /tmp/m/secret",
    "a closed file by a link of the share": "ln -s $Q/closed/secret $S/secret; cat $S/secret",
    "a closed file after chmod": "chmod 777 $P/closed && cat $P/closed/secret",
    "a set-user-ID copy": "cp /bin/cat $S/cat && chown 0:0 $S/cat && chmod 6755 $S/cat && $S/cat $P/closed/secret",
    "another process's environment": "grep -q . $M/proc/$PID/environ",
    "another process's memory": "head -c 1 $M/proc/$PID/mem",
    "the host's memory": "head -c 1 $M/dev/mem",
    "the host's kernel": "head -c 64 $M/proc/kcore",
    "the host's log": "head -c 1 $M/dev/kmsg",
    "the host's disks": "head -c 1 $M/dev/sda || head -c 1 $M/dev/vda || head -c 1 $M/dev/nvme0n1",
}
REACHES = {
    "a process's entry": "test -e /proc/$PID",
    "a process's entry by a new mount": "mkdir -p /tmp/p; mount -t proc proc /tmp/p && test -e /tmp/p/$PID",
    "a process's entry of the host": "test -e $M/proc/$PID/status",
    "a signal": "kill -0 $PID",
    "ptrace": "python3 -c 'import ctypes, os; raise SystemExit(ctypes.CDLL(None).ptrace(16, $PID, 0, 0) != 0)'",
    "another's namespaces": "nsenter -t $PID -m true",
    **{
        f"the host's port at {at}": f"python3 -c \"import socket; socket.create_connection(('{at}', $PORT), 2)\""
        for at in ("127.0.0.1", "::1", "10.0.2.2", "10.0.0.1", "$H", "localhost")
    },
    "a socket in the host's files": "python3 -c \"import socket; socket.socket(1).connect('$P/socket')\"",
    "the Internet": "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 443), 2)\"",
    "a module": "modprobe dummy || insmod /tmp/x.ko || "
    'python3 -c \'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(175, b"x", 1, b"") != 0)\'',
    "another kernel": "python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(246, 0, 0, 0, 0) != 0)'",
    "ports of the processor": "python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).iopl(3) != 0)'",
    "the clock": "date -s 2000-01-01",
    "power off": "python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).reboot(0x4321fedc) != 0)'",
    **{
        f"the device {kind} {major} {minor}": "mkdir -p /tmp/d; mount -t tmpfs -o dev none /tmp/d; "
        f"rm -f /tmp/d/x; mknod /tmp/d/x {kind} {major} {minor} && head -c 1 /tmp/d/x"
        for kind, major, minor in (("c", 1, 1), ("c", 1, 2), ("c", 1, 4), ("b", 98, 0), ("b", 8, 0), ("b", 254, 0))
    },
}

TRY = r"""
import json, os, subprocess, sys, tempfile
given = json.loads(sys.stdin.read())
os.makedirs("/tmp/host"), os.makedirs("/tmp/m"), os.makedirs("/tmp/w")
mount = ["mount", "-t", "hostfs", "-o", "/", "none", "/tmp/host"]
assert subprocess.run(mount).returncode == 0
M, shares = "/tmp/host", []
for name in os.listdir(M + given["temporary"]):
    share = f"{M}{given['temporary']}/{name}/share"
    try:
        open(share + "/mine", "w").close()
        shares.append(share)
    except OSError:
        pass
assert len(shares) == 1, shares
names = {"M": M, "P": M + given["public"], "Q": given["public"], "S": shares[0], "H": given["address"]}
names |= {"PORT": str(given["port"]), "PID": str(given["process"])}
done = []
for number, text in enumerate(given["tried"]):
    script = text
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(["sh", "-c", script], env={**os.environ, **names}, timeout=100, **silent).returncode == 0:
        done.append(number)
    subprocess.run(["sh", "-c", "umount -q /tmp/m /tmp/w /tmp/b /tmp/o /tmp/p /tmp/d 2>/dev/null"])
print(json.dumps(done))
"""

SHARE = "mkdir /tmp/h; mount -t hostfs -o / none /tmp/h; for S in /tmp/h$T/*/share; do touch $S/mine && break; done; "


def scenario(duration: str = "5 s") -> Scenario:
    about = {"rate": "20 Mbit/s", "rtt": "40 ms"}
    return Scenario.from_dict({"topology": "path", "duration": duration, "interval": "100 ms", "path": about})


def on_client(command: str | list[str], *, output: Output | None = None, **more: object) -> Executed:
    asked = program("client", command, environment={"T": tempfile.gettempdir()}, **more)
    return execute(scenario(), [asked], output=output)


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory writable by everybody, and in it a secret that only its owner may read."""
    directory = Path(tempfile.mkdtemp(prefix="sawtooth-public-", dir="/var/tmp"))
    directory.chmod(0o777)
    for name in ("up", "work"):
        (directory / name).mkdir()
        (directory / name).chmod(0o777)
    (directory / "file").write_text("before")
    (directory / "file").chmod(0o666)
    (directory / "closed").mkdir(mode=0o700)
    (directory / "closed" / "secret").write_text("secret")
    yield directory
    shutil.rmtree(directory)


def state(directory: Path) -> dict[str, tuple[int, ...]]:
    return {
        str(path.relative_to(directory)): (path.lstat().st_mode, path.lstat().st_uid, path.lstat().st_size)
        for path in directory.rglob("*")
    }


@ROOT
def test_nothing_of_the_host_is_written_read_or_reached(kernel: object, public: Path) -> None:
    listening, local = socket.create_server(("0.0.0.0", 0)), socket.socket(socket.AF_UNIX)
    local.bind(str(public / "socket"))
    (public / "socket").chmod(0o777)
    local.listen()
    before = state(public)
    tried = {**{f"writes {n}": t for n, t in WRITES.items()}, **{f"reads {n}": t for n, t in READS.items()}}
    tried |= {f"reaches {n}": t for n, t in REACHES.items()}
    allowed = {"an open file of the host": "grep -q before $P/file", "its own share": "echo x >$S/mine"}
    given = {
        "tried": [*tried.values(), *allowed.values()],
        "public": str(public),
        "temporary": tempfile.gettempdir(),
        "address": next(iter(_addresses()), "192.0.2.1"),
        "port": listening.getsockname()[1],
        "process": os.getpid(),
    }
    with listening, local:
        done = on_client(["python3", "-c", TRY], stdin=json.dumps(given))
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()
    (one,) = done.programs
    assert one.status == 0, one.stderr.decode()
    assert [[*tried, *allowed][number] for number in json.loads(one.stdout)] == [*allowed]
    assert state(public) == before


def _addresses() -> list[str]:
    found = [one.address for each in psutil.net_if_addrs().values() for one in each if one.family == socket.AF_INET]
    return [address for address in found if not address.startswith("127.")]


IN_PLACE = {
    "a link to a file that only root may read": "ln -s $SECRET $S/program-$N.out; ln -s $SECRET $S/program-$N.err",
    "a link to an endless file": "ln -s /dev/zero $S/program-$N.out",
    "a pipe": "mkfifo $S/program-$N.out $S/program-$N.err",
    "a directory": "mkdir $S/program-$N.out",
    "a link to itself": "ln -s program-$N.out $S/program-$N.out",
    "an endless file": "truncate -s 300G $S/program-$N.out",
    "a link as the progress": "rm $S/progress.csv; ln -s $SECRET $S/progress.csv",
}


def test_what_is_laid_in_the_place_of_output_is_not_read(kernel: object, tmp_path: Path) -> None:
    """One program for each, of which only the last runs for long."""
    secret = tmp_path / "secret"
    secret.write_text("secret\n0.5\n" * 100)
    secret.chmod(0o600)
    told: list[list[Any]] = [[0, b""] for _ in IN_PLACE]
    laid = [f"N={n}; rm -f $S/program-$N.*; {what}; " for n, what in enumerate(IN_PLACE.values())]
    # Enough time for several checks.
    busy = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); /bin/true; done"
    command = f"{SHARE} SECRET={secret}; {''.join(laid)} {busy}"
    programs = [program("client", "true") for _ in list(IN_PLACE)[1:]]
    programs += [program("client", command, environment={"T": tempfile.gettempdir()})]

    def output(number: int, out: bytes, err: bytes) -> None:
        told[number][0] += len(out) + len(err)
        told[number][1] += out[:1000] + err[:1000]

    begun = time.monotonic()
    done = execute(scenario(), programs, output=output)
    assert time.monotonic() - begun < 200
    for number, name in enumerate(IN_PLACE):
        of = done.programs[number]
        assert b"secret" not in told[number][1] + of.stdout[:1000] + of.stderr[:1000], name
        assert max(told[number][0], len(of.stdout)) <= (512 << 20 if name == "an endless file" else 1000), name


DAMAGE = {
    "no answer at all": "rm -f $S/system.json $S/task.json; echo x >$S/.exit",
    "an endless table": "rm $S/connections.csv; truncate -s 900G $S/connections.csv",
    "a table that is binary": "rm $S/intervals.csv; head -c 5000 /bin/true >$S/intervals.csv",
    "a table without rows": "rm $S/hosts.csv; : >$S/hosts.csv",
    "a place that can't be written": "mkdir $S/programs.json",
    "a description nested deep": "rm $S/system.json; python3 -c \"print('[' * 100000)\" >$S/system.json",
    "a description that is a list": "echo [] >$S/system.json",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_results_end_in_one_message(kernel: object, name: str) -> None:
    with pytest.raises(SawtoothError) as caught:
        on_client(f"{SHARE} {DAMAGE[name]}")
    assert caught.value.code in ("testbed-failed", "guest-failed")


def test_names_of_collected_files_may_have_line_ends_and_lead_nowhere(kernel: object, tmp_path: Path) -> None:
    names = ["a\nb.txt", "..\nc.txt", "\x1b[2J.txt", "-rf.txt", "\udcff.txt", "$(id).txt"]
    command = ["python3", "-c", f"for name in {names!a}: open('/tmp/' + name, 'w').write('x')"]
    done = on_client(command, collect=["/tmp/*.txt"])
    # A table's text is UTF-8.
    names[names.index("\udcff.txt")] = "\ufffd.txt"
    assert done.collected == {"client": dict.fromkeys(names, b"x")}


# System calls are slow in a guest, so write 1 MiB at a time.
ZEROS = "dd if=/dev/zero bs=1M count=2048"
HEAVY = {
    "its own layer": (f"{ZEROS} of=/usr/full; wc -c </usr/full", lambda size: 100 << 20 <= size <= 512 << 20),
    "its own /tmp": (f"{ZEROS} of=/tmp/full; wc -c </tmp/full", lambda size: 100 << 20 <= size <= 512 << 20),
    "its output": (f"{ZEROS} >&2 2>/dev/null; echo 0", lambda size: size == 0),
    "processes": (
        "python3 -c 'import os, time\nn = 0\ntry:\n  while os.fork(): n += 1\n  time.sleep(99)\n"
        "except OSError: print(n)'",
        lambda count: count <= 512,
    ),
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_program_gets_so_much_and_no_more(kernel: object, name: str) -> None:
    command, holds = HEAVY[name]
    (one,) = on_client(command).programs
    assert holds(int(one.stdout or b"0"))
    assert (100 << 20 if name == "its output" else 0) <= len(one.stderr) <= 512 << 20


@pytest.mark.parametrize(
    ("memory", "code"),
    [
        ("x", "bad-quantity"),
        ("", "bad-quantity"),
        ("-1 MiB", "out-of-range"),
        ("0 MiB", "out-of-range"),
        ("2048", "missing-unit"),
        ("2 GiB init=/bin/sh", "unknown-unit"),
        ("\udc9b", "wrong-type"),
    ],
)
def test_what_is_no_size_of_memory_is_refused(memory: str, code: str) -> None:
    with expected_error(code=code, field="programs.0.memory") as caught:
        execute(scenario(), [program("client", "true", memory=memory)])
    assert caught.value.fix


@pytest.mark.parametrize(
    "printed",
    ["[" * 100_000, '{"a": 1e999}', '{"a": NaN}', '{"a": ' + "9" * 5000 + "}", "nan", "inf", "-Infinity", "1e400"],
)
@pytest.mark.parametrize("place", ["stdout:/a", "stdout:(.+)"])
def test_what_a_program_prints_is_a_finite_number_or_refused(printed: str, place: str) -> None:
    with expected_error(code="bad-measure"):
        Finished("client", "client", "true", 0.0, 1.0, 0, printed.encode(), b"").value(place)


def test_what_outlives_its_program_ends_with_the_run(kernel: object) -> None:
    forked = "for i in 1 2 3; do (trap '' TERM HUP INT; setsid nohup sleep 100000 >/dev/null 2>&1 &) ; done"
    on_client(forked)
    left = [one for one in psutil.process_iter(["cmdline"]) if "sleep" in (one.info["cmdline"] or [])[:1]]
    assert not [one for one in left if "100000" in one.info["cmdline"]]
    assert not [one for one in psutil.Process().children(recursive=True) if one.name() == "linux"]
