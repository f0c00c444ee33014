"""What if, from captures: deliveries, waiting and losses out of segments, and the path out of those."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from sawtooth.whatif import estimate, tracing
from sawtooth.whatif.observed import Observed, Trace
from sawtooth.whatif.traced import busy_rates, random_loss, separate, train_rates

MSS = 1448
FRAME = 1514


def tables(
    rows: list[dict[str, float]], sacks: list[tuple[int, int, int, bool]] | None = None
) -> tuple[tracing.Data, tracing.Acks]:
    """Rows of the reader's table, data in direction 0; absent fields are 0."""
    columns = {"t_s": 0.0, "direction": 0, "seq": 0, "length": 0, "ack": 0, "kind": 0, "tsval": 0, "tsecr": 0}
    segments = pd.DataFrame([{**columns, **row} for row in rows])
    blocks = pd.DataFrame(sacks or [], columns=["segment", "start", "end", "dsack"])
    return tracing.tables(segments, blocks, 0)


def data(at: float, number: int, kind: int = 0, **more: float) -> dict[str, float]:
    """The data segment of that number, the first being 0."""
    return {"t_s": at, "seq": 1 + number * MSS, "length": MSS, "kind": kind, **more}


def ack(at: float, segments: int, kind: int = 8, **more: float) -> dict[str, float]:
    """Acknowledges so many segments."""
    return {"t_s": at, "direction": 1, "ack": 1 + segments * MSS, "kind": kind, **more}


def end(number: int) -> int:
    return 1 + (number + 1) * MSS


def test_a_round_trip_is_of_the_newest_of_several_segments_acknowledged() -> None:
    sent, acks = tables([data(0.0, 0), data(0.001, 1), ack(0.041, 2)])
    times, trips = tracing.round_trips(sent, acks)
    assert times.tolist() == [0.001]
    assert trips.tolist() == [pytest.approx(0.04)]


def test_a_single_segments_acknowledgement_may_have_waited_and_is_no_round_trip() -> None:
    assert tracing.round_trips(*tables([data(0.0, 0), ack(0.08, 1)]))[1].size == 0


def test_a_sack_is_a_round_trip_and_a_retransmitted_segment_none() -> None:
    rows = [data(0.0, 0), data(0.001, 1), ack(0.041, 0, 9), data(0.042, 0, 1), ack(0.083, 2)]
    sent, acks = tables(rows, [(2, end(0), end(1), False)])
    times, trips = tracing.round_trips(sent, acks)
    assert (times.tolist(), trips.tolist()) == ([0.001], [pytest.approx(0.04)])


def test_without_sack_what_a_recovery_acknowledges_is_no_round_trip() -> None:
    rows = [data(at / 1000, at) for at in range(6)]
    rows += [ack(0.041, 0, 9), ack(0.042, 0, 9), ack(0.043, 0, 9), data(0.044, 0, 1), ack(0.045, 0, 9), ack(0.085, 6)]
    rows += [data(0.09, 6), data(0.091, 7), ack(0.131, 8)]
    sent, acks = tables(rows)
    assert tracing.round_trips(sent, acks)[0].tolist() == [0.091]


def test_the_sender_sees_losses_at_the_time_of_the_copy_that_was_lost() -> None:
    rows = [data(at / 1000, at) for at in range(8)] + [data(0.05, 2, 1), data(0.051, 3, 1), data(0.052, 6, 2)]
    rows += [data(0.3, 2, 2), data(0.4, 5, 4), ack(0.5, 8)]
    lost, runs = tracing.sender_losses(tables(rows)[0])
    assert lost.tolist() == [0.002, 0.006, 0.05]
    assert runs.tolist() == [2, 1, 1]


def test_the_receiver_sees_losses_when_the_segment_beyond_the_hole_passes() -> None:
    rows = [data(0.0, 0), data(0.003, 3), data(0.004, 4), data(0.05, 1, 6), data(0.051, 2, 6), data(0.06, 6)]
    rows += [data(0.1, 5, 6), data(0.2, 7), ack(0.3, 8)]
    lost, runs = tracing.receiver_losses(tables(rows)[0], MSS)
    assert lost.tolist() == [0.003, 0.06]
    assert runs.tolist() == [2, 1]


