"""An explanation as about twenty lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from sawtooth import sanitize
from sawtooth.explain.explanation import Explanation, Gain, Probed
from sawtooth.whatif import Choice
from sawtooth.whatif.text import quantity, rate, share, span, with_interval

NAMES = {"queue_kind": "queue kind", "loss_process": "loss process", "cross_traffic": "other traffic"}
CANNOT = "cannot tell"
TOGETHER = {"path": ("rate", "base RTT", "queue"), "kinds": tuple(NAMES.values())}
"""Questions that are one row where all of them are unknown for one reason."""


def words(explanation: Explanation) -> str:
    """Every quantity has its unit; intervals are 90% intervals."""
    lines = [f"problem: {sanitize.sentence(problem)}" for problem in explanation.problems]
    lines += [f"note: {sanitize.sentence(doubt)}" for doubt in explanation.doubts]
    lines += [f"from {sanitize.sentence(one)}" for one in explanation.inputs]
    lines += ["", *_aligned(rows(explanation))]
    if explanation.test is not None:
        lines += ["", f"self-test: {explanation.test.words}"]
    if explanation.gains:
        lines += ["", *_aligned(table(explanation), right=True)]
    if explanation.next:
        lines += ["", *(f"measure next: {step}" for step in explanation.next)]
    return "\n".join(lines)


def rows(explanation: Explanation) -> list[tuple[str, str]]:
    """Pairs of a question and its answer."""
    found = [
        ("limited by", _limited(explanation)),
        ("lost", _lost(explanation)),
        ("lost where", _choice(explanation.lost.where)),
    ]
    found.append(("lost by", _choice(explanation.lost.kind)))
    for name, called in (("rate", "rate"), ("rtt", "base RTT"), ("queue", "queue")):
        found.append((called, _quantity(explanation, name)))
    found += [(called, _choice(explanation.kinds[name])) for name, called in NAMES.items()]
    found = _once(found)
    found.append(("control", _choice(explanation.control, shares=False)))
    return found + [("probes", _probed(one)) for one in explanation.probed]


def _once(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """One row instead of a whole group of questions that have the same reason to be unknown."""
    answers = dict(found)
    for group, members in TOGETHER.items():
        reasons = {answers[one] for one in members}
        if len(reasons) == 1 and answers[members[0]].startswith(CANNOT):
            found = [(group if called == members[0] else called, said) for called, said in found]
            found = [one for one in found if one[0] not in members]
    return found


def _limited(explanation: Explanation) -> str:
    limited = explanation.limited
    if limited.by is None:
        return f"{CANNOT}: {limited.why}"
    held = "" if limited.share is None else f", {limited.share:.0%} of the time"
    since = "" if limited.since_s is None else f", first at {span(limited.since_s)}"
    return f"{limited.by}{held}{since}: {limited.why}"


def _lost(explanation: Explanation) -> str:
    lost = explanation.lost
    if lost.count is None or lost.share is None:
        return f"{CANNOT}: {lost.where.why}"
    return f"{lost.count} of {lost.segments} segments ({share(lost.share)})"


def _choice(choice: Choice, *, shares: bool = True) -> str:
    if choice.answer is None:
        return f"{CANNOT}: {choice.why}"
    sure = f" ({choice.probability:.0%})" if shares and choice.probability is not None else ""
    return f"{choice.answer}{sure}: {choice.why}"


def _quantity(explanation: Explanation, name: str) -> str:
    value = explanation.path.get(name)
    return f"{CANNOT}: {explanation.cannot_tell[name]}" if value is None else quantity(name, value)


def _probed(one: Probed) -> str:
    times = ""
    if one.rtt_min_s is not None and one.rtt_mean_s is not None and one.rtt_max_s is not None:
        times = f", RTT {span(one.rtt_min_s)} to {span(one.rtt_max_s)}, mean {span(one.rtt_mean_s)}"
    return f"{one.lost} of {one.sent} lost{times}: {one.says}"


def table(explanation: Explanation) -> list[tuple[str, ...]]:
    """What each change would give, as cells."""
    cells: list[tuple[str, ...]] = [("", "goodput", "90% interval", "mean RTT", "")]
    observed = explanation.observed
    if observed is not None and observed.goodput_bps is not None:
        trip = "" if observed.rtt_mean_s is None else span(observed.rtt_mean_s)
        cells.append(("observed", rate(observed.goodput_bps), "", trip, observed.cc or ""))
    return cells + [_gain(one) for one in explanation.gains]


def _gain(one: Gain) -> tuple[str, ...]:
    trip = "" if one.rtt_s is None else span(one.rtt_s)
    cc = "" if one.cc == one.change else f"with {one.cc}"
    if one.low_bps is None:
        return (one.change, CANNOT, "", "", one.why)
    if one.goodput_bps is None or one.high_bps is None:
        return (one.change, f"at least {rate(one.low_bps)}", "", trip, one.why)
    return (one.change, *with_interval(one.goodput_bps, one.low_bps, one.high_bps, rate), trip, cc)


def _aligned(cells: Sequence[tuple[str, ...]], *, right: bool = False) -> list[str]:
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    lines = []
    for first, *others in cells:
        padded = [
            cell.rjust(width) if right and at < len(others) - 1 else cell
            for at, (cell, width) in enumerate(zip(others, widths[1:], strict=True))
        ]
        lines.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    return lines
