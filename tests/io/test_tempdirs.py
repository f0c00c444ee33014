"""Directories and locks of a run among names that other users of this machine can create."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sawtooth.cli.program import status_of
from sawtooth.io import tempdirs
from sawtooth.io.atomic_io import write_bytes
from sawtooth.testbed import cleaning, names

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make another user's files")
GONE = "sawtooth-st-4194304-1-1-"


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files; the cache and the namespaces belong to this test, too."""
    directory = tmp_path / "shared"
    directory.mkdir(mode=0o777)
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(names, "NAMESPACES", tmp_path / "namespaces")
    return directory


def hostile(shared: Path, victim: Path) -> list[Path]:
    """Names like those of a killed run, which do not belong to sawtooth and must not be removed."""
    made = [shared / f"{GONE}{number}" for number in range(4)]
    made[0].symlink_to(shared / "nowhere")
    made[1].symlink_to(victim)
    os.mkfifo(made[2])
    made[3].write_text("a file")
    if os.geteuid() == 0:
        made.append(shared / f"{GONE}foreign")
        made[-1].mkdir()
        os.chown(made[-1], 12, 12)
    return made


def test_clean_passes_over_what_is_not_its_users_and_continues(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").touch()
    made = hostile(shared, victim)
    mine = shared / f"{GONE}zz"
    (mine / "deep").mkdir(parents=True)
    assert status_of(["clean"]) == 0
    assert capsys.readouterr().out == f"removed {mine}\n"
    assert not mine.exists()
    assert (victim / "kept").exists()
    assert all(os.path.lexists(path) for path in made)


def test_clean_removes_directories_also_where_only_root_may_remove_namespaces(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "namespaces").mkdir()
    (tmp_path / "namespaces" / "st-4194304-1-1-h1").touch()
    (shared / f"{GONE}x").mkdir()

    def refuse(_: list[str]) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(cleaning, "remove", refuse)
    assert status_of(["clean"]) == 1
    told = capsys.readouterr()
    assert f"removed {shared}/{GONE}x" in told.out
    assert "st-4194304-1-1-h1" in told.err
    assert "run as root" in told.err


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_of_the_living(shared: Path) -> None:
    code = "import sawtooth.io.tempdirs as t, time\nwith t.directory() as d: print(d, flush=True); time.sleep(60)"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        killed, living = (Path(process.stdout.readline().strip()) for process in both if process.stdout)
        (killed / "deep").mkdir()
        both[0].send_signal(signal.SIGKILL)
        both[0].wait()
        assert killed.exists()
        with tempdirs.directory() as own:
            assert sorted(shared.iterdir()) == sorted([living, own])
            assert own.stat().st_mode & 0o777 == 0o700
        assert list(shared.iterdir()) == [living]
    finally:
        for process in both:
            process.kill()
            process.communicate()


def test_a_directory_that_lives_in_another_table_of_processes_stays(shared: Path) -> None:
    left = shared / f"{GONE}container"
    left.mkdir()
    with (left / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tempdirs.sweep() == []
    assert tempdirs.sweep() == [left]


@pytest.mark.parametrize("what", ["link", "dangling", "pipe", "foreign directory", "open directory"])
def test_a_lock_is_taken_from_nothing_that_another_could_have_laid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("not truncated")
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    directory = runtime / "sawtooth"
    if what == "dangling":
        directory.symlink_to(tmp_path / "nowhere")
    else:
        directory.mkdir(mode=0o777 if what == "open directory" else 0o700)
        directory.chmod(0o777 if what == "open directory" else 0o700)
    if what == "link":
        (directory / "one").symlink_to(victim)
    elif what == "pipe":
        os.mkfifo(directory / "one")
    elif what == "foreign directory":
        if os.geteuid() != 0:
            pytest.skip("needs root, to make another user's directory")
        os.chown(directory, 12, 12)
    begun = time.monotonic()
    with tempdirs.locked(["one", "two"]) as name:
        # Its own directory is ignored; anything that is not its own directory is left for the cache.
        assert name == ("two" if what in ("link", "pipe") else "one")
    assert time.monotonic() - begun < 5
    assert victim.read_text() == "not truncated"
    assert not (tmp_path / "nowhere").exists()


def test_a_runtime_directory_that_others_may_enter_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    runtime.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    with tempdirs.locked(["one"]) as name:
        assert name == "one"
    assert list(runtime.iterdir()) == []
    assert (tmp_path / "cache" / "sawtooth" / "locks" / "one").exists()


def test_a_lock_is_one_processs_at_a_time_and_ends_with_the_block() -> None:
    with tempdirs.locked(["one"]) as first, tempdirs.locked(["one"]) as second:
        assert (first, second) == ("one", None)
    with tempdirs.locked(["one"]) as again:
        assert again == "one"


def test_without_a_directory_of_its_own_nothing_is_locked_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    with tempdirs.locked(["one"]) as name:
        assert name is None


def test_an_error_of_the_block_is_not_swallowed() -> None:
    with pytest.raises(OSError, match="mine"), tempdirs.locked(["one"]):
        raise OSError("mine")


def test_what_is_written_aside_is_not_written_through_anothers_link(tmp_path: Path, shared: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (shared / f".file.{os.getpid()}.part").symlink_to(victim)
    write_bytes(shared / "file", b"new")
    assert (shared / "file").read_bytes() == b"new"
    assert not (shared / "file").is_symlink()
    assert victim.read_text() == "kept"


@ROOT
def test_nothing_of_roots_is_truncated_by_what_another_user_laid(tmp_path: Path, shared: Path) -> None:
    """The situation of the fault: links and a pipe in a shared directory, where each processor's lock was expected."""
    from sawtooth.engines.kernel import processor

    victim = tmp_path / "victim"
    victim.write_text("root's")
    old = shared / "sawtooth-processors-0"
    old.mkdir()
    for cpu in range(os.cpu_count() or 1):
        (old / str(cpu)).symlink_to(victim)
    with processor() as cpu:
        assert cpu is not None
    assert victim.read_text() == "root's"
