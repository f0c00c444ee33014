"""Engine ``model``: closed forms, instant, for one flow over one path with independent losses.

All of them leave out slow start, queueing delay (the RTT is the empty path's), the kernel's timer ticks inside a round
trip, and the spread around the mean. Where two limits apply, the smaller one is the answer and names the limit.

- Mathis: Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", CCR 27(3),
  1997, section 2. It has no timeouts: too high above about 2% loss.
- PFTK: Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Reno Performance", IEEE/ACM ToN 8(2), 2000, sections II and IV:
  the full model with timeouts, as throughput at the receiver. Its sender has no SACK and loses the rest of a round with
  the first packet, so it is low for Linux with independent losses.
- CUBIC: RFC 9438, sections 4.3, 5.1 and 5.2; evenly spaced losses, no timeouts: too high above about 2% loss.
- BBR: version 1 keeps the line full until its probing gain of 1.25 no longer makes up for the loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.engines import sim
from sawtooth.errors import InputError, suggestion
from sawtooth.run import Run
from sawtooth.run.metadata import idle
from sawtooth.scenario import CONGESTION_CONTROLS, LINUX_CONTROLS, Loss, Queue, Rate, Scenario, Size, Span
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Host, Link
from sawtooth.scenario.header_sizes import MSS, frame_bytes

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.engines import Engine, Progress, Stop

CONTROLS = ("reno", "cubic", "bbr")
"""Controls with a formula here."""
HEADERS_BYTES = frame_bytes(0, timestamps=True)
MATHIS_C = math.sqrt(3 / 2)
"""Every segment counts when acknowledged, as in Linux; with Mathis's delayed ACKs it would be sqrt(3/4)."""
RENO_C = 1.2
"""RFC 9438, section 5.2 rounds sqrt(3/2) to this in its tables."""
CUBIC_C = 0.4
CUBIC_BETA = 0.7
"""RFC 9438, sections 5 and 4.6."""
RENO_BETA = 0.5
RTO_MIN_S = 0.2
_MEAN_ONLY = "a closed form gives only a mean; ignore the distribution and the standard deviation"
BBR_CLIFF = 1 - 1 / 1.25
"""Loss above which probing at 1.25 times the estimate delivers less than the estimate: 20%."""


def mathis_segments(loss: float) -> float:
    """Mean window of Reno in segments, C / sqrt(p): Mathis 1997, equation 3 with C = sqrt(3/2) (one ACK per
    segment)."""
    return math.inf if loss == 0 else MATHIS_C / math.sqrt(loss)


def cubic_segments(loss: float, rtt_s: float) -> float:
    """Mean window of CUBIC in segments: RFC 9438, section 5.1, or Reno's if that is larger (section 4.3).

    In the Reno-friendly region alpha = 3 (1 - beta) / (1 + beta) makes CUBIC's mean equal to Reno's.
    """
    if loss == 0:
        return math.inf
    scale: float = (CUBIC_C * (3 + CUBIC_BETA) / (4 * (1 - CUBIC_BETA))) ** 0.25
    return max(RENO_C / math.sqrt(loss), scale * float((rtt_s / loss) ** 0.75))


def rto_s(rtt_s: float, hz: int = 250, variation_s: float = 0.0) -> float:
    """Linux's retransmission timeout: srtt + max(200 ms, 4 x variation), rounded up to whole timer ticks.

    The floor applies to the variation's term, not to the sum as in RFC 6298 (``tcp_rtt_estimator``, ``__tcp_set_rto``).
    """
    ticks = (rtt_s + max(RTO_MIN_S, 4 * variation_s)) * hz
    return math.ceil(round(ticks, 9)) / hz


