"""The prober: a schedule without drift, answers matched in any order, a file that is complete or absent."""

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.link_estimate import RttSeries, read_series
from sawtooth.probe import Answer, Measured, Prober, Recording, Schedule, Target, wire
from sawtooth.probe.transport import resolve

MS = 1_000_000
TARGET = Target("somewhere", "192.0.2.7", 4, ("192.0.2.7", 0))
UNIX_NS = 1_700_000_000 * 10**9

Network = Callable[[int, int, int], list[tuple[int, Any]]]
"""What a network does with a probe (its count, sequence number, TTL): delays in ns, and answers (dicts of fields)."""


class Simulated:
    """A transport and both clocks: time passes only while the prober waits, or while the machine is ``busy``."""

    kind = "simulated"

    def __init__(self, network: Network, busy: Callable[[int], int] = lambda sent: 0) -> None:
        self.now_ns = 5_000 * MS
        self.set_by_ns = 0
        self._network, self._busy = network, busy
        self._coming: list[tuple[int, int, dict[str, Any]]] = []
        self.sent: list[tuple[int, int, int]] = []

    def monotonic_ns(self) -> int:
        return self.now_ns

    def unix_ns(self) -> int:
        return UNIX_NS + self.now_ns + self.set_by_ns

    def send(self, sequence: int, ttl: int) -> None:
        self.sent.append((self.now_ns, sequence, ttl))
        for delay_ns, answer in self._network(len(self.sent) - 1, sequence, ttl):
            self._coming.append((self.now_ns + delay_ns, len(self._coming), {"sequence": sequence, **answer}))
        self.now_ns += self._busy(len(self.sent) - 1)

    def receive(self, timeout_s: float) -> list[Answer]:
        due = min((at for at, _, _ in self._coming), default=1 << 62)
        self.now_ns = max(self.now_ns, min(due, self.now_ns + round(timeout_s * 1e9)))
        arrived = sorted(one for one in self._coming if one[0] <= self.now_ns)
        self._coming = [one for one in self._coming if one[0] > self.now_ns]
        made = {"kind": "time-exceeded", "address": "10.0.0.1", "monotonic_ns": self.now_ns, "unix_ns": None}
        return [Answer(**{**made, **answer}) for _, _, answer in arrived]

    def close(self) -> None:
        pass


def measure(
    tmp_path: Path, simulated: Simulated, ends: dict[str, int] | None = None, stopped: Any = lambda: False, **given: Any
) -> tuple[Measured, list[RttSeries]]:
    clocks = {"monotonic_ns": simulated.monotonic_ns, "unix_ns": simulated.unix_ns}
    prober = Prober(simulated, TARGET, ends or {"near": 2}, **{"count": 100, **clocks, **given})
    with Recording(tmp_path / "measured.csv") as recording:
        measured = prober.run(recording, stopped=stopped)
        recording.finish()
    return measured, read_series(tmp_path / "measured.csv")


def after(delay_ms: float, **fields: Any) -> tuple[int, dict[str, Any]]:
    return round(delay_ms * MS), fields


def codes(measured: Measured) -> list[str]:
    return [remark.code for remark in measured.remarks]


def test_a_slot_is_due_at_its_own_time_however_late_others_were() -> None:
    schedule = Schedule(7, 100 * MS)
    assert [schedule.due_ns(slot) for slot in (0, 1, 10**6)] == [7, 7 + 100 * MS, 7 + 10**14]


