"""What root in a guest can do to the host, tried from inside: it can write the share, and nothing else. If an attempt
succeeds it does no harm: it changes only this test's own files.
"""

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sawtooth.kernel import Guest, Kernel

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: an ordinary user's guest is that user")

TRY = """
import json, os, sys
wanted = json.loads(sys.argv[1])
done = {"written": [], "read": []}
os.mkdir("/run/again")
for words in ("-o remount,rw none /", "-t hostfs -o / none /run/again", "-t hostfs -o hostfs=/ none /run/again"):
    os.system(f"mount -n {words} 2>/dev/null")
os.system("mount -n -o remount,rw none /run/again")
assert os.path.exists("/run/again/etc/hosts")

def attempt(name, path, do, *arguments):
    try:
        do(path, *arguments)
        done[name].append(path)
        return True
    except OSError:
        return False

for top in ("", "/run/again"):
    for directory in wanted["directories"]:
        new = f"{top}{directory}/sawtooth-was-here-{os.getpid()}"
        if attempt("written", new, os.mkdir):
            os.rmdir(new)
    for file in wanted["files"]:
        attempt("read", top + file, os.open, os.O_RDONLY)
        attempt("written", top + file, os.open, os.O_WRONLY)
        with_mode = os.stat(top + file).st_mode & 0o7777
        attempt("written", top + file, os.chmod, with_mode)
done["written"] = [path.partition("/sawtooth-was-here")[0] for path in done["written"]]
print(json.dumps(done))
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory and a file writable by everybody, at a path where a guest has no own directory."""
    directory = Path(tempfile.mkdtemp(prefix="sawtooth-public-", dir="/var/tmp"))
    directory.chmod(0o777)
    (directory / "file").write_text("before")
    (directory / "file").chmod(0o666)
    yield directory
    shutil.rmtree(directory)


def said(kernel: Kernel, share: Path, *argv: str) -> str:
    result = Guest(kernel).run(argv, share=share, timeout_s=60)
    assert result.exit_code == 0, (share / "stderr").read_text()
    return (share / "stdout").read_text()


def from_inside(kernel: Kernel, share: Path, directories: list[str], files: list[str]) -> dict[str, list[str]]:
    order = json.dumps({"directories": directories, "files": files})
    done: dict[str, list[str]] = json.loads(said(kernel, share, "/usr/bin/python3", "-c", TRY, order))
    return done


def test_a_guests_root_writes_nothing_of_the_host_but_the_share(kernel: Kernel, tmp_path: Path, public: Path) -> None:
    hosts = [*("", "/etc", "/root", "/home", "/usr", "/var", "/var/tmp"), str(public)]
    # Paths that a guest has as its own directories are tried where its kernel sees them, below /run/again.
    covered = [f"/run/again{path}" for path in ("/tmp", "/run", "/dev/shm", "/proc")]
    done = from_inside(kernel, tmp_path, [*hosts, *covered, "/run/sawtooth"], [str(public / "file"), "/etc/hosts"])
    assert done["written"] == ["/run/sawtooth"]
    assert str(public / "file") in done["read"]


def test_what_only_the_hosts_root_may_read_the_guests_may_not(kernel: Kernel, tmp_path: Path) -> None:
    read = from_inside(kernel, tmp_path, [], ["/etc/shadow", "/etc/gshadow", "/etc/passwd"])["read"]
    assert read == ["/etc/passwd", "/run/again/etc/passwd"]


def test_a_guests_kernel_has_no_powers_and_sees_no_process_and_no_network_of_the_host(
    kernel: Kernel, tmp_path: Path
) -> None:
    seed = time.time_ns()
    seen: dict[str, set[str]] = {}

    def look() -> None:
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (path / "cmdline").read_bytes()
                if words.startswith(bytes(kernel.path)) and f"sawtooth.seed={seed}".encode() in words:
                    for line in (path / "status").read_text().splitlines():
                        name, _, value = line.partition(":\t")
                        seen.setdefault(name, set()).add(value)
                    for name in ("mnt", "net", "ipc", "pid"):
                        seen.setdefault(name, set()).add(os.readlink(path / "ns" / name))

    script = """mkdir /run/again
mount -n -t hostfs -o /proc none /run/again || mount -n -t hostfs -o hostfs=/proc none /run/again
ls /run/again | grep -c '^[0-9]'; i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo $i > /dev/null; done"""
    Guest(kernel, seed=seed).run(["sh", "-c", script], share=tmp_path, timeout_s=60, poll=look)
    # The first process, the kernel, and the processes that it traces.
    assert 2 <= int((tmp_path / "stdout").read_text()) < 12
    assert {value.strip("0") for name in ("CapEff", "CapPrm", "CapInh") for value in seen[name]} == {""}
    assert seen["NoNewPrivs"] == {"1"}
    users = {number for value in seen["Uid"] for number in value.split()}
    assert len(users) == 1
    assert "0" not in users
    for name in ("mnt", "net", "ipc", "pid"):
        assert os.readlink(f"/proc/self/ns/{name}") not in seen[name]


