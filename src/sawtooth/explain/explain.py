"""Explains one connection from all that is known of it, with the estimators of ``capture`` and ``whatif``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sawtooth.errors import InputError
from sawtooth.explain import judged
from sawtooth.explain.explanation import QUANTITIES, Explanation, Limit, Probed
from sawtooth.explain.gains import CHANGES, gains
from sawtooth.explain.inputs import Transfer, read, with_control
from sawtooth.whatif import Choice, Estimate, Estimated, Observed, estimate
from sawtooth.whatif.kinds import MANAGED, PARTS
from sawtooth.whatif.observation import check_control
from sawtooth.whatif.replay import LEARNED, Replays, may_be_policed, replay
from sawtooth.whatif.runs import DRAWS
from sawtooth.whatif.shared import learned, may_use

FAVOURED = ("capture", "watch", "ss", "iperf3")
"""Which input is explained where there are several: the one that shows most."""
LEAST = 0.9
"""Another input's value counts if it is at least this multiple of a lower bound."""
_NO_TRANSFER = "no input shows a transfer: probes alone do not fill a path"


def explain(
    files: Sequence[str],
    *,
    connection: str | None = None,
    cc: str | None = None,
    draws: int = DRAWS,
    seed: int = 1,
    progress: Callable[[float], None] | None = None,
    live: Transfer | None = None,
) -> Explanation:
    """Explains the connection that the files show; ``live`` is one of this host. ``connection`` selects it, as in
    ``whatif``; ``cc`` is its congestion control, whatever the files say. The same files and ``seed`` give the same
    answer.

    Raises SawtoothError: ``not-a-measurement``, ``unknown-name`` (``cc``), and as the readers of captures, ss, iperf3,
    probes and mtr do.
    """
    if cc is not None:
        check_control(cc)
    transfers, probed = read(files, connection)
    transfers += [] if live is None else [live]
    inputs = (*(_input(one) for one in transfers), *(one.what for one in probed))
    if not transfers:
        return _of_probes(inputs, probed)
    transfers.sort(key=lambda one: (one.observed is None, _rank(one)))
    first, others = transfers[0], transfers[1:]
    doubts: list[str] = []
    problems = [problem for one in transfers if one.capture is not None for problem in one.capture.problems]
    seen = [one.observed for one in others if one.observed is not None]
    observed = first.observed
    direct: Estimate | None = None
    path: Estimate | None = None
    found: Replays | None = None
    if observed is not None:
        observed = with_control(observed, seen)
        if cc is not None:
            observed = replace(observed, cc=cc, cc_how="given")
        path, doubts = _together(observed, seen)
        found = replay(observed, path, draws=draws, seed=seed, progress=progress, more=len(CHANGES))
        direct, path = path, found.estimate
    why = "" if first.refused is None else first.refused.message
    kinds = _kinds(first)
    doubts += _not_simulated(kinds, found)
    quantities = {} if path is None else path.quantities
    lost = judged.lost(first, path, probed)
    if first.capture is not None:
        kind, process = judged.one_answer(lost.kind, kinds)
        lost, kinds = replace(lost, kind=kind), kinds | {"loss_process": process}
    explained = Explanation(
        inputs=inputs,
        limited=judged.limit(first, direct),
        lost=lost,
        path=quantities,
        kinds=kinds,
        control=_control(first, observed),
        observed=observed,
        test=None if found is None else found.test,
        controls=() if found is None else tuple(found.answers),
        gains=() if found is None else gains(found, observed.cc if observed else None, lossy=lost.by_path),
        probed=tuple(probed),
        cannot_tell=_unknown(path, why) | {name: one.why for name, one in kinds.items() if one.answer is None},
        problems=tuple(problems),
        doubts=tuple(doubts),
    )
    return replace(explained, next=_next(explained, first))


def _rank(transfer: Transfer) -> int:
    return FAVOURED.index(transfer.kind) if transfer.kind in FAVOURED else len(FAVOURED)


def _input(transfer: Transfer) -> str:
    if transfer.observed is not None:
        return f"{transfer.name}: {transfer.observed.what}"
    assert transfer.refused is not None
    return f"{transfer.name}: {transfer.refused.message}"


def _of_probes(inputs: tuple[str, ...], probed: list[Probed]) -> Explanation:
    limited, lost = judged.nothing()
    place = next((one.lost_from for one in probed if one.lost_from), None)
    if place is not None:
        lost = replace(lost, where=Choice(place, "from there on every hop loses probes"))
    explained = Explanation(
        inputs=inputs,
        limited=limited,
        lost=lost,
        path={},
        kinds={name: Choice(None, _NO_TRANSFER) for name in PARTS},
        control=Choice(None, _NO_TRANSFER),
        probed=tuple(probed),
        cannot_tell=dict.fromkeys((*QUANTITIES, *PARTS), _NO_TRANSFER),
    )
    return replace(explained, next=_next(explained, None))


