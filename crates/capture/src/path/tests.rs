//! Tests: traces from rows, and paths with known values from traces.

use std::borrow::Cow;

use super::causes::Causes;
use super::directions::{Acks, Data, Rows, split};
use super::estimate::{Bound, Estimated};
use super::loss_runs::{self, LossRuns};
use super::rate::{busy_rates, train_rates};
use super::rtt_samples::{FirstCopies, echoes, lateness, round_trips};
use super::trace::{Delivery, Trace};
use super::transfer::Transfer;
use super::{Path, check_transfer, quantities};

const MSS: u32 = 1448;
const PAYLOAD: f64 = 1448.0;
const FRAME: f64 = 1514.0;
const FRAME_S: f64 = FRAME * 8.0 / 50e6;
const FRAMES: usize = 82_500;

/// Rows of the reader's table, with data in direction 0.
#[derive(Default)]
struct Table {
    t_s: Vec<f64>,
    direction: Vec<u8>,
    seq: Vec<i64>,
    length: Vec<u32>,
    ack: Vec<i64>,
    kind: Vec<u8>,
    stamps: [Vec<i64>; 2],
    blocks: Vec<(u64, i64, i64)>,
}

impl Table {
    /// A table of `count` data segments, one a millisecond.
    fn sent(count: i64) -> Self {
        let mut table = Table::default();
        for at in 0..count {
            table.data(at as f64 / 1000.0, at, 0);
        }
        table
    }

    /// The data segment of that number, from 0.
    fn data(&mut self, t_s: f64, number: i64, kind: u8) -> &mut Self {
        self.row(t_s, 0, [1 + number * i64::from(MSS), 0], MSS, kind)
    }

    /// Acknowledges this many segments.
    fn ack(&mut self, t_s: f64, segments: i64) -> &mut Self {
        self.row(t_s, 1, [0, 1 + segments * i64::from(MSS)], 0, 8)
    }

    fn row(&mut self, t_s: f64, direction: u8, [seq, ack]: [i64; 2], length: u32, kind: u8) -> &mut Self {
        self.t_s.push(t_s);
        self.direction.push(direction);
        self.seq.push(seq);
        self.length.push(length);
        self.ack.push(ack);
        self.kind.push(kind);
        self.stamps.iter_mut().for_each(|column| column.push(-1));
        self
    }

    /// Gives the last row timestamps.
    fn stamped(&mut self, tsval: i64, tsecr: i64) -> &mut Self {
        for (column, stamp) in self.stamps.iter_mut().zip([tsval, tsecr]) {
            *column.last_mut().expect("a row") = stamp;
        }
        self
    }

    /// Gives the last row a SACK block of these segments, the last one excluded.
    fn sack(&mut self, from: i64, to: i64) -> &mut Self {
        let row = self.t_s.len() as u64 - 1;
        self.blocks.push((row, 1 + from * i64::from(MSS), 1 + to * i64::from(MSS)));
        self
    }

    fn split(&self) -> (Data, Acks) {
        let [segment, start, end] = [0, 1, 2].map(|column| {
            self.blocks.iter().map(|&(row, start, end)| [row as i64, start, end][column]).collect::<Vec<_>>()
        });
        let segment: Vec<u64> = segment.iter().map(|&row| row as u64).collect();
        let rows = Rows {
            t_s: &self.t_s,
            direction: &self.direction,
            seq: &self.seq,
            length: &self.length,
            ack: &self.ack,
            kind: &self.kind,
            tsval: Cow::Borrowed(&self.stamps[0]),
            tsecr: Cow::Borrowed(&self.stamps[1]),
            sack_segment: &segment,
            sack_start: &start,
            sack_end: &end,
            sack_dsack: &vec![false; segment.len()],
        };
        assert!(rows.is_consistent());
        split(&rows, 0)
    }

    fn trips(&self) -> (Vec<f64>, Vec<f64>) {
        let (data, acks) = self.split();
        round_trips(&FirstCopies::of(&data), &acks)
    }
}

fn near(found: f64, expected: f64, by: f64) {
    assert!((found - expected).abs() <= by * expected.abs(), "{found}, not {expected}");
}

#[test]
fn rtt_sample_uses_newest_of_several_acked_segments() {
    let (times, trips) = Table::default().data(0.0, 0, 0).data(0.001, 1, 0).ack(0.041, 2).trips();
    assert_eq!(times, [0.001]);
    near(trips[0], 0.04, 1e-9);
}

