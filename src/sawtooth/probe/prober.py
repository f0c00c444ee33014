"""Prober: sends probes on a schedule, matches the answers, and records each probe once its outcome is known."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sawtooth.errors import InputError
from sawtooth.link_estimate.series import Remark
from sawtooth.probe.recording import Recording
from sawtooth.probe.schedule import Schedule
from sawtooth.probe.transport import Answer, Target, Transport, failed
from sawtooth.probe.wire import SEQUENCES

LEAST_PACE_S, MOST_PACE_S = 0.01, 60.0
MOST_PROBES = 10_000_000
MOST_TIMEOUT_S = 60.0
MOST_HOPS = 254
SILENT = 20
"""Unanswered probes to one end after which the measurement ends, unless ``insist``."""
_MOST_SLOTS = 2
"""Multiple of the number of probes: missed slots are made up within this many."""
_SLICE_S = 0.25
"""Seconds until a request to stop is noticed."""
_SAME_CLOCK_NS = 1_000_000
_STEPPED_S = 0.05


@dataclass(slots=True)
class _Probe:
    end: str
    number: int
    sequence: int
    sent_ns: int
    unix_ns: int
    late_ns: int
    rtt_ns: int | None = None
    address: str = ""
    reply: str = ""
    duplicates: int = 0


@dataclass(frozen=True)
class Measured:
    """How a measurement went: for each end of the link the counts ``sent``, ``answered``, ``lost``, ``duplicates``.

    ``skipped`` are slots missed while the machine was suspended, ``unsent`` probes that the system refused to send;
    ``late_answers`` came after the timeout or match no probe, ``unattributed`` do not say which probe they answer.
    ``whole``: not ended early, by a stop or because the ends in ``silent`` never answered. ``longest_late_s`` is the
    largest delay relative to the schedule.
    """

    counts: Mapping[str, Counter[str]]
    skipped: int
    unsent: int
    late_answers: int
    unattributed: int
    longest_late_s: float
    whole: bool
    remarks: tuple[Remark, ...] = field(default=())
    silent: tuple[str, ...] = ()


class Prober:
    """Probes ``target`` at the hops ``ends`` (name to TTL), one probe to each every ``pace_s``, ``count`` times.

    Probes of one slot leave back to back and belong to one flow. A probe is lost if nothing answers within
    ``timeout_s``. ``monotonic_ns`` and ``unix_ns`` are clocks; the schedule and ``sent_s`` follow the first, so neither
    drifts nor changes when the machine's clock is set.

    With ``make_up`` it continues, for at most twice as many slots, until ``count`` slots had their probes. It ends if
    one end answers none of the first ``SILENT`` probes, unless ``insist``.

    Raises SawtoothError ``out-of-range`` for a pace below 10 ms or above 60 s, a count outside 1 to 10 million, a
    timeout not within 1 ms to 60 s, or hops outside 1 to 255.
    """

    def __init__(
        self,
        transport: Transport,
        target: Target,
        ends: Mapping[str, int],
        *,
        pace_s: float = 0.1,
        count: int = 1000,
        timeout_s: float = 2.0,
        make_up: bool = True,
        insist: bool = False,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        unix_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        _limit("pace", pace_s, LEAST_PACE_S, MOST_PACE_S, "s")
        _limit("count", count, 1, MOST_PROBES, "probes")
        _limit("timeout", timeout_s, 0.001, MOST_TIMEOUT_S, "s")
        for ttl in ends.values():
            _limit("hops", ttl, 1, MOST_HOPS + 1, "hops")
        self._transport, self._target, self._ends = transport, target, dict(ends)
        self._pace_ns, self._count = round(pace_s * 1e9), count
        self._timeout_ns = round(timeout_s * 1e9)
        self._most_slots = count * (_MOST_SLOTS if make_up else 1)
        self._insist = insist
        self._monotonic_ns, self._unix_ns = monotonic_ns, unix_ns
        self._waiting: deque[_Probe] = deque()
        self._by_sequence: dict[int, _Probe] = {}
        self._counts = {end: Counter[str]() for end in ends}
        self._refused = Counter[str]()
        self._skipped = self._unsent = self._late_answers = self._unattributed = 0
        self._longest_late_ns = 0

    def run(
        self,
        recording: Recording,
        *,
        stopped: Callable[[], bool] = lambda: False,
        progress: Callable[[float], None] = lambda fraction: None,
    ) -> Measured:
        """Measures to the end, or until ``stopped``; then the probes before the first undecided one are kept.

        Raises SawtoothError ``probe-failed`` if not even the first probe could be sent, and as ``Recording`` does.
        """
        start_ns, start_unix_ns = self._monotonic_ns(), self._unix_ns()
        schedule = Schedule(start_ns, self._pace_ns)
        self._start = start_ns, start_unix_ns
        slot, until = 0, self._count
        while slot < until and not stopped() and not self._silent():
            now_ns = self._monotonic_ns()
            due_ns = schedule.due_ns(slot)
            if now_ns < due_ns:
                self._hear(min(_SLICE_S, (due_ns - now_ns) / 1e9))
                self._settle(recording)
                progress(slot / until)
                continue
            fit = schedule.next_slot(slot, now_ns)
            if fit != slot:
                missed = min(fit, self._most_slots) - slot
                self._skipped += missed
                slot, until = fit, min(until + missed, self._most_slots)
                continue
            if not self._send_all(slot, due_ns):
                until = min(until + 1, self._most_slots)
            self._hear(0)
            self._settle(recording)
            slot += 1
        while any(not probe.reply for probe in self._waiting) and not stopped() and not self._silent():
            self._hear(min(_SLICE_S, self._timeout_ns / 1e9))
            self._settle(recording)
        self._settle(recording, at_end=True)
        progress(1.0)
        shifted_s = (self._unix_ns() - start_unix_ns - (self._monotonic_ns() - start_ns)) / 1e9
        return Measured(
            self._counts,
            self._skipped,
            self._unsent,
            self._late_answers,
            self._unattributed,
            self._longest_late_ns / 1e9,
            slot >= until and not self._waiting and not self._silent(),
            tuple(self._remarks(shifted_s)),
            self._silent(),
        )

    def _silent(self) -> tuple[str, ...]:
        """Ends that have answered nothing so far, if that is enough to stop."""
        if self._insist or self._unattributed:
            return ()
        heard = {probe.end for probe in self._waiting if probe.reply}
        return tuple(
            end
            for end, counts in self._counts.items()
            if counts["lost"] + self._refused[end] >= SILENT and not counts["answered"] and end not in heard
        )

    def _send_all(self, slot: int, due_ns: int) -> bool:
        """Whether all probes were sent."""
        left = True
        for index, (end, ttl) in enumerate(self._ends.items()):
            sequence = (slot * len(self._ends) + index) % SEQUENCES
            unix_ns, now_ns = self._unix_ns(), self._monotonic_ns()
            probe = _Probe(end, slot, sequence, now_ns, unix_ns, now_ns - due_ns)
            try:
                self._transport.send(sequence, ttl)
            except OSError as error:
                if not any(counts["sent"] for counts in self._counts.values()):
                    raise failed(error, self._target) from error
                self._unsent += 1
                self._refused[end] += 1
                left = False
                continue
            self._longest_late_ns = max(self._longest_late_ns, probe.late_ns)
            self._counts[end]["sent"] += 1
            self._waiting.append(probe)
            self._by_sequence[sequence] = probe
        return left

    def _hear(self, timeout_s: float) -> None:
        for answer in self._transport.receive(timeout_s):
            probe = self._probe_of(answer)
            if probe is None:
                continue
            if probe.reply:
                probe.duplicates += 1
                continue
            probe.address, probe.reply = answer.address, answer.kind
            if answer.kind != "unreachable":
                probe.rtt_ns = self._rtt_ns(probe, answer)

    def _probe_of(self, answer: Answer) -> _Probe | None:
        if answer.sequence is None:
            open_ = [probe for probe in self._waiting if not probe.reply]
            if len(open_) == 1:
                return open_[0]
            self._unattributed += 1
            return None
        probe = self._by_sequence.get(answer.sequence)
        if probe is None or self._rtt_ns(probe, answer) > self._timeout_ns:
            self._late_answers += 1
            return None
        return probe

    def _rtt_ns(self, probe: _Probe, answer: Answer) -> int:
        """From the kernel's time of arrival, unless the clock was set in between; else from when the program read
        it."""
        read_ns = answer.monotonic_ns - probe.sent_ns
        if answer.unix_ns is None:
            return read_ns
        same_clock = abs((self._unix_ns() - probe.unix_ns) - (self._monotonic_ns() - probe.sent_ns)) < _SAME_CLOCK_NS
        arrived_ns = answer.unix_ns - probe.unix_ns
        return arrived_ns if same_clock and 0 < arrived_ns <= read_ns + _SAME_CLOCK_NS else read_ns

    def _settle(self, recording: Recording, *, at_end: bool = False) -> None:
        """Records probes in the order of sending once their time is over; at the end, those before the first undecided
        one."""
        now_ns = self._monotonic_ns()
        rows = []
        while self._waiting:
            probe = self._waiting[0]
            over = now_ns - probe.sent_ns > self._timeout_ns
            if not over and not (at_end and probe.reply):
                break
            self._waiting.popleft()
            self._by_sequence.pop(probe.sequence, None)
            rows.append(self._row(probe))
        if rows:
            recording.add(rows)

    def _row(self, probe: _Probe) -> tuple[str, ...]:
        counts = self._counts[probe.end]
        counts["duplicates"] += probe.duplicates
        counts["lost" if probe.rtt_ns is None else "answered"] += 1
        if probe.reply:
            counts[probe.reply] += 1
        start_ns, start_unix_ns = self._start
        return (
            probe.end,
            self._target.address,
            str(self._ends[probe.end]),
            "unix",
            f"{self._pace_ns / 1e9:g}",
            str(probe.number),
            _seconds(start_unix_ns + probe.sent_ns - start_ns, 6),
            "" if probe.rtt_ns is None else _seconds(probe.rtt_ns, 9),
            _seconds(probe.late_ns, 6),
            probe.address,
            probe.reply,
            str(probe.duplicates),
        )

    def _remarks(self, shifted_s: float) -> Iterable[Remark]:
        if abs(shifted_s) > _STEPPED_S:
            text = (
                f"the machine's clock was set by {shifted_s:+.3g} s meanwhile: times count on from the start, unmoved"
            )
            yield Remark("clock-set", text)
        for end, counts in self._counts.items():
            if counts["unreachable"]:
                text = f"{end}: {counts['unreachable']} probes were answered as unreachable; they count as lost"
                yield Remark("unreachable", text)
        near = self._counts.get("near", Counter())
        if near["echo-reply"] or near["port-unreachable"]:
            text = (
                f"the target itself answered: it is no more than {self._ends['near']} hops away, so no link ends there"
            )
            yield Remark("target-reached", text, doubt=True)
        if self._unattributed:
            text = f"{self._unattributed} answers quote too little to say which probe they answer: use ICMP"
            yield Remark("unattributed", text)
        if self._late_answers:
            yield Remark("late-answers", f"{self._late_answers} answers came after the timeout; they count as lost")
        if self._skipped:
            yield Remark("skipped", f"{self._skipped} probes were skipped: the machine was suspended or stalled")
        for end in self._silent():
            text = f"{end}: none of the first {self._counts[end]['lost'] + self._refused[end]} probes was answered"
            yield Remark("silent", f"{text}: ended early")
        if self._unsent:
            yield Remark("unsent", f"the system refused to send {self._unsent} probes")


def _limit(name: str, value: float, least: float, most: float, unit: str) -> None:
    if not least <= value <= most:
        fix = f"choose {least:g} to {most:,.10g} {unit}"
        raise InputError("out-of-range", f"{value:g} {unit} is not possible", field=name, fix=fix)


def _seconds(nanoseconds: int, digits: int) -> str:
    """Formats a whole number of nanoseconds without a float's rounding."""
    sign, size = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    return f"{sign}{size // 10**9}.{f'{size % 10**9:09d}'[:digits]}"
