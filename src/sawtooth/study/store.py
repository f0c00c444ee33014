"""Store: the dated directories with the results of studies. They are never overwritten.

OUT/NAME/20260131-101500/
    study.json                the question, the versions, and whether it is finished
    points/ID/…               one saved run each
    packs/NUMBER/…            64 saved runs each, in a study of many short points (sawtooth.run.pack)
    captures/ID/…             packet headers, if requested
    progress/ID               fraction of a running point; removed when it is finished
    summary.csv  table.csv    the tables; shares.csv: of flows; published.csv: the figures that were compared with
    starts.csv                results with other starts of the flows, if every seed gives the same
    report.html  plots/       written by sawtooth.report
OUT/NAME/latest               link to the newest finished one
"""

from __future__ import annotations

import fcntl
import itertools
import os
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import (
    AGAIN,
    ASIDE,
    below,
    new_directory,
    not_a_result,
    read_description,
    sync,
    write_bytes,
    write_description,
    writing,
)
from sawtooth.io.parallel import Misfit
from sawtooth.run import TABLES, Run, is_saved
from sawtooth.run.pack import PACKS, POINTS
from sawtooth.scenario import Scenario

FORMAT = 2
"""Format version of ``study.json``: 2 if there are packs, else 1."""
DESCRIPTION = "study.json"
LATEST = "latest"
"""Link beside the dated directories to the newest finished one."""
LOCK = ".lock"
"""Locked by the process that works on the directory."""
STOP = "stop"
"""While this file exists, workers end their points early."""
SEAL = ".seal"
"""Random text. A worker on another machine that reads the same text sees the same directory."""
_FILES = {"run.json", *(f"{name}.parquet" for name in TABLES)}
"""Files that a saved run may consist of."""


@contextmanager
def results_directory(
    out: Path, name: str, identity: str, described: dict[str, Any], *, packed: bool = False
) -> Iterator[Path]:
    """The directory for a study's results, locked against other processes while the block runs.

    An unfinished directory with the same ``identity`` is continued; otherwise a new one is made, named by date and
    time. ``packed``: there will be packs of runs. Raises SawtoothError ``unwritable-output`` or ``disk-full``. The fix
    of an error in the block about a damaged point says what to delete.
    """
    home = out / name
    with writing(home):
        home.mkdir(parents=True, exist_ok=True)
    for candidate in sorted(home.iterdir(), reverse=True):
        if candidate.is_symlink() or not _is_unfinished(candidate, identity):
            continue
        lock = _lock(candidate)
        if lock is not None:
            described = read_description(candidate / DESCRIPTION, FORMAT)
            if packed and described["format"] < FORMAT:
                # It was begun where no packs were possible, on a cluster for example.
                write_description(candidate / DESCRIPTION, described | {"format": FORMAT})
            break
    else:
        candidate = _new(home)
        lock = _lock(candidate)
        form = FORMAT if packed else 1
        description = {"format": form, "identity": identity, "finished": None, "started": _now(), **described}
        write_description(candidate / DESCRIPTION, description)
    try:
        _sweep(candidate)
        yield candidate
    except SawtoothError as error:
        damaged = None if error.fix != AGAIN or error.file is None else Path(error.file).parent
        if damaged is None or damaged.parent != candidate / POINTS:
            raise
        # Nothing replaces a saved point, so to run the same command again is not enough.
        fix = f"delete {shlex.quote(str(damaged))} and run the same command again: it computes this point again"
        raise SawtoothError(error.code, error.message, file=error.file, field=error.field, fix=fix) from error
    finally:
        if lock is not None:
            os.close(lock)


def computed(directory: Path, extra: dict[str, Any]) -> None:
    """Records when all points were computed, and ``extra`` facts about them. A time that is already there is kept."""
    with writing(directory):
        shutil.rmtree(directory / "progress", ignore_errors=True)
        for place in (POINTS, PACKS):
            _clear(directory / place)
        (directory / SEAL).unlink(missing_ok=True)
    description = read_description(directory / DESCRIPTION, FORMAT)
    write_description(directory / DESCRIPTION, {"computed": _now()} | description | extra)


def finish(directory: Path) -> None:
    """Points ``latest`` to the results and marks them as finished. This comes last, once the disk has everything:
    whoever finds the mark starts a new directory. Points were synchronized to disk when they were saved."""
    with writing(directory):
        sync([*below(directory, but=[POINTS, PACKS]), *directory.parents[:3]])
    with writing(directory.parent / LATEST):
        aside = directory.parent / f".{LATEST}.{os.getpid()}{ASIDE}"
        aside.unlink(missing_ok=True)
        aside.symlink_to(directory.name)
        os.replace(aside, directory.parent / LATEST)
    description = read_description(directory / DESCRIPTION, FORMAT) | {"finished": _now()}
    write_description(directory / DESCRIPTION, description)