#[test]
fn ack_of_single_segment_gives_no_rtt_sample() {
    assert!(Table::default().data(0.0, 0, 0).ack(0.08, 1).trips().1.is_empty());
}

#[test]
fn ack_of_more_than_two_segments_gives_rtt_sample_only_if_all_do() {
    // The last one waited for the receiver's timer.
    assert_eq!(Table::sent(7).ack(0.041, 2).ack(0.043, 4).ack(0.086, 7).trips().0, [0.001, 0.003]);
    assert_eq!(Table::sent(8).ack(0.043, 4).ack(0.047, 8).trips().0, [0.003, 0.007]);
}

#[test]
fn sack_gives_rtt_sample_retransmission_does_not() {
    let mut table = Table::default();
    table.data(0.0, 0, 0).data(0.001, 1, 0).ack(0.041, 0).sack(1, 2).data(0.042, 0, 1).ack(0.083, 2);
    assert_eq!(table.trips().0, [0.001]);
}

#[test]
fn recovery_without_sack_gives_no_rtt_sample() {
    let mut table = Table::sent(6);
    table.ack(0.041, 0).ack(0.042, 0).ack(0.043, 0).data(0.044, 0, 1).ack(0.045, 0).ack(0.085, 6);
    table.data(0.09, 6, 0).data(0.091, 7, 0).ack(0.131, 8);
    assert_eq!(table.trips().0, [0.091]);
}

#[test]
fn losses_at_sender_have_the_time_of_the_lost_copy() {
    let mut table = Table::sent(8);
    table.data(0.05, 2, 1).data(0.051, 3, 1).data(0.052, 6, 2).data(0.3, 2, 2).data(0.4, 5, 4).ack(0.5, 8);
    let expected = LossRuns { t_s: vec![0.002, 0.006, 0.05], segments: vec![2, 1, 1] };
    assert_eq!(loss_runs::at_sender(&table.split().0), expected);
}

#[test]
fn losses_at_receiver_have_the_time_of_the_segment_after_the_hole() {
    let mut table = Table::default();
    table.data(0.0, 0, 0).data(0.003, 3, 0).data(0.004, 4, 0).data(0.05, 1, 6).data(0.051, 2, 6).data(0.06, 6, 0);
    table.data(0.1, 5, 6).data(0.2, 7, 0).ack(0.3, 8);
    let expected = LossRuns { t_s: vec![0.003, 0.06], segments: vec![2, 1] };
    assert_eq!(loss_runs::at_receiver(&table.split().0, MSS), expected);
}

#[test]
fn echoed_timestamps_give_rtt_to_the_sender() {
    let mut table = Table::default();
    table.ack(0.0, 0).stamped(500, 1).ack(0.0004, 0).stamped(500, 1);
    table.data(0.02, 0, 0).stamped(1, 500).data(0.03, 1, 0).stamped(1, 500);
    let (data, acks) = table.split();
    assert_eq!(echoes(&data, &acks), [0.02]);
}

#[test]
fn segments_without_timestamps_give_no_echo_sample() {
    let (data, acks) = Table::default().ack(0.0, 0).data(0.02, 0, 0).split();
    assert!(echoes(&data, &acks).is_empty() && lateness(&data).0.is_empty());
}

#[test]
fn lateness_is_delay_above_minimum_for_any_timestamp_unit() {
    for tick in [1e-3, 4e-3] {
        let mut table = Table::default();
        for at in 0..2000_i64 {
            let sent = at as f64 * 0.005;
            let wait = if sent > 4.0 && sent < 6.0 { 0.05 } else { 0.0 };
            table.data(sent + 0.02 + wait, at, 0).stamped(7 + (sent / tick) as i64, 1);
        }
        let (late, grain) = lateness(&table.split().0);
        near(grain, tick, 0.0);
        assert!(late[..780].iter().all(|&one| one < tick * 1.01));
        assert!(late[830..1170].iter().all(|&one| (one - 0.05).abs() < tick));
    }
}

