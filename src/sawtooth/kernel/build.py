"""Building a user-mode kernel in stages: unpack, configure, compile, boot. A later call continues after the last
finished stage."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io import tempdirs
from sawtooth.io.atomic_io import new_directory, write_json, writing
from sawtooth.kernel import edits, prerequisites, provenance, source, source_trees
from sawtooth.kernel.additions import FOLDER, Additions
from sawtooth.kernel.guest import Guest
from sawtooth.kernel.history import end_with_parent
from sawtooth.kernel.kernel import (
    BINARY,
    DEFAULT_HZ,
    DESCRIPTION,
    Kernel,
    cache_directory,
    configuration,
    data,
    everything,
    load,
    recipe,
)
from sawtooth.kernel.source import Source

RATES = (100, 250, 300, 1000)
"""Timer frequencies (HZ) that Linux offers. Hosts in scenarios can have the same ones."""

COMPILED_STEPS = 1240
"""Number of compile steps of Debian's Linux 6.12, used to show progress. Other versions have about as many."""

Progress = Callable[[str, float | None], None]
"""Called with the current activity and, where known, the finished fraction."""

_STEP = re.compile(r"^ +(?:CC|AS|AR|LD|HOSTCC|HOSTLD|GEN|UPD) ")
_AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"


def build(
    *,
    hz: int = DEFAULT_HZ,
    source_path: Path | str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    name: str | None = None,
    patches: Sequence[str | PathLike[str]] = (),
    modules: Sequence[str | PathLike[str]] = (),
    names: Mapping[str, str] | None = None,
    commit: str | None = None,
) -> Kernel:
    """Return the kernel for this source and HZ; build it if it is not in the cache.

    ``source_path`` is a tarball or directory, by default Debian's package. With ``commit``, it is a git repository,
    which is only read, and ``name`` is needed. ``jobs`` is the number of parallel compilers, by default one per core.
    An interrupted build continues where it stopped. If two builds run at the same time, the second waits, unless its
    kernel exists already.

    ``patches`` are applied to the copy of the source that is built. ``modules`` are C files to build in, each with one
    congestion control, and their headers. ``name`` is the name that scenarios use for the kernel; the new kernel
    replaces one with the same name and HZ. ``names`` maps a control's name in scenarios to its name in this kernel.

    Raises SawtoothError: ``out-of-range``, ``file-not-found``, ``file-unreadable``, ``bad-source``, ``tool-missing``,
    ``disk-full``, ``unwritable-output``, ``build-failed``, ``unknown-name``, ``bad-usage`` for a commit without
    ``name`` or repository, and the errors of ``Additions``.
    """
    if hz not in RATES:
        fix = f"choose one of: {', '.join(map(str, RATES))}"
        raise InputError("out-of-range", f"{hz} is not a timer tick of Linux", field="hz", fix=fix)
    tell = progress or (lambda what, fraction: None)
    added = Additions.read(name=name, patches=patches, modules=modules, names=names)
    tell("checking tools and source", None)
    prerequisites.check(lambda what: tell(what, None))
    chosen = source.locate(source_path, commit)
    if commit is not None and not added.name:
        message = "without a name, this kernel would become the default one"
        called = re.sub(r"[^A-Za-z0-9_+.-]|\.(?=\.)", "-", commit)[:37]
        raise InputError("bad-usage", message, field="--commit", fix=f"name it: --name at-{called}")
    cache = cache_directory()
    with writing(cache):
        cache.mkdir(parents=True, exist_ok=True)
    base = f"hz{hz}-{chosen.digest}-{recipe()}"
    target = cache / _joined(base, added.digest())
    ready = load(target)
    if ready is not None and _is_held(cache / "build.lock"):
        return ready
    with _locked(cache / "build.lock", tell) as lock:
        work = cache / "build" / f"hz{hz}-{chosen.repository or chosen.digest}-{recipe()}"
        ready = load(target)
        if ready is None:
            ready = _build(chosen, hz, added, jobs or os.cpu_count() or 1, work, target, lock, tell)
        for other in everything():
            if added.name and (other.name, other.hz) == (added.name, hz) and other.path.parent != target:
                other.remove()
        # A user who adds patches or modules, or names a commit, will probably build again. The kept tree then needs
        # only a partial compile.
        source_trees.tidy(work, tell, keep=bool(added.modules or added.patches or commit))
        return ready


def remove_trees(progress: Progress | None = None) -> list[Path]:
    """Remove all source copies that builds left behind, including interrupted ones. Waits for a build in progress."""
    tell = progress or (lambda what, fraction: None)
    cache = cache_directory()
    if not cache.is_dir():
        return []
    with _locked(cache / "build.lock", tell):
        found = sorted(path for path in (cache / "build").glob("*") if path.is_dir())
        for work in found:
            source_trees.remove(work, tell)
        return found


