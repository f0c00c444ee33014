"""Listing: the results below a directory and their state. Nothing is written or locked.

A result is the dated directory of a study (study.json) or a saved run (run.json). Everything else is ignored.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from sawtooth.errors import InputError, SawtoothError, suggestion
from sawtooth.io.atomic_io import ASIDE, is_sealed, not_a_result, read_description, read_json
from sawtooth.run import FORMAT as RUN_FORMAT
from sawtooth.run import Run, described, pack
from sawtooth.study import store

State = Literal["whole", "running", "interrupted", "damaged", "newer"]
STATES: tuple[State, ...] = get_args(State)
"""``running``: a process is working on it. ``newer``: a later version of sawtooth wrote it, and only that can read it.
"""

Order = Literal["when", "name", "size", "points"]
DEEPEST = 4
"""Levels below the listed directory: OUT/NAME/DATE, plus one for a directory of several OUT."""
_RUN = "run.json"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One result. ``name`` is its directory below the listed one, such as ``one-percent-loss/20260131-101500``."""

    name: str
    directory: Path
    kind: Literal["study", "run"]
    study: str
    """The study's name; for a run, its scenario's."""
    engine: str = ""
    started: str
    """ISO 8601 with its offset from UTC; for a run, when it was written."""
    finished: str | None = None
    points: int = 0
    done: int = 0
    """Points with a saved run."""
    bytes: int
    """Bytes of all its files."""
    state: State = "whole"
    problems: tuple[str, ...] = ()
    """What is wrong with a damaged or newer result, one sentence for each part; else empty."""
    older: bool = False
    """Written in an older format, which can be read; data without a digest cannot be checked."""
    latest: bool = False
    """The newest finished result of its study in this place."""

    @property
    def problem(self) -> str:
        """The first of its problems; else empty."""
        return next(iter(self.problems), "")

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        lists = {"problem": self.problem, "problems": list(self.problems)}
        return asdict(self) | lists | {"directory": str(self.directory)}


def listing(
    directory: Path | str = "results",
    *,
    names: Collection[str] = (),
    states: Collection[State] = (),
    latest: bool = False,
    order: Order = "when",
    verify: bool = False,
) -> list[Entry]:
    """The results below ``directory``: the newest first, or by name, or the largest first; empty if there are none.

    ``names`` are shell patterns that must match the result's or the study's name; ``states`` selects states; ``latest``
    keeps the newest finished result of each study. ``verify`` reads every table of every run and compares its SHA-256,
    at about a second per GB. Raises SawtoothError ``file-not-found``, ``file-unreadable`` or ``unknown-name`` (a state,
    or an order).
    """
    root = Path(directory)
    for given, known in ((states, STATES), ((order,), get_args(Order))):
        for word in given:
            if word not in known:
                raise InputError("unknown-name", f'there is no "{word}" here', fix=suggestion(word, known))
    if not root.is_dir():
        fix = "name the directory of results, which sawtooth run --out was given"
        raise InputError("file-not-found", "there is no such directory", file=root, fix=fix)
    found = [entry(root, where, verify) for where in results_below(root)]
    found = [
        one
        for one in found
        if (not names or any(_matches(one, name) for name in names))
        and (not states or one.state in states)
        and (not latest or one.latest)
    ]
    return sorted(found, key=lambda one: (_rank(one, order), one.name))


def results_below(root: Path) -> Iterator[Path]:
    """The directories of results in ``root``, which may be one itself; links are not followed.

    Raises SawtoothError ``file-unreadable`` if ``root`` itself cannot be read.
    """
    level = [root]
    for depth in range(DEEPEST + 1):
        below: list[Path] = []
        for where in level:
            if (where / store.DESCRIPTION).is_file() or (where / _RUN).is_file():
                yield where
                continue
            try:
                with os.scandir(where) as inside:
                    below += sorted(
                        where / one.name
                        for one in inside
                        if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")
                    )
            except OSError as error:
                if depth == 0:
                    fix = "give a directory that you may read"
                    message = f"cannot read it: {error.strerror}"
                    raise InputError("file-unreadable", message, file=where, fix=fix) from None
        level = below


def _matches(one: Entry, pattern: str) -> bool:
    known = (one.name, one.name.partition("/")[0], one.study)
    return any(fnmatch.fnmatchcase(name, pattern) for name in known)


def _rank(one: Entry, order: Order) -> Any:
    if order == "name":
        return one.name
    if order == "when":
        return -_moment(one.started)
    return -(one.bytes if order == "size" else one.points)