#[test]
fn burst_after_pause_keeps_earlier_queueing_delay() {
    let mut table = Table::default();
    for at in 0..2000_i64 {
        // Twenty at once, every 10 ms, at 0.2 ms a segment: the last one waits for 3.8 ms.
        let sent = 10 * (at / 20);
        table.data(sent as f64 / 1000.0 + (at % 20) as f64 * 2e-4 + 0.02, at, 0).stamped(7 + sent, 1);
    }
    let (late, _) = lateness(&table.split().0);
    assert!(late[19] > 0.003 && late[20] < 0.001, "{:?}", &late[..22]);
}

#[test]
fn acks_that_open_or_fill_a_hole_give_no_delivery_rate() {
    let mut table = Table::sent(6);
    table.ack(0.040, 2).ack(0.043, 2).sack(3, 4).ack(0.044, 2).sack(3, 5).data(0.05, 2, 1).ack(0.09, 6);
    let (data, acks) = table.split();
    let trace = Trace::at_sender(&data, &acks, MSS, f64::INFINITY);
    let bytes: Vec<Option<f64>> =
        trace.delivered.iter().map(|one| Some(one.bytes).filter(|one| !one.is_nan())).collect();
    assert_eq!(bytes, [Some(1.0 + 2.0 * PAYLOAD), None, Some(PAYLOAD), None]);
}

/// Losses with this probability per packet, spread evenly by the golden ratio: 20 s at 50 Mbit/s.
fn at_random(share: f64) -> Vec<usize> {
    let step = 1.0 / share;
    (0..)
        .map(|at| ((f64::from(at) + (f64::from(at) * 0.618_034).fract()) * step) as usize)
        .take_while(|&at| at < FRAMES)
        .collect()
}

fn transfer() -> Transfer {
    Transfer {
        direction: 0,
        place: "at the receiver".to_owned(),
        goodput_bps: Some(50e6 * PAYLOAD / FRAME),
        duration_s: 20.0,
        from_start: true,
        mss: MSS,
        timestamps: true,
        segments: FRAMES as u64,
        retransmits: 0,
        rtt_handshake_s: None,
        rtt_min_s: Some(0.04 + FRAME_S),
        rtt_full_s: None,
        rtt_mean_s: None,
        rtt_max_s: None,
        host_s: 0.0,
        window_bytes: None,
        application: 0.0,
        receive_window: 0.0,
    }
}

/// A sawtooth of 20 s at a bottleneck of 50 Mbit/s and 40 ms, as its receiver sees it. The queue of `queue` packets
/// fills, overflows and empties; if not `full`, it reaches 60% of that. Each loss is of `burst` packets.
fn bulk(queue: f64, lost: &[usize], burst: u64, full: bool) -> Trace {
    let passed = |at: usize| at as f64 * FRAME_S;
    let phase = |at: usize| (at % 5000) as f64 / 5000.0;
    let most = if full { queue } else { queue * 0.6 };
    let delay = |at: usize| 0.02 + most * phase(at) * FRAME_S;
    let mut runs: Vec<(usize, u64)> = lost.iter().map(|&at| (at, burst)).collect();
    if full {
        runs.extend((0..FRAMES).filter(|at| at % 5000 == 4999).map(|at| (at, 3)));
    }
    runs.sort_unstable();
    Trace {
        delivered: (0..FRAMES)
            .map(|at| Delivery { t_s: passed(at), bytes: PAYLOAD, sent_s: passed(at) - delay(at) })
            .collect(),
        delay_t_s: (0..FRAMES).map(passed).collect(),
        delay_s: (0..FRAMES).map(delay).collect(),
        sent_t_s: (0..FRAMES).map(passed).collect(),
        sent_segments: vec![1; FRAMES],
        lost: LossRuns {
            t_s: runs.iter().map(|one| passed(one.0)).collect(),
            segments: runs.iter().map(|one| one.1).collect(),
        },
        segments_an_ack: vec![2.0; 500],
        sender_side: false,
        grain_s: 0.0,
        floor_s: f64::INFINITY,
    }
}

fn path(transfer: &Transfer, trace: Trace) -> Path {
    super::estimate_quantities(transfer, trace).expect("a path")
}

#[test]
fn estimates_lie_within_their_intervals() {
    let found = path(&transfer(), bulk(100.0, &at_random(0.001), 1, true));
    for (quantity, truth) in [(&found.rate, 50e6), (&found.rtt, 0.04), (&found.queue, 100.0), (&found.loss, 0.001)] {
        assert!(quantity.low <= truth && truth <= quantity.high, "{quantity:?}");
    }
    assert!(found.cannot_tell.is_empty());
}