def test_echoed_timestamps_give_the_way_to_the_sender_and_back() -> None:
    rows = [ack(0.0, 0, tsval=500), ack(0.0004, 0, tsval=500), data(0.02, 0, tsecr=500), data(0.03, 1, tsecr=500)]
    assert tracing.echoes(*tables(rows)).tolist() == [pytest.approx(0.02)]


def test_lateness_is_the_delay_above_the_least_whatever_the_timestamps_unit() -> None:
    for tick in (1e-3, 4e-3):
        sends = np.arange(0, 10, 0.005)
        waits = np.where((sends > 4) & (sends < 6), 0.05, 0.0)
        rows = [
            data(one + 0.02 + wait, at, tsval=7 + int(one / tick))
            for at, (one, wait) in enumerate(zip(sends, waits, strict=True))
        ]
        late, grain = tracing.lateness(tables([*rows, ack(11, 1)])[0])
        assert grain == tick
        assert late[sends < 3.9].max() < tick * 1.01
        assert late[(sends > 4.1) & (sends < 5.9)] == pytest.approx(0.05, abs=tick)


def test_idle_is_what_passes_after_all_was_acknowledged() -> None:
    rows = [data(0.0, 0), data(0.0, 1), ack(0.04, 2), data(0.54, 2), ack(0.58, 3), data(0.58, 3), ack(0.62, 4)]
    assert tracing.idle_s(*tables(rows), 0.0) == pytest.approx(0.5)
    assert tracing.idle_s(*tables(rows), 0.02) == pytest.approx(0.48)


def test_the_acknowledgements_that_open_or_fill_a_hole_say_nothing_of_the_pace() -> None:
    rows = [data(at / 1000, at) for at in range(6)]
    rows += [ack(0.040, 2), ack(0.043, 2, 9), ack(0.044, 2, 9), data(0.05, 2, 1), ack(0.09, 6)]
    blocks = [(7, end(2), end(3), False), (8, end(2), end(4), False)]
    trace = tracing.at_sender(*tables(rows, blocks), MSS, math.inf)
    assert trace.delivered_bytes[0] == 1 + 2 * MSS
    assert np.isnan(trace.delivered_bytes[1])
    assert trace.delivered_bytes[2] == MSS
    assert np.isnan(trace.delivered_bytes[3])


