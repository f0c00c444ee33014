"""Saved table: reads one Parquet file of a run or of a pack, and checks that it is what was saved."""

from __future__ import annotations

from pathlib import Path

from sawtooth.io import table_store
from sawtooth.io.atomic_io import checksum, not_a_result, reason
from sawtooth.io.untrusted import regular

TABLES = (
    *("intervals", "tcp_info", "queues", "links", "probes", "flows", "datagrams", "responses", "pages", "segments"),
    *("programs", "connections", "udp", "collected"),
)
"""Tables that a run may have; docs/reference/tables.md lists their columns. Only ``intervals`` is in every run. Four
are there where a source is of their kind, the last four where programs run."""

_READ = {
    "intervals": ("t_s", "flow", "goodput_bps"),
    "tcp_info": ("t_s", "flow", "connection", "srtt_s"),
    "flows": ("flow", "connection", "generation", "start_s", "end_s", "delivered_bytes"),
    "probes": ("t_s", "probe", "rtt_s"),
    "queues": ("t_s", "transmitter"),
}
"""Columns that each table must have; without them it is not that table."""


def saved_table(path: Path, digest: str | None) -> table_store.Rows | table_store.StoredTable:
    """Reads a table and checks that its bytes are the saved ones. ``digest`` is None (unknown) for a run of format
    1."""
    import pyarrow

    try:
        regular(path)
        if digest is not None and checksum(path) != digest:
            raise not_a_result("is damaged: it is not what was saved (its SHA-256 differs)", path)
        table = table_store.load(path)
        names = list(table.columns)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pyarrow.ArrowException) as error:
        # With damaged metadata pyarrow raises any of these.
        raise not_a_result(f"is not a whole table: {reason(error)}", path) from error
    missing = [column for column in _READ.get(path.stem, ()) if column not in names]
    if missing:
        raise not_a_result(f"is another table: it has no column {missing[0]}", path)
    return table
