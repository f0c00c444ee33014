"""Dataset: a study's points as rows of one Parquet dataset, at any address that fsspec supports: s3://…, gs://…,
file://…

    URL/NAME/IDENTITY/
        _study.json               the question, with the versions that answered it
        part-….parquet            some rows; each part is complete or absent

A row is a point: its identity, the fields of its scenario under their dotted names, the study's columns, and one run's
row of the study's table. All parts have the same columns, so the dataset can be read while it grows.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.engines import Engine, get
from sawtooth.errors import InputError, SawtoothError, install_extra
from sawtooth.io.parallel import stop_requested
from sawtooth.io.table_store import opened
from sawtooth.io.untrusted import json_value
from sawtooth.sanitize import plain
from sawtooth.scenario import Scenario
from sawtooth.stats import COUNTERS, STATISTICS
from sawtooth.study.measures import MEASURES, measured
from sawtooth.study.result import Place, row_of
from sawtooth.study.study import Point
from sawtooth.study.worker import failed

if TYPE_CHECKING:
    from pandas import DataFrame

ROWS = 1000
"""Rows of a part, at most. Many small parts slow readers down more than large ones."""
EVERY_S = 5.0
"""Seconds after which finished rows become a part: how much work is lost if the command is killed."""
_ABOUT = "_study.json"
_ATOMIC = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"}
"""Stores that show an object only once it is complete. On others a part is written under another name and renamed."""
_NUMBERS = (*STATISTICS, "from_s", "to_s", "ci_low_mbps", "ci_high_mbps", *COUNTERS, *MEASURES)


@dataclass(frozen=True)
class PointTask:
    """A point to measure."""

    place: Place
    scenario: dict[str, Any]
    engine: str | Engine


def measure(task: PointTask) -> dict[str, Any] | SawtoothError | None:
    """Runs a point and returns its row of the study's table; None if it was stopped."""
    try:
        engine = get(task.engine) if isinstance(task.engine, str) else task.engine
        scenario = Scenario.from_dict(task.scenario, source=task.place.id)
        run = engine.run(scenario, stop=stop_requested)
        return row_of(engine.name, task.place, run)
    except Exception as error:
        return failed(task.place.id, error).error


def measure_all(tasks: Sequence[PointTask]) -> list[dict[str, Any] | SawtoothError | None]:
    """``measure`` for points of one batch, up to the first that fails or is stopped."""
    found = []
    for task in tasks:
        found.append(measure(task))
        if not isinstance(found[-1], dict):
            break
    return found


class Dataset:
    """The rows of one study at ``url``.

    Raises SawtoothError: ``tool-missing`` without fsspec or its driver for this address, ``bad-usage`` for an unknown
    kind of address, ``unwritable-output`` if the store refuses.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            core = importlib.import_module("fsspec.core")
        except ImportError as error:
            fix = install_extra("cluster")
            raise SawtoothError(
                "tool-missing", "fsspec is not installed, which writes there", file=url, fix=fix
            ) from error
        try:
            self._store, self._path = core.url_to_fs(self.url, use_listings_cache=False)
        except ImportError as error:
            fix = "install the package that it names, with pip"
            raise SawtoothError("tool-missing", plain(str(error), 200), file=url, fix=fix) from error
        except ValueError as error:
            fix = "give a directory, or an address like s3://BUCKET/PREFIX"
            raise InputError("bad-usage", plain(str(error), 200), file=url, fix=fix) from error

    @classmethod
    def under(cls, url: str, name: str, identity: str) -> Dataset:
        """The dataset of a study below ``url``, by the study's name and identity."""
        return cls(f"{url.rstrip('/')}/{name}/{identity[:16]}")

    def begin(self, described: Mapping[str, Any]) -> None:
        """Writes the description of the question. If nothing can be written, this fails before anything is computed."""
        text = json.dumps(described, indent=2, ensure_ascii=False, default=str) + "\n"
        with self._writing():
            if not self._is_atomic:
                # Object stores have no directories; a missing bucket is a mistake in the address.
                self._store.makedirs(self._path, exist_ok=True)
            self._put(_ABOUT, text.encode())

    def digests(self) -> set[str]:
        """Digests of the scenarios whose rows are present."""
        return set(self.read(["digest"])["digest"])

    def read(self, columns: Sequence[str] | None = None) -> DataFrame:
        """All rows, each point once."""
        import pandas as pd
        import pyarrow as pa

        frames = []
        with self._writing():
            for path in sorted(self._store.glob(f"{self._path}/part-*.parquet")):
                content = self._store.cat_file(path)
                try:
                    wanted = None if columns is None else list({*columns, "digest"})
                    part = opened(io.BytesIO(content)).read(columns=wanted, use_threads=False)
                    frames.append(part.to_pandas())
                except pa.ArrowException as error:
                    fix = "remove the file, and run the study again: only its points are computed again"
                    raise SawtoothError(
                        "not-a-result", "this part of the dataset is damaged", file=path, fix=fix
                    ) from error
        if not frames:
            return pd.DataFrame(columns=list(columns or ["digest"]))
        whole: DataFrame = pd.concat(frames, ignore_index=True)
        return whole.drop_duplicates("digest", ignore_index=True)

    def contents(self) -> tuple[dict[str, Any], DataFrame]:
        """The question, and one row per point in its order, like a run's row in ``StudyResult.details``.

        Raises SawtoothError ``not-a-result`` if there is no dataset or rows are missing.
        """
        try:
            with self._writing():
                content = self._store.cat_file(f"{self._path}/{_ABOUT}") if self._is_there() else b""
            description = dict(json_value(content.decode()))
            description |= {name: description[name] for name in ("study", "full", "seeds", "overrides")}
            points = [(one["digest"], one["key"] | {"seed": one["seed"]}) for one in description["points"]]
            columns = list(points[0][1])
        except (ValueError, TypeError, LookupError) as error:
            if isinstance(error, SawtoothError):
                raise
            fix = "name a dataset by the address that sawtooth run --out was given"
            raise SawtoothError("not-a-result", f"has no readable {_ABOUT}", file=self.url, fix=fix) from error
        rows = self.read().set_index("digest")
        there = sum(digest in rows.index for digest, _ in points)
        if there < len(points):
            fix = "run the same command again: it continues where it stopped"
            message = f"the study is not finished: {there} of {len(points)} points are there"
            raise SawtoothError("not-a-result", message, file=self.url, fix=fix)
        keys = {name: [key[name] for _, key in points] for name in columns}
        return description, rows.loc[[digest for digest, _ in points]].reset_index(drop=True).assign(**keys)

    def _is_there(self) -> bool:
        return bool(self._store.exists(f"{self._path}/{_ABOUT}"))

    @contextlib.contextmanager
    def adding(self, points: Sequence[Point]) -> Iterator[Writer]:
        """Accepts rows of ``points`` inside a ``with`` block. Rows that arrived are kept, however the block ends."""
        rows = Writer(self, points)
        try:
            yield rows
        finally:
            rows.flush()

    def write(self, table: Any, name: str) -> None:
        """Writes a part from a pyarrow table."""
        import pyarrow.parquet as pq

        content = io.BytesIO()
        pq.write_table(table, content)
        with self._writing():
            self._put(name, content.getvalue())

    @property
    def _is_atomic(self) -> bool:
        protocols = self._store.protocol
        return bool(_ATOMIC & ({protocols} if isinstance(protocols, str) else set(protocols)))

    def _put(self, name: str, content: bytes) -> None:
        path = f"{self._path}/{name}"
        if self._is_atomic:
            self._store.pipe_file(path, content)
            return
        aside = f"{self._path}/.{name}.part"
        self._store.pipe_file(aside, content)
        self._store.mv(aside, path)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except SawtoothError:
            raise
        except Exception as error:
            # Each kind of store raises its own exceptions.
            message = f"the store refuses: {type(error).__name__}: {plain(str(error), 300)}"
            fix = "look at the address, its credentials and its endpoint; points that are there are kept"
            raise SawtoothError("unwritable-output", message, file=self.url, fix=fix) from error