def bulk(
    *, bps: float = 50e6, base_s: float = 0.04, queue: int = 100, loss: float = 0.0, burst: int = 1, full: bool = True
) -> Observed:
    """A saw-tooth of 20 s at the bottleneck, as its receiver sees it: the queue fills, overflows and empties."""
    rng = np.random.default_rng(7)
    frame_s = FRAME * 8 / bps
    count = int(20 / frame_s)
    phase = np.arange(count) % 5000 / 5000
    waiting = (queue if full else queue * 0.6) * phase
    passed = np.arange(count) * frame_s
    at_random = np.repeat(rng.random(count // burst + 1) < loss / 1.0, burst)[:count]
    lost = np.flatnonzero(at_random)
    runs = np.ones(lost.size, dtype=np.int64)
    if burst > 1:
        lost, runs = lost[::burst], np.full(lost.size // burst, burst)
    if full:
        tops = np.flatnonzero(phase == phase.max())
        lost = np.concatenate([lost, tops])
        runs = np.concatenate([runs, np.full(tops.size, 3)])
    order = np.argsort(lost, kind="stable")
    trace = Trace(
        delivered_t_s=passed,
        delivered_bytes=np.full(count, float(MSS)),
        delay_t_s=passed,
        delay_s=0.02 + waiting * frame_s,
        sent_t_s=passed,
        sent_segments=np.ones(count, dtype=np.int64),
        lost_t_s=passed[lost[order]],
        lost_segments=runs[order],
        segments_an_ack=np.full(500, 2.0),
        sender_side=False,
    )
    goodput = bps * MSS / FRAME
    return Observed("capture", "", goodput_bps=goodput, duration_s=20.0, rtt_min_s=base_s + frame_s, trace=trace)


def test_the_path_is_found_within_its_intervals() -> None:
    found = estimate(bulk(loss=0.001))
    assert found.rate.low <= 50e6 <= found.rate.high
    assert found.rtt.low <= 0.04 <= found.rtt.high
    assert found.queue.low <= 100 <= found.queue.high
    assert found.loss.low <= 0.001 <= found.loss.high
    assert found.cannot_tell == ()


def test_losses_at_a_full_queue_are_not_the_paths() -> None:
    found = estimate(bulk())
    assert found.loss.value == 0
    assert found.loss.high < 1e-4
    assert "at a full queue" in found.loss.how


def test_losses_that_do_not_care_for_the_queue_leave_it_open() -> None:
    found = estimate(bulk(loss=0.001, full=False))
    assert found.queue.bound == "at least"
    assert found.queue.low == pytest.approx(60, rel=0.05)
    assert found.loss.low <= 0.001 <= found.loss.high


def test_runs_of_losses_are_told_from_single_ones() -> None:
    assert estimate(bulk(loss=0.002, full=False)).burst.value == 1
    assert estimate(bulk(loss=0.002, full=False, burst=3)).burst.value == pytest.approx(3, rel=0.15)


def test_bursts_spread_by_a_window_show_the_bottleneck_in_short_trains() -> None:
    # Ten packets back to back at 50 Mbit/s, then a pause: 2.9 Mbit/s in the mean.
    frame_s = FRAME * 8 / 50e6
    times = np.concatenate([round_trip * 0.04 + np.arange(10) * frame_s for round_trip in range(200)])
    seen = bulk()
    assert seen.trace is not None
    flat = np.full(times.size, 0.02)
    trace = dataclasses.replace(
        seen.trace,
        delivered_t_s=times,
        delivered_bytes=np.full(times.size, float(MSS)),
        delay_t_s=times,
        delay_s=flat,
        sent_t_s=times,
        sent_segments=np.ones(times.size, dtype=np.int64),
        lost_t_s=np.empty(0),
        lost_segments=np.empty(0, dtype=np.int64),
    )
    found = estimate(dataclasses.replace(seen, goodput_bps=2.9e6, trace=trace))
    assert found.rate.low <= 50e6 <= found.rate.high
    spread = np.sort(np.random.default_rng(1).uniform(0, 8, times.size))
    even = dataclasses.replace(trace, delivered_t_s=spread, delay_t_s=spread, sent_t_s=spread)
    assert estimate(dataclasses.replace(seen, goodput_bps=2.9e6, trace=even)).rate.bound == "at least"


def test_deliveries_while_packets_wait_outweigh_bunched_acknowledgements() -> None:
    # A queue stands at 50 Mbit/s, but deliveries are reported in bunches of 16 at ten times that.
    seen = bulk()
    assert seen.trace is not None
    frame_s = FRAME * 8 / 50e6
    times = seen.trace.delivered_t_s
    bunched = times // (16 * frame_s) * (16 * frame_s) + np.arange(times.size) % 16 * frame_s / 10
    trace = dataclasses.replace(seen.trace, delivered_t_s=np.sort(bunched), delay_s=0.02 + np.full(times.size, 0.03))
    trace.delay_s[0] = 0.02
    rates = busy_rates(trace, 0.04, 0.0)
    assert np.median(rates) == pytest.approx(50e6 * MSS / FRAME, rel=0.03)


def test_a_bottleneck_is_not_slower_than_what_got_through() -> None:
    faster = dataclasses.replace(bulk(), goodput_bps=60e6 * MSS / FRAME, rtt_max_s=0.4)
    found = estimate(faster).rate
    # The last acknowledgement may have come 0.4 s after the 20 s in which data was sent.
    assert (found.low, found.value) == (pytest.approx(60e6 / 1.02), pytest.approx(60e6 / 1.02))


def slotted(per_slot: int = 5, sent_apart_s: float = 0.01) -> Observed:
    """A link of 100 slots of 50 ms, each of which takes so many packets at once; they were sent one by one."""
    seen = bulk()
    assert seen.trace is not None
    count = 100 * per_slot
    times = np.repeat(np.arange(100) * 0.05, per_slot) + np.tile(np.arange(per_slot) * 1e-5, 100)
    sent = np.arange(count) * sent_apart_s - 0.05
    trace = dataclasses.replace(
        seen.trace,
        delivered_t_s=times,
        delivered_bytes=np.full(count, float(MSS)),
        delivered_sent_s=sent,
        delay_t_s=times,
        delay_s=np.full(count, 0.02),
        sent_t_s=sent,
        sent_segments=np.ones(count, dtype=np.int64),
        lost_t_s=np.empty(0),
        lost_segments=np.empty(0, dtype=np.int64),
    )
    return dataclasses.replace(seen, goodput_bps=5 * MSS * 8 / 0.05, duration_s=5.0, trace=trace)


def test_what_leaves_the_bottleneck_together_is_as_fast_as_its_groups_are_apart() -> None:
    found = estimate(slotted())
    assert found.rate.value == pytest.approx(5 * FRAME * 8 / 0.05, rel=0.02)
    # Sent together as well, it may have come back to back: the pace within is the bottleneck's.
    assert estimate(slotted(sent_apart_s=1e-5)).rate.value > 100e6


def test_losses_where_more_is_sent_than_the_link_takes_are_congestions() -> None:
    seen = slotted()
    assert seen.trace is not None
    busy = dataclasses.replace(
        seen.trace, sent_segments=np.full(500, 3), lost_t_s=np.arange(20) / 5, lost_segments=np.full(20, 10)
    )
    found = estimate(dataclasses.replace(seen, trace=busy))
    assert found.loss.value < 0.01
    assert "at a full queue" in found.loss.how


def test_losses_near_each_other_are_a_burst_that_lets_packets_through() -> None:
    seen = bulk(full=False)
    assert seen.trace is not None
    # Five bursts of twelve, each every third packet.
    at = np.concatenate([np.arange(12) * 3 + 10_000 * burst for burst in range(1, 6)])
    trace = dataclasses.replace(seen.trace, lost_t_s=seen.trace.sent_t_s[at], lost_segments=np.ones(60, dtype=np.int64))
    found = estimate(dataclasses.replace(seen, trace=trace))
    assert found.burst.value == pytest.approx(34, rel=0.05)
    assert found.burst_loss == pytest.approx(12 / 34, rel=0.05)
    # Five events, not sixty: how often they come is not known well.
    assert found.loss.high > 1.5 * found.loss.value


def test_trains_are_never_taken_across_a_break() -> None:
    seen = bulk()
    assert seen.trace is not None
    broken = seen.trace.delivered_bytes.copy()
    broken[::4] = np.nan
    trace = dataclasses.replace(seen.trace, delivered_bytes=broken)
    assert train_rates(trace, 4).size == 0
    assert train_rates(trace, 2) == pytest.approx(50e6 * MSS / FRAME)


def test_a_queue_shorter_than_the_clocks_grain_leaves_the_losses_cause_open_only_on_a_busy_path() -> None:
    seen = bulk(queue=5, loss=0.001)
    assert seen.trace is not None
    coarse = dataclasses.replace(seen.trace, grain_s=1e-3)
    assert not separate(coarse, FRAME * 8 / 50e6, 0.9).known
    sparse = separate(coarse, FRAME * 8 / 50e6, 0.2)
    assert (sparse.known, sparse.full, sparse.random) == (True, False, int(seen.trace.lost_segments.sum()))


def test_without_delays_the_losses_cause_stays_open() -> None:
    seen = bulk(loss=0.001)
    assert seen.trace is not None
    blind = dataclasses.replace(seen.trace, delay_t_s=np.empty(0), delay_s=np.empty(0))
    split = separate(blind, FRAME * 8 / 50e6, 1.0)
    assert not split.known
    assert random_loss(split).bound == "at most"
    found = estimate(dataclasses.replace(seen, cc="cubic", trace=blind))
    assert found.by_replay
    assert any("random losses" in said for said in found.cannot_tell)
