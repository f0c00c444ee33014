"""RttSeries: round-trip times of probes sent at a steady pace by any tool; and the difference of two series."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from sawtooth.errors import InputError
from sawtooth.io.atomic_io import write_bytes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from pandas import DataFrame

Clock = Literal["unix", "start", "counted"]
"""The origin of ``sent_s``: 1970, the start of the measurement, or none: the source has no times, so probe numbers are
multiplied by the pace."""

COLUMNS = (
    "series",
    "target",
    "hop",
    "clock",
    "pace_s",
    "probe",
    "sent_s",
    "rtt_s",
    "late_s",
    "address",
    "reply",
    "duplicates",
)
"""Columns of the CSV files that ``save_series`` and the prober write. A lost probe has an empty ``rtt_s``."""

_PAIRED_WITHIN_PACES = 1.5


@dataclass(frozen=True)
class Remark:
    """A sentence for the reader, with a stable code. ``doubt``: conclusions from the series cannot be trusted.
    ``at_s``: when it happened, on the scale of ``sent_s``."""

    code: str
    text: str
    doubt: bool = False
    at_s: float | None = None


@dataclass(frozen=True, eq=False)
class RttSeries:
    """Probes in the order of sending.

    - ``sent_s`` and ``rtt_s`` (NaN: lost): arrays of one length, in s. ``pace_s``: the intended time between probes.
    - ``clock``: the origin of ``sent_s``. ``source``: the file or program; ``label``: the source's name for it.
    - ``hop``: number of routers up to the one that answers (None: the target itself, or unknown).
    - ``late_s``: how late each probe left relative to its schedule; ``address``: who answered ("": nobody); ``reply``:
      how; ``duplicates``: how many more answers came. None if the source lacks them.
    - ``difference``: made by ``difference()``; its values may be negative. ``remarks``: those of its reader.

    Raises SawtoothError ``not-a-series`` for arrays of different lengths, invalid times, a pace that is not above zero,
    or an infinite RTT.
    """

    sent_s: NDArray[np.float64]
    rtt_s: NDArray[np.float64]
    pace_s: float
    source: str
    label: str = ""
    target: str = ""
    hop: int | None = None
    clock: Clock = "unix"
    late_s: NDArray[np.float64] | None = None
    address: NDArray[Any] | None = None
    reply: NDArray[Any] | None = None
    duplicates: NDArray[np.int64] | None = None
    difference: bool = False
    remarks: tuple[Remark, ...] = field(default=())

    def __post_init__(self) -> None:
        # Frozen, but lists are accepted as arrays.
        object.__setattr__(self, "sent_s", _numbers(self.sent_s, "sent_s"))
        object.__setattr__(self, "rtt_s", _numbers(self.rtt_s, "rtt_s"))
        if not np.isfinite(self.sent_s).all():
            raise _wrong("a time of sending is no finite number", "sent_s")
        if np.isinf(self.rtt_s).any():
            raise _wrong("an RTT is infinite", "rtt_s")
        if not (math.isfinite(self.pace_s) and self.pace_s > 0):
            raise _wrong(f"the pace is {self.pace_s} s", "pace_s")
        if self.clock not in get_args(Clock):
            raise _wrong(f"there is no clock {self.clock!r}", "clock")
        for name, values in self._columns():
            if len(values) != len(self.sent_s):
                raise _wrong(f"{len(values)} values for {len(self.sent_s)} probes", name)

    def __len__(self) -> int:
        """Number of probes sent."""
        return len(self.sent_s)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Whether each probe was answered."""
        return ~np.isnan(self.rtt_s)

    @property
    def loss(self) -> float:
        """Share of lost probes; NaN if none was sent."""
        return float(1 - self.answered.mean()) if len(self) else math.nan

    @property
    def duration_s(self) -> float:
        """From the first probe to the last, plus one pace."""
        return float(self.sent_s.max() - self.sent_s.min() + self.pace_s) if len(self) else 0.0

    def part(self, rows: slice | NDArray[Any]) -> RttSeries:
        """Selected probes: a slice, an array of indices, or one of booleans."""
        chosen: dict[str, Any] = {name: values[rows] for name, values in self._columns()}
        return dataclasses.replace(self, **chosen)

    def windows(self, probes: int = 1000) -> Iterator[RttSeries]:
        """Consecutive parts of this many probes; a rest is dropped."""
        for start in range(0, len(self) - probes + 1, probes):
            yield self.part(slice(start, start + probes))

    def remarked(self, *more: Remark) -> RttSeries:
        """The same series with more remarks."""
        return dataclasses.replace(self, remarks=(*self.remarks, *more))

    def to_frame(self) -> DataFrame:
        """A table with the columns ``COLUMNS``."""
        import pandas as pd

        empty: dict[str, Any] = {"late_s": math.nan, "address": "", "reply": "", "duplicates": 0}
        given = {name: empty[name] if getattr(self, name) is None else getattr(self, name) for name in empty}
        whole = {
            "series": self.label,
            "target": self.target,
            "hop": self.hop,
            "clock": self.clock,
            "pace_s": self.pace_s,
        }
        table = pd.DataFrame(
            {"probe": np.arange(len(self)), "sent_s": self.sent_s, "rtt_s": self.rtt_s, **given, **whole}
        )
        return table[list(COLUMNS)].astype({"hop": "Int64"})

    def save(self, path: Path | str) -> Path:
        """Writes it as CSV, as ``save_series`` does."""
        return save_series(path, [self])

    def _columns(self) -> list[tuple[str, NDArray[Any]]]:
        names = ("sent_s", "rtt_s", "late_s", "address", "reply", "duplicates")
        return [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]


