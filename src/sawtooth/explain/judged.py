"""What limited a transfer and what it lost, from the facts of a capture or the counters of ss, iperf3 and
this host."""

from __future__ import annotations

import numpy as np

from sawtooth.capture.marks import LIMITS
from sawtooth.capture.summary import Judgement
from sawtooth.explain.explanation import BY_PATH, Limit, Lost, Probed
from sawtooth.explain.inputs import Transfer
from sawtooth.watch.connection import Connection
from sawtooth.whatif import Choice, Estimate, Observed
from sawtooth.whatif.kinds import MANAGED

MOSTLY = 0.5
"""A host's limit, or a cause of losses, counts from this share on."""
FEW, MOST = 0.1, 0.9
"""Shares of the losses that the path lost at random: below the first a full queue caused them, above the second it
caused none."""
BURSTY = 1.05
"""Mean length of a loss burst in packets, from which losses come in bursts."""
EMPTY = "the bottleneck's queue was empty"
"""What a capture's verdict says where packets waited no longer than in the shortest round trip."""
NONE_LOST = "nothing was lost"
CONGESTION, TAIL_DROP = "congestion", "tail drop"
"""Loss processes in which the path itself loses, and the one in which it does not; the queue that drops only when
full."""
ONLY_CAPTURE = "only a capture shows it"
_PLACES = {
    "data before": "between the sender and the capture point",
    "data after": "between the capture point and the receiver",
    "data both": "on both sides of the capture point",
    "acknowledgements": "on the return path: acknowledgements, not data",
}
_SURE = {
    "exact": "the IP identification shows it",
    "likely": "SACK, timestamps and times show it",
    "guess": "a guess: little shows it",
}


def nothing() -> tuple[Limit, Lost]:
    """Without a transfer."""
    why = "no input shows a transfer"
    return Limit(None, why), Lost(None, None, Choice(None, why), Choice(None, why))


def limit(transfer: Transfer, path: Estimate | None) -> Limit:
    if transfer.capture is not None:
        return _of_capture(transfer, path)
    if transfer.connection is not None:
        return _of_connection(transfer.connection)
    observed = transfer.observed
    if observed is None:
        assert transfer.refused is not None
        by = "application" if transfer.refused.code == "application-limited" else None
        return Limit(by, transfer.refused.message)
    shares = tuple(sorted(observed.limited.items(), key=lambda one: -one[1]))
    if shares and shares[0][1] >= MOSTLY:
        return Limit(shares[0][0], f"{observed.source} counts it", shares[0][1], None, shares)
    assert path is not None
    if not path.rate.bound:
        return Limit("path", f"its rate: {path.rate.how}", None, None, shares)
    if observed.source == "ss":
        what = "losses keep it small" if observed.retransmits else "it is still growing"
        return Limit("congestion window", f"no queue stood at the bottleneck, and {what}", None, None, shares)
    return Limit(
        None, "totals and means do not show it: the rate was not steady, and nothing waited", None, None, shares
    )


def _of_connection(one: Connection) -> Limit:
    """As ``sawtooth watch`` says."""
    known = {"receive window": one.receive_window_limited, "send buffer": one.send_buffer_limited}
    shares = {name: share for name, share in known.items() if share}
    if one.limit == "unknown":
        return Limit(None, one.why, None, None, tuple(shares.items()))
    return Limit(one.limit, one.why, shares.get(one.limit), None, tuple(shares.items()))


def _of_capture(transfer: Transfer, path: Estimate | None) -> Limit:
    judged = _judged(transfer)
    assert judged is not None
    assert transfer.capture is not None
    names = {one.fact.removesuffix("_s"): (number, one.name) for number, one in LIMITS.items()}
    shares = tuple((names[name][1] if name in names else name, share) for name, share in judged.limits.items())
    told = dict(judged.facts["verdict"])["What limited it?"]
    if path is not None and path.rtt.bound:
        # The shortest round trip may have waited, too.
        told = told.replace(EMPTY, "no queue was seen beyond the shortest")
    if judged.limit is None or judged.limit not in names:
        return Limit(None, told, None, None, shares)
    number, name = names[judged.limit]
    series = transfer.capture.series
    of = series[(series["connection"] == transfer.capture.connection) & (series["direction"] == judged.direction)]
    ends = of["t_s"].to_numpy()
    begins = np.concatenate([[float(judged.facts["first_data_s"])], ends[:-1]])
    first = begins[of["limit"].to_numpy() == number]
    since = float(first[0]) if first.size else None
    return Limit(name, told, judged.limits[judged.limit], since, shares)


def _judged(transfer: Transfer) -> Judgement | None:
    assert transfer.capture is not None
    return Judgement.of(transfer.capture.facts["connections"][transfer.capture.connection])


def called(queue: str) -> str:
    """A kind of queue in a sentence."""
    return f"a queue managed by {queue}" if queue in MANAGED else f"a {queue}"


