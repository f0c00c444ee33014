"""Recordings of ``watch`` with impossible values, of other types, damaged, or larger than they look."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

from experiments.trials.bombs import bounded
from experiments.trials.command import connection_row

_NUMBERS = (math.nan, math.inf, -math.inf, -1.0, 1e308, -0.0, 2.0**63, None)
_WHOLE = (-1, 2**63 - 1, -(2**63), 0, None)
_WORDS = ("", "x" * 1_000_000, "\x1b[31m", "\0", "=1+1", "nan", "999.999.1.1", "::", "١", None)
_WAYS = (
    ["--count", "1"],
    ["--json", "--count", "1"],
    ["--count", "1", "--sort", "peer"],
    ["--count", "1", "port 443"],
    ["--count", "1", "cc cubic"],
)


def recordings(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Changes one value in one column of one of 50 connections, or another column, or damages the file; ``times`` at
    random.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    import sawtooth.cli.program
    import sawtooth.watch.replay  # noqa: F401 - so that no fork has to import it
    from sawtooth.watch.record import schema

    path, held = home / "given.parquet", Counter[str]()
    whole = pa.Table.from_pylist([_row(number) for number in range(50)], schema())
    pq.write_table(whole, path)
    status, told, _ = bounded(["watch", "--replay", str(path), "--count", "1"])
    if status:
        raise SystemExit(told)
    for number in range(times):
        table, what = whole, ""
        name = rng.choice(whole.column_names)
        kind = whole.schema.field(name).type
        act = rng.choice(("value", "value", "value", "all", "type", "missing", "order", "many", "damage"))
        if act in ("value", "all"):
            values = _NUMBERS if pa.types.is_floating(kind) else _WHOLE if pa.types.is_integer(kind) else _WORDS
            value: Any = rng.choice(values)
            if pa.types.is_list(kind) or pa.types.is_boolean(kind):
                value = None
            column = whole[name].to_pylist()
            column[7] = value
            column = [value] * 50 if act == "all" else column
            table = whole.set_column(whole.column_names.index(name), name, pa.array(column, kind))
            what = f"{name} = {str(value)[:20]}"
        elif act == "type":
            other = rng.choice(
                (pa.binary(), pa.list_(pa.int8()), pa.decimal128(38, 9), pa.date32(), pa.null(), pa.string())
            )
            table = whole.set_column(whole.column_names.index(name), name, pa.nulls(50, other))
            what = f"{name} as {other}"
        elif act == "missing":
            table, what = whole.drop_columns([name]), f"without {name}"
        elif act == "order":
            times_s = [rng.choice((-1.0, 0.0, 1e300, math.nan, number)) for number in range(50)]
            table = whole.set_column(whole.column_names.index("at_s"), "at_s", pa.array(times_s))
            what = "times in no order"
        elif act == "many":
            table, what = pa.concat_tables([whole] * 4000).combine_chunks(), "200,000 connections in one look"
            if rng.random() < 0.5:
                table, what = whole, "20,000 columns more"
                for extra in range(2000):
                    table = table.append_column(f"more{extra}", pa.nulls(50, pa.int8()))
        table = table.replace_schema_metadata(whole.schema.metadata)
        pq.write_table(table, path, compression=rng.choice(("zstd", "none")))
        if act == "damage":
            data = bytearray(path.read_bytes())
            for _ in range(rng.choice((1, 4, 64))):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data if rng.random() < 0.7 else data[: rng.randrange(len(data))])
            what = "damaged"
        way = rng.choice(_WAYS)
        status, told, used = bounded(["watch", "--replay", str(path), *way])
        held["tried"] += 1
        held[f"{act}: {'shown' if status == 0 else 'refused'}"] += 1
        good = status == 0 or ("error[" in told and "error[internal]" not in told and "Traceback" not in told)
        seconds = used.ru_utime + used.ru_stime
        held["ended with an answer or a code" if good and status >= 0 else "ENDED OTHERWISE"] += 1
        held["under 5 s of processor time" if seconds < 5 else "TOOK LONGER"] += 1
        if not good or seconds >= 5:
            print(f"{number} {act} {what} {way}: status {status}, {seconds:.1f} s: {told[:400]}", flush=True)
    return held


def _row(number: int) -> dict[str, Any]:
    """A plausible connection of the first sample."""
    row = connection_row(number + 1, peer=f"10.0.0.{number + 2}")
    return row | {"at_s": 1.0, "connections_total": 50}