def _joined(*parts: str) -> str:
    return "-".join(part for part in parts if part)


def _build(
    chosen: Source, hz: int, added: Additions, jobs: int, work: Path, target: Path, lock: int, tell: Progress
) -> Kernel:
    tree, log, configured = work / "tree", work / "make.log", work / "configured"
    with writing(work):
        work.mkdir(parents=True, exist_ok=True)
    prerequisites.check_space(
        work, sum(path.stat().st_size for path in tree.rglob("*.o")) + 1_500_000_000 * tree.exists()
    )
    clock = _Clock(work / "seconds")
    with clock:
        checked = f"commit {chosen.commit}" if chosen.commit else provenance.check(chosen.path, chosen.sha256)
        if chosen.sha256:
            tell(f"{chosen.path.name}: SHA-256 {chosen.sha256}; checked: {checked}", None)
        is_patched = None if chosen.commit else source.has_patches(tree, added.patched())
        if chosen.commit:
            tell(f"checking out {chosen.commit[:12]}", None)
            configured.unlink(missing_ok=True)
            source.check_out(chosen, tree, hz, added, lock)
        elif is_patched is None:
            if tree.exists():
                source_trees.remove(work, tell)
                work.mkdir()
            tell(f"unpacking {chosen.path.name}", None)
            source.unpack(chosen, tree, hz, added)
        elif not is_patched:
            tell("patching", None)
            with writing(tree):
                # The Makefile beside the modules is patched as the source has it.
                Additions().lay(tree)
            configured.unlink(missing_ok=True)
            source.change(tree, chosen.path, hz, added)
        with writing(tree):
            added.lay(tree)
    version = source.version(tree)
    again = source_trees.is_whole(work)
    with clock:
        if not configured.exists():
            tell("configuring", None)
            _configure(tree, hz, log, lock)
            configured.touch()

        def step(done: int) -> None:
            tell("compiling", None if again else min(0.99, done / COMPILED_STEPS))
            clock.save()

        counter = _Counter(work / "steps", step)
        log.unlink(missing_ok=again)
        _make(tree, [f"-j{jobs}", BINARY], log, lock, counter, added)
        tell("trying the kernel", None)
        with new_directory_again(target) as aside:
            binary = aside / BINARY
            with writing(binary):
                subprocess.run(["strip", "-o", binary, tree / BINARY], check=True)
                # The user that runs a guest's kernel is not root, so everyone must be able to execute it.
                binary.chmod(0o755)
                algorithms = _algorithms(binary)
            about = added.described(algorithms, tree) | {
                "version": version,
                "hz": hz,
                "algorithms": algorithms,
                "digest": hashlib.sha256(binary.read_bytes()).hexdigest()[:16],
                "source": str(chosen.path),
                "source_digest": chosen.digest,
                "source_sha256": chosen.sha256,
                "source_checked": checked,
                "recipe": recipe(),
                "built": datetime.now(UTC).isoformat(timespec="seconds"),
                "build_s": round(clock.total(), 1),
            }
            write_json(aside / DESCRIPTION, about)
    source_trees.finished(work)
    kernel = load(target)
    if kernel is None:
        raise SawtoothError("build-failed", "the kernel vanished from the cache", file=target, fix="build it again")
    return kernel


def new_directory_again(target: Path) -> contextlib.AbstractContextManager[Path]:
    """Like ``new_directory``, but replaces a directory that does not hold a complete kernel."""
    shutil.rmtree(target, ignore_errors=True)
    return new_directory(target)


def _configure(tree: Path, hz: int, log: Path, lock: int) -> None:
    """Configure the kernel: everything off except our fragment. Raises SawtoothError ``build-failed`` if the source
    does not know one of the fragment's options."""
    fragment = tree / "sawtooth.config"
    # make ignores options that the source does not know. Only options of newer and older kernels may be missing.
    parts = [configuration(), data("newer.config"), data("older.config")]
    if source.number(tree) < (5, 15):
        parts.append(data("before-5.15.config"))
    fragment.write_text("".join(parts), encoding="utf-8")
    _make(tree, ["KCONFIG_ALLCONFIG=sawtooth.config", "allnoconfig"], log, lock)
    set_ = set((tree / ".config").read_text(encoding="utf-8").splitlines())
    wanted = [line for line in configuration().splitlines() if line.startswith("CONFIG_")] + [f"CONFIG_HZ={hz}"]
    lacking = [line.partition("=")[0] for line in wanted if not {line, edits.SUCCESSORS.get(line)} & set_]
    if lacking:
        message = f"this kernel's configuration does not take {', '.join(lacking)}"
        raise SawtoothError("build-failed", message, file=tree / ".config", fix=f"use the package {edits.PACKAGE}")