#[test]
fn losses_at_full_queue_are_not_random_loss() {
    let found = path(&transfer(), bulk(100.0, &[], 1, true)).loss;
    assert!(found.value == 0.0 && found.high < 1e-4 && found.how.contains("of a full queue"), "{found:?}");
}

#[test]
fn queue_limit_is_lower_bound_if_rate_is() {
    let full =
        Causes { known: true, full: true, full_s: 0.04, full_low_s: 0.03, full_high_s: 0.05, ..Causes::default() };
    let limit = |rate: Estimated| quantities::queue_limit(&full, &rate, &Estimated::exact(0.04, ""), &transfer());
    let known = limit(Estimated::exact(50e6, ""));
    assert_eq!(known.bound, Bound::None);
    let found = limit(Estimated::at_least(50e6, 50e6, 250e6, ""));
    assert_eq!((found.bound, found.low, found.high), (Bound::AtLeast, known.low, 5.0 * known.high));
}

#[test]
fn queue_that_is_never_empty_is_measured_from_the_handshake() {
    let mut trace = bulk(100.0, &[], 1, true);
    for delay in &mut trace.delay_s {
        *delay = delay.max(0.02 + 20.0 * FRAME_S) + FRAME_S;
    }
    (trace.sender_side, trace.floor_s) = (true, 0.02 + quantities::SYN_BYTES * 8.0 / 50e6);
    let found = path(&transfer(), trace).queue;
    assert!((found.value - 100.0).abs() < 0.5, "{found:?}");
}

#[test]
fn base_rtt_reaches_down_to_data_and_by_the_hosts_answers() {
    let seen = Transfer {
        rtt_handshake_s: Some(0.0405 + quantities::SYN_BYTES * 8.0 / 2e6),
        rtt_full_s: Some(0.0402 + FRAME * 8.0 / 2e6),
        host_s: 1e-4,
        ..transfer()
    };
    let found = quantities::base_rtt(&seen, &Estimated::exact(2e6, "")).expect("a round trip");
    near(found.value, 0.0405, 1e-9);
    near(found.low, 0.0405 * 0.99 - 2e-4 - 3e-4, 1e-9);
    // Others leave a fifth of the rate: the frame did not take that long.
    let shared = quantities::base_rtt(&seen, &Estimated::exact(4e5, "")).expect("a round trip");
    near(shared.low, shared.value * 0.99 - 2e-4, 1e-9);
}

#[test]
fn losses_independent_of_queue_leave_queue_limit_open() {
    let found = path(&transfer(), bulk(100.0, &at_random(0.001), 1, false));
    assert_eq!(found.queue.bound, Bound::AtLeast);
    near(found.queue.low, 57.0, 0.05);
    assert!(found.loss.low <= 0.001 && 0.001 <= found.loss.high);
}

#[test]
fn loss_runs_differ_from_single_losses() {
    assert!(path(&transfer(), bulk(100.0, &at_random(0.002), 1, false)).burst.value == 1.0);
    near(path(&transfer(), bulk(100.0, &at_random(0.002), 3, false)).burst.value, 3.0, 0.15);
}

#[test]
fn one_long_run_is_a_burst_two_losses_are_not() {
    let found = path(&transfer(), bulk(100.0, &[5000], 20, false)).burst;
    near(found.value, 20.0, 0.01);
    assert!(found.low < 5.0 && found.high > 50.0, "{found:?}");
    let of = |length: u64| path(&transfer(), bulk(100.0, &[5000], length, false)).burst.value;
    assert_eq!((of(1), of(2)), (1.0, 1.0));
    near(of(3), 3.0, 0.01);
}

/// One packet at each of these times, none of which waits.
fn at(times: &[f64]) -> Trace {
    let mut trace = bulk(100.0, &[], 1, false);
    trace.delivered = times.iter().map(|&t_s| Delivery { t_s, bytes: PAYLOAD, sent_s: f64::NAN }).collect();
    trace.delay_t_s = times.to_vec();
    trace.delay_s = vec![0.02; times.len()];
    trace.sent_t_s = times.to_vec();
    trace.sent_segments = vec![1; times.len()];
    trace
}