def pftk_segments_a_second(
    loss: float, rtt_s: float, rto: float, *, window: float = math.inf, acked: float = 1
) -> float:
    """Reno's throughput at the receiver in segments per second, including timeouts and a window limit: Padhye 2000.

    ``acked`` is the paper's b: segments acknowledged per growth step (1: Linux counts every segment).
    """
    if loss == 0:
        return window / rtt_s
    if loss >= 1:
        return 0.0
    p, b = float(loss), acked
    third = (2 + b) / (3 * b)
    expected = third + math.sqrt(8 * (1 - p) / (3 * b * p) + third**2)
    limited = expected >= window
    w = window if limited else expected
    # Probability that a loss in a window of w ends in a timeout, and the mean back-off of consecutive timeouts.
    q = min(1.0, (1 - (1 - p) ** 3) * (1 + (1 - p) ** 3 * (1 - (1 - p) ** max(0.0, w - 3))) / (1 - (1 - p) ** w))
    f = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    rounds = b / 8 * w + (1 - p) / (p * w) + 2 if limited else b / 2 * w + 1
    return float(((1 - p) / p + w / 2 + q) / (rtt_s * rounds + q * f * rto / (1 - p)))


def queue_utilisation(cc: str, bdp: float, queue: float) -> float:
    """Share of the line that the sawtooth fills without random loss: 1 if the queue lasts through a decrease.

    ``bdp`` and ``queue`` are in packets. Reno grows by one segment per round trip from beta (bdp + queue); rounds above
    the bdp last longer but are full, so only the area below counts. CUBIC is computed with the same (Reno-friendly)
    growth and its beta of 0.7; its concave region fills more, so this is a lower bound.
    """
    beta = {"reno": RENO_BETA, "cubic": CUBIC_BETA}.get(cc)
    if beta is None or beta * (bdp + queue) >= bdp:
        return 1.0
    top = bdp + queue
    sent = top**2 * (1 - beta**2) / 2
    return sent / (bdp * (bdp - beta * top) + (top**2 - bdp**2) / 2)


@dataclass(frozen=True)
class _Path:
    rate_bps: float
    rtt_s: float
    loss: float
    queue_packets: float | None
    mss: int
    hz: int
    window_bytes: float


def predict(
    *,
    rate: str | Rate,
    rtt: str | Span,
    loss: str | Loss,
    cc: str | None = None,
    queue: str | Queue | None = None,
    mss: int = MSS,
    hz: int = 250,
    receive_buffer: str | Size = "64 MiB",
) -> DataFrame:
    """Closed-form predictions for one flow, one row per formula.

    Columns: ``cc``; ``formula``; ``goodput_bps`` (bit/s to the application, NaN if no closed form applies); ``limit``
    ("line rate", "loss", "receive window" or "queue"); ``source`` (the section with the formula).

    ``cc`` selects one congestion control; ``queue`` (of the bottleneck; absent: deep enough) lowers the line rate that
    a sawtooth fills; ``hz`` rounds the timeout; half of ``receive_buffer`` is window, as in Linux. Raises SawtoothError
    for quantities without unit or out of range, an RTT of 0 and an unknown congestion control.
    """
    import pandas as pd

    path = _Path(
        _in("rate", Rate, rate).bps,
        _in("rtt", Span, rtt).ns / 1e9,
        _in("loss", Loss, loss).probability,
        None,
        mss,
        hz,
        _in("receive_buffer", Size, receive_buffer).bytes / 2,
    )
    if path.rtt_s == 0:
        raise InputError("out-of-range", "a round trip of 0 s has no window", field="rtt", fix='write e.g. "0.1 ms"')
    if not 1 <= mss <= 65400:
        raise InputError(
            "out-of-range", f"a segment of {mss} bytes is not possible", field="mss", fix="choose 1 … 65400 bytes"
        )
    if not 1 <= hz <= 10_000:
        raise InputError(
            "out-of-range", f"{hz} is not a timer tick of Linux", field="hz", fix="choose 100, 250, 300 or 1000"
        )
    if cc in CONGESTION_CONTROLS and cc not in CONTROLS:
        raise _unsupported("cc", cc, f"choose one of: {', '.join(CONTROLS)}; or simulate it, sawtooth run")
    if cc is not None and cc not in CONTROLS:
        fix = suggestion(cc, CONTROLS)
        raise InputError("unknown-name", f'no congestion control is named "{cc}"', field="cc", fix=fix)
    if queue is not None:
        packets = _packets(_in("queue", Queue, queue), path)
        path = _Path(path.rate_bps, path.rtt_s, path.loss, packets, mss, hz, path.window_bytes)
    rows = [row for name in CONTROLS if cc in (None, name) for row in _rows(name, path)]
    return pd.DataFrame(rows, columns=["cc", "formula", "goodput_bps", "limit", "source"])


