"""Published figures, to compare with your results: a CSV of figures, and a TOML that names their source.

Some come with the package, by name (``one-percent-loss``, ``long-fat-path``); a study may name its own file. A figures
file has a column ``mean_mbps``, any of the other statistics, and key columns named like the study's columns. Rows with
``trusted`` = ``no`` are shown but never compared.
"""

from __future__ import annotations

import io
import math
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError, suggestion
from sawtooth.io.untrusted import LARGEST, read_bytes
from sawtooth.sanitize import plain
from sawtooth.stats import STATISTICS

if TYPE_CHECKING:
    from pandas import DataFrame

_LARGEST = 10 * 1024 * 1024
_MOST_COLUMNS = 200
_OTHERS = ("trusted", "note")


@dataclass(frozen=True)
class Published:
    """A table of published figures (``figures``), with ``source`` (who published them), ``setting`` (how they were
    measured) and caveats."""

    name: str
    figures: DataFrame
    source: str
    setting: str = ""
    caveats: tuple[str, ...] = ()

    @property
    def keys(self) -> list[str]:
        """The columns that identify a row's point."""
        return [name for name in self.figures.columns if name not in (*STATISTICS, *_OTHERS)]

    def row(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The row whose key columns have these values; None if it was not published. Extra columns in ``key`` are
        ignored."""
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
        """One published figure of a point; NaN if there is none or, by default, if it is not trusted (a misprint)."""
        row = self.row(key)
        if row is None or column not in row or not (row["trusted"] or untrusted):
            return math.nan
        return float(row[column])


def shipped() -> list[str]:
    """Names of the published figures that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _home().iterdir() if entry.name.endswith(".toml"))


def load(name: str, *, beside: Path | None = None, source: str = "") -> Published:
    """Loads published figures by name, or from a CSV file (a path relative to the directory ``beside``).

    ``source`` says who published the figures in your own file. Raises SawtoothError ``bad-published`` if there is no
    such file, if it cannot be read, or if a column is missing or not a number.
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
        content = read_bytes(path, _LARGEST)
        if len(content) > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST >> 20} MiB")
        text = content.decode()
    except InputError as error:
        message, fix = error.message, "name a CSV file"
        if error.code == "file-not-found":
            message, fix = "the file of published figures does not exist", "name a CSV file beside the study"
        raise InputError("bad-published", message, file=path, fix=fix) from error
    except ValueError as error:
        raise InputError("bad-published", f"cannot be read: {error}", file=path, fix="name a CSV file") from error
    return Published(path.stem, _table(text, str(path)), source)


def _home() -> Any:
    return resources.files("sawtooth") / "data" / "published"


def _table(text: str, origin: str) -> DataFrame:
    import pandas as pd

    try:
        if text.partition("\n")[0].count(",") >= _MOST_COLUMNS:
            raise ValueError(f"more than {_MOST_COLUMNS} columns")
        with warnings.catch_warnings():
            # Without this, extra values in a line would be dropped silently.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(io.StringIO(text), index_col=False)
        table.columns = pd.Index([plain(name) for name in table.columns])
        if not table.columns.is_unique:
            raise ValueError("two columns have the same name")
        for name in table.columns:
            if table[name].dtype.kind not in "iufb":
                table[name] = table[name].map(plain, na_action="ignore")
    except (ValueError, pd.errors.ParserWarning) as error:
        fix = "write a line of column names, then one line per point, with commas between"
        raise InputError("bad-published", f"is not a CSV table: {error}", file=origin, fix=fix) from error
    if "mean_mbps" not in table.columns:
        fix = "name the column of means mean_mbps, in Mbit/s"
        raise InputError("bad-published", "has no column mean_mbps", file=origin, fix=fix)
    for name in STATISTICS:
        if name not in table.columns:
            continue
        numbers = pd.to_numeric(table[name], errors="coerce")
        wrong = table.index[(numbers.isna() | ~(numbers.abs() <= LARGEST)) & table[name].notna()]
        if len(wrong):
            shown = table.loc[wrong[0], name]
            message = f'line {wrong[0] + 2}: "{shown}" is not a number'
            raise InputError("bad-published", message, file=origin, field=name, fix="leave it empty if unknown")
        table[name] = numbers
    if "trusted" in table.columns:
        words = table["trusted"].astype(str).str.strip().str.lower()
        if not words.isin(["yes", "no"]).all():
            fix = 'write "yes", or "no" for a misprint'
            raise InputError("bad-published", 'must be "yes" or "no"', file=origin, field="trusted", fix=fix)
        table["trusted"] = words == "yes"
    else:
        table["trusted"] = True
    return table
