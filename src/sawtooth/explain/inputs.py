"""Recognizes each input and reads what it shows: captures, ss and iperf3 with the readers of ``whatif``; series of
probes; mtr."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sawtooth.capture import Capture
from sawtooth.capture.identify import Identification
from sawtooth.capture.identify.captured import identify_capture
from sawtooth.errors import InputError, SawtoothError
from sawtooth.explain import mtr
from sawtooth.explain.explanation import Probed
from sawtooth.io.untrusted import json_value, read_bytes
from sawtooth.link_estimate.estimate import Estimate, estimate
from sawtooth.link_estimate.inputs import read_series
from sawtooth.link_estimate.inputs.ping import is_ping
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.series import RttSeries
from sawtooth.link_estimate.together import narrower, narrower_text, together
from sawtooth.watch.connection import Connection
from sawtooth.whatif.from_capture import observed_in, read_transfer
from sawtooth.whatif.inputs import CAPTURES, LARGEST_TEXT, observe, readable
from sawtooth.whatif.observation import Observed

FIX = "give a capture, or what ss -tin, iperf3 -J, ping, sawtooth probe or mtr --report printed"
REFUSED = ("too-short", "application-limited")
"""Codes of transfers that show no path, but still what limited them and what was lost."""


@dataclass(frozen=True)
class Transfer:
    """One transfer as an input shows it. ``observed`` is None where it shows nothing of the path; ``refused`` then says
    why, and ``reported`` has what ss or iperf3 says of it all the same. Captures also have their tables and the
    identification of their sender's control, and a connection of this host its last sample."""

    name: str
    observed: Observed | None
    refused: InputError | None = None
    capture: Capture | None = None
    identified: Identification | None = None
    connection: Connection | None = None
    reported: Observed | None = None

    @property
    def kind(self) -> str:
        return "capture" if self.capture is not None else "report" if self.observed is None else self.observed.source


def read(files: Sequence[str], connection: str | None = None) -> tuple[list[Transfer], list[Probed]]:
    """The transfers and the probes in the files, in their order.

    Raises SawtoothError ``not-a-measurement`` and as the reader of each kind does.
    """
    transfers: list[Transfer] = []
    probed: list[Probed] = []
    for file in files:
        with readable(file) as opened:
            found = _read(opened, file, connection)
        transfers += [one for one in found if isinstance(one, Transfer)]
        probed += [one for one in found if isinstance(one, Probed)]
    return transfers, probed


def _read(opened: str, name: str, connection: str | None) -> Sequence[Transfer | Probed]:
    start = read_bytes(opened, 4)[:4]
    if start.startswith(CAPTURES):
        return [_capture(opened, name, connection)]
    content = read_bytes(opened, LARGEST_TEXT)
    if len(content) > LARGEST_TEXT:
        raise InputError("not-a-measurement", "it is text of more than 64 MiB", file=name, fix=FIX)
    text = content.decode(errors="replace")
    try:
        if mtr.is_mtr(text):
            return [_hops(mtr.from_text(text), name)]
        kind = _kind_of_json(text)
        if kind == "mtr":
            return [_hops(mtr.from_json(json_value(text)), name)]
        if kind == "series" or (kind is None and (is_ping(text) or _is_csv(text))):
            return [_series(one, name) for one in read_series(opened)]
        return [_report(opened, name, connection if kind is None else None)]
    except InputError as error:
        raise error.at(file=name) from None


def _kind_of_json(text: str) -> str | None:
    """Of JSON: "mtr", "series" (one object a line, a list, or probes in one object) or "iperf3"; None for other
    text."""
    start = text.lstrip("\ufeff \t\r\n")
    if start[:1] not in ("{", "["):
        return None
    try:
        content: Any = json_value(start)
    except json.JSONDecodeError as error:
        return "series" if error.msg == "Extra data" else "iperf3"
    except ValueError as error:
        raise InputError("not-a-measurement", f"this JSON cannot be read: {error}", fix=FIX) from None
    if not isinstance(content, dict):
        return "series"
    report = content.get("report")
    if isinstance(report, dict) and "hubs" in report:
        return "mtr"
    return "iperf3" if {"start", "end", "error", "intervals"} & set(content) else "series"


def _is_csv(text: str) -> bool:
    head = text.lstrip("\ufeff \t\r\n").split("\n", 1)[0]
    return "," in head and "rtt" in head


def _capture(opened: str, name: str, connection: str | None) -> Transfer:
    if connection is not None and not (connection.isdecimal() and len(connection) < 10):
        message = f'"{connection}" is not the index of a connection'
        fix = "give its index, like --connection 0 for the first"
        raise InputError("bad-usage", message, file=name, field="connection", fix=fix)
    capture = read_transfer(opened, connection=None if connection is None else int(connection))
    identified = identify_capture(capture)
    try:
        return Transfer(name, _checked(observed_in(capture, identified)), None, capture, identified)
    except InputError as error:
        if error.code not in REFUSED:
            raise error.at(file=name) from None
        return Transfer(name, None, error, capture, identified)


def _checked(observed: Observed) -> Observed:
    observed.check()
    return observed


def _report(opened: str, name: str, connection: str | None) -> Transfer:
    observed = observe(opened, connection=connection)
    try:
        return Transfer(name, _checked(observed))
    except InputError as error:
        if error.code not in REFUSED:
            raise
        return Transfer(name, None, error, reported=observed)


def _series(series: RttSeries, name: str) -> Probed:
    """What a series says: with 1,000 probes and more, whether the link is congested."""
    answered = series.rtt_s[~np.isnan(series.rtt_s)]
    least, mean, most = None, None, None
    if answered.size:
        least, mean, most = float(answered.min()), float(answered.mean()), float(answered.max())
    next_ = ""
    try:
        windows, model = estimate(series), CongestionModel.default()
        whole = together(windows, model)
        says = _says(windows if whole is None else [whole])
        if more := narrower_text(narrower(windows, whole, model)):
            next_ = f"for what a flow gets (sawtooth congestion estimate {name}): {more}"
    except SawtoothError as error:
        says = error.message
    label = " ".join(part for part in (series.label, series.target) if part)
    what = f"{name}: probes{f' of {label}' if label else ''}"
    return Probed(what, len(series), len(series) - answered.size, least, mean, most, says, next=next_)


def _says(windows: list[Estimate]) -> str:
    """A single answer with its number; of several, which may be hundreds, each different text once."""
    if len(windows) == 1 and windows[0].gets:
        return f"{windows[0].text}: {windows[0].gets} a flow ({windows[0].within})"
    return " ".join(dict.fromkeys(one.text for one in windows if one.text))


def _hops(hops: tuple[mtr.Hop, ...], name: str) -> Probed:
    last = next(hop for hop in reversed(hops) if hop.best_s is not None)
    begins = mtr.lost_from(hops)
    says = "no loss that reaches the last hop" if begins is None else f"every hop from {begins.host} on loses probes"
    if last is not hops[-1]:
        says += "; the hops after it do not answer"
    where = None if begins is None else f"at or before hop {begins.number}, {begins.host}"
    what = f"{name}: {len(hops)} hops to {last.host}"
    return Probed(what, last.sent, last.lost, last.best_s, last.mean_s, last.worst_s, says, where)


def with_control(observed: Observed, others: Sequence[Observed]) -> Observed:
    """The observation with the control of another input that names it: ss and iperf3 know what a capture can only
    infer."""
    named = next((one for one in others if one.cc and one.source in ("ss", "iperf3", "watch")), None)
    if observed.source != "capture" or named is None:
        return observed
    return replace(observed, cc=named.cc, cc_how=named.cc_how)