def _make(
    tree: Path,
    arguments: list[str],
    log: Path,
    lock: int,
    counter: _Counter | None = None,
    added: Additions | None = None,
) -> None:
    """Run make. It is killed when this process ends, and holds the lock until its last compiler has ended."""
    command = ["nice", "-n", "10", "make", "ARCH=um", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in _UNWANTED} | _SAME_BYTES
    with log.open("a", encoding="utf-8") as copy:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=(lock,),
            process_group=0,
            preexec_fn=end_with_parent,
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                copy.write(line)
                if counter is not None and _STEP.match(line):
                    counter.add()
            process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
    if process.returncode:
        raise _failure(log, process.returncode, added or Additions())


_SAME_BYTES = {
    "LC_ALL": "C",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "sawtooth",
    "KBUILD_BUILD_HOST": "sawtooth",
    "KBUILD_BUILD_VERSION": "1",
}
"""Makes builds reproducible: the kernel mixes its version banner into its random numbers, so the banner must not
contain the build time."""

_UNWANTED = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ARCH", "CROSS_COMPILE", "KBUILD_OUTPUT", "O")
"""Environment variables that an outer make, or the build of another kernel, could pass on."""


def _failure(log: Path, status: int, added: Additions) -> SawtoothError:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-400:]
    wrong = [line.strip() for line in lines if re.search(r"\berror\b|fatal|No space left", line)]
    if any("No space left" in line for line in wrong):
        fix = "free some space, then run the same command again: it continues where it stopped"
        return SawtoothError("disk-full", "no space is left on the disk", file=log, fix=fix)
    for file in added.modules:
        about = [line.removeprefix(f"{FOLDER}/") for line in wrong if line.startswith(f"{FOLDER}/{file.path.name}:")]
        if about:
            fix = f"correct it and run the same command again; the full output of the compiler is in {log}"
            return InputError("bad-module", f"does not compile: {about[0][:200]}", file=file.path, fix=fix)
    first = f": {wrong[0][:200]}" if wrong else ""
    fix = "the file has the full output; the same command continues where it stopped"
    return SawtoothError("build-failed", f"make ended with status {status}{first}", file=log, fix=fix)


def _algorithms(binary: Path) -> list[str]:
    """Boot the kernel and return the congestion controls that it lists. Raises SawtoothError ``build-failed`` if it
    does not boot."""
    trial = Kernel(binary, "", 0, (), "", "", "", "", "", 0.0)
    share = binary.parent / "trial"
    share.mkdir()
    try:
        Guest(trial).run(["cat", _AVAILABLE], share=share, timeout_s=60)
        found = sorted((share / "stdout").read_text().split())
    except SawtoothError as error:
        raise SawtoothError("build-failed", f"the kernel does not boot: {error.message}", fix=error.fix) from error
    finally:
        shutil.rmtree(share)
    if not found:
        message = "the kernel boots, but lists no congestion control"
        raise SawtoothError("build-failed", message, fix=f"use the package {edits.PACKAGE}")
    return found


@contextlib.contextmanager
def _locked(path: Path, tell: Progress) -> Iterator[int]:
    """Hold a lock file until the block, and every process started in it, has ended. Yields its file descriptor."""
    with writing(path):
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not tempdirs.take(lock):
            tell("waiting for another build", None)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _is_held(path: Path) -> bool:
    """Whether another build is in progress."""
    with writing(path):
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        return not tempdirs.take(lock)
    finally:
        os.close(lock)


class _Counter:
    """Counts steps over all calls of make. The count is kept in a file."""

    def __init__(self, path: Path, show: Callable[[int], None]) -> None:
        self._path, self._show = path, show
        self._done = _number(path)
        show(int(self._done))

    def add(self) -> None:
        self._done += 1
        with contextlib.suppress(OSError):
            self._path.write_text(json.dumps(self._done))
        self._show(int(self._done))


class _Clock:
    """Adds up the seconds of all its blocks over all calls. The sum is kept in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = _number(path)

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def total(self) -> float:
        return self._before + time.monotonic() - self._begun

    def save(self) -> None:
        # If the disk is full, make reports it with a better message.
        with contextlib.suppress(OSError):
            self._path.write_text(json.dumps(self.total()))

    def __exit__(self, *_: object) -> None:
        self.save()
        self._before = self.total()


def _number(path: Path) -> float:
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return 0.0
