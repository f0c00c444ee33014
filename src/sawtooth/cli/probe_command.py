"""The commands ``probe near``, ``probe far`` and ``probe link``: RTT series to the ends of a link."""

from __future__ import annotations

import contextlib
import json
import math
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli.common_options import Group
from sawtooth.cli.terminal import is_quiet, say, say_folded
from sawtooth.errors import InputError, SawtoothError
from sawtooth.sanitize import where

if TYPE_CHECKING:
    from sawtooth.link_estimate import Remark, RttSeries
    from sawtooth.probe import Measured, Target


_PROBES = 1100
"""An estimate needs 1,000 probes. 10% more allow for probes that are lost at the link's near end or discarded."""


@click.group(cls=Group, short_help="Measure RTTs to both ends of a link.")
def probe() -> None:
    """Measure round-trip times to the routers at both ends of a link.

    Probes go towards TARGET and end at a router: near probes the router at hop N, far the next one, across the link.
    link probes both at once, so that their difference belongs to the link. See docs/reference/probe.md.
    """


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.argument("target"),
        click.option(
            "--hops", type=click.IntRange(1, 254), required=True, metavar="N", help="Hop of the router at the near end."
        ),
        click.option("--pace", default="100 ms", show_default=True, help="Time between probes, at least 10 ms."),
        click.option("--count", type=click.IntRange(1, 10_000_000), help="Probes to each end (default: 1100)."),
        click.option("--insist", is_flag=True, help="Continue when none of the first 20 probes to an end is answered."),
        click.option("--duration", help='Probe for this long instead of --count, like "24 h".'),
        click.option(
            "--timeout",
            default="2 s",
            show_default=True,
            help="Count a probe as lost after this time without an answer.",
        ),
        click.option(
            "--protocol", type=click.Choice(["icmp", "udp"]), default="icmp", show_default=True, help="Kind of probes."
        ),
        click.option("-4", "version", flag_value=4, type=int, help="IPv4 only."),
        click.option("-6", "version", flag_value=6, type=int, help="IPv6 only."),
        click.option("--out", metavar="FILE", help="CSV file to write (default: named after target and time)."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@probe.command()
@_options
def near(**given: Any) -> None:
    """Probe the router at hop N on the way to TARGET.

    \b
      sawtooth probe near 192.0.2.7 --hops 4 --out near.csv
    """
    _measure("near", {"near": given["hops"]}, **given)


@probe.command()
@_options
def far(**given: Any) -> None:
    """Probe the router at hop N+1 on the way to TARGET, across the link.

    \b
      sawtooth probe far 192.0.2.7 --hops 4 --out far.csv
    """
    _measure("far", {"far": given["hops"] + 1}, **given)


@probe.command()
@_options
def link(**given: Any) -> None:
    """Probe the routers at hops N and N+1 at the same time.

    \b
      sawtooth probe link 192.0.2.7 --hops 4 --out link.csv
    """
    _measure("link", {"near": given["hops"], "far": given["hops"] + 1}, **given)


def _measure(
    what: str,
    ends: dict[str, int],
    *,
    target: str,
    hops: int,
    pace: str,
    count: int | None,
    duration: str | None,
    insist: bool,
    timeout: str,
    protocol: str,
    version: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    from sawtooth.io.progress_bar import Bar
    from sawtooth.link_estimate import read_series
    from sawtooth.probe import SILENT, Prober, Recording, open_transport, resolve

    pace_s, timeout_s = _seconds(pace, "--pace"), _seconds(timeout, "--timeout")
    probes = _probes(count, duration, pace_s)
    found = resolve(target, version)
    path = Path(out) if out is not None else _name(what, found, hops)
    transport = open_transport(found, protocol)
    with contextlib.closing(transport), Recording(path) as recording:
        how: dict[str, Any] = {"make_up": duration is None, "insist": insist}
        prober = Prober(transport, found, ends, pace_s=pace_s, count=probes, timeout_s=timeout_s, **how)
        with _Stop() as stop, Bar(f"probing {found.address}", 1, quiet=is_quiet()) as bar:
            measured = prober.run(recording, stopped=stop, progress=bar.show)
        if any(counts["answered"] + counts["lost"] for counts in measured.counts.values()):
            recording.finish()
        elif not measured.whole:
            raise SawtoothError(
                "interrupted", "interrupted before a probe was answered", fix="give the same command again"
            )
    checked = [_check_series(one) for one in read_series(path)]
    if as_json:
        say(json.dumps(_described(path, found, transport.kind, measured, checked), indent=2, ensure_ascii=False))
    else:
        say_folded(_text(found, transport.kind, measured, checked))
        say(f"series: {where(path)}")
    if measured.silent:
        message = (
            f"none of the first {SILENT} probes to {' and '.join(measured.silent)} was answered, so probing stopped"
        )
        fix = "add --protocol udp, since some routers answer one only, or choose another TARGET; --insist probes on"
        raise SawtoothError("all-lost", message, file=path, fix=fix)
    if not measured.whole:
        fix = f"the probes so far are in {path}; the same command starts a new series"
        raise SawtoothError("interrupted", "interrupted", fix=fix)
    if not any(series.answered.any() for series, _, _ in checked):
        fix = "add --protocol udp, since some routers answer one only, or choose another TARGET or --hops"
        raise SawtoothError("all-lost", "no probe was answered", file=path, fix=fix)


def _seconds(given: str, option: str) -> float:
    from sawtooth.scenario import Span

    try:
        return Span.parse(given).seconds
    except SawtoothError as error:
        raise error.at(field=option) from None


def _probes(count: int | None, duration: str | None, pace_s: float) -> int:
    if count is not None and duration is not None:
        raise InputError(
            "bad-usage", "--count also says how long to probe", field="--duration", fix="remove --duration or --count"
        )
    if duration is None:
        return count or _PROBES
    return max(1, math.ceil(_seconds(duration, "--duration") / max(pace_s, 1e-9)))


def _name(what: str, target: Target, hops: int) -> Path:
    name = re.sub(r"[^A-Za-z0-9.-]", "_", target.name)[:80]
    return Path(f"probe-{what}-{name}-{hops}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.csv")


class _Stop:
    """Whether Ctrl-C or SIGTERM was received. The first one ends the measurement cleanly, the second one at once."""

    def __init__(self) -> None:
        self._requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __call__(self) -> bool:
        return self._requested

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True

    def __enter__(self) -> _Stop:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _check_series(series: RttSeries) -> tuple[RttSeries, list[Remark], SawtoothError | None]:
    """A series, remarks on unusual properties, and the reason if nothing can be estimated from it."""
    from sawtooth.link_estimate import check

    try:
        return series, list(check(series).remarks), None
    except SawtoothError as error:
        return series, [], error


_Checked = list[tuple["RttSeries", list["Remark"], SawtoothError | None]]


def _described(path: Path, target: Target, kind: str, measured: Measured, checked: _Checked) -> dict[str, Any]:
    return {
        "file": str(path),
        "target": target.address,
        "socket": kind,
        "whole": measured.whole,
        "silent": list(measured.silent),
        "longest_late_s": measured.longest_late_s,
        "skipped": measured.skipped,
        "unsent": measured.unsent,
        "late_answers": measured.late_answers,
        "unattributed": measured.unattributed,
        "remarks": [{"code": one.code, "text": one.text} for one in measured.remarks],
        "series": [
            {
                "name": series.label,
                "hop": series.hop,
                "probes": len(series),
                "answered": int(series.answered.sum()),
                "duplicates": measured.counts[series.label]["duplicates"],
                "addresses": _addresses(series),
                "rtt_s": dict(zip(("least", "median", "largest"), _rtts(series), strict=True)),
                "remarks": [{"code": one.code, "text": one.text} for one in remarks],
                "error": None if error is None else {"code": error.code, "text": error.message},
            }
            for series, remarks, error in checked
        ],
    }


def _text(target: Target, kind: str, measured: Measured, checked: _Checked) -> str:
    lines = []
    for series, remarks, error in checked:
        answered = int(series.answered.sum())
        lines.append(
            f"{series.label}: hop {series.hop} on the way to {target.address}, {kind} socket: {len(series)} probes, "
            f"{answered} answered" + (f" by {', '.join(_addresses(series)[:4])}" if answered else "")
        )
        if answered:
            least, median, largest = (f"{value * 1e3:.3f}" for value in _rtts(series) if value is not None)
            lines.append(f"  RTT: minimum {least} ms, median {median} ms, maximum {largest} ms")
        lines += [f"  {one.code}: {one.text}" for one in remarks]
        if error is not None:
            lines.append(f"  {error.code}: {error.message}")
    lines += [f"{one.code}: {one.text}" for one in measured.remarks]
    lines.append(f"every probe was sent within {measured.longest_late_s * 1e3:.2f} ms of its time")
    return "\n".join(lines)


def _addresses(series: RttSeries) -> list[str]:
    return sorted({str(one) for one in series.address[series.answered]} - {""}) if series.address is not None else []


def _rtts(series: RttSeries) -> tuple[float | None, float | None, float | None]:
    import numpy as np

    rtt_s = series.rtt_s[series.answered]
    if not len(rtt_s):
        return None, None, None
    return float(rtt_s.min()), float(np.median(rtt_s)), float(rtt_s.max())
