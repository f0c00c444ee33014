"""Views: tables of all results, one per kind, with the result's name and the varied fields as columns.

A result's tables (summary.csv …) are small and read at once. Those of runs stay in their files, which DuckDB reads as
needed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import read_json
from sawtooth.results.listing import Entry
from sawtooth.run import TABLES, pack, unsaved
from sawtooth.study import store
from sawtooth.study.dataset import flat

if TYPE_CHECKING:
    from pandas import DataFrame

OF_RESULTS = {
    "summary": "summary.csv",
    "details": "table.csv",
    "shares": "shares.csv",
    "latency": "latency.csv",
    "completions": "completions.csv",
    "applications": "applications.csv",
    "published": "published.csv",
}
"""Tables of results by view, with their files."""
ABOUT = ("result", "study", "engine", "point", "seed")
"""The first columns of every view of runs."""
NAMES = ("results", "points", *OF_RESULTS, *TABLES)
"""All views."""


@dataclass(frozen=True)
class Place:
    """A saved run: its directory, and facts about it besides its tables."""

    root: Path
    """The directory of its result."""
    directory: Path
    about: dict[str, Any]
    key: dict[str, Any]


class Views:
    """The views of some results. Damaged and newer ones are left out, and ``problem`` is called with a sentence about
    each."""

    def __init__(self, entries: Iterable[Entry], problem: Callable[[str], object]) -> None:
        self.problem = problem
        self.entries = []
        for one in entries:
            if one.problem:
                self._leave_out(one.name, one.problem)
            else:
                self.entries.append(one)
        self._of: dict[str, Callable[[], DataFrame]] = {"results": self._results, "points": self._points}

    def _leave_out(self, name: str, why: str) -> None:
        self.problem(f"{name} is left out: {why}")

    def there(self) -> list[str]:
        """Views that have rows in some result."""
        first = _first_of_each(self.places)
        found = [name for name in TABLES if any(_file(one, name)[0].is_file() for one in first)]
        of_results = [
            name for name, file in OF_RESULTS.items() if any((one.directory / file).is_file() for one in self.entries)
        ]
        return ["results", "points", *of_results, *found]

    def frame(self, name: str) -> DataFrame | None:
        """A view that is held in memory; None for those of runs."""
        if name in OF_RESULTS:
            return self._csv(OF_RESULTS[name])
        return self._of[name]() if name in self._of else None

    def files(self, name: str) -> list[tuple[Path, int | None, Place]]:
        """For each run that has the table: its file, and the run's place there if it holds several runs, else None.
        Runs that should have it and do not are left out."""
        found: list[tuple[Path, int | None, Place]] = []
        absent: set[Path] = set()
        for place in self.places:
            path, at = _file(place, name)
            if _is_there(path, place.root):
                found.append((path, at, place))
            elif path not in absent and (why := _absence(place, path)):
                # A pack's runs have one file.
                absent.add(path)
                part = f"point {place.about['point']}" if at is None else f"pack {path.parent.name}"
                self._leave_out(f"{place.about['result']}, {part},", why)
        return found

    @cached_property
    def places(self) -> list[Place]:
        """Each saved run of all results."""
        found = []
        for one in self.entries:
            if one.kind == "run":
                about = dict(zip(ABOUT, (one.name, one.study, one.engine, one.directory.name, _seed(one)), strict=True))
                found.append(Place(one.directory, one.directory, about, {}))
                continue
            try:
                described = store.describe(one.directory)
            except SawtoothError as error:
                # It was complete a moment ago.
                self._leave_out(one.name, error.message)
                continue
            missing = unsaved(one.directory, [point["id"] for point in described["points"]])
            for point in described["points"]:
                if point["id"] not in missing:
                    values = one.name, one.study, one.engine, point["id"], point["seed"]
                    about = dict(zip(ABOUT, values, strict=True))
                    found.append(
                        Place(one.directory, store.point_directory(one.directory, point["id"]), about, point["key"])
                    )
        return found

    def _results(self) -> DataFrame:
        import pandas as pd

        names = ("name", "study", "engine", "kind", "started", "finished", "points", "done", "bytes", "state", "latest")
        rows = [{"result" if name == "name" else name: getattr(one, name) for name in names} for one in self.entries]
        return pd.DataFrame(rows, columns=["result", *names[1:]])

    def _points(self) -> DataFrame:
        """One row per run, with each field of its scenario under its dotted path."""
        import pandas as pd

        rows = []
        for place in self.places:
            try:
                packed = pack.find(place.directory)
                path = place.directory / "run.json"
                found = read_json(path) if packed is None else packed.lines[place.directory.name]
            except SawtoothError as error:
                self._leave_out(f"{place.about['result']}, point {place.about['point']},", error.message)
                continue
            scenario = found.get("scenario") if isinstance(found, dict) else None
            rows.append({**place.about, **place.key, **flat(scenario if isinstance(scenario, dict) else {})})
        return uniform(pd.DataFrame(rows, columns=None if rows else list(ABOUT)))

    def _csv(self, file: str) -> DataFrame:
        import pandas as pd

        frames = []
        for one in self.entries:
            path = one.directory / file
            if _is_there(path, one.directory):
                frame = pd.read_csv(path, dtype={"seed": str})
                frame.insert(0, "result", one.name)
                if "study" not in frame:
                    frame.insert(1, "study", one.study)
                frames.append(frame)
        return uniform(pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"result": [], "study": []}))


def uniform(frame: DataFrame) -> DataFrame:
    """Columns with one type each: a column that is a number in one result and text in another becomes text."""
    for name in frame.columns:
        column = frame[name]
        if column.dtype == object:
            kinds = {type(value) for value in column if value is not None and value == value}
            if not kinds <= {int, float} and not kinds <= {bool}:
                frame[name] = [None if value is None or value != value else _text(value) for value in column]
    return frame


def tables(frame: DataFrame) -> dict[str, dict[str, list[Any]]]:
    """By table of the scenario, its fields with a value for each row: quantities of one kind as numbers (bit/s, s,
    bytes, shares), others as they are. None of these tables has the name of a column.
    """
    found: dict[str, dict[str, list[Any]]] = {}
    for column in frame.columns:
        table, dot, name = str(column).partition(".")
        if dot and "." not in name and not table.isdigit() and table not in frame:
            found.setdefault(table, {})[name] = _numbers(frame[column].tolist())
    return found


def _numbers(values: list[Any]) -> list[Any]:
    from sawtooth.scenario import Loss, Rate, Size, Span

    amounts: list[tuple[Any, Callable[[Any], float]]] = [
        (Rate, lambda one: one.bps),
        (Span, lambda one: one.ns / 1e9),
        (Size, lambda one: one.bytes),
        (Loss, lambda one: one.probability),
    ]
    known = [None if value is None or value != value else value for value in values]
    if all(value is None or isinstance(value, str) for value in known):
        for kind, amount in amounts:
            with contextlib.suppress(SawtoothError):
                return [None if value is None else float(amount(kind.parse(value))) for value in known]
    return known


def _is_there(path: Path, root: Path) -> bool:
    """Not through a link that leads out of the result: sawtooth makes none."""
    return path.is_file() and path.resolve().is_relative_to(root.resolve())


def _file(place: Place, table: str) -> tuple[Path, int | None]:
    """The file of a run's table, whether it exists or not, and the run's place in it if a pack holds the run."""
    packed = pack.find(place.directory)
    if packed is None:
        return place.directory / f"{table}.parquet", None
    return packed.directory / f"{table}.parquet", packed.names.index(place.directory.name)


def _absence(place: Place, path: Path) -> str | None:
    """Why the file of a run's table is not read; None if the run, or its pack, has no such table."""
    if path.is_file():
        return f"{path.name} is outside of the result"
    packed = pack.find(place.directory)
    try:
        if packed is None:
            found = read_json(place.directory / "run.json")
            named = found.get("tables") if isinstance(found, dict) else None
            listed = isinstance(named, (dict, list)) and path.stem in named
        else:
            listed = path.name in packed.files
    except SawtoothError as error:
        return error.message
    return f"{path.name} is missing" if listed else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _seed(one: Entry) -> Any:
    found = read_json(one.directory / "run.json")
    seed = found.get("seed") if isinstance(found, dict) else None
    return seed if isinstance(seed, int) else None


def _first_of_each(places: Iterable[Place]) -> list[Place]:
    """One run of each result: the others have nearly the same tables."""
    return list({place.about["result"]: place for place in places}.values())
