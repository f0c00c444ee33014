"""View: the data of one connection that the pictures show, in the direction with most data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.capture.summary import Judgement
from sawtooth.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from sawtooth.capture.capture import Capture

_SYN, _RST, _ACK = 0x02, 0x04, 0x10


@dataclass(frozen=True)
class View:
    """One direction of one connection. All times are in s since the connection's first segment.

    - ``data``: ``t_s``, ``seq``, ``length`` (bytes), ``kind``, ``frame``.
    - ``acks`` of that data: ``t_s``, ``ack``, ``window`` (bytes), ``kind``, ``frame``.
    - ``sacks``: ``t_s``, ``start``, ``end``, ``dsack``.
    - ``rtts``: ``t_s``, ``rtt_s``, from the capture point to the more distant end and back, plus the other half at its
      shortest.
    - ``series``: the capture's, of this direction only. ``judged``: the judgement of it.
    """

    name: str
    ends: str
    connection: int
    data: DataFrame
    acks: DataFrame
    sacks: DataFrame
    rtts: DataFrame
    series: DataFrame
    judged: Judgement

    @classmethod
    def of(cls, capture: Capture, name: str) -> View:
        """The view of the connection whose segments were read. Raises InputError ``conflict`` if none were."""
        segments, index = capture.segments, capture.connection
        sent = {} if index is None else segments.groupby("direction")["length"].sum().to_dict()
        if index is None or not any(sent.values()):
            fix = "choose the connection that carries data by its index"
            raise InputError("conflict", "there is no data to draw", file=capture.path, fix=fix)
        direction = max((0, 1), key=lambda one: sent.get(one, 0))
        facts = capture.facts["connections"][index]
        judged = Judgement.of(facts, direction)
        assert judged is not None
        # Captures of several interfaces may step back in time; rows keep their numbers, which ``sacks`` uses.
        segments = segments.sort_values("t_s", kind="stable")
        start_s = float(segments["t_s"].iloc[0])
        segments = segments.assign(t_s=segments["t_s"] - start_s)
        ours = segments["direction"] == direction
        # A SYN's window is not scaled and a reset's means nothing: both would distort the window's line.
        answers = segments[~ours & (segments["flags"] & (_SYN | _RST | _ACK) == _ACK) & (segments["ack"] > 0)]
        sacks = capture.sacks.join(segments[["t_s", "direction"]], on="segment").sort_values("t_s", kind="stable")
        series = capture.series
        series = series[(series["connection"] == index) & (series["direction"] == direction)]
        ends = [facts["client"], facts["server"]]
        return cls(
            name=name,
            ends=" → ".join(ends if direction == 0 else ends[::-1]),
            connection=index,
            data=segments.loc[ours & (segments["length"] > 0), ["t_s", "seq", "length", "kind", "frame"]],
            acks=answers[["t_s", "ack", "window", "kind", "frame"]],
            sacks=sacks.loc[sacks["direction"] != direction, ["t_s", "start", "end", "dsack"]],
            rtts=_trips(segments, ours, judged.facts["rtt"]),
            series=series.assign(t_s=series["t_s"] - start_s),
            judged=judged,
        )

    @property
    def rtt_s(self) -> float:
        """The median round-trip time in s; 0 if the capture shows none."""
        trip = self.judged.round_trip
        return 0.0 if trip is None else trip["median_s"]

    @property
    def end_s(self) -> float:
        """The time of the last segment or acknowledgement."""
        return max(float(table["t_s"].iloc[-1]) for table in (self.data, self.acks) if len(table))


def _trips(segments: DataFrame, ours: Series[bool], rtt: Mapping[str, Any]) -> DataFrame:
    """The farther half's samples are on acknowledgements if the receiver is farther, else on data."""
    side = ours if rtt["far"] == "sender" else ~ours
    trips = segments.loc[side & segments["rtt_s"].notna(), ["t_s", "rtt_s"]]
    return trips.assign(rtt_s=trips["rtt_s"] + (rtt["near_s"] or 0.0))


def views(captures: Sequence[Capture]) -> list[View]:
    """One view per capture, each with the shortest name that distinguishes it."""
    names = _names([capture.path for capture in captures])
    return [View.of(capture, name) for capture, name in zip(captures, names, strict=True)]


def _names(files: list[str]) -> list[str]:
    """The files' names, or the names of the directories in which they first differ."""
    parts: list[tuple[str, ...]] = [Path(os.path.abspath(file)).parts for file in files]
    for depth in range(1, max(map(len, parts)) + 1):
        tails = [part[-depth:] for part in parts]
        if len(set(tails)) == len(set(files)):
            return ["/".join(tail) for tail in tails]
    return files