def save_series(path: Path | str, series: Sequence[RttSeries]) -> Path:
    """Writes series as one CSV file, replacing it in one step; its first line names the columns with their units.

    Times are kept to 1 µs, RTTs to 1 ns. A difference cannot be saved: save its two series. Raises SawtoothError
    ``not-a-series`` (a difference, or labels that are not different), ``unwritable-output``, ``disk-full``.
    """
    target = Path(path)
    labels = [one.label for one in series]
    if len(set(labels)) < len(labels):
        fix = "give each series a different label"
        raise InputError("not-a-series", "two series have the same label", file=target, fix=fix)
    if any(one.difference for one in series):
        fix = "save the series of the far end and of the near end instead"
        raise InputError("not-a-series", "a difference of two series is not a series of probes", file=target, fix=fix)
    text = io.StringIO()
    text.write(",".join(COLUMNS) + "\n")
    for one in series:
        table = one.to_frame()
        for name, form in (("sent_s", "{:.6f}"), ("rtt_s", "{:.9f}"), ("late_s", "{:.6f}")):
            table[name] = [("" if math.isnan(value) else form.format(value)) for value in table[name]]
        table.to_csv(text, header=False, index=False, lineterminator="\n")
    write_bytes(target, text.getvalue().encode())
    return target


def difference(far: RttSeries, near: RttSeries) -> RttSeries:
    """The delay that the link between two routers adds: each far RTT minus that of the answered near probe nearest in
    sending time.

    A lost far probe stays lost. One without an answered near probe within 1.5 paces says nothing about the link and is
    left out, with a remark. The difference of the paths' minimum delays is included, so only changes have a meaning.

    Raises SawtoothError ``unmatched-series`` if the clocks have different origins, or no probes pair up.
    """
    if far.clock != near.clock or far.clock == "counted":
        fix = "use series whose times are since 1970, or both from the same run"
        message = f"times count from different zeros: {far.clock} (far), {near.clock} (near)"
        raise InputError("unmatched-series", message, file=far.source, fix=fix)
    known = np.flatnonzero(near.answered)
    order = known[np.argsort(near.sent_s[known], kind="stable")]
    times = near.sent_s[order]
    within_s = _PAIRED_WITHIN_PACES * max(far.pace_s, near.pace_s)
    if not len(times) or not len(far):
        raise _unpaired(far, near)
    after = np.clip(np.searchsorted(times, far.sent_s), 1, max(1, len(times) - 1))
    before_s = np.abs(far.sent_s - times[after - 1])
    after_s = np.abs(far.sent_s - times[np.minimum(after, len(times) - 1)])
    nearest = np.where(before_s <= after_s, after - 1, np.minimum(after, len(times) - 1))
    paired = np.minimum(before_s, after_s) <= within_s
    if not (paired & far.answered).any():
        raise _unpaired(far, near)
    rtt_s = far.rtt_s - near.rtt_s[order[nearest]]
    made = dataclasses.replace(
        far,
        rtt_s=rtt_s,
        label=f"{far.label or 'far'} - {near.label or 'near'}",
        source=f"{far.source} - {near.source}" if far.source != near.source else far.source,
        difference=True,
        remarks=_joined(far.remarks, near.remarks),
    ).part(paired)
    if not paired.all():
        left = int((~paired).sum())
        made = made.remarked(
            Remark("unpaired", f"{left} of {len(far)} far probes have no near one within {within_s:g} s")
        )
    return made


def _joined(far: tuple[Remark, ...], near: tuple[Remark, ...]) -> tuple[Remark, ...]:
    remarks = [
        dataclasses.replace(one, text=f"{end}: {one.text}")
        for end, all_ in (("far", far), ("near", near))
        for one in all_
    ]
    return tuple(remarks)


def _unpaired(far: RttSeries, near: RttSeries) -> InputError:
    fix = "probe both ends at the same time: sawtooth probe link"
    silent = [end for end, one in (("far", far), ("near", near)) if not one.answered.any()]
    if silent:
        fix = f"nothing answered at the {' and the '.join(silent)} end: choose another hop, or --protocol udp"
    message = "no answered far probe has an answered near one at its time"
    return InputError("unmatched-series", message, file=f"{far.source} - {near.source}", fix=fix)


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _wrong("not all values are numbers", name) from None
    if found.ndim != 1:
        raise _wrong(f"an array of {found.ndim} dimensions", name)
    return found


def _wrong(message: str, name: str) -> InputError:
    fix = "give times in seconds, one value per probe, and NaN for the RTT of a lost probe"
    return InputError("not-a-series", message, field=name, fix=fix)


def span(duration_s: float) -> tuple[float, str]:
    """The best unit for a time of that length, in s, and its name."""
    if duration_s > 3 * 3600:
        return 3600.0, "h"
    if duration_s > 600:
        return 60.0, "min"
    return (1.0, "s") if duration_s >= 1 else (1e-3, "ms")


def span_text(duration_s: float) -> str:
    """Text like "23.9 h"."""
    factor, unit = span(duration_s)
    return f"{duration_s / factor:.3g} {unit}"