class Model:
    """Answers a scenario with one flow: every interval has the mean of a closed form."""

    name = "model"

    def capturing(self, directory: Path, at: Sequence[str] = ()) -> Model:
        """Raises SawtoothError ``unsupported``: there are no packets."""
        fix = "remove --capture, or use --engine sim, kernel or netns"
        raise InputError("unsupported", "the engine model writes no captures", field="capture", fix=fix)

    def check(self, scenario: Scenario) -> None:
        """Raises SawtoothError ``unsupported``, naming the field that no closed form here covers."""
        compiled = scenario.without_processing().compile()
        _check_has(compiled)
        flows = compiled.flows
        if len(flows) != 1 or flows[0].count != 1:
            raise _unsupported("flows", "several flows that share a path", "leave one flow of count 1")
        flow = flows[0]
        parts = {"bytes": flow.bytes, "replace": flow.lifetime_ns, "duration": flow.duration_ns, "start": flow.start_ns}
        for name, given in parts.items():
            if given:
                raise _unsupported(f"flows.0.{name}", "a flow that does not last the whole time", "leave it out")
        if flow.writes or flow.arrivals or flow.datagrams or flow.asks:
            raise _unsupported("flows.0.source", "an application with its own times", "use --engine sim")
        if flow.reads is not None:
            raise _unsupported("flows.0.reader", "an application with its own times", "use --engine sim")
        if compiled.probes:
            raise _unsupported("probes", "probes", "leave them out")
        way, back = _way(compiled)
        if any(link.loss_pattern and link.loss_pattern.packets for link in way):
            raise _unsupported("loss", "the loss of single packets", 'give a share, like "1%"')
        if any(link.loss_ppb for link in back):
            raise _unsupported("loss", "loss of acknowledgements", "set the loss on the return path to 0%")
        if all(link.transmitter is None for link in way):
            raise _unsupported("rate", "a path without any rate", "give one link a rate")
        if sum(link.delay_ns for link in (*way, *back)) == 0:
            raise _unsupported("delay", "a path without delay", "give it a round-trip time")
        sender, receiver = _ends(compiled)
        every = {"sack": sender.sack and receiver.sack, "timestamps": sender.timestamps and receiver.timestamps}
        for field, on in every.items():
            if not on:
                raise _unsupported(f"host.{field}", f"TCP without {field}", "leave it on")
        if sender.unpaced:
            raise _unsupported("host.pacing", "a host that does not pace", "use --engine sim")
        if sender.offload:
            raise _unsupported("host.offload", "segmentation offload", "leave it off")
        predicted = _chosen(_rows(flow.cc, _path_of(compiled)))["goodput_bps"]
        # At best one acknowledgement for two segments.
        acknowledgements = predicted * HEADERS_BYTES / (2 * sender.mss)
        if any(one.rate_bps < acknowledgements for one in compiled.transmitters_of(flow.backward)):
            raise _unsupported(
                "rate", "acknowledgements that fill the return path", "give the return path a higher rate"
            )

    def run(self, scenario: Scenario, *, progress: Progress | None = None, stop: Stop | None = None) -> Run:
        """One row per interval, all with the predicted mean. Raises SawtoothError as ``check`` does."""
        import pandas as pd

        self.check(scenario)
        compiled = scenario.without_processing().compile()
        flow = compiled.flows[0]
        row = _chosen(_rows(flow.cc, _path_of(compiled)))
        ends = list(range(compiled.interval_ns, compiled.duration_ns + 1, compiled.interval_ns))
        times = [end / 1e9 for end in ends]
        intervals = pd.DataFrame({"t_s": times, "flow": 0, "goodput_bps": row["goodput_bps"]})
        if progress is not None:
            progress(1.0)
        meta: dict[str, Any] = {
            "names": {"flow": [flow.name]},
            "formula": row["formula"],
            "limit": row["limit"],
            "source": row["source"],
            "warnings": [_MEAN_ONLY, *_bursts(compiled), *idle(scenario)],
        }
        if math.isnan(row["goodput_bps"]):
            raise _unsupported("loss", f"{flow.cc} at this loss", "lower it: no closed form holds there")
        return Run(scenario, self.name, {"intervals": intervals}, meta)


