"""History: the commits of a user's git repository with a kernel's source. The repository is only read: files are
checked out elsewhere, with a separate index."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sawtooth.errors import InputError, SawtoothError
from sawtooth.sanitize import plain

_PLAIN = (
    *("core.autocrlf=false", "core.sparseCheckout=false", "core.splitIndex=false", "core.fsmonitor=false"),
    *("core.hooksPath=/dev/null", "core.attributesFile=/dev/null"),
)
"""Settings of the user's git that would change which files are checked out, write into the repository, or run
programs."""
_CLONE = "name a directory with a clone of the kernel's git repository"
_PR_SET_PDEATHSIG = 1
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def end_with_parent() -> None:
    """For ``preexec_fn``: the program receives SIGTERM when the process that started it has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(frozen=True)
class Commit:
    """A commit. ``date``: when its author wrote it, in ISO 8601."""

    hash: str
    subject: str
    author: str
    date: str

    @property
    def short(self) -> str:
        return self.hash[:12]

    def describe(self) -> dict[str, str]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class History:
    """The commits of a git repository. ``path``: a directory in its work tree, or a bare repository."""

    path: Path

    @classmethod
    def open(cls, path: Path | str) -> History:
        """Raises SawtoothError ``bad-source`` if git reads no repository there, ``tool-missing`` without git."""
        found = cls(Path(path).absolute())
        if not found.path.is_dir():
            raise InputError("file-not-found", "there is no directory", file=found.path, fix=_CLONE)
        found._git("rev-parse", "--git-dir")
        return found

    @property
    def digest(self) -> str:
        """The same for every work tree of the repository, and for every commit."""
        common = Path(self.path, self._git("rev-parse", "--git-common-dir").strip()).resolve()
        return "git" + hashlib.sha256(str(common).encode(errors="surrogateescape")).hexdigest()[:13]

    def resolve(self, name: str) -> str:
        """The hash of a commit, from whatever git takes for its name. Raises SawtoothError ``unknown-name``."""
        try:
            found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
        except InputError:
            found = ""
        if not _HASH.fullmatch(found):
            fix = f"name one that this prints: {self._command('log --oneline')}"
            message = f'"{plain(name, 60)}" is no commit of this repository'
            raise InputError("unknown-name", message, file=self.path, fix=self.deepening or fix)
        return found

    @property
    def deepening(self) -> str:
        """The command that fetches a shallow clone's other commits; empty if it has them."""
        is_shallow = self._git("rev-parse", "--is-shallow-repository").strip() == "true"
        return f"get its older commits: {self._command('fetch --unshallow')}" if is_shallow else ""

    def _command(self, words: str) -> str:
        return f"git -C {shlex.quote(str(self.path))} {words}"

    def contents(self, commit: str) -> str:
        """The hash of everything that the commit holds."""
        return self._git("rev-parse", f"{commit}^{{tree}}").strip()

    def commit(self, hash_: str) -> Commit:
        """Who wrote a commit and when, and the first line of its message."""
        fields = self._git("show", "--no-patch", "--no-show-signature", "--format=%H%x00%s%x00%an%x00%aI", hash_)
        return Commit(*(plain(part, 200) for part in fields.strip("\n").split("\0")))

    def parents(self, commit: str) -> list[str]:
        """The hashes of a commit's parents."""
        return self._git("rev-parse", f"{commit}^@").split()

    def common(self, one: str, other: str) -> str | None:
        """The best commit from which both descend, if there is one."""
        try:
            return self._git("merge-base", one, other).strip()
        except InputError:
            return None

    def suspects(self, good: Collection[str], bad: str, paths: Sequence[str] = ()) -> list[str]:
        """The commits of which one may be the first bad one: ``bad`` and those from which it descends, without
        ``good`` and those from which these do. They begin with the one that halves them best. ``paths``: only those
        that change something there."""
        return [line.split()[0] for line in self._listed("--bisect-all", good, bad, paths).splitlines()]

    def count(self, good: Collection[str], bad: str, paths: Sequence[str] = ()) -> int:
        """How many ``suspects`` there are; without their order, which takes long for many."""
        return int(self._listed("--count", good, bad, paths))

    def _listed(self, how: str, good: Collection[str], bad: str, paths: Sequence[str]) -> str:
        # Paths are those of the tree, even if this directory is one within it.
        below = [path if path.startswith(":") else f":(top){path}" for path in paths]
        return self._git("rev-list", how, bad, *(f"^{one}" for one in sorted(good)), "--", *below)

    def check_out(self, commit: str, tree: Path, index: Path, lock: int | None = None) -> None:
        """Puts the commit's files into ``tree``. Those that are already there keep their times. Other files stay.
        ``lock``: a file descriptor that git holds until it has ended."""
        order = [f"--work-tree={tree}", "read-tree", "--reset", "-u", commit]
        self._git(*order, environment={"GIT_INDEX_FILE": str(index)}, holding=() if lock is None else (lock,))

    def _git(self, *arguments: str, environment: Mapping[str, str] | None = None, holding: Collection[int] = ()) -> str:
        """Its output. Raises SawtoothError ``bad-source`` with its message."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        where = ["-C", str(self.path)]
        if environment:
            # With --work-tree, -C would be taken as a place in it.
            where = [f"--git-dir={Path(self.path, self._git('rev-parse', '--git-dir').strip()).resolve()}"]
        settings = [word for one in _PLAIN for word in ("-c", one)]
        command = ["git", "--no-optional-locks", *where, *settings, *arguments]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                env=own | {"LC_ALL": "C"} | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                pass_fds=holding,
                # Only a checkout, which sets an environment, runs long enough to outlive this process. Others start
                # without a fork of it.
                preexec_fn=end_with_parent if environment else None,
            )
        except FileNotFoundError:
            message = "git is not installed"
            raise SawtoothError("tool-missing", message, fix="install it: apt-get install git") from None
        output = done.stdout.decode(errors="replace")
        if done.returncode:
            errors = done.stderr.decode(errors="replace")
            if "No space left" in errors:
                fix = "free some space, then run the same command again"
                raise SawtoothError("disk-full", "no space is left for the kernel's source", file=self.path, fix=fix)
            lines = errors.strip().splitlines() or [f"git ended with status {done.returncode}"]
            allowed = [line.strip() for line in lines if "--add safe.directory" in line]
            fix = f"if you trust its owner: {allowed[0]}" if allowed else _CLONE
            raise InputError("bad-source", f"git says: {plain(lines[0], 200)}", file=self.path, fix=fix)
        return output
