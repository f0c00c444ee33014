"""Tables as text."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def csv_text(table: DataFrame) -> str:
    """CSV with plain numbers: six decimals (nine below 0.001), no exponent, empty where unknown."""
    import pandas as pd

    columns = [_column(table.iloc[:, at]) for at in range(table.shape[1])]
    plain = pd.DataFrame(dict(enumerate(columns)), index=table.index, dtype=object).set_axis(table.columns, axis=1)
    return str(plain.to_csv(index=False, lineterminator="\n"))


def _column(values: Series[Any]) -> list[Any]:
    # Most tables have columns that a study has nothing for.
    return [""] * len(values) if values.dtype == float and values.isna().all() else list(map(_plain, values.tolist()))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else _number(value)
    return value


# A study of one seed has each row twice.
@lru_cache(maxsize=256)
def _number(value: float) -> str:
    # Losses go down to 1e-7 %.
    shown = f"{value:.{9 if abs(value) < 1e-3 else 6}f}".rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "") else shown