def _moment(text: str) -> float:
    """Seconds since 1970; an invalid time is older than all."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def entry(root: Path, where: Path, verify: bool = False) -> Entry:
    """The entry for one of ``results_below``."""
    relative = where.relative_to(root).as_posix()
    name = where.resolve().name if relative == "." else relative
    try:
        if (where / store.DESCRIPTION).is_file():
            return _study(name, where, verify)
        return _run(name, where, verify)
    except SawtoothError as error:
        kind: Literal["study", "run"] = "study" if (where / store.DESCRIPTION).is_file() else "run"
        state: State = "newer" if _is_newer(where, kind) else "damaged"
        study, changed = where.parent.name if kind == "study" else where.name, _changed(where)
        return Entry(
            name=name,
            directory=where,
            kind=kind,
            study=study,
            started=changed,
            bytes=_bytes(where),
            state=state,
            problems=(_problem(error, where),),
            latest=_is_latest(where),
        )


def _study(name: str, where: Path, verify: bool) -> Entry:
    found = store.describe(where)
    ids = [point["id"] for point in found["points"]]
    done, missing, errors = [], 0, list[SawtoothError]()
    for one in ids:
        try:
            if store.is_done(where, one):
                done.append(one)
            else:
                missing += 1
        except SawtoothError as error:
            errors.append(error)
    older = not is_sealed(where / store.DESCRIPTION)
    try:
        older = older or any(_format(store.point_directory(where, one)) < RUN_FORMAT for one in done[:1])
    except SawtoothError as error:
        errors.append(error)
    if verify:
        pack.forget()
        errors += [error for one in done for error in _damage(store.point_directory(where, one))]
    problems = [_problem(error, where) for error in errors]
    state: State = "whole"
    if found["finished"] is None:
        state = "running" if _is_locked(where) else "interrupted"
    elif missing:
        problems.insert(0, f"{missing} of {len(ids)} points are missing")
    if problems:
        state = "damaged"
    return Entry(
        name=name,
        directory=where,
        kind="study",
        study=str(found["study"].get("name", where.parent.name)),
        engine=found["engine"],
        started=found["started"],
        finished=found["finished"],
        points=len(ids),
        done=len(done),
        bytes=_bytes(where),
        state=state,
        problems=tuple(dict.fromkeys(problems)),
        older=older,
        latest=_is_latest(where),
    )


def _run(name: str, where: Path, verify: bool) -> Entry:
    found = read_description(where / _RUN, RUN_FORMAT)
    scenario = found.get("scenario")
    if not isinstance(scenario, dict) or not isinstance(found.get("engine"), str):
        raise not_a_result("is not the description of a run", where / _RUN)
    problems = [_problem(error, where) for error in _damage(where)] if verify else []
    written = _changed(where)
    return Entry(
        name=name,
        directory=where,
        kind="run",
        study=str(scenario.get("name", where.name)),
        engine=found["engine"],
        started=written,
        finished=written,
        points=1,
        done=1,
        bytes=_bytes(where),
        state="damaged" if problems else "whole",
        problems=tuple(dict.fromkeys(problems)),
        older=found["format"] < RUN_FORMAT,
    )


def _damage(where: Path) -> list[SawtoothError]:
    """What is wrong with a saved run: its description, or each of its damaged tables."""
    try:
        Run.load(where)
        return []
    except SawtoothError as error:
        found = [error]
    # There may be more damaged tables than this first one.
    with contextlib.suppress(SawtoothError, KeyError, TypeError):
        for table in described(where)["tables"]:
            try:
                Run.load(where, tables=[table])
            except SawtoothError as error:
                found.append(error)
    return found


def _format(where: Path) -> int:
    return int(described(where)["format"])


def _is_newer(where: Path, kind: Literal["study", "run"]) -> bool:
    name, ours = (store.DESCRIPTION, store.FORMAT) if kind == "study" else (_RUN, RUN_FORMAT)
    try:
        found = read_json(where / name)
    except SawtoothError:
        return False
    form = found.get("format") if isinstance(found, dict) else None
    return isinstance(form, int) and form > ours


def _problem(error: SawtoothError, where: Path) -> str:
    """One sentence, with the file if it is not the description."""
    file = "" if error.file is None else os.path.relpath(error.file, where)
    return f"{file}: {error.message}" if file else error.message


def _is_locked(where: Path) -> bool:
    """Whether a process holds the result's lock, according to the system; trying the lock would block others."""
    try:
        inode = (where / store.LOCK).stat().st_ino
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            return any(line.split()[-3].rpartition(":")[2] == str(inode) for line in locks if "FLOCK" in line)
    except (OSError, IndexError):
        return False


def _is_latest(where: Path) -> bool:
    """Whether it is the newest finished result of its study in this place."""
    link = where.parent / store.LATEST
    return link.is_symlink() and os.path.realpath(link) == os.path.realpath(where)


def _changed(where: Path) -> str:
    """When its description, or the directory, was written."""
    for path in (where / store.DESCRIPTION, where / _RUN, where):
        try:
            moment = path.stat().st_mtime
            return datetime.fromtimestamp(moment).astimezone().isoformat(timespec="seconds")
        except OSError:
            continue
    return ""


def _bytes(where: Path) -> int:
    """Bytes of all files; files that disappear or cannot be read count as 0."""
    total, level = 0, [str(where)]
    while level:
        try:
            with os.scandir(level.pop()) as inside:
                for one in inside:
                    if one.is_dir(follow_symlinks=False):
                        level.append(one.path)
                    elif not one.name.endswith(ASIDE):
                        total += one.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total
