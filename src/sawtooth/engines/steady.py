"""Runs that repeat what they measured (``fast``), once goodput, queues, drops, marks and windows are steady.

A run of three hours mostly shows the same again and again. At checkpoints, ever further apart, the rows since the last
scheduled change are judged. The first third, where slow start is, is left out. The rest is cut into at most ten
batches. They begin where the bottleneck's queue falls, so that whole cycles of growth and loss are in each (the
regenerative method; Law and Kelton, *Simulation Modeling and Analysis*, section 9.5.3):

- The 95% interval of a mean comes from the batches. Those that resemble their neighbors say less: the variance is
  multiplied by (1 + r) / (1 - r), where r is their correlation with the next one (the factor of a first-order
  autoregressive process).
- A trend counts if it is larger than chance explains, and if it would change the mean by more than ``fast`` until the
  end.

When every quantity is known and has no trend, the simulation ends. The rows that were judged are repeated to the end.
What happens once in an hour, and not before, is not seen; nor is what changes after 300 s, when Linux forgets the
shortest round trip (``tcp_min_rtt_wlen``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.io.table_store import GROUP
from sawtooth.stats.interval import t_quantile
from sawtooth.stats.path import trip_s

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sawtooth.scenario import Scenario
    from sawtooth.scenario.compiled import Compiled

    Floats = NDArray[np.float64]
    Columns = Mapping[str, Mapping[str, NDArray[Any]]]

SHORTEST_S = 60.0
"""BBR looks for the shortest round-trip time every ten seconds, and CUBIC's flows take tens of seconds to converge."""
SHORTEST_RTTS = 100
FEWEST = 30
"""Intervals: two thirds of them are ten batches of two."""
BATCHES = 10
FEWEST_CYCLES = 3
FALLS = 0.5
"""A queue or window has risen this many standard deviations above its mean before it falls below it."""
LONGER = 1.25
"""A checkpoint is so much later than the one before it."""
MOST_SHARE = 0.8
"""Later in a run there is too little left to repeat."""
OTHERS = 5.0
"""Queues, drops and windows may be so much less certain than goodput."""
RAREST = 1e-4
"""Drops of fewer packets than this share count as if they were this many."""
LEAST = 0.01
"""Flows with a smaller share of all goodput count as if they had this one."""
_ROUNDING = 1e-9

_CUMULATIVE = ("delivered_segments", "delivered_ce_segments", "rwnd_limited_s", "sndbuf_limited_s")
"""Columns of ``tcp_info`` that grow over a connection's life."""
_TOTALS = ("segments_out", "retransmits", "timeouts", "tail_probes", "window_probes")
"""Columns of both ``intervals`` and ``flows``."""


@dataclass(frozen=True)
class Steady:
    """A run simulated for ``simulated_s``, of which the rows from ``from_s`` to ``until_s`` are steady.

    ``error`` is half of the widest 95% interval of a flow's goodput, as a share of its mean, and ``drops_error`` that
    of drops and marks; see ``LEAST`` and ``RAREST``.
    """

    simulated_s: float
    from_s: float
    until_s: float
    error: float
    drops_error: float

    def words(self) -> str:
        """A warning for ``meta["warnings"]``."""
        rows = f"rows after {self.simulated_s:g} s repeat those from {self.from_s:g} to {self.until_s:g} s"
        return f"fast: {rows}: {_errors(self.error, self.drops_error)} (95% intervals)"


