"""The table of a study's results for a terminal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sawtooth.io.text_table import aligned, cell
from sawtooth.programs import finished
from sawtooth.scenario.expressions.amount import RATE
from sawtooth.stats import ceiling
from sawtooth.study import application, estimates, mean_counts
from sawtooth.study.directions import mean_of
from sawtooth.study.interval_text import COUNTED, THE_SAME, by_start, ends, interval, intervals, means
from sawtooth.study.measures import UTILIZATION, measured
from sawtooth.study.shares import ALL

if TYPE_CHECKING:
    from sawtooth.study.result import StudyResult

MOST = 100
"""Points of which each has its line."""
ENDS = 5
"""Points with the lowest mean, and with the highest, that are shown of more."""


def table(result: StudyResult, width: int | None = None) -> str:
    """One line per point, all seeds together: goodput in Mbit/s, the mean with its 95% interval. Of more than ``MOST``
    points, those with the lowest and the highest mean; without goodput, the first and the last. In a study of probes it
    shows what a flow got and the estimate from probes. ``width`` is the terminal's, in characters."""
    if result.study.is_of_probes:
        return _of_probes(result, width)
    if not result.study.first().scenario.flows:
        return _of_programs(result, width)
    if len(result.records) == 1 and result.published is None:
        return _of_one(result, width)
    if len(result.records) <= MOST:
        return _of_points(result, [result], [], width)
    first, last, note = _ends(result.records, "mean_mbps", "points", "table.csv has all")
    both, *parts = (result.only(_points(result, rows)) for rows in ([*first, *last], first, last) if rows)
    return _of_points(both, parts, [note], width)