@given(st.integers(0, 10**7), st.integers(0, 10**15), st.integers(10 * MS, 60_000 * MS))
def test_a_slot_is_left_out_only_when_it_is_half_a_pace_late(slot: int, late_ns: int, pace_ns: int) -> None:
    schedule = Schedule(123, pace_ns)
    now_ns = schedule.due_ns(slot) + late_ns
    fit = schedule.next_slot(slot, now_ns)
    assert fit >= slot
    assert (fit == slot) == (late_ns <= pace_ns // 2)
    assert now_ns - schedule.due_ns(fit) <= pace_ns // 2
    assert fit == slot or now_ns - schedule.due_ns(fit - 1) >= pace_ns // 2


@pytest.mark.usefixtures("patience")
def test_the_pace_does_not_drift_over_two_hours_nor_do_sequence_numbers_of_16_bits_confuse(tmp_path: Path) -> None:
    count = 72_000
    delays = np.random.default_rng(1).integers(0, 3 * MS, count).tolist()
    simulated = Simulated(lambda count, *_: [after(count % 977 + 1)], busy=lambda sent: delays[sent])
    measured, (series,) = measure(tmp_path, simulated, count=count)
    assert measured.skipped == 0
    sent_ns = np.array([at for at, _, _ in simulated.sent])
    late_ns = sent_ns - sent_ns[0] - 100 * MS * np.arange(count)
    assert late_ns.min() == 0
    assert late_ns.max() <= 3 * MS
    np.testing.assert_allclose(series.late_s, late_ns / 1e9, atol=1e-6)
    np.testing.assert_allclose(np.diff(series.sent_s), np.diff(sent_ns) / 1e9, atol=2e-6)
    # A busy machine reads an answer up to 3 ms after it arrived.
    waited_ms = series.rtt_s * 1e3 - (np.arange(count) % 977 + 1)
    assert waited_ms.min() > -1e-6
    assert waited_ms.max() <= 3.001


def test_lateness_is_recorded_and_reported(tmp_path: Path) -> None:
    simulated = Simulated(lambda *_: [after(20)], busy=lambda sent: 130 * MS if sent == 10 else 0)
    measured, (series,) = measure(tmp_path, simulated)
    assert series.late_s[11] == pytest.approx(0.030)
    assert measured.longest_late_s == pytest.approx(0.030)
    assert series.late_s[12] == 0


def test_after_a_standstill_no_burst_makes_up_for_what_was_missed(tmp_path: Path) -> None:
    simulated = Simulated(lambda *_: [], busy=lambda sent: 10_060 * MS if sent == 10 else 0)
    simulated._network = lambda *_: [after(20, unix_ns=simulated.unix_ns() + 20 * MS)]
    measured, (series,) = measure(tmp_path, simulated, count=200, make_up=False)
    apart_ns = np.diff([at for at, _, _ in simulated.sent])
    assert apart_ns.min() >= 50 * MS
    assert (measured.skipped, len(series)) == (100, 100)
    # The kernel records the arrival of an answer that the program reads ten seconds later.
    assert set(np.round(series.rtt_s, 6)) == {0.02}
    assert codes(measured) == ["skipped"]


def test_a_standstill_to_the_end_sends_no_more_probes_than_were_asked_for(tmp_path: Path) -> None:
    simulated = Simulated(lambda *_: [after(20)], busy=lambda sent: 3_600_000 * MS if sent == 10 else 0)
    measured, _ = measure(tmp_path, simulated, make_up=False)
    assert (len(simulated.sent), measured.skipped, measured.whole) == (11, 89, True)


def test_probes_that_were_left_out_are_made_up_for(tmp_path: Path) -> None:
    simulated = Simulated(lambda *_: [after(20)], busy=lambda sent: 330 * MS if sent % 100 == 10 else 0)
    measured, (series,) = measure(tmp_path, simulated, count=1000)
    assert measured.skipped >= 20
    assert (len(series), measured.whole) == (1000, True)


def test_what_is_made_up_for_is_bounded(tmp_path: Path) -> None:
    simulated = Simulated(lambda *_: [after(20)], busy=lambda sent: 330 * MS)
    measured, (series,) = measure(tmp_path, simulated)
    assert measured.skipped + len(series) == 200
    assert measured.whole


def test_an_end_that_never_answers_ends_it_after_twenty_probes(tmp_path: Path) -> None:
    simulated = Simulated(lambda _, __, ttl: [after(20)] if ttl == 2 else [])
    measured, (near, far) = measure(tmp_path, simulated, {"near": 2, "far": 3}, count=1000)
    assert measured.silent == ("far",)
    assert not measured.whole
    assert 20 <= len(far) <= 41
    assert near.answered.all()
    assert codes(measured) == ["silent"]
    assert simulated.now_ns / 1e9 - 5 < 5


def test_an_end_that_begins_to_answer_late_is_waited_for_where_somebody_insists(tmp_path: Path) -> None:
    simulated = Simulated(lambda count, *_: [] if count < 60 else [after(20)])
    measured, (series,) = measure(tmp_path, simulated, insist=True)
    assert (measured.silent, measured.whole, len(series), series.answered.sum()) == ((), True, 100, 40)


def test_losses_at_the_beginning_are_no_silence(tmp_path: Path) -> None:
    measured, (series,) = measure(tmp_path, Simulated(lambda count, *_: [] if count < 19 else [after(20)]))
    assert (measured.silent, len(series)) == ((), 100)


def test_lost_answers_are_lost_after_the_timeout_and_later_ones_are_counted(tmp_path: Path) -> None:
    def network(count: int, *_: int) -> list[Any]:
        return [] if count == 3 else [after(2100)] if count == 5 else [after(20)]

    measured, (series,) = measure(tmp_path, Simulated(network))
    assert np.flatnonzero(~series.answered).tolist() == [3, 5]
    assert (measured.late_answers, measured.counts["near"]["lost"]) == (1, 2)
    assert codes(measured) == ["late-answers"]


def test_answers_in_another_order_are_matched_to_their_probes(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    delays = random.uniform(5, 900, 100)
    _, (series,) = measure(tmp_path, Simulated(lambda count, *_: [after(delays[count])]))
    np.testing.assert_allclose(series.rtt_s * 1e3, delays, atol=1e-5)


def test_duplicates_are_counted_and_the_first_answer_is_kept(tmp_path: Path) -> None:
    def network(count: int, *_: int) -> list[Any]:
        return [after(20), after(25), after(30)] if count == 7 else [after(20)]

    measured, (series,) = measure(tmp_path, Simulated(network))
    assert series.duplicates.tolist() == [0] * 7 + [2] + [0] * 92
    assert series.rtt_s[7] == 0.02
    assert measured.counts["near"]["duplicates"] == 2


def test_the_answering_router_is_recorded(tmp_path: Path) -> None:
    def network(count: int, *_: int) -> list[Any]:
        return [after(20, address="10.0.0.1" if count < 60 else "10.0.9.1")]

    _, (series,) = measure(tmp_path, Simulated(network))
    assert series.address.tolist() == ["10.0.0.1"] * 60 + ["10.0.9.1"] * 40


def test_both_ends_are_probed_in_one_slot_with_their_own_times_to_live(tmp_path: Path) -> None:
    simulated = Simulated(lambda _count, _sequence, ttl: [after(10 * ttl)])
    _, (near, far) = measure(tmp_path, simulated, {"near": 2, "far": 3})
    assert [ttl for _, _, ttl in simulated.sent[:4]] == [2, 3, 2, 3]
    assert (near.hop, far.hop) == (2, 3)
    assert set(np.round(near.rtt_s, 9)) == {0.02}
    assert set(np.round(far.rtt_s, 9)) == {0.03}


def test_an_unreachable_is_no_round_trip(tmp_path: Path) -> None:
    measured, (series,) = measure(
        tmp_path, Simulated(lambda count, *_: [after(20, kind="unreachable" if count == 4 else "time-exceeded")])
    )
    assert np.flatnonzero(~series.answered).tolist() == [4]
    assert series.reply[4] == "unreachable"
    assert codes(measured) == ["unreachable"]


def test_a_target_that_answers_itself_ends_no_link(tmp_path: Path) -> None:
    measured, _ = measure(tmp_path, Simulated(lambda *_: [after(20, kind="echo-reply")]))
    assert codes(measured) == ["target-reached"]
    assert measured.remarks[0].doubt


def test_an_answer_that_does_not_say_to_what_is_taken_only_where_one_probe_is_out(tmp_path: Path) -> None:
    _, (series,) = measure(tmp_path, Simulated(lambda *_: [after(20, sequence=None)]))
    assert set(np.round(series.rtt_s, 9)) == {0.02}
    (tmp_path / "measured.csv").unlink()
    measured, (series,) = measure(tmp_path, Simulated(lambda *_: [after(250, sequence=None)]))
    assert measured.unattributed > 80
    assert codes(measured)[0] == "unattributed"
    assert series.answered.sum() <= 2


def test_the_kernels_time_of_arrival_counts_unless_the_clock_was_set_meanwhile(tmp_path: Path) -> None:
    simulated = Simulated(lambda *_: [after(20)])

    def network(count: int, *_: int) -> list[Any]:
        # The program reads 20 ms after sending an answer that arrived after 15.
        arrived_ns = simulated.unix_ns() + 15 * MS
        if count == 50:
            simulated.set_by_ns += 300 * MS
            arrived_ns += 300 * MS
        return [after(20, unix_ns=arrived_ns)]

    simulated._network = network
    measured, (series,) = measure(tmp_path, simulated)
    assert np.flatnonzero(np.abs(series.rtt_s - 0.015) > 1e-6).tolist() == [50]
    assert series.rtt_s[50] == pytest.approx(0.02)
    np.testing.assert_allclose(np.diff(series.sent_s), 0.1, atol=1e-5)
    assert codes(measured) == ["clock-set"]


def test_what_was_measured_is_kept_up_to_the_first_undecided_probe_when_it_is_stopped(tmp_path: Path) -> None:
    simulated = Simulated(lambda count, *_: [] if count == 30 else [after(20)])
    measured, (series,) = measure(tmp_path, simulated, stopped=lambda: len(simulated.sent) > 40)
    assert not measured.whole
    assert len(series) == 30
    assert series.answered.all()


class Refusing(Simulated):
    """The system refuses some probes."""

    def __init__(self, refused: range) -> None:
        super().__init__(lambda *_: [after(20)])
        self._refused, self._asked = refused, 0

    def send(self, sequence: int, ttl: int) -> None:
        self._asked += 1
        if self._asked - 1 in self._refused:
            raise OSError(101, "Network is unreachable")
        super().send(sequence, ttl)


def test_a_probe_that_the_system_refused_is_none_that_was_lost(tmp_path: Path) -> None:
    measured, (series,) = measure(tmp_path, Refusing(range(10, 12)))
    assert (measured.unsent, len(series), series.loss) == (2, 100, 0)
    assert codes(measured) == ["unsent"]


def test_where_no_probe_can_be_sent_it_fails_and_leaves_no_file(tmp_path: Path) -> None:
    with expected_error(code="probe-failed", match="Network is unreachable"):
        measure(tmp_path, Refusing(range(100)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong",
    [{"pace_s": 0.009}, {"pace_s": 61}, {"count": 0}, {"count": 10**8}, {"timeout_s": 0}, {"ends": {"near": 0}}],
)
def test_the_load_on_the_network_is_bounded(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with expected_error(code="out-of-range"):
        measure(tmp_path, Simulated(lambda *_: []), **wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_file_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with Recording(path) as recording:
        recording.add([("near",) * 12])
        assert not path.exists()
        assert [one.suffix for one in tmp_path.iterdir()] == [".part"]
        recording.finish()
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]
    with pytest.raises(SawtoothError, match="never overwritten"):
        Recording(path)
    with pytest.raises(KeyboardInterrupt), Recording(tmp_path / "b.csv"):
        raise KeyboardInterrupt
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_a_name_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with Recording(path) as recording:
        path.write_text("another's")
        with pytest.raises(SawtoothError) as caught:
            recording.finish()
    assert caught.value.code == "unwritable-output"
    assert path.read_text() == "another's"


def test_a_full_disk_keeps_the_whole_rows_that_were_written(tmp_path: Path) -> None:
    code = f"""
import resource, signal
from sawtooth.probe import Recording
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
row = ("near", "192.0.2.7", "1", "unix", "0.1", "0", "1.0", "0.02", "0.0", "10.0.0.1", "time-exceeded", "0")
import sawtooth.io.atomic_io, errno
sawtooth.io.atomic_io.FULL = (errno.EFBIG,)
try:
    with Recording({str(tmp_path / "a.csv")!r}) as recording:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        while True:
            recording.add([row] * 7)
except Exception as error:
    print(error.code)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout == "disk-full\n", told.stderr
    (series,) = read_series(tmp_path / "a.csv")
    assert len(series) % 7 == 0
    assert len(series) > 20


@given(st.integers(0, 65535), st.integers(0, 2**32 - 1), st.integers(0, 65535))
def test_all_probes_of_a_flow_have_one_checksum_so_that_load_balancers_keep_their_path(
    sequence: int, nonce: int, identifier: int
) -> None:
    first, other = (wire.echo_request(4, identifier, one, nonce) for one in (0, sequence))
    assert first[:6] == other[:6]
    assert wire.checksum(other) == 0
    assert wire.checksum(wire.payload(0, nonce)) == wire.checksum(wire.payload(sequence, nonce))
    assert len({len(first), len(other), len(wire.payload(sequence, nonce)) + 8}) == 1


@given(st.integers(0, 65535), st.sampled_from([4, 6]), st.integers(0, 56))
def test_what_routers_quote_says_which_probe_it_was(sequence: int, version: int, quoted: int) -> None:
    target = bytes(range(4 if version == 4 else 16))
    request = wire.echo_request(version, 77, sequence, 99)
    if version == 4:
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 84, 0, 0, 1, 1, 0, b"\0" * 4, target)
    else:
        header = struct.pack("!IHBB16s16s", 0x60000000, 64, 58, 1, b"\0" * 16, target)
    error = bytes([wire.TIME_EXCEEDED[version], 0]) + b"\0" * 6 + header + request[: 8 + quoted]
    assert wire.heard_error(version, error, 77, target) == wire.ProbeReply(sequence, "time-exceeded")
    assert wire.heard_error(version, error, 78, target) is None
    assert wire.heard_error(version, error, 77, target[::-1]) is None
    reply = bytes([wire.ECHO_REPLY[version]]) + request[1:]
    assert wire.heard_reply(version, reply, 99, 77) == wire.ProbeReply(sequence, "echo-reply")
    assert wire.heard_reply(version, reply, 98, 77) is None
    assert wire.sequence_of(wire.payload(sequence, 99)[:quoted], 99) == (sequence if quoted >= 8 else None)


@given(st.binary(max_size=120), st.sampled_from([4, 6]))
def test_any_packet_is_heard_without_an_error(packet: bytes, version: int) -> None:
    target = bytes(4 if version == 4 else 16)
    for message in (packet, bytes([wire.TIME_EXCEEDED[version], 0]) + packet):
        wire.heard_error(version, message, 1, target)
        wire.heard_reply(version, message, 1)
    wire.sequence_of(packet, 1)


@pytest.mark.parametrize(
    "name", ["no-such-host.invalid", "224.0.0.1", "0.0.0.0", "255.255.255.255", "ff02::1", "a\0b", ""]
)
def test_a_target_is_the_address_of_one_host(name: str) -> None:
    with expected_error(code="bad-target"):
        resolve(name)


def test_a_name_is_resolved_to_the_kind_of_address_wanted() -> None:
    assert (resolve("127.0.0.1").version, resolve("::1").version) == (4, 6)
    with pytest.raises(SawtoothError):
        resolve("127.0.0.1", 6)