@ROOT
def test_the_share_and_all_in_it_are_its_owners_afterwards(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("a file")
    (tmp_path / "others").write_text("another's")
    os.chown(tmp_path / "others", 12, 34)
    (tmp_path / "given").chmod(0o600)
    script = """cd /run/sawtooth; cat given others; echo more >> given; mkdir new; cp /bin/true new/true
chmod 6755 new/true; ln -s given inside; ln -s /etc/hosts outside; ln -s ../.. above; mkfifo pipe"""
    assert said(kernel, tmp_path, "sh", "-c", script) == "a fileanother's"
    owners = {
        str(path.relative_to(tmp_path)): (path.lstat().st_uid, path.lstat().st_gid) for path in tmp_path.rglob("*")
    }
    # Files that lead out of the share, or would block their reader, are removed.
    names = {"given", "others", "new", "new/true", "inside", "stdout", "stderr"}
    assert owners == {name: (12, 34) if name == "others" else (0, 0) for name in names}
    assert (tmp_path / "given").read_text() == "a filemore\n"
    # The host's root directory has no program from a guest that other users run as root.
    assert (tmp_path / "new" / "true").stat().st_mode & 0o7777 == 0o755
    assert tmp_path.stat().st_uid == 0


@ROOT
def test_a_python_that_only_root_may_reach_is_reached(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "closed"
    closed = top / "further" / "place"
    closed.mkdir(parents=True)
    (closed / "file").write_text("found")
    (closed.parent / "beside").write_text("not shown")
    for path, mode in ((closed / "file", 0o600), (closed, 0o700), (closed.parent, 0o755), (top, 0o700)):
        path.chmod(mode)
    monkeypatch.setattr("sawtooth.kernel.guest._places", lambda: (closed, closed))
    share = tmp_path / "share"
    share.mkdir()
    assert said(kernel, share, "sh", "-c", f"cat {closed}/file; ! cat {closed.parent}/beside") == "found"


WITHOUT = """
from pathlib import Path
import os
from sawtooth.kernel import Guest, Kernel
Path("roots").mkdir(exist_ok=True)
kernel = Kernel(Path("linux").resolve(), "", 250, (), "", "", "", "", "", 0.0)
script = "id -u; echo in > /run/sawtooth/new; head -c 1 /etc/shadow | wc -c; od -An -tx1 -N32 /dev/urandom"
print(Guest(kernel).run(["sh", "-c", script], share=Path("roots"), timeout_s=60).exit_code)
print(Path("roots/stdout").read_text(), Path("roots/new").read_text(), Path("roots/new").stat().st_uid == os.geteuid())
"""


@ROOT
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (package util-linux)")
def test_without_the_right_to_mount_the_guest_is_no_root_either_and_draws_the_same_numbers(as_nobody) -> None:
    usual = as_nobody(WITHOUT, as_root=True)
    assert usual.stdout.startswith("0\n0\n0\n"), usual.stderr
    assert usual.stdout.endswith("in\n True\n")
    confined = as_nobody(WITHOUT, as_root=True, before=["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"])
    assert confined.stdout == usual.stdout, confined.stderr
    # An ordinary user who may not create namespaces.
    forbidden = 'echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_mnt_namespaces; exec "$@"'
    one = as_nobody(WITHOUT, as_root=True, before=["unshare", "--user", "--map-root-user", "sh", "-c", forbidden, "sh"])
    assert one.stdout.split()[4:] == usual.stdout.split()[4:], one.stderr


ORDINARY = """
from pathlib import Path
from sawtooth.kernel import Guest, Kernel
share = Path("ordinary")
share.mkdir(exist_ok=True)
kernel = Kernel(Path("linux").resolve(), "", 250, (), "", "", "", "", "", 0.0)
script = f"touch /run/sawtooth/new; touch {Path.cwd()}/x /var/tmp/x; cat /etc/shadow; find -L /bin/mount -perm /6000"
Guest(kernel).run(["sh", "-c", script], share=share, timeout_s=60)
print((share / "new").exists(), (share / "stdout").read_text() == "")
print((share / "stderr").read_text())
"""


def test_an_ordinary_users_guest_writes_nothing_of_that_users_but_the_share(as_nobody) -> None:
    allowed = as_nobody("import subprocess, sys; sys.exit(subprocess.call(['unshare', '--user', '--mount', 'true']))")
    if allowed.returncode:
        pytest.skip("this host does not allow namespaces to an ordinary user")
    done = as_nobody(ORDINARY)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "True True"
    assert [line.rpartition(": ")[2] for line in lines[1:4]] == [*["Read-only file system"] * 2, "Permission denied"]
