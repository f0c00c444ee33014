"""A path given as plain numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from sawtooth.errors import SawtoothError
from sawtooth.scenario import Loss, Queue, Rate, Span
from sawtooth.whatif.observation import Observed, check_control
from sawtooth.whatif.quantity import Estimated

_TOLD = "as given"
ASSUMED_QUEUE_BDP = (0.3, 1.0, 3.0)


def from_numbers(
    *,
    rate: str,
    rtt: str,
    loss: str,
    queue: str | None = None,
    throughput: str | None = None,
    duration: str = "30 s",
    cc: str | None = None,
) -> Observed:
    """Quantities as text with units, as in a scenario file. Raises SawtoothError as the parser does, with the field,
    and ``unknown-name`` for a control.
    """
    if cc is not None:
        check_control(cc)
    with _of("rate"):
        bps = Rate.parse(rate).bps
    with _of("rtt"):
        base = Span.parse(rtt).seconds
    with _of("loss"):
        share = Loss.parse(loss).probability
    with _of("throughput"):
        goodput_bps = None if throughput is None else Rate.parse(throughput).bps
    with _of("duration"):
        duration_s = Span.parse(duration).seconds
    frame = Observed("numbers", "").frame_bytes
    bdp = max(1.0, bps * base / 8 / frame)
    if queue is None:
        low, middle, high = (max(1.0, bdp * part) for part in ASSUMED_QUEUE_BDP)
        packets = Estimated(middle, low, high, "not given; 0.3 to 3 bandwidth-delay products are tried")
    else:
        with _of("queue"):
            packets = Estimated.exact(_packets(Queue.parse(queue), bps, base, frame), _TOLD)
    given = {
        "rate": Estimated.exact(bps, _TOLD),
        "rtt": Estimated.exact(base, _TOLD),
        "loss": Estimated.exact(share, _TOLD),
        "queue": packets,
    }
    return Observed(
        source="numbers",
        what=f"a path of {rate}, {rtt}, {loss} loss",
        goodput_bps=goodput_bps,
        duration_s=duration_s,
        cc=cc,
        cc_how="given" if cc else "",
        given=given,
    )


@contextmanager
def _of(field: str) -> Iterator[None]:
    """Adds this field to errors."""
    try:
        yield
    except SawtoothError as error:
        raise error.at(field=field) from None


def _packets(queue: Queue, bps: int, rtt_s: float, frame_bytes: int) -> float:
    """Counts like the scenario format: in whole full frames, at least one."""
    amount = queue.amount
    if queue.unit == "bdp":
        amount *= Fraction(bps) * Fraction(rtt_s) / 8 / frame_bytes
    elif queue.unit == "bytes":
        amount /= frame_bytes
    elif queue.unit == "ns":
        amount *= Fraction(bps, 8 * 10**9 * frame_bytes)
    return float(max(1, int(amount)))