#[test]
fn short_trains_show_rate_of_window_limited_bursts() {
    // Ten packets back to back at 50 Mbit/s, then a pause: 2.9 Mbit/s on average.
    let slow = Transfer { goodput_bps: Some(2.9e6), ..transfer() };
    let bursts: Vec<f64> = (0..2000).map(|at| f64::from(at / 10) * 0.04 + f64::from(at % 10) * FRAME_S).collect();
    let found = path(&slow, at(&bursts)).rate;
    assert!(found.low <= 50e6 && 50e6 <= found.high, "{found:?}");
    let mut spread: Vec<f64> =
        (0..2000).map(|at| (f64::from(at) * 0.618_033_988_7 + f64::from(at * at) * 0.317_3).fract() * 8.0).collect();
    spread.sort_by(f64::total_cmp);
    assert_eq!(path(&slow, at(&spread)).rate.bound, Bound::AtLeast);
}

#[test]
fn window_limited_pace_is_not_the_bottleneck_rate() {
    let even: Vec<f64> = (0..20_000).map(|at| f64::from(at) * FRAME_S * 3.0).collect();
    let got = Transfer { goodput_bps: Some(13e6 * PAYLOAD / FRAME), ..transfer() };
    assert_eq!(path(&got, at(&even)).rate.bound, Bound::None);
    let windowed = path(&Transfer { receive_window: 0.8, ..got }, at(&even)).rate;
    assert_eq!(windowed.bound, Bound::AtLeast);
    assert!(windowed.low <= 50e6 && 50e6 <= windowed.high);
}

#[test]
fn pace_without_queueing_is_the_senders() {
    let even: Vec<f64> = (0..20_000).map(|at| f64::from(at) * FRAME_S * 3.0).collect();
    let got = Transfer { goodput_bps: Some(13e6 * PAYLOAD / FRAME), ..transfer() };
    let mut trace = at(&even);
    trace.delivered.iter_mut().for_each(|one| one.sent_s = one.t_s - 0.02);
    let found = path(&got, trace).rate;
    assert_eq!(found.bound, Bound::AtLeast, "{found:?}");
    near(found.low, 50e6 / 3.0, 0.01);
}

/// Groups of 15 packets of which one leaves every 60 ms, sent in flights of `flight` each round trip of 0.4 s.
fn grouped(flight: i32) -> Trace {
    let mut trace = at(&[]);
    let delivery = |number: i32| {
        let (round, position_in_round) = (number / flight, number % flight);
        let sent_s = f64::from(round) * 0.4;
        Delivery { t_s: sent_s + 0.05 + f64::from(position_in_round / 15) * 0.06, bytes: PAYLOAD, sent_s }
    };
    trace.delivered = (0..flight * 100).map(delivery).collect();
    trace.delay_t_s = trace.delivered.iter().map(|one| one.sent_s).collect();
    trace.delay_s = trace.delivered.iter().map(|one| one.t_s - one.sent_s).collect();
    trace
}

#[test]
fn groups_show_rate_only_if_queued() {
    let link_bps = 15.0 * FRAME * 8.0 / 0.06;
    let busy = Transfer { goodput_bps: Some(45.0 * PAYLOAD * 8.0 / 0.4), ..transfer() };
    let found = path(&busy, grouped(45)).rate;
    assert!(found.bound == Bound::None && found.low <= link_bps && link_bps <= found.high, "{found:?}");
    let idle = Transfer { goodput_bps: Some(15.0 * PAYLOAD * 8.0 / 0.4), ..transfer() };
    let found = path(&idle, grouped(15)).rate;
    assert!(found.bound == Bound::AtLeast && found.low <= link_bps, "{found:?}");
}

#[test]
fn busy_deliveries_outweigh_bunched_acks() {
    // There is a standing queue at 50 Mbit/s, but deliveries are reported in groups of 16 at ten times that rate.
    let mut trace = bulk(100.0, &[], 1, true);
    for (at, one) in trace.delivered.iter_mut().enumerate() {
        one.t_s = ((at / 16 * 16) as f64 + (at % 16) as f64 / 10.0) * FRAME_S;
    }
    trace.delay_s = vec![0.05; FRAMES];
    trace.delay_s[0] = 0.02;
    let rates = super::statistics::sorted(busy_rates(&trace, 0.04, 0.0));
    // Packets waited for eight groups, plus or minus part of one.
    near(rates[rates.len() / 2], 50e6 * PAYLOAD / FRAME, 0.05);
}

