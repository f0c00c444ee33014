"""Cards: the main results at the top of the page, each with what it is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sawtooth.figures.palette import shown
from sawtooth.report import headline
from sawtooth.report.number_text import counted, known, number, percent, short, signed
from sawtooth.report.points import setting_text
from sawtooth.stats import ceiling
from sawtooth.study import estimates
from sawtooth.study.measures import measured
from sawtooth.study.result import StudyResult
from sawtooth.study.shares import ALL

_MOST = 12
"""Maximum number of flows with a card."""


@dataclass(frozen=True)
class Card:
    """A card: whom it is about, the number, and the lines below it."""

    who: str
    number: str
    lines: tuple[str, ...]


def cards(result: StudyResult) -> list[Card]:
    """The cards of a study: how well estimates fit (studies of probes), the changes (several points), or the throughput
    of each flow (one point)."""
    if result.study.is_of_probes:
        return _fits(result)
    return _changes(result) or (_flows(result) if len(result.records) == 1 else [])


def ends(result: StudyResult) -> bool:
    """Whether there is no throughput over the whole run: all flows of a single point end by themselves, or there are
    programs instead of flows."""
    scenario = result.study.first().scenario
    flows = scenario.flows
    if scenario.programs and not flows:
        return True
    if len(result.records) > 1:
        return False
    return bool(flows) and all(flow.bytes is not None for flow in flows)


def who(result: StudyResult, row: dict[str, Any]) -> str:
    """A row of the study's table, named by its series and panels; without these, by its congestion controls."""
    roles = result.study.roles()
    names = [roles.series] if roles.series else []
    values = ", ".join(setting_text(result, name, row[name]) for name in [*names, *roles.panels])
    return values or " + ".join(dict.fromkeys(shown(flow.cc) for flow in _compiled(result).flows)) or result.study.name


def _compiled(result: StudyResult) -> Any:
    return result.study.first(overrides=result.overrides).scenario.compile()


def _changes(result: StudyResult) -> list[Card]:
    """The change from the baseline to the first highlighted value, for each series and panel."""
    column = result.study.headline
    name, unit = headline.measure(result)
    at, to = headline.places(result)
    found = []
    for one in headline.compared(result, who):
        if column == headline.THROUGHPUT:
            if math.isnan(one.change):
                continue
            lines = [f"{_got(one.after)} at {to}", f"against {_got(one.before)} at {at}"]
            if known([one.after], "published_change_percent"):
                lines.append(f"published: {signed(one.after['published_change_percent'])}")
            found.append(Card(one.who, signed(one.change), tuple(lines)))
            continue
        range_ = f"{headline.amount(one.low, unit).removesuffix(unit).strip()} → {headline.amount(one.high, unit)}"
        change = "" if math.isnan(one.change) or unit == "%" else f": {signed(one.change)}"
        lines = [f"{name}{change}", f"from {at} to {to}"]
        lines += [] if ends(result) else [headline.goodput(result, one.before, one.after)]
        found.append(Card(one.who, range_, tuple(lines)))
    return found


def _got(row: dict[str, Any]) -> str:
    rtt = f", RTT {short(row['mean_srtt_ms'])} ms" if known([row], "mean_srtt_ms") else ""
    return f"{number(row['mean_mbps'], 1)} Mbit/s{rtt}"


def _flows(result: StudyResult) -> list[Card]:
    """The cards of a study with a single point."""
    (row,) = result.records
    titles = result.study.titles
    measures = [(headline.name_and_unit(name, titles), row[name]) for name in measured(result.study.first().scenario)]
    if measures:
        return [Card(name, headline.amount(value, unit), ()) for (name, unit), value in measures]
    finite = _completed(result)
    shares = result.shares[result.shares["seed"] == ALL].to_dict("records") if len(result.shares) else []
    if not shares:
        return finite or [Card(who(result, row), f"{number(row['mean_mbps'])} Mbit/s", _facts(result, row))]
    completed = {card.who for card in finite}
    rates = [
        Card(str(one["flow"]), f"{number(one['mean_mbps'])} Mbit/s", _facts_of_flow(one))
        for one in shares[:_MOST]
        if one["flow"] not in completed
    ]
    return rates + finite


def _facts(result: StudyResult, row: dict[str, Any]) -> tuple[str, ...]:
    compiled = _compiled(result)
    most = ceiling(compiled)
    facts = []
    if most is not None:
        share = percent(row["mean_mbps"] * 1e6 / most.rate_bps)
        facts.append(f"{share} of the bottleneck's rate; at most {percent(most.share)} is possible, because of headers")
    waited = (
        f", of which {short(row['queue_delay_mean_ms'])} ms in the queue" if known([row], "queue_delay_mean_ms") else ""
    )
    facts += [f"mean RTT {short(row['mean_srtt_ms'])} ms{waited}"] * known([row], "mean_srtt_ms")
    facts += [f"{counted(row['retransmits'])} retransmissions, {counted(row['timeouts'])} timeouts"] * known(
        [row], "retransmits"
    )
    facts += [f"{counted(row['queue_marks'])} ECN marks"] * (row["queue_marks"] > 0)
    return tuple(facts)


def _facts_of_flow(row: dict[Any, Any]) -> tuple[str, ...]:
    facts = [f"{shown(row['flow_cc'])}, {number(row['share_percent'], 1)}% of all"]
    facts += [f"mean RTT {short(row['mean_srtt_ms'])} ms"] * known([row], "mean_srtt_ms")
    facts += [f"{counted(row['retransmits'])} retransmissions"] * known([row], "retransmits")
    return tuple(facts)


def _completed(result: StudyResult) -> list[Card]:
    """Cards of flows whose transfers end by themselves; per size if sizes differ."""
    if result.completions.empty:
        return []
    made = []
    for row in result.completions[result.completions["seed"] == ALL].to_dict("records"):
        low, high = row["bytes_from"], row["bytes_to"]
        size = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        facts = [f"median completion time of {counted(row['transfers'])} transfers of {size} bytes"]
        tails = [
            f"{name}%: {short(row[column])} ms"
            for name, column in ((90, "fct_ms_p90"), (95, "fct_ms_p95"), (99, "fct_ms_p99"))
            if known([row], column)
        ]
        facts += [", ".join(tails)] * bool(tails)
        facts += [f"{short(row['slowdown_p50'])} times the completion time on an idle path"] * known(
            [row], "slowdown_p50"
        )
        made.append(Card(str(row["flow"]), f"{short(row['fct_ms_p50'])} ms", tuple(facts)))
    return made[:_MOST]


def _fits(result: StudyResult) -> list[Card]:
    """How well estimates fit the true throughput, for each series and panel of a study of probes."""
    roles = result.study.roles()
    names = [*([roles.series] if roles.series else []), *roles.panels]
    table = result.probed[result.probed["true_mbps"] > 0]
    groups = table.groupby(names, sort=False) if names else [((), table)]
    made = []
    for values, rows in groups:
        if not len(rows):
            continue
        fit = estimates.Fit.of(rows)
        facts = (
            f"median error of the estimates; the worst is {percent(fit.worst_error)}",
            f"a flow got {short(float(rows['true_mbps'].min()))} to {short(float(rows['true_mbps'].max()))} Mbit/s",
            f"{fit.estimated} of {fit.windows} windows of probes have an estimate",
            f"{fit.inside} of {fit.estimated} intervals contain the true value",
        )
        name = ", ".join(setting_text(result, name, value) for name, value in zip(names, values, strict=True))
        made.append(Card(name or result.study.name, percent(fit.median_error), facts))
    return made
