//! Tests: traces from rows, and paths with known values from traces.

use std::borrow::Cow;

use super::causes::Causes;
use super::estimated::{Bound, Estimated};
use super::lost::{self, Lost};
use super::rate::{busy_rates, train_rates};
use super::seen::Seen;
use super::sides::{Acks, Data, Rows, split};
use super::trace::{Delivery, Trace};
use super::trips::{First, echoes, lateness, round_trips};
use super::{Path, quantities, refused};

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
        assert!(rows.whole());
        split(&rows, 0)
    }

    fn trips(&self) -> (Vec<f64>, Vec<f64>) {
        let (data, acks) = self.split();
        round_trips(&First::of(&data), &acks)
    }
}

fn near(found: f64, expected: f64, by: f64) {
    assert!((found - expected).abs() <= by * expected.abs(), "{found}, not {expected}");
}

#[test]
fn a_round_trip_is_of_the_newest_of_several_segments_acknowledged() {
    let (times, trips) = Table::default().data(0.0, 0, 0).data(0.001, 1, 0).ack(0.041, 2).trips();
    assert_eq!(times, [0.001]);
    near(trips[0], 0.04, 1e-9);
}

#[test]
fn a_single_segments_acknowledgement_may_have_waited_and_is_no_round_trip() {
    assert!(Table::default().data(0.0, 0, 0).ack(0.08, 1).trips().1.is_empty());
}

#[test]
fn a_sack_is_a_round_trip_and_a_retransmitted_segment_none() {
    let mut table = Table::default();
    table.data(0.0, 0, 0).data(0.001, 1, 0).ack(0.041, 0).sack(1, 2).data(0.042, 0, 1).ack(0.083, 2);
    assert_eq!(table.trips().0, [0.001]);
}

#[test]
fn without_sack_what_a_recovery_acknowledges_is_no_round_trip() {
    let mut table = Table::default();
    for at in 0..6 {
        table.data(at as f64 / 1000.0, at, 0);
    }
    table.ack(0.041, 0).ack(0.042, 0).ack(0.043, 0).data(0.044, 0, 1).ack(0.045, 0).ack(0.085, 6);
    table.data(0.09, 6, 0).data(0.091, 7, 0).ack(0.131, 8);
    assert_eq!(table.trips().0, [0.091]);
}

#[test]
fn the_sender_sees_losses_at_the_time_of_the_copy_that_was_lost() {
    let mut table = Table::default();
    for at in 0..8 {
        table.data(at as f64 / 1000.0, at, 0);
    }
    table.data(0.05, 2, 1).data(0.051, 3, 1).data(0.052, 6, 2).data(0.3, 2, 2).data(0.4, 5, 4).ack(0.5, 8);
    let expected = Lost { t_s: vec![0.002, 0.006, 0.05], segments: vec![2, 1, 1] };
    assert_eq!(lost::at_sender(&table.split().0), expected);
}

#[test]
fn the_receiver_sees_losses_when_the_segment_beyond_the_hole_passes() {
    let mut table = Table::default();
    table.data(0.0, 0, 0).data(0.003, 3, 0).data(0.004, 4, 0).data(0.05, 1, 6).data(0.051, 2, 6).data(0.06, 6, 0);
    table.data(0.1, 5, 6).data(0.2, 7, 0).ack(0.3, 8);
    let expected = Lost { t_s: vec![0.003, 0.06], segments: vec![2, 1] };
    assert_eq!(lost::at_receiver(&table.split().0, MSS), expected);
}

#[test]
fn echoed_timestamps_give_the_way_to_the_sender_and_back() {
    let mut table = Table::default();
    table.ack(0.0, 0).stamped(500, 1).ack(0.0004, 0).stamped(500, 1);
    table.data(0.02, 0, 0).stamped(1, 500).data(0.03, 1, 0).stamped(1, 500);
    let (data, acks) = table.split();
    assert_eq!(echoes(&data, &acks), [0.02]);
}

#[test]
fn segments_without_timestamps_echo_nothing() {
    let (data, acks) = Table::default().ack(0.0, 0).data(0.02, 0, 0).split();
    assert!(echoes(&data, &acks).is_empty() && lateness(&data).0.is_empty());
}

