"""The list of results for the page, as ``sawtooth results`` shows it: newest first, each with an id and a one-line
scenario.

The page asks for a result by id only (a digest of its name). Nothing from the page is ever used in a path. Links are
not followed, neither to a result nor inside one.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import not_a_result, read_json, reason
from sawtooth.results.listing import entry, results_below
from sawtooth.sanitize import plain, where
from sawtooth.study import store

MOST = 10_000
"""Maximum number of results in the list; the newest are kept."""
_LARGEST_DESCRIPTION = 16 << 20
_LARGEST_REPORT = 64 << 20
_MOST_FILES = 200_000
_LONGEST = 160
_DESCRIPTIONS = (store.DESCRIPTION, "run.json")


class Results:
    """The results below ``directory``, which need not exist yet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        self._known: dict[str, Path] = {}
        self._rows: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per result, newest first, at most MOST; the last row gives the total number."""
        found = self._find()
        kept = {}
        for place, mark in found[:MOST]:
            before = self._rows.get(place)
            # The description of an unfinished result may stay the same while the run continues, so read it again.
            fresh = before is not None and before[0] == mark and before[1]["state"] == "whole"
            row = before[1] if before is not None and fresh else self._row(place, mark)
            kept[place] = mark, row
            yield row
        self._rows = kept
        yield {"all": len(found), "shown": len(kept), "directory": where(self.directory)}

    def place(self, wanted: str) -> Path:
        """The directory of a result, checked to contain no links. Raises SawtoothError ``not-a-result``."""
        found = self._known.get(wanted)
        if found is None:
            # The id may come from an earlier server, before this one has listed the results.
            self._find()
            found = self._known.get(wanted)
        if found is None:
            fix = "look at the list again"
            raise InputError("not-a-result", "there is no such result below the directory of results", fix=fix)
        _refuse_links(self.directory.resolve(), found)
        return found

    def report(self, wanted: str) -> bytes:
        """The HTML report of a result. Raises SawtoothError ``not-a-result``."""
        path = self.place(wanted) / "report.html"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                about = os.fstat(descriptor)
                if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST_REPORT:
                    raise not_a_result("is not the report of a result", path)
                return file.read(_LARGEST_REPORT)
        except OSError as error:
            raise not_a_result(f"cannot be read: {reason(error)}", path) from error

    def _find(self) -> list[tuple[Path, tuple[int, int]]]:
        """Directories of results, newest first, with modification time and size of their descriptions."""
        found = []
        for place in results_below(self.directory) if self.directory.is_dir() else ():
            mark = _mark(place)
            if mark is not None:
                found.append((place, mark))
        found.sort(key=lambda one: (-one[1][0], one[0]))
        with self._lock:
            self._known = {identity(place.relative_to(self.directory)): place for place, _ in found}
        return found

    def _row(self, place: Path, mark: tuple[int, int]) -> dict[str, Any]:
        row: dict[str, Any] = {
            "id": identity(place.relative_to(self.directory)),
            "name": plain(place.relative_to(self.directory).as_posix(), _LONGEST),
            **dict.fromkeys(("study", "title", "engine", "when", "scenario", "problem"), ""),
            **{"kind": "", "points": 0, "done": 0, "state": "damaged", "older": False, "latest": False},
            "report": is_regular(place / "report.html"),
        }
        try:
            if mark[1] > _LARGEST_DESCRIPTION:
                return row | {"problem": f"its description is larger than {_LARGEST_DESCRIPTION >> 20} MiB"}
            found = entry(self.directory, place)
            row |= {
                "kind": found.kind,
                "study": plain(found.study, _LONGEST),
                "engine": plain(found.engine, 40),
                "when": plain(found.started, 40),
                **{name: getattr(found, name) for name in ("points", "done", "bytes", "state", "older", "latest")},
                "problem": plain(found.problem, 300),
            }
            if found.state in ("damaged", "newer"):
                return row
            description = read_json(place / _DESCRIPTIONS[found.kind == "run"])
            study = description["study"] if found.kind == "study" else {}
            row["title"] = plain(study.get("title") or "", _LONGEST)
            row["scenario"] = in_a_line(study.get("scenario") or description["scenario"], study.get("vary", {}))
        except SawtoothError as error:
            row |= {"state": "damaged", "problem": plain(error.message, 300)}
        except Exception as error:
            # A damaged result must not stop the list, whatever its files contain.
            row |= {"state": "damaged", "problem": plain(f"{type(error).__name__}: {error}", 300)}
        return row


def identity(name: Path) -> str:
    """The id of a result, from its path relative to the directory."""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:20]


def _mark(place: Path) -> tuple[int, int] | None:
    """Modification time and size of a description; None if it is a link or missing."""
    for name in _DESCRIPTIONS:
        try:
            about = os.lstat(place / name)
        except OSError:
            continue
        return (about.st_mtime_ns, about.st_size) if stat.S_ISREG(about.st_mode) else None
    return None


def is_regular(path: Path) -> bool:
    """Whether ``path`` is a regular file."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _refuse_links(root: Path, directory: Path) -> None:
    """Raises SawtoothError ``not-a-result`` if the path to ``directory``, or anything in it, contains a link."""

    def refused(path: Path) -> SawtoothError:
        return not_a_result("is a link: what it leads to is not opened from here", path)

    if not directory.resolve().is_relative_to(root):
        raise refused(directory)
    seen = 0
    for home, inner, files in os.walk(directory):
        for name in (*inner, *files):
            path = Path(home, name)
            if path.is_symlink():
                raise refused(path)
            seen += 1
            if seen > _MOST_FILES:
                message = f"it has more than {_MOST_FILES} files"
                raise InputError("too-many-points", message, file=directory, fix="open its report.html itself")


def in_a_line(scenario: dict[str, Any], vary: dict[str, Any]) -> str:
    """A scenario in a few words. Its fields are only displayed, never interpreted."""
    topology = str(scenario.get("topology", "path"))
    table = scenario.get(topology.removesuffix("-asymmetric"), {})
    table = table if isinstance(table, dict) else {}
    words = [plain(topology, 30)]
    words += [plain(table[name], 40) for name in ("rate", "rtt", "down", "up") if isinstance(table.get(name), str)]
    if isinstance(table.get("loss"), str) and table["loss"] != "0%":
        words.append(f"{plain(table['loss'], 20)} loss")
    flows = scenario.get("flows")
    controls = [_control(flow) for flow in flows if isinstance(flow, dict)] if isinstance(flows, list) else []
    if controls:
        words.append(" + ".join(controls[:4]) + (f" + {len(controls) - 4} more" if len(controls) > 4 else ""))
    if isinstance(scenario.get("duration"), str):
        words.append(plain(scenario["duration"], 20))
    for field, values in vary.items() if isinstance(vary, dict) else ():
        of = f" ({len(values)})" if isinstance(values, list) else ""
        words.append(f"varies {plain(field, 40)}{of}")
    return plain(", ".join(words), 300)


def _control(flow: dict[str, Any]) -> str:
    cc = flow.get("cc", "cubic")
    name = cc.get("name", cc.get("source", "a module")) if isinstance(cc, dict) else cc
    count = flow.get("count", 1)
    return plain(name, 30) + (f" × {plain(count, 10)}" if count != 1 else "")