class _Point(BaseModel):
    id: Annotated[str, Field(pattern=r"^[0-9]+-[A-Za-z0-9._-]+$")]
    key: Annotated[dict[str, str | bool | int | float], Field(min_length=1)]
    seed: int


class _Published(BaseModel):
    name: str
    source: str
    setting: str
    caveats: list[str]
    sha256: str | None = None


class _Description(BaseModel):
    """The fields that study.json must have."""

    study: dict[str, Any]
    engine: str
    started: str
    computed: str | None = None
    finished: str | None
    overrides: dict[str, Any]
    versions: dict[str, str]
    points: Annotated[list[_Point], Field(min_length=1)]
    published: _Published | None = None


def describe(directory: Path) -> dict[str, Any]:
    """The description of results. Raises SawtoothError ``not-a-result`` for anything else, or for a newer format."""
    path = directory / DESCRIPTION
    found = read_description(path, FORMAT)
    try:
        _Description.model_validate(found)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in problem["loc"])
        message = f"is not the description of a study's results: {field}: {problem['msg'].lower()}"
        raise not_a_result(message, path) from error
    return found


def point_directory(directory: Path, point: str) -> Path:
    """The directory of a point's saved run."""
    return directory / POINTS / point


def keep(directory: Path, point: str, files: Mapping[str, bytes], scenario: Mapping[str, Any]) -> None:
    """Saves a run of that scenario which a worker on another machine made. It appears complete or not at all.

    Raises SawtoothError as ``Run.save`` does, and Misfit if the files are not a complete run of the scenario.
    """
    # Checked before one of their names becomes a path.
    if not isinstance(files, dict) or not set(files) <= _FILES:
        raise Misfit(f"the files of the point {point} are not those of a run")
    with new_directory(point_directory(directory, point)) as aside:
        for name, content in files.items():
            with writing(aside / name):
                (aside / name).write_bytes(content)
        try:
            found = Run.load(aside)
        except SawtoothError as error:
            raise Misfit(f"the files of the point {point} are no whole run: {error.message}") from error
        if found.scenario != Scenario.from_dict(scenario):
            raise Misfit(f"the run of the point {point} is of another scenario")


def sealed(directory: Path) -> str:
    """Writes a new seal into the directory. Raises SawtoothError as ``storage.writing`` does."""
    seal = secrets.token_hex(16)
    write_bytes(directory / SEAL, seal.encode())
    return seal


def is_seen(directory: Path, seal: str) -> bool:
    """Whether ``directory``, as seen from here, is the one with that seal."""
    try:
        return (directory / SEAL).read_text() == seal
    except (OSError, ValueError):
        return False


def has_points(directory: Path) -> bool:
    """Whether any point's run is saved."""
    return any(any(place.iterdir()) for place in (directory / POINTS, directory / PACKS) if place.is_dir())


def is_done(directory: Path, point: str) -> bool:
    """True if the point's run is saved completely."""
    return is_saved(point_directory(directory, point))


def _is_unfinished(candidate: Path, identity: str) -> bool:
    """And this user's: in one that another made, links may lead anywhere."""
    try:
        if os.lstat(candidate).st_uid != os.geteuid():
            return False
        found = read_description(candidate / DESCRIPTION, FORMAT)
    except (OSError, SawtoothError):
        return False
    return found.get("identity") == identity and found.get("finished") is None


def _lock(directory: Path) -> int | None:
    """A descriptor that holds the directory's lock until it is closed or the process ends; None if another process has
    it."""
    with writing(directory):
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor


def _new(home: Path) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    for attempt in itertools.count(1):
        target = home / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        with writing(target):
            try:
                target.mkdir()
            except FileExistsError:
                continue
            (target / POINTS).mkdir()
            return target
    raise AssertionError("unreachable")


def _sweep(directory: Path) -> None:
    """Removes half-written files of a killed worker, and the request to stop."""
    with writing(directory):
        for place in (directory, directory / POINTS, directory / PACKS, directory / "plots"):
            _clear(place)
        shutil.rmtree(directory / "progress", ignore_errors=True)
        (directory / "progress").mkdir()
        (directory / STOP).unlink(missing_ok=True)


def _clear(directory: Path) -> None:
    for left in directory.glob(f".*{ASIDE}"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