def _together(observed: Observed, others: Sequence[Observed]) -> tuple[Estimate, list[str]]:
    """The path behind the first observation; where another gives a number within what is only a bound here, that
    number. Also where the inputs contradict each other."""
    path = estimate(observed)
    doubts = []
    # The other's rate and queue, too, are what others leave, and its totals do not show it.
    left = ("rate", "queue") if learned().knows(observed) else ()
    for other in others:
        try:
            also = estimate(other).quantities
        except InputError:
            continue
        for name, called in (("rate", "rate"), ("rtt", "base RTT"), ("queue", "queue")):
            mine, its = path.quantities[name], also[name]
            if its.bound:
                continue
            under = mine.bound != "at least" and its.low > mine.high
            over = mine.bound != "at most" and its.high < mine.low
            inside = its.high <= mine.high if mine.bound == "at most" else its.low >= mine.low * LEAST
            if mine.bound and inside and name not in left:
                path = _with(path, name, replace(its, how=f"{its.how} ({other.source})"))
            elif under or over:
                told = f"{observed.source} and {other.source} disagree about the {called}"
                doubts.append(f"{told}: are both of the same connection?")
    return path, doubts


def _with(path: Estimate, name: str, value: Estimated) -> Estimate:
    return replace(
        path,
        rate=value if name == "rate" else path.rate,
        rtt=value if name == "rtt" else path.rtt,
        queue=value if name == "queue" else path.queue,
    )


def _unknown(path: Estimate | None, why: str) -> dict[str, str]:
    """Why parts of the path are not known, or only from one side."""
    if path is None:
        return dict.fromkeys(QUANTITIES, why)
    cannot = {name: value.how for name, value in path.quantities.items() if value.bound}
    return cannot | {"hosts": "; ".join(path.cannot_tell)} if path.cannot_tell else cannot


def _kinds(first: Transfer) -> dict[str, Choice]:
    if first.observed is not None and first.observed.kinds:
        return first.observed.kinds
    assert first.capture is None or first.refused is not None
    why = judged.ONLY_CAPTURE if first.refused is None else first.refused.message
    return {name: Choice(None, why) for name in PARTS}


def _not_simulated(kinds: dict[str, Choice], found: Replays | None) -> list[str]:
    """What the simulated path lacks."""
    if found is not None and found.given:
        return [f"{may_use(found.runs.observed)}; {LEARNED}"]
    doubts = []
    queue, other = kinds["queue_kind"].answer, kinds["cross_traffic"].answer
    if (queue in MANAGED and MANAGED[queue] is None) or queue == "policer":
        doubts.append(f"the path has {judged.called(queue)}; the table simulates its drops as random loss")
    if found is not None and may_be_policed(found.runs.observed):
        why = "the kind of queue is not judged; if a policer dropped what was lost, other controls get other rates"
        doubts.append(why)
    if other == "present":
        doubts.append("others use the bottleneck; the table counts what they leave as the path's rate and loss")
    return doubts


def _control(first: Transfer, observed: Observed | None) -> Choice:
    if observed is not None and observed.cc:
        return Choice(observed.cc, observed.cc_how or "the input names it", _names(first))
    if observed is not None and observed.cc_how:
        return Choice(None, observed.cc_how, _names(first))
    if first.reported is not None and first.reported.cc:
        return Choice(first.reported.cc, first.reported.cc_how)
    if first.connection is not None and first.connection.cc:
        return Choice(first.connection.cc, "the kernel says so")
    if first.identified is not None and first.identified.unknown:
        return Choice(None, first.identified.unknown, _names(first))
    return Choice(None, "no input names or shows it")


def _names(first: Transfer) -> tuple[tuple[str, float], ...]:
    return () if first.identified is None else first.identified.names


def _next(explained: Explanation, first: Transfer | None) -> tuple[str, ...]:
    """What to measure next, most useful first."""
    steps = []
    limited: Limit = explained.limited
    if first is None:
        steps.append("a capture of a bulk transfer over the same path: tcpdump -s 128 at the sender")
    elif first.capture is None:
        steps.append("a capture at the sender (tcpdump -s 128): it shows where data is lost, and by what")
    if limited.by in ("application", "nothing to send", "idle"):
        steps.append("the same transfer from memory, such as iperf3: the application is the limit here, not the path")
    if limited.by == "receive window":
        steps.append("the same transfer with a larger receive buffer: the window is the limit here, not the path")
    if first is not None and first.refused is not None and first.refused.code == "too-short":
        steps.append("a transfer of at least ten seconds: this one is too short to show the path")
    rate = explained.path.get("rate")
    if rate is not None and rate.bound:
        steps.append("iperf3 -P 8 for 30 s: several streams fill the path and show its rate")
    queue = explained.path.get("queue")
    if queue is not None and queue.bound and rate is not None and not (rate.bound or limited.by == "receive window"):
        steps.append("a longer transfer with CUBIC: it fills the queue until it overflows, which shows its size")
    if (
        first is not None
        and first.identified is not None
        and first.identified.helps
        and explained.control.answer is None
    ):
        steps.append(f"to know the congestion control: {first.identified.helps}")
    steps += [one.next for one in explained.probed if one.next]
    if explained.lost.count and not any(one.lost_from for one in explained.probed):
        steps.append("mtr --report -c 100 to the receiver: it names the hop from which on probes are lost")
    return tuple(steps)
