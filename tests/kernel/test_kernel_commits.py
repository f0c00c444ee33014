"""Kernels of the commits of a git repository, which is only read, built from the stand-in source in one tree."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.kernel import build
from sawtooth.kernel.history import History
from stand_in_kernel import BOOTS, stand_in
from waiting import until

pytestmark = pytest.mark.usefixtures("patience", "cache")


class Repository:
    """A git repository whose commits are called by their numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hashes: list[str] = []
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        settings = ("-c", "user.name=A. Uthor", "-c", "user.email=a@example.org")
        return subprocess.run(
            ["git", *settings, *words], cwd=self.path, check=True, capture_output=True, text=True
        ).stdout

    def commit(self, subject: str, **files: str | None) -> str:
        for name, text in files.items():
            file = self.path / name.replace("__", "/")
            file = file.with_name(file.name.replace("_c", ".c"))
            file.unlink() if text is None else file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        self.hashes.append(self.git("rev-parse", "HEAD").strip())
        return self.hashes[-1]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Its kernel is linked again when linux.c changes."""
    tree = stand_in(tmp_path / "linux", does=BOOTS)
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(makefile.replace("linux: $(STEPS)", "linux: $(STEPS) linux.c"))
    found = Repository(tree)
    found.commit("first")
    program = (tree / "linux.c").read_text()
    found.commit("second", linux_c=program.replace("reno cubic", "reno cubic bbr"), more_c="int more;\n")
    found.commit("third", linux_c=program.replace("reno cubic", "reno vegas"), more_c=None)
    return found


def contents(tree: Path, but: Sequence[str] = ()) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in tree.rglob("*") if path.is_file() and path.name not in but}


def test_commits_are_built_in_one_tree_and_the_repository_is_not_touched(repository: Repository, cache: Path) -> None:
    (repository.path / "linux.c").write_text("the user's own work\n")
    before = contents(repository.path)
    controls = [("cubic", "reno"), ("bbr", "cubic", "reno"), ("reno", "vegas")]
    edited = []
    for number, (name, wanted) in enumerate(zip(repository.hashes, controls, strict=True)):
        kernel = build(source_path=repository.path, commit=name, name=f"at-{number}")
        assert kernel.algorithms == wanted
        assert kernel.source_checked == f"commit {name}"
        (tree,) = cache.glob("build/*/tree")
        assert (tree / "more.c").is_file() == (number == 1)
        edited.append((tree / "arch/um/kernel/time.c").stat().st_mtime_ns)
    assert len({*edited}) == 1, "make does not see what stays the same"
    assert (cache / "build").joinpath(tree.parent.name, "compiled").read_text().split().count("step1.o") == 1
    assert contents(repository.path) == before


def test_what_an_interrupted_checkout_left_does_not_stop_the_next(repository: Repository, cache: Path) -> None:
    build(source_path=repository.path, commit="HEAD~1", name="one")
    (tree,) = cache.glob("build/*/tree")
    (tree / ".sawtooth/index.lock").touch()
    (tree / ".sawtooth/index").unlink()
    (tree / "linux.c").write_text("half of it")
    assert build(source_path=repository.path, commit="HEAD", name="other").algorithms == ("reno", "vegas")


def test_two_commits_with_one_content_are_one_kernel(repository: Repository) -> None:
    first = build(source_path=repository.path, commit="HEAD", name="one")
    repository.commit("nothing")
    again = build(source_path=repository.path, commit="HEAD", name="one")
    assert again.path == first.path


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("v9.9", "unknown-name"),
        ("--all", "unknown-name"),
        ("HEAD:linux.c", "unknown-name"),
        ("^HEAD", "unknown-name"),
    ],
)
def test_what_is_no_commit_is_refused(repository: Repository, name: str, code: str) -> None:
    with expected_error(code=code) as caught:
        build(source_path=repository.path, commit=name)
    assert caught.value.fix


def test_a_commit_needs_a_name(repository: Repository) -> None:
    """Else its kernel would be the default one."""
    with expected_error(code="bad-usage", fix="name it: --name at-HEAD-1"):
        build(source_path=repository.path, commit="HEAD~1")
    assert build(source_path=repository.path, commit="HEAD~1", name="at-HEAD-1").name


def test_what_is_no_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for path, code in (
        (tmp_path / "plain", "bad-source"),
        (tmp_path / "absent", "file-not-found"),
        (None, "bad-usage"),
    ):
        with expected_error(code=code) as caught:
            build(source_path=path, commit="HEAD")
        assert caught.value.fix


def test_what_a_shallow_clone_lacks_is_fetched_by_the_fix(repository: Repository, tmp_path: Path) -> None:
    clone = tmp_path / "a clone"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.path}", str(clone))
    history = History.open(clone)
    with pytest.raises(SawtoothError) as caught:
        history.resolve("HEAD~1")
    command = str(caught.value.fix).partition(": ")[2]
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    assert history.resolve("HEAD~1") == repository.hashes[1]
    with pytest.raises(SawtoothError) as caught:
        history.resolve("v9.9")
    assert subprocess.run(shlex.split(str(caught.value.fix).partition(": ")[2]), capture_output=True).returncode == 0


@pytest.mark.skipif(os.getuid() != 0, reason="gives a directory to another user")
def test_a_repository_of_another_user_is_allowed_by_the_fix(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (repository.path, repository.path / ".git"):
        os.chown(path, 65534, 65534)
    with pytest.raises(SawtoothError) as caught:
        History.open(repository.path)
    subprocess.run(shlex.split(str(caught.value.fix).partition(": ")[2]), check=True)
    History.open(repository.path)


def test_git_ends_with_its_parent_and_holds_the_lock_until_then(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git's place is taken by a program that tells what it has open, and waits."""
    (tmp_path / "bin").mkdir()
    git = tmp_path / "bin" / "git"
    git.write_text(
        f"""#!/bin/sh
        case "$*" in
        *read-tree*) readlink /proc/$$/fd/* > {tmp_path}/open; echo $$ > {tmp_path}/pid; exec sleep 60 ;;
        *) exec {shutil.which("git")} "$@" ;;
        esac
        """
    )
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    (tmp_path / "lock").touch()
    program = f"""if True:
        import os
        from pathlib import Path
        from sawtooth.kernel.history import History
        lock = os.open({str(tmp_path / "lock")!r}, os.O_RDWR)
        History(Path({str(repository.path)!r})).check_out("HEAD", Path("tree"), Path("index"), lock)
    """
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path) as child:
        until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text())
        child.kill()
    assert str(tmp_path / "lock") in (tmp_path / "open").read_text().splitlines()
    place = Path("/proc", (tmp_path / "pid").read_text().strip(), "cmdline")
    until(lambda: not place.exists() or not place.read_bytes())


def test_the_command_builds_a_commit(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["kernel", "build", "--source", str(repository.path), "--commit", "HEAD~2", "--name", "old"]) == 0
    assert 'kernel "old" 6.12.7' in capsys.readouterr().out


def test_a_history_tells_its_commits_and_halves_them(repository: Repository) -> None:
    first, second, third = repository.hashes
    history = History.open(repository.path / "arch")
    assert history.digest == History.open(repository.path).digest
    told = history.commit(second)
    assert (told.hash, told.subject, told.author) == (second, "second", "A. Uthor")
    assert told.date[:4].isdigit()
    assert history.suspects([first], third) == [second, third]
    assert history.suspects([second], third) == [third]
    assert history.count([first], third) == 2
    assert history.suspects([first], third, ["arch"]) == []
    assert history.suspects([first], third, ["linux.c"]) == [second, third], "the tree's, not the directory's"
    assert history.parents(third) == [second]
    assert history.common(first, third) == first