#[test]
fn bottleneck_rate_is_at_least_the_goodput() {
    let faster = Transfer { goodput_bps: Some(60e6 * PAYLOAD / FRAME), rtt_max_s: Some(0.4), ..transfer() };
    let found = path(&faster, bulk(100.0, &[], 1, true)).rate;
    // The last acknowledgement may have come 0.4 s after the 20 s in which data was sent.
    near(found.low, 60e6 / 1.02, 1e-9);
    near(found.value, 60e6 / 1.02, 1e-9);
}

/// A link with 100 slots of 50 ms, each of which carries five packets at once; they were sent one by one.
fn slotted(apart_s: f64) -> (Transfer, Trace) {
    let mut trace = at(&[]);
    let sent = |at: i32| f64::from(at) * apart_s - 0.05;
    let delivery = |at: i32| Delivery {
        t_s: f64::from(at / 5) * 0.05 + f64::from(at % 5) * 1e-5,
        bytes: PAYLOAD,
        sent_s: sent(at),
    };
    trace.delivered = (0..500).map(delivery).collect();
    trace.delay_t_s = trace.delivered.iter().map(|one| one.t_s).collect();
    trace.delay_s = vec![0.02; 500];
    trace.sent_t_s = (0..500).map(sent).collect();
    trace.sent_segments = vec![1; 500];
    (Transfer { goodput_bps: Some(5.0 * PAYLOAD * 8.0 / 0.05), duration_s: 5.0, ..transfer() }, trace)
}

#[test]
fn trains_of_packets_that_something_held_do_not_show_the_rate() {
    // Three at a time arrive 0.1 ms apart, every 125 ms: the first was sent 125 ms before the others.
    let mut trace = at(&[]);
    let arrives = |at: i32| f64::from(at / 3) * 0.125 + f64::from(at % 3) * 1e-4;
    let sent = |at: i32| arrives(at) - if at % 3 == 0 { 0.25 } else { 0.125 };
    trace.delivered = (0..300).map(|at| Delivery { t_s: arrives(at), bytes: PAYLOAD, sent_s: sent(at) }).collect();
    trace.delay_t_s = trace.delivered.iter().map(|one| one.t_s).collect();
    trace.delay_s = vec![0.02; 300];
    let slow = Transfer { goodput_bps: Some(3.0 * PAYLOAD * 8.0 / 0.125), duration_s: 12.5, ..transfer() };
    let found = path(&slow, trace).rate;
    assert!(found.bound == Bound::AtLeast && found.low < 1e6, "{found:?}");
}

#[test]
fn grouped_deliveries_have_rate_of_group_spacing() {
    let (transfer, trace) = slotted(0.01);
    near(path(&transfer, trace).rate.value, 5.0 * FRAME * 8.0 / 0.05, 0.02);
    // If they were also sent together, they may have arrived back to back: the pace within the group is the
    // bottleneck's.
    assert!(path(&transfer, slotted(1e-5).1).rate.value > 100e6);
}

#[test]
fn losses_above_link_rate_are_congestion() {
    let (transfer, mut trace) = slotted(0.01);
    trace.sent_segments = vec![3; 500];
    trace.lost = LossRuns { t_s: (0..20).map(|at| f64::from(at) / 5.0).collect(), segments: vec![10; 20] };
    let found = path(&transfer, trace).loss;
    assert!(found.value < 0.01 && found.how.contains("of a full queue"), "{found:?}");
}

#[test]
fn nearby_losses_form_a_burst_with_deliveries() {
    // Five bursts of twelve losses, every third packet in each.
    let lost: Vec<usize> = (1..6).flat_map(|burst| (0..12).map(move |at| at * 3 + 10_000 * burst)).collect();
    let found = path(&transfer(), bulk(100.0, &lost, 1, false));
    near(found.burst.value, 34.0, 0.05);
    near(found.burst_loss, 12.0 / 34.0, 0.05);
    // Five events, not sixty: their frequency is uncertain.
    assert!(found.loss.high > 1.5 * found.loss.value);
}

#[test]
fn trains_do_not_cross_a_break() {
    let mut trace = bulk(100.0, &[], 1, true);
    trace.delivered.iter_mut().step_by(4).for_each(|one| one.bytes = f64::NAN);
    assert!(train_rates(&trace, 4).is_empty());
    train_rates(&trace, 2).iter().for_each(|&one| near(one, 50e6 * PAYLOAD / FRAME, 1e-6));
}

