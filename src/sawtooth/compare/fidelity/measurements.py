"""Measurements: measurements of engines, one row per run, as CSV. Used in the cache and for the record beside a grid.

Each row identifies its engine by the build's digest, which ``about`` explains. Rows are found by the question's digest,
so points can be renamed and moved.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sawtooth.compare.fidelity.measures import NAMES
from sawtooth.errors import SawtoothError
from sawtooth.io import tempdirs
from sawtooth.io.atomic_io import not_a_result, read_json, write_bytes, write_json, writing
from sawtooth.io.untrusted import decimal
from sawtooth.sanitize import plain

COLUMNS = ("point", "question", "engine", "seed", "date", "cpu_s", *NAMES, "shares")
_LATER = (
    *("delay_ms", "probe_ms", "p95_probe_ms", "drops", "marks", "fct_ms", "p90_fct_ms"),
    *("response_ms", "page_ms", "stalled_s"),
)
"""Measures that older records lack."""
_WORDS = ("point", "question", "engine", "date", "shares")

Row = dict[str, Any]
"""One run: the values of ``COLUMNS``, numbers as numbers."""


@dataclass
class Ledger:
    """Rows by question, and facts about each engine build by digest. Not thread-safe."""

    path: Path
    rows: dict[str, list[Row]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    torn: bool = False
    """Whether the file ends with an incomplete line."""

    @classmethod
    def load(cls, path: Path) -> Ledger:
        """Read a ledger; empty if the file does not exist. Raises SawtoothError ``not-a-result`` if it is not a
        ledger."""
        ledger = cls(path)
        if not path.exists():
            return ledger
        try:
            text = path.read_text(encoding="utf-8")
            # A killed process may leave an incomplete line. That run does not count.
            whole = text[: text.rfind("\n") + 1]
            ledger.torn = whole != text
            for given in csv.DictReader(io.StringIO(whole)):
                later = dict.fromkeys((name for name in _LATER if name not in given), "")
                ledger.add({name: _value(name, (given | later)[name]) for name in COLUMNS})
        except (OSError, KeyError, ValueError, csv.Error) as error:
            raise not_a_result(f"is not a table of measured runs: {error!r}", path) from error
        beside = path.with_suffix(".json")
        if beside.exists():
            ledger.about = read_json(beside)
        return ledger

    def of(self, question: str, engine: str | None = None) -> list[Row]:
        """The runs for a question, by seed, of one engine build or of all."""
        found = [row for row in self.rows.get(question, []) if engine in (None, row["engine"])]
        return sorted(found, key=lambda row: int(row["seed"]))

    def add(self, row: Row) -> None:
        """Add a run in memory. An existing run is kept."""
        known = self.rows.setdefault(row["question"], [])
        if all((row["engine"], row["seed"]) != (one["engine"], one["seed"]) for one in known):
            known.append(row)

    def append(self, row: Row) -> None:
        """Add a run and append it to the file at once. Raises SawtoothError as ``storage.writing`` does."""
        self.add(row)
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.torn:
                write_bytes(self.path, _csv(one for known in self.rows.values() for one in known).encode())
                self.torn = False
                return
            text = _csv([row], header=not self.path.exists())
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text)

    def replace(self, question: str, rows: Sequence[Row]) -> None:
        """Replace all runs of a question."""
        self.rows[question] = list(rows)

    def write(self, order: Sequence[str]) -> None:
        """Replace the file: the questions in ``order`` (others are dropped), and ``about`` for the remaining engine
        builds."""
        kept = [row for question in order for row in self.of(question)]
        write_bytes(self.path, _csv(kept).encode())
        engines = {row["engine"] for row in kept}
        about = {engine: self.about[engine] for engine in sorted(engines & self.about.keys())}
        write_json(self.path.with_suffix(".json"), about)


def cache(engine: str, digest: str) -> Path:
    """The cache file of an engine build: ``$XDG_CACHE_HOME/sawtooth/fidelity/ENGINE-DIGEST.csv``."""
    return tempdirs.cache() / "fidelity" / f"{engine}-{digest}.csv"


def _csv(rows: Iterable[Row], *, header: bool = True) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    if header:
        table.writerow(COLUMNS)
    for row in rows:
        table.writerow([_plain(row[name]) for name in COLUMNS])
    return text.getvalue()


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.7g}" if abs(value) < 1e6 else f"{value:.0f}"
    return str(value)


def _value(name: str, text: str | None) -> Any:
    if text is None:
        raise ValueError(f"a line ends before {name}")
    if name in _WORDS:
        return plain(text)
    if name == "seed":
        return int(decimal(text))
    return decimal(text) if text else math.nan


def unmeasured(path: Path, points: Sequence[str]) -> SawtoothError:
    """The error for points that have not been measured."""
    shown = ", ".join(points[:3]) + (" …" if len(points) > 3 else "")
    fix = "measure them on the real kernel, which takes a while: the same command with --measure missing"
    return SawtoothError("not-a-result", f"{len(points)} points are not measured: {shown}", file=path, fix=fix)