def lost(transfer: Transfer, path: Estimate | None, probed: list[Probed]) -> Lost:
    """What was lost, where and by what, as the rules of ``capture`` and ``whatif`` say."""
    place = next((one.lost_from for one in probed if one.lost_from), None)
    if transfer.capture is None:
        observed = transfer.observed or transfer.reported
        why = "counters say how much was sent again, not where data was lost"
        where = Choice(None, why) if place is None else Choice(place, "mtr shows it: from there on every hop loses")
        count = None if observed is None else observed.retransmits
        segments = None if observed is None else observed.segments
        return Lost(count, segments, where, _by_totals(observed, path))
    judged = _judged(transfer)
    assert judged is not None
    facts = judged.facts["loss"]
    if facts["rate"] is None:
        unknown = "the capture lacks acknowledgements, or too much of the data"
        return Lost(None, judged.segments, Choice(None, unknown), Choice(None, unknown))
    told = _PLACES.get(facts["where"])
    if facts["where"] == "none":
        where = Choice("nowhere", NONE_LOST)
    elif told:
        where = Choice(told, _SURE[facts["sure"]])
    else:
        where = Choice(None, "nothing in the capture shows it")
    if place is not None and facts["lost"]:
        where = Choice(f"{told}; {place}" if told else place, f"{where.why}; mtr names the hop")
    shown = path if transfer.observed is None else transfer.observed.path
    return Lost(facts["lost"], facts["segments"], where, _by_rules(judged, shown))


def one_answer(rule: Choice, kinds: dict[str, Choice]) -> tuple[Choice, Choice]:
    """What data was lost by, and the loss process, which do not contradict each other.

    ``rule`` sees how long packets waited around each loss. It takes drops of a policer, and of a queue that is not
    full, for the path's. The classifier of the process sees more, but not how much each cause lost. So the process is
    the classifier's; where it is not sure, its likeliest process must be what the rule says. Where the rule sees no
    loss, or reordering only, both stay as they are.
    """
    process, queue = kinds["loss_process"], kinds["queue_kind"].answer
    if rule.answer in ("none", "reordering"):
        return rule, process
    alone = (
        "waits around losses show nothing" if rule.answer is None else f"by waits around losses alone: {rule.answer}"
    )
    by_path = next((one for one in BY_PATH if one in (rule.answer or "")), None)
    if not process.shares:
        if rule.answer is None or by_path is None:
            return rule, process
        return Choice(
            f"{rule.answer}, by the path or a policer", f"{rule.why}; the kind of queue is not judged"
        ), process
    drops_early = queue in (*MANAGED, "policer")
    if process.answer is None:
        likeliest = process.shares[0][0]
        if drops_early and queue is not None:
            alone = f"{called(queue)} and the path look alike here"
        if drops_early or rule.answer is None or likeliest != (by_path or CONGESTION):
            return Choice(None, f"{process.why}; {alone}"), process
        why = f"the likeliest by delays, losses and rates; {alone}"
        return rule, Choice(likeliest, why, process.shares)
    if process.answer not in (*BY_PATH, CONGESTION):
        return Choice(None, f"the loss process seems to be {process.answer}, but data was lost"), process
    dropped = called(queue) if drops_early and queue is not None else "full queue"
    if process.answer == CONGESTION:
        if not drops_early and queue != TAIL_DROP and rule.answer != dropped:
            dropped = "the bottleneck's queue or a policer"
        told = dropped
    else:
        both = drops_early or (rule.answer or "").startswith(dropped)
        told = f"{dropped} and {process.answer}" if both else process.answer
    return (rule if told == rule.answer else Choice(told, f"queue kind and loss process; {alone}")), process


def _by_rules(judged: Judgement, path: Estimate | None) -> Choice:
    """By how long packets waited around each loss."""
    facts = judged.facts["loss"]
    count = int(facts["lost"])
    if not count:
        moved = int(judged.facts["out_of_order"])
        if judged.retransmits and moved:
            return Choice("reordering", f"nothing was lost; {moved} segments were out of order and sent again in vain")
        return Choice("none", NONE_LOST)
    if path is None:
        return Choice(None, "the transfer shows no path")
    random = min(1.0, path.loss.value * judged.segments / count)
    process = "bursts" if path.burst.value > BURSTY else "random"
    if path.loss.bound:
        return Choice(None, path.loss.how)
    if random < FEW:
        return Choice("full queue", path.loss.how)
    return Choice(process if random > MOST else f"full queue and {process}", path.loss.how)


def _by_totals(observed: Observed | None, path: Estimate | None) -> Choice:
    if observed is None or observed.retransmits is None:
        return Choice(None, ONLY_CAPTURE)
    if observed.retransmits == 0:
        return Choice("none", "nothing was retransmitted")
    if path is None:
        return Choice(None, ONLY_CAPTURE)
    if path.loss.bound or not observed.retransmitted:
        return Choice(None, path.loss.how)
    low, high = (min(1.0, end / observed.retransmitted) for end in (path.loss.low, path.loss.high))
    if low > MOSTLY:
        return Choice("random", path.loss.how)
    if high < MOSTLY:
        return Choice("full queue", path.loss.how)
    return Choice(None, f"{low:.0%} to {high:.0%} of what was lost was lost at random, the rest by a full queue")