class Writer:
    """Rows to be added to a dataset, all with the union of the columns of ``points``."""

    def __init__(self, dataset: Dataset, points: Sequence[Point]) -> None:
        self._dataset = dataset
        self._fields = {point.id: flat(point.scenario.to_dict()) for point in points}
        self._digests = {point.id: point.digest for point in points}
        self._schema = _schema(points, list(self._fields.values()))
        self._rows: list[dict[str, Any]] = []
        self._since = time.monotonic()

    def add(self, point: str, row: Mapping[str, Any]) -> None:
        self._rows.append({**self._fields[point], **row, "point": point, "digest": self._digests[point]})
        if len(self._rows) >= ROWS:
            self.flush()

    def poll(self) -> None:
        """Writes the waiting rows as a part once they have waited ``EVERY_S`` seconds."""
        if time.monotonic() - self._since > EVERY_S:
            self.flush()

    def flush(self) -> None:
        import pyarrow as pa

        self._since = time.monotonic()
        if not self._rows:
            return
        ordered = sorted(self._rows, key=lambda row: str(row["point"]))
        name = hashlib.sha256("".join(row["digest"] for row in ordered).encode()).hexdigest()[:16]
        typed = [_typed(row, self._schema) for row in ordered]
        self._dataset.write(pa.Table.from_pylist(typed, schema=self._schema), f"part-{name}.parquet")
        self._rows = []


def flat(value: Any, before: str = "") -> dict[str, Any]:
    """A scenario's fields under their dotted names, ``path.rate``, ``flows.0.cc``."""
    if isinstance(value, Mapping):
        pairs = [(str(name), each) for name, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, (Mapping, list)) for each in value):
        pairs = [(str(at), each) for at, each in enumerate(value)]
    else:
        return {before: json.dumps(value) if isinstance(value, list) else value}
    found: dict[str, Any] = {}
    for name, each in pairs:
        found |= flat(each, f"{before}.{name}" if before else name)
    return found


def _schema(points: Sequence[Point], fields: Sequence[Mapping[str, Any]]) -> Any:
    """Column types that fit the values of all points."""
    import pyarrow as pa

    seen: dict[str, set[type]] = {}
    for row in [*fields, *(point.key for point in points)]:
        for name, value in row.items():
            seen.setdefault(name, set()).add(type(value))
    types = {name: _type(kinds - {type(None)}) for name, kinds in seen.items()}
    types |= {"digest": pa.string(), "point": pa.string(), "engine": pa.string(), "seed": pa.int64()}
    numbers = (*_NUMBERS, *measured(points[0].scenario))
    types |= dict.fromkeys(numbers, pa.float64()) | {"ci_of": pa.string(), "ci_n": pa.int64()}
    return pa.schema(list(types.items()))


def _type(kinds: set[type]) -> Any:
    import pyarrow as pa

    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def _typed(row: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    import pyarrow as pa

    found = {}
    for column in schema:
        value = row.get(column.name)
        if value is not None and column.type == pa.string():
            value = str(value)
        elif value is not None and column.type == pa.float64():
            value = float(value)
        found[column.name] = value
    return found
