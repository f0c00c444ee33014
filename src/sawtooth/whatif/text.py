"""An answer as text for a terminal: the observation, the path behind it, the self-test, the controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sawtooth import sanitize
from sawtooth.whatif.estimate import TAIL_DROP, Estimate
from sawtooth.whatif.observation import BY_MODEL, Observed
from sawtooth.whatif.quantity import Estimated
from sawtooth.whatif.replay import Answer, SelfTest, may_be_policed

_SCALES = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))


def words(observed: Observed, estimate: Estimate, test: SelfTest, answers: Sequence[Answer]) -> str:
    """Several lines; every quantity has its unit, intervals are 90% intervals."""
    problems = [f"problem: {sanitize.sentence(problem)}" for problem in observed.problems]
    lines = [*problems, "observed", *_indented(_seen(observed)), "", "estimate of the path (90% interval)"]
    lines += _indented(_path(estimate))
    lines += ["", f"self-test: {test.words}"]
    lines += [f"not answered: {one}" for one in estimate.cannot_tell]
    if not answers:
        return "\n".join([*lines, "", "expected goodput: not shown, because the self-test fails"])
    lines += [f"not answered: what {one.cc} gets: {one.unknown}" for one in answers if one.unknown]
    lines += [
        f"not answered: what {one.cc} gets; only that it is at least {rate(one.low_bps)}" for one in answers if one.open
    ]
    answered = [one for one in answers if not (one.open or one.unknown)]
    if not answered:
        return "\n".join([*lines, "", "expected goodput: unknown; the lines above say why"])
    lines += ["", "expected goodput", *_indented(_table(observed, answered))]
    if may_be_policed(observed) and observed.cc not in BY_MODEL and any(one.cc in BY_MODEL for one in answered):
        lines += ["", "note: the kind of queue is not judged; if a policer dropped what was lost, BBR gets no more"]
    return "\n".join(lines)


def rate(bps: float) -> str:
    """A rate with four digits and a unit."""
    scale, unit = next((each for each in _SCALES if bps >= each[0]), _SCALES[-1])
    return f"{_digits(bps / scale)} {unit}"


def span(seconds: float) -> str:
    """A time with four digits and a unit."""
    if seconds >= 1:
        return f"{_digits(seconds)} s"
    return f"{_digits(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{_digits(seconds * 1e6)} us"


def share(part: float) -> str:
    """A share in percent with two digits."""
    return f"{part * 100:.2g}%" if part < 0.1 else f"{part * 100:.3g}%"


def with_interval(value: float, low: float, high: float, shown: Callable[[float], str]) -> tuple[str, str]:
    """A value and its interval, with the digits that the interval leaves: four where its ends are less than 1% apart,
    three where less than 10%, else two.
    """
    digits = 4 if high < 1.01 * low else 3 if high < 1.1 * low else 2
    value_text, *ends = (shown(float(f"{one:.{digits}g}")) for one in (value, low, high))
    return value_text, " … ".join(ends)


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _packets(count: float) -> str:
    digits = _digits(count)
    return f"{digits} packet" if digits == "1" else f"{digits} packets"


def _seen(observed: Observed) -> list[tuple[str, str]]:
    rows = [("from", f"{observed.source}: {observed.what}")]
    if observed.goodput_bps is not None:
        over = f" over {span(observed.duration_s)}" if observed.duration_s else ""
        rows.append(("goodput", f"{rate(observed.goodput_bps)}{over}"))
    why = f" ({observed.cc_how})" if observed.cc_how else ""
    rows.append(("control", f"{observed.cc or 'unknown'}{why}"))
    retransmitted = observed.retransmitted
    if retransmitted is not None:
        rows.append(
            ("retransmitted", f"{observed.retransmits} of {observed.segments} segments ({share(retransmitted)})")
        )
    trips = [
        f"{name} {span(value)}"
        for name, value in (
            ("minimum", observed.rtt_min_s),
            ("mean", observed.rtt_mean_s),
            ("maximum", observed.rtt_max_s),
        )
        if value is not None
    ]
    if trips:
        rows.append(("RTT", ", ".join(trips) + (" (smoothed)" if observed.rtt_smoothed else "")))
    limits = [f"{name} {part:.0%} of the time" for name, part in observed.limited.items() if part >= 0.01]
    if limits:
        rows.append(("limited by", ", ".join(limits)))
    return rows


_SHOWN: dict[str, tuple[str, Callable[[float], str]]] = {
    "rate": ("rate", rate),
    "rtt": ("base RTT", span),
    "queue": ("queue", _packets),
    "loss": ("random loss", share),
    "burst": ("loss runs", lambda length: f"{length:.2f} packets"),
    "ack_loss": ("ACK loss", share),
    "window": ("window", lambda size: f"{_digits(size / 1024)} KiB"),
}
"""What each quantity is called, and how it is written."""


def quantity(name: str, value: Estimated) -> str:
    """One quantity of a path with its interval, and how it was obtained."""
    return _quantity(value, _SHOWN[name][1])


def _path(estimate: Estimate) -> list[tuple[str, str]]:
    rows = [(_SHOWN[name][0], quantity(name, value)) for name, value in estimate.quantities.items()]
    if estimate.queue_kinds != ((TAIL_DROP, 1.0),):
        rows.append(("queue kind", ", ".join(f"{kind} {part:.0%}" for kind, part in estimate.queue_kinds)))
    rows.append(("delayed ACK", f"{'yes' if estimate.delayed_ack else 'no'}: {estimate.delayed_ack_how}"))
    return rows


def _quantity(value: Estimated, shown: Callable[[float], str]) -> str:
    if value.bound == "at least":
        tried = f" (tried up to {shown(value.high)})" if value.high > value.value else ""
        figure = f"at least {shown(value.low)}{tried}"
    elif value.bound == "at most":
        figure = f"at most {shown(value.high)} (tried from {shown(value.low)})"
    elif value.low == value.high:
        figure = str(shown(value.value))
    else:
        figure = "{} ({})".format(*with_interval(value.value, value.low, value.high, shown))
    return f"{figure}: {value.how}"


def _table(observed: Observed, answers: Sequence[Answer]) -> list[tuple[str, str]]:
    header = ("", "median", "90% interval", "retransmitted", "")
    rows = [header]
    if observed.goodput_bps is not None:
        again = "-" if observed.retransmitted is None else share(observed.retransmitted)
        rows.append(("observed", rate(observed.goodput_bps), "", again, observed.cc or ""))
    for one in answers:
        median, interval = with_interval(one.median_bps, one.low_bps, one.high_bps, rate)
        again = "-" if one.retransmitted is None else share(one.retransmitted)
        how = f"{len(one.draws)} replays" if one.draws else "learned"
        rows.append((one.cc, median, interval, again, how))
    widths = [max(len(row[at]) for row in rows) for at in range(1, 5)]
    return [
        (row[0], "  ".join(cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True)).rstrip())
        for row in rows
    ]


def _indented(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name.ljust(width)}  {value}".rstrip() for name, value in rows]
