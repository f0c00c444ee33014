"""Per-packet CSV as tshark's ``-T fields -E header=y -E separator=,`` writes it, one connection out of it.

    tshark -r FILE -T fields -E header=y -E separator=, -e frame.time_relative -e tcp.srcport -e tcp.dstport \\
        -e tcp.seq -e tcp.ack -e tcp.len [-e tcp.flags -e tcp.window_size -e tcp.options.timestamp.tsval -e …tsecr]
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sawtooth.capture.identify.trace import Integers, Segments
from sawtooth.errors import InputError
from sawtooth.io.untrusted import read_bytes

if TYPE_CHECKING:
    from pandas import Series

REQUIRED = ("frame.time_relative", "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.ack", "tcp.len")
_OPTIONAL = {
    "tsval": "tcp.options.timestamp.tsval",
    "tsecr": "tcp.options.timestamp.tsecr",
    "window": "tcp.window_size",
}
_SYN, _ACK = 2, 16
_MOST = 2.0**53
_LARGEST = 1 << 30
_MOST_COLUMNS = 200
_FIX = "write it with tshark -T fields -E header=y -E separator=, " + " ".join(f"-e {name}" for name in REQUIRED)


def read_csv(path: Path | str) -> Segments:
    """The connection with the most data. Sequence numbers are relative as in tshark: 0 for the SYN.

    Raises SawtoothError ``file-not-found``, ``file-unreadable``, or ``not-a-capture`` for a file without the columns or
    without TCP data.
    """
    import pandas as pd

    source = Path(path)
    content = read_bytes(source, _LARGEST)
    if len(content) > _LARGEST:
        raise InputError(
            "not-a-capture",
            f"it is larger than {_LARGEST >> 20} MiB",
            file=source,
            fix=f"split it into files of at most {_LARGEST >> 20} MiB",
        )
    if content[: content.find(b"\n") if b"\n" in content else len(content)].count(b",") >= _MOST_COLUMNS:
        raise InputError("not-a-capture", f"it has more than {_MOST_COLUMNS} columns", file=source, fix=_FIX)
    try:
        table = pd.read_csv(io.BytesIO(content), dtype=str, on_bad_lines="skip")
    except (ValueError, OverflowError) as error:
        raise InputError("not-a-capture", "it cannot be read as CSV", file=source, fix=_FIX) from error
    missing = [name for name in REQUIRED if name not in table.columns]
    if missing:
        raise InputError("not-a-capture", f"it has no column {missing[0]}", file=source, fix=_FIX)
    numbers = table[list(REQUIRED)].apply(_numeric)
    # Frames without TCP have empty fields; the first SYN has no acknowledgement number.
    numbers["tcp.ack"] = numbers["tcp.ack"].fillna(0)
    kept = numbers.notna().all(axis=1) & (numbers[["tcp.srcport", "tcp.dstport"]] < 65536).all(axis=1)
    numbers, table = numbers[kept].reset_index(drop=True), table[kept].reset_index(drop=True)
    ports = numbers[["tcp.srcport", "tcp.dstport"]].astype("int64")
    pair = ports.min(axis=1) * 65536 + ports.max(axis=1)
    carried = numbers["tcp.len"].groupby(pair).sum()
    if carried.empty or carried.max() <= 0:
        raise InputError("not-a-capture", "it has no TCP data", file=source, fix=_FIX)
    own = (pair == carried.idxmax()).to_numpy()
    numbers, table, ports = numbers[own], table[own], ports[own]

    def column(name: str) -> Integers:
        return np.asarray(numbers[name].to_numpy(dtype=np.float64).astype(np.int64))

    def optional(name: str) -> Integers:
        if name not in table.columns:
            return np.zeros(len(table), dtype=np.int64)
        values = _numeric(table[name]).fillna(0).to_numpy(dtype=np.float64)
        return np.asarray(values.astype(np.int64))

    source_port = ports["tcp.srcport"].to_numpy()
    seq, ack, length = column("tcp.seq"), column("tcp.ack"), column("tcp.len")
    if "tcp.flags" in table.columns:
        flags = np.array([_flags(str(value)) for value in table["tcp.flags"]], dtype=np.int64)
    else:
        # Number 0 without data is a SYN; acknowledgement 0 is that of a first SYN.
        flags = np.asarray(np.where((seq == 0) & (length == 0), _SYN, 0) | np.where(ack > 0, _ACK, 0), dtype=np.int64)
    return Segments(
        t_s=numbers["frame.time_relative"].to_numpy(dtype=np.float64),
        direction=(source_port != source_port[0]).astype(np.int64),
        seq=seq,
        length=length,
        ack=ack,
        flags=flags,
        **{name: optional(field) for name, field in _OPTIONAL.items()},
    ).in_order()


def _numeric(column: Series[str]) -> Series[float]:
    """Possible values in a capture: sizes, sequence numbers and times from 0 to 2^53; NaN for anything else."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    return numbers.where((numbers >= 0) & (numbers <= _MOST))


def _flags(text: str) -> int:
    """Flags as tshark writes them, 0x0010; 0 for anything that is not a number."""
    try:
        number = int(text[:20], 0)
    except ValueError:
        return 0
    return number & 0xFFF