class Watch:
    """The rows of a run that may end early, and when they are judged next (``next_ns``).

    Intervals are numbered from 1. Each row of a table belongs to one, except the rows of probes.
    """

    def __init__(self, scenario: Scenario, error: float) -> None:
        compiled = scenario.compile()
        self._error, self._compiled = error, compiled
        self._duration_s, self._interval_s = compiled.duration_ns / 1e9, compiled.interval_ns / 1e9
        self._end = compiled.duration_ns // compiled.interval_ns
        entries = list(dict.fromkeys(flow.entry for flow in compiled.flows))
        self._entry = np.array([entries.index(flow.entry) for flow in compiled.flows])
        self._begin = self._intervals(max(last_change_ns(compiled), scenario.warmup.ns))
        trips_s = [trip_s(compiled, (*flow.forward, *flow.backward), 0) for flow in compiled.flows]
        self._next = self._begin + max(FEWEST, self._intervals(max(SHORTEST_S, SHORTEST_RTTS * max(trips_s)) * 1e9))
        self._kept: list[Columns] = []
        self._rows = self._reached = 0
        self._known = "not steady"

    @classmethod
    def of(cls, scenario: Scenario) -> Watch | str:
        """Or why every packet is simulated: the end comes too soon, or traffic or links change until the end."""
        assert scenario.fast is not None
        obstacle = unsteady(scenario.compile())
        if obstacle:
            return obstacle
        watch = cls(scenario, scenario.fast.ppb / 1e9)
        if watch._next <= watch._latest:
            return watch
        least_s = math.ceil(watch._next * watch._interval_s / MOST_SHARE)
        return f'"{scenario.duration}" is too short; write duration = "{least_s} s" or more'

    def words(self) -> str:
        """Why every packet was simulated, although the run might have been steady."""
        return f"{self._known} when last judged; write a longer duration, or a larger share as fast"

    def _intervals(self, span_ns: float) -> int:
        return math.ceil(span_ns / self._compiled.interval_ns)

    @property
    def _latest(self) -> float:
        return MOST_SHARE * self._end

    @property
    def next_ns(self) -> int:
        """The time of the next checkpoint, or the run's end, in nanoseconds."""
        return min(self._next * self._compiled.interval_ns, self._compiled.duration_ns)

    @property
    def is_due(self) -> bool:
        """Whether the rows until the next checkpoint are there."""
        return self._reached == self._next

    def _numbers(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        return np.round(columns["t_s"] / self._interval_s).astype(np.int64)

    def add(self, batch: Columns) -> None:
        """Takes the rows of a slice. Their number is bounded: a run of too many rows is simulated whole."""
        self._reached = max(self._numbers(batch["intervals"])[-1:].max(initial=0), self._reached)
        if self._reached < self._begin or self._next > self._latest:
            return
        self._kept.append({table: columns for table, columns in batch.items() if table != "flows"})
        self._rows += _most(self._kept[-1])
        if self._rows > GROUP:
            self._known = f"the tables had more than {GROUP:,} rows"
            self._give_up()

    def _give_up(self) -> None:
        self._kept, self._next = [], self._end + 1

    def judge(self) -> Steady | None:
        """What is steady at this checkpoint; None if something is not, and there may be another checkpoint."""
        now, elapsed = self._next, self._next - self._begin
        self._kept = [self._since(self._begin)]
        self._rows = _most(self._kept[0])
        found = self._judged(now - math.ceil(elapsed * 2 / 3), now)
        self._next = self._begin + math.ceil(elapsed * LONGER)
        if found is None and self._next > self._latest:
            self._give_up()
        return found

    def _since(self, after: int) -> dict[str, dict[str, NDArray[Any]]]:
        """The kept rows of intervals after this one, and of probes sent after its end."""
        found = {}
        for table, names in self._kept[0].items():
            columns = {name: np.concatenate([part[table][name] for part in self._kept]) for name in names}
            is_sampled = table != "probes"
            recent = self._numbers(columns) > after if is_sampled else columns["t_s"] > after * self._interval_s
            found[table] = {name: values[recent] for name, values in columns.items()}
        return found

    def _judged(self, after: int, now: int) -> Steady | None:
        rows, count = self._since(after), now - after
        queues = {name: values.reshape(count, -1).astype(float) for name, values in rows["queues"].items()}
        rates = _by_group(rows["intervals"]["goodput_bps"].reshape(count, -1), self._entry)
        windows = self._windows(rows["tcp_info"], after, count)
        if windows is None:
            return None
        bounds = _batches(queues["mean_packets"], windows)
        length = float(bounds[-1] - bounds[0])
        left = (self._end - now) / length
        others = OTHERS * self._error

        def widest(columns: Floats, least: Floats | float, tolerated: float) -> float:
            return _widest(columns, np.broadcast_to(least, columns.shape[1]), tolerated, bounds, left)

        error = widest(rates, LEAST * rates.sum(axis=1).mean(), self._error)
        rarest = RAREST * queues["sent_packets"].mean(axis=0)
        drops = max(widest(queues[name], rarest, others) for name in ("drops", "marks"))
        held = widest(queues["mean_packets"], 1.0, others)
        trending = math.isinf(max(error, drops, held))
        self._known = "there was a trend" if trending else f"{_errors(error, drops)} and queues ±{held:.1%}"
        # A sample of the connections tells less of windows than queues and goodput do, but shows whether they grow.
        known = error <= self._error and max(drops, held) <= others and math.isfinite(widest(windows, 1.0, others))
        from_s, until_s = ((after + int(bounds[at])) * self._compiled.interval_ns / 1e9 for at in (0, -1))
        return Steady(now * self._compiled.interval_ns / 1e9, from_s, until_s, error, drops) if known else None

    def _windows(self, samples: Mapping[str, NDArray[Any]], after: int, count: int) -> Floats | None:
        """Mean windows of the sampled connections by entry in [[flows]], in segments; None if not all of them are
        established all the time."""
        entries, at = self._entry[samples["flow"]], self._numbers(samples) - after - 1
        sums = np.zeros((count, self._entry.max() + 1))
        numbers = np.zeros_like(sums)
        np.add.at(sums, (at, entries), samples["cwnd_segments"])
        np.add.at(numbers, (at, entries), 1)
        if (numbers != numbers[0]).any():
            return None
        used = numbers[0] > 0
        return sums[:, used] / numbers[:, used]

    def repeated(self, steady: Steady, ends: Columns) -> Iterator[Columns]:
        """The rows after ``steady.simulated_s``, one repetition after the other, and first those of ``ends``, which the
        simulation reported when it ended early."""
        first, last, now = (
            round(time_s / self._interval_s) for time_s in (steady.from_s, steady.until_s, steady.simulated_s)
        )
        period, rows = last - first, self._since(first)
        probes = self._probes(rows.pop("probes"), ends["probes"])
        for table, columns in rows.items():
            judged = self._numbers(columns) <= last
            rows[table] = {name: values[judged] for name, values in columns.items()}
        number = self._numbers(rows["intervals"])
        repeats = (self._end - number) // period - (now - number) // period
        yield {**ends, "probes": probes, "flows": self._ended(ends["flows"], rows["intervals"], repeats)}
        grown = _growth(rows["tcp_info"], period)
        for turn in range(1, (self._end - first - 1) // period + 1):
            part = {}
            for table, columns in rows.items():
                moved = self._numbers(columns) + turn * period
                kept = (moved > now) & (moved <= self._end)
                part[table] = {name: values[kept] for name, values in columns.items()}
                part[table]["t_s"] = moved[kept] * self._compiled.interval_ns / 1e9
                for name, more in grown.items() if table == "tcp_info" else ():
                    part[table][name] += (turn * more[kept]).astype(part[table][name].dtype)
            yield part

    def _probes(self, judged: Mapping[str, NDArray[Any]], ends: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The rows of probes that are still to come: what the simulation had to report, and then the judged round trips
        again, at the times at which probes are sent until the end."""
        found: list[tuple[float, int, float]] = []
        for index, probe in enumerate(self._compiled.probes):
            times, trips = (
                np.concatenate([part[name][part["probe"] == index] for part in (judged, ends)])
                for name in ("t_s", "rtt_s")
            )
            answered = np.flatnonzero(np.isfinite(trips))
            # Those after the last answer were on their way; the simulation gave them up.
            known = int(answered[-1]) + 1 if answered.size else len(trips)
            before = int((judged["probe"] == index).sum())
            found += [(float(times[at]), index, float(trips[at])) for at in range(before, known)]
            sent = probe.start_ns + probe.interval_ns * np.arange(probe.count)
            later = (
                sent[(sent > times[known - 1] * 1e9 + 0.5) & (sent < self._compiled.duration_ns)] if known else sent[:0]
            )
            found += [(at / 1e9, index, float(trips[turn % known])) for turn, at in enumerate(later.tolist())]
        found.sort()
        return {
            name: np.array([row[at] for row in found], dtype=ends[name].dtype)
            for at, name in enumerate(("t_s", "probe", "rtt_s"))
        }

    def _ended(
        self, ends: Mapping[str, NDArray[Any]], rows: Mapping[str, NDArray[Any]], repeats: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """What connections have sent and received at the run's end. ``repeats``: how often each of ``rows`` comes
        again. A flow's share of that is divided among its connections as what they had before."""
        counted: dict[str, NDArray[Any]] = {name: rows[name] * repeats for name in _TOTALS}
        counted["delivered_bytes"] = rows["goodput_bps"] * repeats * (self._interval_s / 8)
        still = ends["end_s"] == ends["end_s"].max(initial=0.0)
        found = {name: values.copy() for name, values in ends.items()}
        found["end_s"][still] = self._duration_s
        for flow in range(len(self._compiled.flows)):
            own, mine = still & (ends["flow"] == flow), rows["flow"] == flow
            for name, values in counted.items():
                found[name][own] += _divided(round(float(values[mine].sum())), ends[name][own])
        return found


def unsteady(compiled: Compiled) -> str:
    """What changes goodput until the end, besides chance and congestion; empty: nothing."""
    for flow in compiled.flows:
        limited = (flow.bytes, flow.lifetime_ns, flow.writes, flow.arrivals, flow.reads, flow.asks)
        if any(one is not None for one in limited) or (flow.datagrams and flow.datagrams.on_off_ns):
            return f'flow "{flow.name}" ends, pauses, asks or is replaced'
    if not compiled.flows:
        return "there is no flow"
    for transmitter in compiled.transmitters:
        if transmitter.pace is not None and transmitter.pace.steps is None:
            return f'"{transmitter.name}" follows a trace, or serves slots'
    for link in compiled.links:
        if link.loss_pattern is not None and link.loss_pattern.packets:
            return f'"{link.name}" loses listed packets'
    return "the duration is not a whole number of intervals" if compiled.duration_ns % compiled.interval_ns else ""


def last_change_ns(compiled: Compiled) -> int:
    """When the last flow or probe starts or stops, or a link changes, in nanoseconds."""
    at = [0, *(one.start_ns for one in compiled.senders)]
    at += [flow.start_ns + flow.duration_ns for flow in compiled.flows if flow.duration_ns is not None]
    at += [probe.start_ns + probe.count * probe.interval_ns for probe in compiled.probes]
    for link in compiled.links:
        at += [when for when, _ in (*link.losses, *link.delays)]
    for transmitter in compiled.transmitters:
        if transmitter.pace is not None and transmitter.pace.steps:
            at += [when for when, _ in transmitter.pace.steps]
    return max((one for one in at if one < compiled.duration_ns), default=0)


def _errors(goodput: float, drops: float) -> str:
    return f"goodput ±{goodput:.2%}" + (f", drops ±{drops:.1%}" if drops else "")


def _most(tables: Columns) -> int:
    """Rows of the longest table."""
    return max(len(columns["t_s"]) for columns in tables.values())


def _by_group(values: Floats, group: NDArray[np.int64]) -> Floats:
    """Sums of the columns with the same number in ``group``."""
    sums = np.zeros((len(values), group.max(initial=-1) + 1))
    np.add.at(sums.T, group, values.T)
    return sums


def _batches(queues: Floats, windows: Floats) -> NDArray[np.int64]:
    """Where batches begin, and where the last one ends."""
    count = len(queues)
    moving = queues if queues.std(axis=0).max(initial=0.0) >= 1.0 else windows
    if moving.size:
        column = moving[:, int(np.argmax(moving.std(axis=0)))]
        falls, high = [], False
        for at, value in enumerate((column - column.mean()) / max(column.std(), _ROUNDING)):
            if high and value < 0:
                falls.append(at)
            high = value > FALLS or (high and value >= 0)
        if len(falls) > FEWEST_CYCLES and falls[-1] - falls[0] >= count / 2:
            each = -(-(len(falls) - 1) // BATCHES)
            return np.array(falls[::-1][::each][::-1])
    length = count // BATCHES
    return count - length * np.arange(BATCHES, -1, -1)


def _widest(series: Floats, least: Floats, tolerated: float, bounds: NDArray[np.int64], left: float) -> float:
    """Half of the widest 95% interval of the columns' means, as a share of the mean, or of ``least`` where that is
    more; infinite where a trend changes a mean by more than the share ``tolerated`` in ``left`` times the column's
    length. ``bounds``: of the batches."""
    lengths, widest = np.diff(bounds), 0.0
    batches = len(lengths)
    sums = np.add.reduceat(series[: bounds[-1]], bounds[:-1], axis=0)
    places = np.arange(batches) - (batches - 1) / 2
    for total, at_least in zip(sums.T, least, strict=True):
        mean = float(total.sum() / lengths.sum())
        around, scale = (total - mean * lengths) / lengths.mean(), max(mean, float(at_least))
        squares = float(around @ around)
        if squares <= (_ROUNDING * scale) ** 2:
            continue
        slope = float(places @ around) / float(places @ places)
        rest = around - slope * places
        chance = math.sqrt(float(rest @ rest) / (batches - 2) / float(places @ places))
        if abs(slope) > t_quantile(batches - 2) * chance and abs(slope) * batches * left / 2 > tolerated * scale:
            return math.inf
        alike = max(0.0, float(around[1:] @ around[:-1]) / squares)
        variance = squares / (batches - 1) / batches * (1 + alike) / (1 - alike)
        widest = max(widest, t_quantile(batches - 1) * math.sqrt(variance) / scale)
    return widest


def _growth(samples: Mapping[str, NDArray[Any]], count: int) -> dict[str, Floats]:
    """By how much the cumulative columns of ``tcp_info`` grow in ``count`` samples, for each of their rows. Every
    sample has the same connections, in one order."""
    rows = {name: samples[name].reshape(count, -1) for name in _CUMULATIVE}
    growth = {name: (values[-1] - values[0]) * count / (count - 1) for name, values in rows.items()}
    return {
        name: np.tile(np.round(more) if rows[name].dtype.kind == "i" else more, count) for name, more in growth.items()
    }


def _divided(whole: int, as_these: NDArray[Any]) -> NDArray[np.int64]:
    """``whole`` in integers in proportion to ``as_these``; equally if all of them are 0."""
    weights = as_these.astype(float) if as_these.any() else np.ones(len(as_these))
    bounds: Floats = np.concatenate([[0.0], np.cumsum(weights)]) / max(weights.sum(), 1.0) * whole
    whole_bounds = np.round(bounds).astype(np.int64)
    return whole_bounds[1:] - whole_bounds[:-1]