def _ends(
    rows: list[dict[str, Any]], column: str, what: str, where: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """The rows with the lowest values of the column and those with the highest, or the first and the last if none has a
    value; and a sentence about all. None is in both."""
    ordered = sorted((row for row in rows if not math.isnan(row[column])), key=itemgetter(column))
    note = f"{len(rows):,} {what}; {where}, these are the first and the last"
    if ordered:
        values = [row[column] for row in ordered]
        low, median, high = (cell(one) for one in (values[0], statistics.median(values), values[-1]))
        note = f"{len(rows):,} {what} with means of {low} … {high}, median {median}; {where}, "
        note += "these are the lowest and the highest"
    left = ordered or rows
    return left[:ENDS], left[max(ENDS, len(left) - ENDS) :], note


def _points(result: StudyResult, rows: Sequence[Mapping[str, Any]]) -> set[tuple[Any, ...]]:
    """The values of the key columns, as ``StudyResult.only`` takes them."""
    return {tuple(row[key] for key in result.places[0].key) for row in rows}


def _of_points(result: StudyResult, parts: Sequence[StudyResult], note: list[str], width: int | None) -> str:
    """``parts`` of the result, with a gap between, or the whole of it, with a gap between groups."""
    keys = list(result.places[0].key)
    compared = result.published is not None
    several = any(len(set(seeds)) > 1 for seeds in result.by_seed)
    ways = result.opposite
    header = [*keys, "mean", "95% interval", *["min … max"] * several, "std", "median", "change"]
    if ways:
        header = [*keys, *(f"mean of {' + '.join(names)}" for names in ways)]
    header += ["published", "ratio"] if compared else []
    header += ["utilization"]
    lines = [header]
    x = result.study.roles().x
    before: object = None
    for number, part in enumerate(parts):
        for row, seeds, moved in zip(part.records, part.by_seed, part.moved, strict=True):
            group = [row[key] for key in keys if key != x] if len(parts) == 1 else number
            if before is not None and group != before:
                lines.append([])
            before = group
            starts = moved.means[ALL] if moved else ()
            cells = [plain(row[key]) for key in keys]
            if ways:
                cells += [cell(mean_of(result, row, names)) for names in ways]
            else:
                cells += [cell(row["mean_mbps"]), interval(row, by_start=starts), *[ends(seeds)] * several]
                cells += [cell(row["std_mbps"]), cell(row["q50_mbps"]), cell(row["change_percent"], "+.1f", "%")]
            if compared:
                cells += [cell(row["published_mean_mbps"]), cell(row["ratio"])]
            cells += [cell(row[UTILIZATION], ".1f", "%")]
            lines.append(cells)
    title = result.study.title or result.study.name
    about = f"goodput in Mbit/s, {means(result.records)}; engine {result.engine}; {_seeds(result)}"
    words = [at for at, key in enumerate(keys) if isinstance(result.places[0].key[key], str)]
    notes = [line for line in (about, intervals(result.records), by_start(result.moved)) if line]
    more = (
        *_shares(result, keys, words, width),
        *_measured(result, keys, words, width),
        *_latency(result, keys, words, width),
        *_applications(result, keys, words, width),
    )
    return "\n".join([title, *notes, *note, "", *aligned(lines, words, width, keys=len(keys)), *more])


def _of_programs(result: StudyResult, width: int | None) -> str:
    """A study without flows: numbers that programs are asked for and probes, then how the programs of the first run
    ended."""
    keys = list(result.places[0].key) if len(result.records) > 1 else []
    words = [at for at, key in enumerate(keys) if isinstance(result.places[0].key[key], str)]
    lines = [result.study.title or result.study.name, f"engine {result.engine}; {_seeds(result)}"]
    if len(result.records) > MOST:
        low, high, note = _ends(result.records, "mean_mbps", "points", "table.csv has all")
        result = result.only(_points(result, [*low, *high]))
        lines.append(note)
    lines += _measured(result, keys, words, width) + _latency(result, keys, words, width)
    programs = finished(result.run(result.places[0]))
    if programs:
        first = f"programs of the run {result.places[0].id}" if len(result.places) > 1 else "programs"
        lines += ["", first, "", *(one.describe() for one in programs)]
    return "\n".join(lines)


def _measured(result: StudyResult, keys: list[str], words: list[int], width: int | None) -> list[str]:
    """Numbers that programs are asked for: means over the seeds, with the lowest and the highest."""
    names = measured(result.study.first().scenario)
    if not names:
        return []
    several = len({place.seed for place in result.places}) > 1
    alone = result.details[result.details["seed"] != ALL]
    lines = [[*keys, *(cell for name in names for cell in (name, *["min … max"] * several))]]
    for row in result.records:
        own = alone
        for key in result.places[0].key:
            own = own[own[key] == row[key]]
        cells = [plain(row[key]) for key in keys]
        for name in names:
            cells += [cell(row[name]), *[ends(own[name].to_list())] * several]
        lines.append(cells)
    about = "what programs measured; means over the seeds" if several else "what programs measured"
    return ["", about, "", *aligned(lines, words, width, keys=len(keys))]


def _of_one(result: StudyResult, width: int | None) -> str:
    """A single scenario: one line per flow, the bottleneck's queue, then transfers, applications and probes."""
    (row,) = result.records
    (seeds,) = result.by_seed
    (moved,) = result.moved
    several = len(set(seeds)) > 1
    counted = [cell(row["mean_srtt_ms"]), _count(row["retransmits"]), _count(row["timeouts"])]
    counted += [cell(row[UTILIZATION], ".1f", "%")]
    counts_of = ["RTT ms", "retransmits", "timeouts", "utilization"]
    spread = ["min … max"] * several or ["by start"] * (moved is not None)
    flows = result.shares[result.shares["seed"] == ALL].to_dict("records") if len(result.shares) else []
    if flows:
        header = ["flow", "goodput", *spread, "std", "share", "Jain's index", *counts_of]
        jain = cell(flows[0]["jain_all"], ".3f")
        apart = _apart(result, seeds if several else None)
        sums = [cell(row["mean_mbps"]), *apart(ALL), cell(row["std_mbps"])]
        whole = ["all", *(["-"] * len(sums) if result.opposite else sums), "", jain]
        whole += counted
    else:
        header = ["goodput", "95% interval", *spread, "std", "median", *counts_of]
        whole = [cell(row["mean_mbps"]), interval(row), *[ends(seeds)] * several]
        whole += [cell(row["std_mbps"]), cell(row["q50_mbps"]), *counted]
    lines = [header]
    for one in flows:
        share = cell(one["share_percent"], ".1f", "%")
        jain = cell(one["jain"], ".3f")
        cells = [one["flow"], cell(one["mean_mbps"]), *apart(one["flow"]), cell(one["std_mbps"]), share, jain]
        lines.append([*cells, cell(one["mean_srtt_ms"]), _count(one["retransmits"]), _count(one["timeouts"]), ""])
    limit = [_ceiling(result)]
    if not flows and all(flow.bytes is not None for flow in result.study.first().scenario.flows):
        # A flow that ends has no rate over the whole run.
        lines, whole, limit = [counts_of], counted, []
    about = f"goodput in Mbit/s, {means(result.records)}; engine {result.engine}; {_seeds(result)}"
    of = intervals(result.records)
    if result.opposite:
        of = ""
    elif flows and (of or interval(row) == THE_SAME):
        # The table of flows has no column for this interval.
        of = f"all flows together: 95% interval {interval(row)}, {of.partition(': ')[2]}" if of else THE_SAME
    notes = [line for line in (about, by_start(result.moved) or of, *limit) if line]
    parts = [*notes, "", *aligned([*lines, whole], [0] if flows else [], width, keys=1 if flows else 0), *_queue(row)]
    parts += [
        *_completions(result, width),
        *_measured(result, [], [], width),
        *_latency(result, [], [], width),
        *_applications(result, [], [], width),
    ]
    return "\n".join([result.study.title or result.study.name, *parts])


def _apart(result: StudyResult, seeds: Sequence[float] | None) -> Callable[[str], list[str]]:
    """Returns a function that gives the cell between a flow's mean and its deviation: the range of ``seeds`` (of all
    flows together) or, if seeds change nothing, the range over other starts. No cell if neither is known."""
    (moved,) = result.moved

    def cell(flow: str) -> list[str]:
        if seeds is not None:
            own = result.shares[(result.shares["seed"] != ALL) & (result.shares["flow"] == flow)]["mean_mbps"]
            return [ends(seeds if flow == ALL else own.to_list())]
        return [ends(moved.means[flow])] if moved else []

    return cell


def _ceiling(result: StudyResult) -> str:
    """The ceiling that headers put on goodput, for comparison."""
    changed = result.overrides
    most = ceiling(result.study.first(overrides=changed).scenario.compile())
    if most is None:
        return ""
    rate, left = (RATE.show(bps) for bps in (most.rate_bps, most.goodput_bps))
    return f"goodput is at most {left}, {100 * most.share:.1f}% of the rate of {rate}; headers take the rest"


def _queue(row: Mapping[str, Any]) -> list[str]:
    """The bottleneck's queue in one line."""
    if math.isnan(row["queue_delay_mean_ms"]):
        return []
    parts = [f"{cell(row['queue_delay_mean_ms'], '.4g')} ms on average"]
    parts += [f"{cell(row['queue_delay_p95_ms'], '.4g')} ms at the 95th percentile"] * (
        not math.isnan(row["queue_delay_p95_ms"])
    )
    early = f" ({_count(row['queue_early_drops'])} of them early)" if row["queue_early_drops"] > 0 else ""
    parts += [f"{_count(row['queue_drops'])} drops{early}"] * (not math.isnan(row["queue_drops"]))
    parts += [f"{_count(row['queue_marks'])} marks"] * (row["queue_marks"] > 0)
    return ["", f"queue at the bottleneck: {', '.join(parts)}"]


def _completions(result: StudyResult, width: int | None) -> list[str]:
    """Completion times of transfers that end, by size."""
    if result.completions.empty:
        return []
    lines = [["flow", "bytes", "transfers", "median", "90%", "95%", "99%", "slowdown"]]
    for row in result.completions[result.completions["seed"] == ALL].to_dict("records"):
        low, high = row["bytes_from"], row["bytes_to"]
        cells = [row["flow"], f"{low:.0f}" if low == high else f"{low:.0f} … {high:.0f}", _count(row["transfers"])]
        lines.append([*cells, *(cell(row[f"fct_ms_{name}"], ".4g") for name in ("p50", "p90", "p95", "p99"))])
        lines[-1].append(cell(row["slowdown_p50"], ".4g"))
    about = "completion times in ms; slowdown is the median ratio to the completion time on an idle path"
    return ["", about, "", *aligned(lines, [0], width)]


def _of_probes(result: StudyResult, width: int | None) -> str:
    """A flow's goodput and its estimate, which are the study's question. The goodput of all flows is in summary.csv."""
    keys = list(result.places[0].key)
    rows = estimates.summary(result.probed, keys)
    names = [name for name in estimates.NAMES if len({row[name] for row in rows}) > 1]
    note: list[str] = []
    if len(rows) > MOST:
        low, high, told = _ends(rows, "true_mbps", "rows", "StudyResult.probed has all")
        rows, note = [*low, *high], [told]
    lines = [[*keys, *names, "a flow gets", "estimate", "90% interval", "estimate / truth"]]
    for row in rows:
        cells = [*(plain(row[key]) for key in keys), *(str(row[name]) for name in names)]
        cells += [cell(row["true_mbps"], ".4g"), cell(row["estimate_mbps"], ".4g"), estimates.interval(row)]
        lines.append([*cells, cell(row["ratio"])])
    about = (
        "goodput of one flow in Mbit/s, mean over its life while 1,000 probes were sent, and the shipped model's "
        f"estimate from those probes; engine {result.engine}; {_seeds(result)}"
    )
    words = [at for at, key in enumerate(keys) if isinstance(result.places[0].key[key], str)]
    words += range(len(keys), len(keys) + len(names))
    fit = estimates.Fit.of(result.probed).words
    return "\n".join(
        [result.study.title or result.study.name, about, fit, *note, "", *aligned(lines, words, width, keys=len(keys))]
    )


def _seeds(result: StudyResult) -> str:
    seeds = len({place.seed for place in result.places})
    if len(result.records) == 1:
        return f"{seeds} seeds{_counted(result)}" if seeds > 1 else f"seed {result.places[0].seed}"
    return f"{seeds} seed{'s' if seeds > 1 else ''} per point"


def _counted(result: StudyResult) -> str:
    return f"; {COUNTED}" if len({place.seed for place in result.places}) > 1 else ""


def _shares(result: StudyResult, keys: list[str], words: list[int], width: int | None) -> list[str]:
    """What each flow of a point gets, if there are several."""
    if result.shares.empty:
        return []
    starts = {
        tuple(row[key] for key in keys): moved.means
        for row, moved in zip(result.records, result.moved, strict=True)
        if moved is not None
    }
    lines = [[*keys, "flow", "mean", *["by start"] * bool(starts), "std", "share", "Jain's index"]]
    for row in result.shares[result.shares["seed"] == ALL].to_dict("records"):
        share = cell(row["share_percent"], ".1f", "%")
        cells = [*(plain(row[key]) for key in keys), row["flow"], cell(row["mean_mbps"])]
        if starts:
            means_of = starts.get(tuple(row[key] for key in keys))
            cells.append(ends(means_of[row["flow"]]) if means_of else "-")
        cells.append(cell(row["std_mbps"]))
        lines.append([*cells, share, cell(row["jain"], ".3f")])
    return [
        "",
        "each flow, and Jain's index over its connections",
        "",
        *aligned(lines, [*words, len(keys)], width, keys=len(keys) + 1),
    ]


def _latency(result: StudyResult, keys: list[str], words: list[int], width: int | None) -> list[str]:
    """The delay of probes at each point, if there are any."""
    if result.latency.empty:
        return []
    names = ["idle", "median", "95%", "99%", "lost", "RPM"]
    lines = [[*keys, *names]]
    for row in result.records:
        columns = ("latency_idle_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms")
        lost = row["latency_lost_percent"]
        cells = [*(plain(row[key]) for key in keys), *(cell(row[column]) for column in columns)]
        lines.append([*cells, cell(lost, ".1f", "%"), cell(row["rpm"], ".4g")])
    first = result.latency["probe"].iloc[0]
    about = f"latency under load in ms, from {first}; responsiveness (RPM) in round trips per minute"
    return ["", about, "", *aligned(lines, words, width, keys=len(keys))]


def _applications(result: StudyResult, keys: list[str], words: list[int], width: int | None) -> list[str]:
    """Results of flows that are applications, one table per kind."""
    blocks = []
    for kind, rows in application.tables(result.applications):
        lines = [[*keys, "flow", *(heading for heading, _ in kind.columns.values())]]
        for row in rows:
            cells = [
                _count(row[column]) if column in mean_counts.COUNTS else cell(row[column], f".{digits}f")
                for column, (_, digits) in kind.columns.items()
            ]
            lines.append([*(plain(row[key]) for key in keys), row["flow"], *cells])
        blocks += [
            "",
            kind.title + _counted(result),
            "",
            *aligned(lines, [*words, len(keys)], width, keys=len(keys) + 1),
        ]
    return blocks


def plain(value: object) -> str:
    """A key column's value without needless decimals: 1, not 1.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _count(value: float) -> str:
    return "-" if math.isnan(value) else mean_counts.count_text(value)