#[test]
fn queue_below_clock_resolution_leaves_cause_open_on_busy_path() {
    let mut trace = bulk(5.0, &at_random(0.001), 1, true);
    trace.grain_s = 1e-3;
    assert!(!Causes::of(&trace, FRAME_S, 0.05, 0.9).known);
    let sparse = Causes::of(&trace, FRAME_S, 0.05, 0.2);
    assert_eq!((sparse.known, sparse.full, sparse.random), (true, false, trace.lost()));
}

/// Bursts of 20 frames every 20 ms, each sent within a moment; every tenth overflows the queue, and its last is lost.
fn bursts_that_overflow() -> Trace {
    let mut trace = bulk(20.0, &[], 1, false);
    let sent = |at: usize| (at / 20) as f64 * 0.02 + (at % 20) as f64 * 1e-6;
    trace.delay_t_s = (0..20_000).map(sent).collect();
    trace.delay_s = (0..20_000).map(|at| 0.02 + (at % 20 + usize::from(at % 200 > 180)) as f64 * FRAME_S).collect();
    (trace.sent_t_s, trace.sent_segments) = (trace.delay_t_s.clone(), vec![1; 20_000]);
    let ends: Vec<f64> = (199..20_000).step_by(200).map(|at| sent(at) + 0.015).collect();
    trace.lost = LossRuns { segments: vec![1; ends.len()], t_s: ends };
    trace
}

#[test]
fn loss_at_end_of_burst_is_queue_drop() {
    // The next burst, which finds the queue empty, is nearer in time than the one that filled it.
    let causes = Causes::of(&bursts_that_overflow(), FRAME_S, 0.05, 0.9);
    assert_eq!((causes.full, causes.random, causes.congestive), (true, 0, 100));
}

#[test]
fn losses_without_known_delay_have_no_cause() {
    let mut trace = bursts_that_overflow();
    // A second in which all is sent again.
    trace.sent_t_s.extend((0..500).map(|at| 20.5 + f64::from(at) * 0.002));
    trace.sent_segments.extend([1; 500]);
    trace.lost.t_s.extend((0..250).map(|at| 20.5 + f64::from(at) * 0.004));
    trace.lost.segments.extend([1; 250]);
    let causes = Causes::of(&trace, FRAME_S, 0.05, 0.9);
    assert_eq!((causes.full, causes.random, causes.congestive), (true, 0, 100));
}

#[test]
fn loss_cause_is_open_without_delays() {
    let mut trace = bulk(100.0, &at_random(0.001), 1, true);
    (trace.delay_t_s, trace.delay_s) = (Vec::new(), Vec::new());
    let causes = Causes::of(&trace, FRAME_S, 0.05, 1.0);
    assert!(!causes.known);
    assert_eq!(quantities::random_loss(&causes).bound, Bound::AtMost);
    let found = path(&transfer(), trace);
    assert!(found.open_loss && found.cannot_tell.iter().any(|text| text.contains("losses are random")));
}

#[test]
fn window_limit_fades_to_none_gradually() {
    let limit = |share: f64| quantities::host_limit(1e5, share, "it");
    assert!(limit(0.1).is_none());
    let [few, some, most] = [0.11, 0.2, 0.5].map(|share| limit(share).expect("a limit"));
    near(few.high, 5e5, 0.1);
    assert!(some.low == 1e5 && 1e5 < some.value && some.value < some.high && some.high < few.high);
    assert_eq!((most.low, most.high), (1e5, 1e5));
}

#[test]
fn check_transfer_refuses_short_idle_and_contradicting() {
    let code = |duration, segments, trips: (f64, f64), idle| {
        check_transfer(Some(duration), Some(segments), Some(trips.0), Some(trips.1), idle).err().map(|one| one.code)
    };
    assert_eq!(code(1.0, 1000, (0.02, 0.03), 0.0), Some("too-short"));
    assert_eq!(code(9.0, 50, (0.02, 0.03), 0.0), Some("too-short"));
    assert_eq!(code(9.0, 1000, (0.03, 0.02), 0.0), Some("not-a-measurement"));
    assert_eq!(code(9.0, 1000, (0.02, 0.03), 0.3), Some("application-limited"));
    assert_eq!(code(9.0, 1000, (0.02, 0.03), 0.2), None);
}