#[test]
fn lateness_is_the_delay_above_the_least_whatever_the_timestamps_unit() {
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
fn a_burst_after_a_pause_does_not_shorten_the_wait_before_it() {
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
fn the_acknowledgements_that_open_or_fill_a_hole_say_nothing_of_the_pace() {
    let mut table = Table::default();
    for at in 0..6 {
        table.data(at as f64 / 1000.0, at, 0);
    }
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

fn seen() -> Seen {
    Seen {
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
        lost: Lost {
            t_s: runs.iter().map(|one| passed(one.0)).collect(),
            segments: runs.iter().map(|one| one.1).collect(),
        },
        segments_an_ack: vec![2.0; 500],
        sender_side: false,
        grain_s: 0.0,
        floor_s: f64::INFINITY,
    }
}

fn path(seen: &Seen, trace: Trace) -> Path {
    super::path(seen, trace).expect("a path")
}

#[test]
fn the_path_is_found_within_its_intervals() {
    let found = path(&seen(), bulk(100.0, &at_random(0.001), 1, true));
    for (quantity, truth) in [(&found.rate, 50e6), (&found.rtt, 0.04), (&found.queue, 100.0), (&found.loss, 0.001)] {
        assert!(quantity.low <= truth && truth <= quantity.high, "{quantity:?}");
    }
    assert!(found.cannot_tell.is_empty());
}

#[test]
fn losses_at_a_full_queue_are_not_the_paths() {
    let found = path(&seen(), bulk(100.0, &[], 1, true)).loss;
    assert!(found.value == 0.0 && found.high < 1e-4 && found.how.contains("of a full queue"), "{found:?}");
}

#[test]
fn a_full_queue_has_at_least_so_many_packets_where_the_rate_is_a_lower_bound() {
    let full =
        Causes { known: true, full: true, full_s: 0.04, full_low_s: 0.03, full_high_s: 0.05, ..Causes::default() };
    let limit = |rate: Estimated| quantities::queue_limit(&full, &rate, &Estimated::exact(0.04, ""), &seen());
    let known = limit(Estimated::exact(50e6, ""));
    assert_eq!(known.bound, Bound::None);
    let found = limit(Estimated::at_least(50e6, 50e6, 250e6, ""));
    assert_eq!((found.bound, found.low, found.high), (Bound::AtLeast, known.low, 5.0 * known.high));
}

#[test]
fn losses_that_do_not_care_for_the_queue_leave_it_open() {
    let found = path(&seen(), bulk(100.0, &at_random(0.001), 1, false));
    assert_eq!(found.queue.bound, Bound::AtLeast);
    near(found.queue.low, 60.0, 0.05);
    assert!(found.loss.low <= 0.001 && 0.001 <= found.loss.high);
}

#[test]
fn runs_of_losses_are_distinguished_from_single_ones() {
    assert!(path(&seen(), bulk(100.0, &at_random(0.002), 1, false)).burst.value == 1.0);
    near(path(&seen(), bulk(100.0, &at_random(0.002), 3, false)).burst.value, 3.0, 0.15);
}

#[test]
fn one_long_run_of_losses_is_a_burst_and_one_or_two_losses_are_none() {
    let found = path(&seen(), bulk(100.0, &[5000], 20, false)).burst;
    near(found.value, 20.0, 0.01);
    assert!(found.low < 5.0 && found.high > 50.0, "{found:?}");
    let of = |length: u64| path(&seen(), bulk(100.0, &[5000], length, false)).burst.value;
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
fn bursts_spread_by_a_window_show_the_bottleneck_in_short_trains() {
    // Ten packets back to back at 50 Mbit/s, then a pause: 2.9 Mbit/s on average.
    let slow = Seen { goodput_bps: Some(2.9e6), ..seen() };
    let bursts: Vec<f64> = (0..2000).map(|at| f64::from(at / 10) * 0.04 + f64::from(at % 10) * FRAME_S).collect();
    let found = path(&slow, at(&bursts)).rate;
    assert!(found.low <= 50e6 && 50e6 <= found.high, "{found:?}");
    let mut spread: Vec<f64> =
        (0..2000).map(|at| (f64::from(at) * 0.618_033_988_7 + f64::from(at * at) * 0.317_3).fract() * 8.0).collect();
    spread.sort_by(f64::total_cmp);
    assert_eq!(path(&slow, at(&spread)).rate.bound, Bound::AtLeast);
}

#[test]
fn the_pace_that_a_window_allows_is_no_bottlenecks() {
    let even: Vec<f64> = (0..20_000).map(|at| f64::from(at) * FRAME_S * 3.0).collect();
    let got = Seen { goodput_bps: Some(13e6 * PAYLOAD / FRAME), ..seen() };
    assert_eq!(path(&got, at(&even)).rate.bound, Bound::None);
    let windowed = path(&Seen { receive_window: 0.8, ..got }, at(&even)).rate;
    assert_eq!(windowed.bound, Bound::AtLeast);
    assert!(windowed.low <= 50e6 && 50e6 <= windowed.high);
}

#[test]
fn a_pace_at_which_nothing_waited_is_the_senders() {
    let even: Vec<f64> = (0..20_000).map(|at| f64::from(at) * FRAME_S * 3.0).collect();
    let got = Seen { goodput_bps: Some(13e6 * PAYLOAD / FRAME), ..seen() };
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
        let (round, place) = (number / flight, number % flight);
        let sent_s = f64::from(round) * 0.4;
        Delivery { t_s: sent_s + 0.05 + f64::from(place / 15) * 0.06, bytes: PAYLOAD, sent_s }
    };
    trace.delivered = (0..flight * 100).map(delivery).collect();
    trace.delay_t_s = trace.delivered.iter().map(|one| one.sent_s).collect();
    trace.delay_s = trace.delivered.iter().map(|one| one.t_s - one.sent_s).collect();
    trace
}

#[test]
fn groups_show_the_rate_only_where_they_waited_for_each_other() {
    let link_bps = 15.0 * FRAME * 8.0 / 0.06;
    let busy = Seen { goodput_bps: Some(45.0 * PAYLOAD * 8.0 / 0.4), ..seen() };
    let found = path(&busy, grouped(45)).rate;
    assert!(found.bound == Bound::None && found.low <= link_bps && link_bps <= found.high, "{found:?}");
    let idle = Seen { goodput_bps: Some(15.0 * PAYLOAD * 8.0 / 0.4), ..seen() };
    let found = path(&idle, grouped(15)).rate;
    assert!(found.bound == Bound::AtLeast && found.low <= link_bps, "{found:?}");
}

#[test]
fn deliveries_while_packets_wait_outweigh_bunched_acknowledgements() {
    // There is a standing queue at 50 Mbit/s, but deliveries are reported in groups of 16 at ten times that rate.
    let mut trace = bulk(100.0, &[], 1, true);
    for (at, one) in trace.delivered.iter_mut().enumerate() {
        one.t_s = ((at / 16 * 16) as f64 + (at % 16) as f64 / 10.0) * FRAME_S;
    }
    trace.delay_s = vec![0.05; FRAMES];
    trace.delay_s[0] = 0.02;
    let rates = super::numbers::sorted(busy_rates(&trace, 0.04, 0.0));
    // Packets waited for eight groups, plus or minus part of one.
    near(rates[rates.len() / 2], 50e6 * PAYLOAD / FRAME, 0.05);
}

#[test]
fn a_bottleneck_is_not_slower_than_what_got_through() {
    let faster = Seen { goodput_bps: Some(60e6 * PAYLOAD / FRAME), rtt_max_s: Some(0.4), ..seen() };
    let found = path(&faster, bulk(100.0, &[], 1, true)).rate;
    // The last acknowledgement may have come 0.4 s after the 20 s in which data was sent.
    near(found.low, 60e6 / 1.02, 1e-9);
    near(found.value, 60e6 / 1.02, 1e-9);
}

/// A link with 100 slots of 50 ms, each of which carries five packets at once; they were sent one by one.
fn slotted(apart_s: f64) -> (Seen, Trace) {
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
    (Seen { goodput_bps: Some(5.0 * PAYLOAD * 8.0 / 0.05), duration_s: 5.0, ..seen() }, trace)
}

#[test]
fn what_leaves_the_bottleneck_together_is_as_fast_as_its_groups_are_apart() {
    let (seen, trace) = slotted(0.01);
    near(path(&seen, trace).rate.value, 5.0 * FRAME * 8.0 / 0.05, 0.02);
    // If they were also sent together, they may have arrived back to back: the pace within the group is the
    // bottleneck's.
    assert!(path(&seen, slotted(1e-5).1).rate.value > 100e6);
}

#[test]
fn losses_where_more_is_sent_than_the_link_takes_are_congestions() {
    let (seen, mut trace) = slotted(0.01);
    trace.sent_segments = vec![3; 500];
    trace.lost = Lost { t_s: (0..20).map(|at| f64::from(at) / 5.0).collect(), segments: vec![10; 20] };
    let found = path(&seen, trace).loss;
    assert!(found.value < 0.01 && found.how.contains("of a full queue"), "{found:?}");
}

#[test]
fn losses_near_each_other_are_a_burst_that_lets_packets_through() {
    // Five bursts of twelve losses, every third packet in each.
    let lost: Vec<usize> = (1..6).flat_map(|burst| (0..12).map(move |at| at * 3 + 10_000 * burst)).collect();
    let found = path(&seen(), bulk(100.0, &lost, 1, false));
    near(found.burst.value, 34.0, 0.05);
    near(found.burst_loss, 12.0 / 34.0, 0.05);
    // Five events, not sixty: their frequency is uncertain.
    assert!(found.loss.high > 1.5 * found.loss.value);
}

#[test]
fn trains_are_never_taken_across_a_break() {
    let mut trace = bulk(100.0, &[], 1, true);
    trace.delivered.iter_mut().step_by(4).for_each(|one| one.bytes = f64::NAN);
    assert!(train_rates(&trace, 4).is_empty());
    train_rates(&trace, 2).iter().for_each(|&one| near(one, 50e6 * PAYLOAD / FRAME, 1e-6));
}

#[test]
fn a_queue_shorter_than_the_clocks_grain_leaves_the_losses_cause_open_only_on_a_busy_path() {
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
    trace.lost = Lost { segments: vec![1; ends.len()], t_s: ends };
    trace
}

#[test]
fn a_loss_at_a_bursts_end_is_a_drop_of_the_queue_that_the_burst_filled() {
    // The next burst, which finds the queue empty, is nearer in time than the one that filled it.
    let causes = Causes::of(&bursts_that_overflow(), FRAME_S, 0.05, 0.9);
    assert_eq!((causes.full, causes.random, causes.congestive), (true, 0, 100));
}

#[test]
fn losses_while_no_wait_is_known_count_for_no_cause() {
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
fn without_delays_the_losses_cause_stays_open() {
    let mut trace = bulk(100.0, &at_random(0.001), 1, true);
    (trace.delay_t_s, trace.delay_s) = (Vec::new(), Vec::new());
    let causes = Causes::of(&trace, FRAME_S, 0.05, 1.0);
    assert!(!causes.known);
    assert_eq!(quantities::random_loss(&causes).bound, Bound::AtMost);
    let found = path(&seen(), trace);
    assert!(found.open_loss && found.cannot_tell.iter().any(|said| said.contains("losses are random")));
}

#[test]
fn a_window_that_was_the_limit_goes_over_to_none_bit_by_bit() {
    let limit = |share: f64| quantities::host_limit(1e5, share, "it");
    assert!(limit(0.1).is_none());
    let [few, some, most] = [0.11, 0.2, 0.5].map(|share| limit(share).expect("a limit"));
    near(few.high, 5e5, 0.1);
    assert!(some.low == 1e5 && 1e5 < some.value && some.value < some.high && some.high < few.high);
    assert_eq!((most.low, most.high), (1e5, 1e5));
}

#[test]
fn short_idle_and_contradicting_transfers_are_refused() {
    let code = |duration, segments, trips: (f64, f64), idle| {
        refused(Some(duration), Some(segments), Some(trips.0), Some(trips.1), idle).err().map(|one| one.code)
    };
    assert_eq!(code(1.0, 1000, (0.02, 0.03), 0.0), Some("too-short"));
    assert_eq!(code(9.0, 50, (0.02, 0.03), 0.0), Some("too-short"));
    assert_eq!(code(9.0, 1000, (0.03, 0.02), 0.0), Some("not-a-measurement"));
    assert_eq!(code(9.0, 1000, (0.02, 0.03), 0.3), Some("application-limited"));
    assert_eq!(code(9.0, 1000, (0.02, 0.03), 0.2), None);
}