ENGINE: Engine = Model()


def _rows(cc: str, path: _Path) -> list[dict[str, Any]]:
    segment_bits = path.mss * 8
    line = path.rate_bps * path.mss / (path.mss + HEADERS_BYTES)
    bdp = path.rate_bps * path.rtt_s / 8 / (path.mss + HEADERS_BYTES)
    filled = 1.0 if path.queue_packets is None else queue_utilisation(cc, bdp, path.queue_packets)
    window = path.window_bytes / path.mss
    delivered = 1 - path.loss
    limits = {"line rate": line * delivered, "receive window": window * segment_bits / path.rtt_s}
    if filled < 1:
        limits["queue"] = line * filled * delivered
    if delivered == 0:
        limits = {"loss": 0.0}

    def row(formula: str, by_loss: float, source: str) -> dict[str, Any]:
        every = {"loss": by_loss, **limits} if path.loss > 0 and math.isfinite(by_loss) else limits
        limit = min(every, key=lambda name: every[name])
        return {"cc": cc, "formula": formula, "goodput_bps": every[limit], "limit": limit, "source": source}

    if cc == "reno":
        mathis = mathis_segments(path.loss) * segment_bits / path.rtt_s
        timeout = rto_s(path.rtt_s, path.hz)
        pftk = pftk_segments_a_second(path.loss, path.rtt_s, timeout, window=window) * segment_bits
        return [
            row("Mathis: MSS/RTT · sqrt(3/2)/sqrt(p)", mathis, "Mathis et al. 1997, section 2; one ACK a segment"),
            row(f"PFTK, RTO {timeout * 1e3:g} ms", pftk, "Padhye et al. 2000, sections II and IV; RTO: Linux"),
        ]
    if cc == "cubic":
        cubic = cubic_segments(path.loss, path.rtt_s) * segment_bits / path.rtt_s * delivered
        return [row("mean window, C = 0.4, beta = 0.7", cubic, "RFC 9438, sections 4.3, 5.1 and 5.2")]
    source = "Cardwell et al. 2016, BBR version 1: probing gain 1.25"
    if path.loss >= BBR_CLIFF:
        formula = "none holds from 20% of loss on"
        return [{"cc": cc, "formula": formula, "goodput_bps": math.nan, "limit": "loss", "source": source}]
    return [row("ceiling: line rate · (1 − p), p < 20%", math.inf, source)]


def _bursts(compiled: Compiled) -> list[str]:
    """Evenly spaced losses need no warning: Mathis and RFC 9438 derive their formulas from them."""
    return [
        f'the link "{link.name}" loses packets in bursts: the formula uses their mean, {Loss(link.loss_ppb)}, '
        "for independent losses"
        for link in _way(compiled)[0]
        if link.loss_pattern and link.loss_pattern.gilbert_elliott
    ]


