"""Figures that others published, to be set beside ours: a CSV of figures, and a TOML that says whose they are.

The package ships some by name (``one-percent-loss``, ``long-fat-path``); a study may name a file of its own. A figures
file has a column ``mean_mbps``, any of the other statistics, and key columns with the names of the study's columns.
Rows with ``trusted`` = ``no`` are shown and never compared with.
"""

from __future__ import annotations

import io
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError, suggestion
from sawtooth.stats import STATISTICS
from sawtooth.storage import regular

if TYPE_CHECKING:
    from pandas import DataFrame

_OTHERS = ("trusted", "note")


@dataclass(frozen=True)
class Published:
    """``figures`` (a table), whose they are (``source``), how they were made (``setting``) and what to beware of."""

    name: str
    figures: DataFrame
    source: str
    setting: str = ""
    caveats: tuple[str, ...] = ()

    @property
    def keys(self) -> list[str]:
        """Columns that say which point a row belongs to."""
        return [name for name in self.figures.columns if name not in (*STATISTICS, *_OTHERS)]

    def row(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The row whose key columns have these values; more columns in ``key`` do not matter. None: not published."""
        found = self.figures
        for name in self.keys:
            if name not in key:
                return None
            wanted = key[name]
            if isinstance(wanted, (int, float)) and found[name].dtype.kind in "if":
                found = found[(found[name] - wanted).abs() < 1e-9]
            else:
                found = found[found[name].astype(str) == str(wanted)]
        return None if found.empty else {str(name): value for name, value in found.iloc[0].items()}

    def figure(self, key: Mapping[str, Any], column: str = "mean_mbps", *, untrusted: bool = False) -> float:
        """One trusted figure of that point; NaN where none was published or, by default, where it is a misprint."""
        row = self.row(key)
        if row is None or column not in row or not (row["trusted"] or untrusted):
            return math.nan
        return float(row[column])


def shipped() -> list[str]:
    """Names of the figures that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _home().iterdir() if entry.name.endswith(".toml"))


def load(name: str, *, beside: Path | None = None, source: str = "") -> Published:
    """Figures that are shipped under ``name``, or a CSV file (a path from the directory ``beside``).

    ``source`` says whose figures a file of one's own holds. Raises SawtoothError ``bad-published`` when there is no
    such file, when it cannot be read, or when a column is absent or not a number.
    """
    if not name.endswith(".csv"):
        if name not in shipped():
            fix = suggestion(name, shipped()) + ' or a file that ends in ".csv"'
            raise InputError("bad-published", f'no published figures are named "{name}"', fix=fix)
        described = tomllib.loads((_home() / f"{name}.toml").read_text(encoding="utf-8"))
        text = (_home() / described["figures"]).read_text(encoding="utf-8")
        caveats = tuple(described.get("caveats", ()))
        return Published(name, _table(text, name), described["source"], described["setting"], caveats)
    path = (beside or Path()) / name
    try:
        regular(path)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        fix = "name a CSV file beside the study"
        raise InputError("bad-published", "the file of published figures does not exist", file=path, fix=fix) from error
    except InputError as error:
        raise InputError("bad-published", error.message, file=path, fix="name a CSV file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("bad-published", f"cannot be read: {error}", file=path, fix="name a CSV file") from error
    return Published(path.stem, _table(text, str(path)), source)


def _home() -> Any:
    return resources.files("sawtooth") / "data" / "published"


def _table(text: str, origin: str) -> DataFrame:
    import pandas as pd

    try:
        table = pd.read_csv(io.StringIO(text))
    except ValueError as error:
        fix = "write a line of column names, then a line a point, with commas between"
        raise InputError("bad-published", f"is not a CSV table: {error}", file=origin, fix=fix) from error
    if "mean_mbps" not in table.columns:
        fix = "name the column of means mean_mbps, in Mbit/s"
        raise InputError("bad-published", "has no column mean_mbps", file=origin, fix=fix)
    for name in STATISTICS:
        if name not in table.columns:
            continue
        numbers = pd.to_numeric(table[name], errors="coerce")
        wrong = table.index[numbers.isna() & table[name].notna()]
        if len(wrong):
            shown = table.loc[wrong[0], name]
            message = f'line {wrong[0] + 2}: "{shown}" is not a number'
            raise InputError("bad-published", message, file=origin, field=name, fix="leave it empty if unknown")
        table[name] = numbers
    if "trusted" in table.columns:
        words = table["trusted"].astype(str).str.strip().str.lower()
        if not words.isin(["yes", "no"]).all():
            fix = 'write "no" for a misprint, else "yes"'
            raise InputError("bad-published", 'is "yes" or "no"', file=origin, field="trusted", fix=fix)
        table["trusted"] = words == "yes"
    else:
        table["trusted"] = True
    return table