def _chosen(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The row that the engine uses; for Reno it is Mathis, because Linux senders have SACK and PFTK's does not."""
    return rows[0]


def _in(field: str, kind: Any, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    try:
        return kind.parse(value)
    except InputError as error:
        raise error.at(field=field) from None


def _packets(queue: Queue, path: _Path) -> float:
    frame = path.mss + HEADERS_BYTES
    if queue.unit == "packets":
        return float(queue.amount)
    if queue.unit == "bytes":
        return float(queue.amount) / frame
    time_s = float(queue.amount) / 1e9 if queue.unit == "ns" else float(queue.amount) * path.rtt_s
    return path.rate_bps * time_s / 8 / frame


def _way(compiled: Compiled) -> tuple[list[Link], list[Link]]:
    flow = compiled.flows[0]
    return compiled.way(flow.forward), compiled.way(flow.backward)


def _ends(compiled: Compiled) -> tuple[Host, Host]:
    flow = compiled.flows[0]
    return compiled.hosts[compiled.source(flow)], compiled.hosts[compiled.target(flow)]


def _path_of(compiled: Compiled) -> _Path:
    way, back = _way(compiled)
    sender, receiver = _ends(compiled)
    slowest = min(compiled.transmitters_of(compiled.flows[0].forward), key=lambda one: one.rate_bps)
    through = math.prod(1 - link.loss_ppb / 1e9 for link in way)
    frame = sender.mss + HEADERS_BYTES
    packets: float | None = slowest.queue_packets
    if packets is None and slowest.queue_bytes is not None:
        packets = slowest.queue_bytes / frame
    rtt_s = sum(link.delay_ns for link in (*way, *back)) / 1e9
    scale = 1 if receiver.adv_win_scale is None else receiver.adv_win_scale
    # tcp_win_from_space: with 0, all of the buffer is window.
    window = receiver.receive_buffer * (1 - 2**-scale if scale else 1)
    return _Path(slowest.rate_bps, rtt_s, 1 - through, packets, sender.mss, sender.hz, window)


def _check_has(compiled: Compiled) -> None:
    """Raises SawtoothError ``unsupported``: a compiled scenario has what only engines with packets have."""
    fix, kernels = "use --engine sim, or kernel", "use --engine sim, kernel or netns"
    if compiled.programs:
        raise _lacks("programs", "runs no programs", "use --engine kernel, or netns")
    for index, flow in enumerate(compiled.flows):
        field = f"flows.{index}.cc"
        if flow.module is not None:
            what = "runs no policy and no Python file" if flow.module.is_agent else "runs no C source"
            raise _lacks(field, what, "use --engine sim" if flow.module.is_agent else fix)
        if flow.variant is not None:
            what = f"does not have the variant {flow.variant} of {flow.cc}"
            raise _lacks(f"{field}.variant", what, "use --engine sim")
        if flow.datagrams is None and flow.cc not in CONTROLS:
            has = "sim" if flow.cc in sim.controls() else "kernel with host.kernel, the name of a kernel that has it"
            if flow.cc in LINUX_CONTROLS and has != "sim":
                has = "kernel, or netns where this host's kernel has it"
            what = f"has no closed form for {flow.cc}, only for {', '.join(CONTROLS)}"
            raise _lacks(field, what, f"use --engine {has}")
    constant = "and the engine model has only constant ones"
    for transmitter in compiled.transmitters:
        if transmitter.discipline is not None:
            message = f'the queue of "{transmitter.name}" is not tail drop, and the engine model has only tail drop'
            raise InputError("unsupported", message, field="queue", fix=kernels)
        if transmitter.pace is not None:
            message = f'the rate of "{transmitter.name}" varies, {constant}'
            raise InputError("unsupported", message, field="links", fix=fix)
    for link in compiled.links:
        if link.policer is not None:
            message = f'the link "{link.name}" has a policer, and the engine model has none'
            raise InputError("unsupported", message, field="policer", fix=kernels)
        effects = (link.losses, link.delays, link.jitter, link.reorder, link.duplicate, link.corrupt)
        if any(effects) or link.aggregation_ns:
            raise InputError("unsupported", f'the link "{link.name}" varies, {constant}', field="links", fix=fix)


def _lacks(field: str, what: str, fix: str) -> InputError:
    return InputError("unsupported", f"the engine model {what}", field=field, fix=fix)


def _unsupported(field: str, what: str, fix: str) -> InputError:
    return InputError("unsupported", f"engine model has no closed form for {what}", field=field, fix=fix)
