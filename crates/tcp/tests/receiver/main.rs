//! The receiver by its clauses: when it acknowledges, what its acknowledgements say, which window it offers.

mod sack;

use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::packet::{Ack, Block, CWR, Ecn, PUSH};
use sawtooth_tcp::receiver::{Data, Echo, Receiver};
use sawtooth_units::{Span, Time};

const MSS: u64 = 1448;
const RTT_MS: u32 = 20;
/// Segments that the receiver acknowledges one by one at first (`TCP_MAX_QUICKACKS`).
const QUICK: u64 = 16;

/// Drives a [`Receiver`] by hand, from 1 s on.
struct Driver {
    receiver: Receiver,
    now: Time,
    options: HostOptions,
}

impl Driver {
    fn new(options: HostOptions) -> Self {
        Driver::echoing(options, Echo::Nothing)
    }
    fn echoing(options: HostOptions, echo: Echo) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let clock = Clock::new(now, options.hz);
        let mut receiver = Receiver::new(options, options.sack, echo, clock);
        receiver.note_handshake(u64::from(RTT_MS) * 1_000, clock);
        Driver { receiver, now, options }
    }
    /// As [`Self::new`], past the quick acknowledgements of the start and with nothing left to acknowledge.
    fn warm(options: HostOptions) -> Self {
        Driver::new(options).warmed()
    }
    fn warmed(mut self) -> Self {
        for seq in 0..39 {
            self.later(Span::from_millis(10)).data(seq);
        }
        self.later(Span::from_millis(10)).pushed(39);
        assert_eq!(self.receiver.timer(), Time::NEVER);
        self
    }
    /// A segment with this ECN field; the numbers acknowledged, and whether with ECE.
    fn marked(&mut self, seq: u64, ecn: Ecn, cwr: bool) -> Vec<(u64, bool)> {
        let data = Data { flags: ecn as u8 | if cwr { CWR } else { 0 }, ..self.segment(seq, false) };
        self.later(Span::from_millis(10)).take(data).iter().map(|ack| (ack.next, ack.ece)).collect()
    }

    fn clock(&self) -> Clock {
        Clock::new(self.now, self.options.hz)
    }
    fn later(&mut self, span: Span) -> &mut Self {
        self.now += span;
        self
    }
    fn take(&mut self, data: Data) -> Vec<Ack> {
        let mut acks = Vec::new();
        let clock = self.clock();
        self.receiver.on_data(data, clock, &mut |ack| acks.push(in_segments(ack)));
        acks
    }
    /// A segment of a sender that echoes what this end said a round trip ago.
    fn segment(&self, seq: u64, push: bool) -> Data {
        let timestamp = self.clock().timestamp();
        let (tsval, tsecr) = if self.options.timestamps { (timestamp, timestamp - RTT_MS) } else { (0, 0) };
        full(seq, push, tsval, tsecr)
    }
    fn data(&mut self, seq: u64) -> Vec<Ack> {
        self.take(self.segment(seq, false))
    }
    fn pushed(&mut self, seq: u64) -> Vec<Ack> {
        self.take(self.segment(seq, true))
    }
    /// Goes to the receiver's timer and lets it act until it acknowledges.
    fn fire(&mut self) -> Vec<Ack> {
        for _ in 0..10 {
            let due = self.receiver.timer();
            assert_ne!(due, Time::NEVER, "no timer is set");
            assert!(due >= self.now, "a timer is never in the past");
            self.now = due;
            let mut acks = Vec::new();
            let clock = self.clock();
            self.receiver.on_timer(clock, &mut |ack| acks.push(in_segments(ack)));
            if !acks.is_empty() {
                return acks;
            }
        }
        panic!("the timer came up ten times and nothing was acknowledged");
    }
    /// Takes a segment and returns the acknowledgement that covers it, at once or later.
    fn ack_of(&mut self, seq: u64) -> Ack {
        let acks = self.data(seq);
        if acks.is_empty() { self.fire()[0] } else { acks[0] }
    }
}

/// The full segment with this number.
fn full(segment: u64, push: bool, tsval: u32, tsecr: u32) -> Data {
    Data { seq: segment * MSS, length: MSS as u32, flags: if push { PUSH } else { 0 }, tsval, tsecr }
}

/// An acknowledgement with numbers of full segments instead of bytes, as all below have.
fn in_segments(ack: &Ack) -> Ack {
    let mut sack = ack.sack;
    for Block { start, end } in &mut sack.blocks {
        (*start, *end) = (*start / MSS, *end / MSS);
    }
    Ack { next: ack.next / MSS, sack, ..*ack }
}

fn options() -> HostOptions {
    HostOptions { hz: 1000, ..HostOptions::default() }
}

fn blocks(ack: &Ack) -> Vec<(u64, u64)> {
    ack.sack.blocks().iter().map(|&Block { start, end }| (start, end)).collect()
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one() {
    let mut driver = Driver::new(options());
    for seq in 0..QUICK {
        let acks = driver.data(seq);
        assert_eq!(acks.iter().map(|ack| ack.next).collect::<Vec<_>>(), [seq + 1]);
    }
}

#[test]
fn then_every_second_segment_is_acknowledged() {
    let mut driver = Driver::warm(options());
    let acks: Vec<u64> = (40..60).flat_map(|seq| driver.data(seq)).map(|ack| ack.next).collect();
    assert_eq!(acks, (42..=60).step_by(2).collect::<Vec<_>>());
}

#[test]
fn without_delayed_acknowledgements_every_segment_is_acknowledged() {
    let mut driver = Driver::warm(HostOptions { delayed_ack: false, ..options() });
    let acks: Vec<u64> = (40..60).flat_map(|seq| driver.data(seq)).map(|ack| ack.next).collect();
    assert_eq!(acks, (41..=60).collect::<Vec<_>>());
}

#[test]
fn a_single_segment_is_acknowledged_after_40_ms_rounded_to_ticks() {
    // 40 ms are hz/25 ticks, and the timer wheel fires on the tick after.
    for (hz, expected_ms) in [(100, 40 + 10), (250, 40 + 4), (1000, 40 + 1)] {
        let mut driver = Driver::warm(HostOptions { hz, ..options() });
        let arrived = driver.now;
        assert!(driver.data(40).is_empty());
        let acks = driver.fire();
        assert_eq!(acks[0].next, 41);
        assert_eq!(driver.now.since(arrived).micros(), expected_ms * 1_000, "HZ {hz}");
        assert_eq!(driver.receiver.timer(), Time::NEVER);
    }
}

#[test]
fn a_delayed_acknowledgement_is_cancelled_by_the_next_segment() {
    let mut driver = Driver::warm(options());
    assert!(driver.data(40).is_empty());
    driver.later(Span::from_millis(5));
    assert_eq!(driver.data(41).len(), 1);
    assert_eq!(driver.receiver.timer(), Time::NEVER);
}

#[test]
fn pushed_data_is_acknowledged_at_once() {
    let mut driver = Driver::warm(options());
    assert_eq!(driver.pushed(40).iter().map(|ack| ack.next).collect::<Vec<_>>(), [41]);
}

#[test]
fn a_push_is_remembered_until_the_next_acknowledgement_only() {
    let mut driver = Driver::warm(options());
    driver.pushed(40);
    assert!(driver.data(41).is_empty());
}

#[test]
fn out_of_order_data_is_acknowledged_at_once_with_a_sack_block() {
    let mut driver = Driver::warm(options());
    let acks = driver.data(41);
    assert_eq!(acks.len(), 1);
    assert_eq!((acks[0].next, blocks(&acks[0])), (40, vec![(41, 42)]));
}

#[test]
fn a_filled_gap_is_acknowledged_at_once() {
    let mut driver = Driver::warm(options());
    driver.data(41);
    let acks = driver.data(40);
    assert_eq!(acks.len(), 1);
    assert_eq!((acks[0].next, acks[0].sack.count), (42, 0));
    assert_eq!((driver.receiver.delivered(), driver.receiver.delivered_segments()), (42 * MSS, 42));
}

#[test]
fn an_original_that_arrives_after_a_later_retransmission_is_discarded_and_answered() {
    for (age_ms, is_taken) in [(1, true), (2, false)] {
        let mut driver = Driver::warm(options());
        let original = driver.segment(42, false);
        driver.data(41);
        // The retransmission fills the gap, and its timestamp counts from now on (RFC 7323 section 5).
        driver.later(Span::from_millis(age_ms)).data(40);
        let answers: Vec<u64> = driver.take(original).iter().map(|ack| ack.next).collect();
        assert_eq!(answers, if is_taken { vec![] } else { vec![42] });
        assert_eq!(driver.data(43)[0].next, if is_taken { 44 } else { 42 });
    }
}

/// Such data is not taken at all (`tcp_sequence`): what was sent before it is not older than what was taken (PAWS).
#[test]
fn the_timestamp_of_data_below_the_edge_is_not_taken() {
    let mut driver = Driver::warm(options());
    let late = driver.later(Span::from_millis(10)).segment(40, false);
    let echo = driver.later(Span::from_millis(20)).data(7)[0].tsecr;
    assert!(echo < late.tsval);
    let acks = driver.take(late);
    assert_eq!((acks[0].next, acks[0].tsecr), (41, late.tsval));
}

#[test]
fn duplicate_data_brings_quick_acknowledgements_back() {
    let mut driver = Driver::warm(options());
    driver.data(7);
    let acks: Vec<u64> = (40..50).flat_map(|seq| driver.data(seq)).map(|ack| ack.next).collect();
    assert_eq!(acks, (41..=50).collect::<Vec<_>>());
}

#[test]
fn a_timestamp_echo_is_the_oldest_unacknowledged_segment_s() {
    let mut driver = Driver::warm(options());
    let first = driver.clock().timestamp();
    let second = first + 1;
    assert!(driver.take(full(40, false, first, 0)).is_empty());
    let acks = driver.take(full(41, false, second, 0));
    assert_eq!(acks[0].tsecr, first);
}

#[test]
fn out_of_order_data_does_not_change_the_timestamp_echo() {
    let mut driver = Driver::warm(options());
    let first = driver.clock().timestamp();
    driver.take(full(40, true, first, 0));
    let acks = driver.take(full(42, false, first + 1, 0));
    assert_eq!(acks[0].tsecr, first);
    // What fills the gap is the oldest that is not acknowledged (RFC 7323 section 4.3).
    let acks = driver.take(full(41, false, first + 2, 0));
    assert_eq!((acks[0].next, acks[0].tsecr), (43, first + 2));
}

#[test]
fn the_first_window_is_whole_segments_below_64_kib() {
    let driver = Driver::new(options());
    assert_eq!(driver.receiver.initial_window(), 65_535 / MSS * MSS);
}

#[test]
fn a_small_receive_buffer_bounds_the_first_window() {
    let driver = Driver::new(HostOptions { receive_buffer: 16_384, ..options() });
    assert_eq!(driver.receiver.initial_window(), 8_192 / MSS * MSS);
}

/// Lets `rounds` round trips of 20 ms pass, in each of which a whole offered window arrives; all acknowledgements.
fn fill_windows(driver: &mut Driver, rounds: usize) -> Vec<Ack> {
    let mut acks = Vec::new();
    let mut edge = driver.receiver.initial_window() / MSS;
    let mut next = 0;
    for _ in 0..rounds {
        let count = edge - next;
        for _ in 0..count {
            driver.later(Span::from_nanos(20_000_000 / count));
            acks.extend(driver.data(next));
            next += 1;
        }
        if let Some(ack) = acks.last() {
            edge = edge.max(ack.next + ack.window / MSS);
        }
    }
    acks
}

#[test]
fn the_window_grows_with_what_is_read_up_to_the_buffer() {
    let options = options();
    let mut driver = Driver::new(options);
    let acks = fill_windows(&mut driver, 12);
    let (first, last) = (acks[0].window, acks[acks.len() - 1].window);
    assert!(first < 100_000, "{first} bytes");
    assert!(last > 3_000_000, "{last} bytes");
    assert!(last < options.receive_buffer, "a part of the buffer is overhead: {last} bytes");
}

#[test]
fn the_first_windows_hold_a_segment_back_and_leave_room_for_the_one_that_is_not_yet_read() {
    let mut driver = Driver::new(HostOptions { receive_buffer: 64 << 20, ..options() });
    let windows: Vec<u64> = (0..8).map(|seq| driver.data(seq)[0].window / 2_048).collect();
    // As Linux 6.12 offers them behind a veth pair, in the window field's unit of 2 KiB.
    assert_eq!(windows, [33, 35, 36, 37, 39, 40, 40, 40]);
}

#[test]
fn the_window_stays_where_little_is_read() {
    let mut driver = Driver::new(options());
    let mut last = 0;
    for seq in 0..400 {
        driver.later(Span::from_millis(10));
        last = driver.data(seq).last().map_or(last, |ack| ack.window);
    }
    assert!(last < 100_000, "{last} bytes");
}

#[test]
fn the_right_edge_never_moves_back() {
    for lost in [None, Some(30), Some(500)] {
        let mut driver = Driver::new(options());
        let mut edge = driver.receiver.initial_window();
        for seq in (0..3_000).filter(|&seq| Some(seq) != lost) {
            // Never beyond what was offered.
            if (seq + 1) * MSS > edge {
                break;
            }
            driver.later(Span::from_nanos(20_000));
            for ack in driver.data(seq) {
                assert!(ack.next * MSS + ack.window >= edge, "segment {seq}: {ack:?} takes back what was offered");
                edge = ack.next * MSS + ack.window;
            }
        }
    }
}

#[test]
fn held_data_takes_room_from_the_window() {
    let mut driver = Driver::warm(HostOptions { receive_buffer: 131_072, ..options() });
    let windows: Vec<u64> = (41..70).map(|seq| driver.ack_of(seq)).map(|ack| ack.next * MSS + ack.window).collect();
    assert!(windows.windows(2).all(|pair| pair[1] == pair[0]), "no more is offered while it is held: {windows:?}");
    let ack = driver.data(40)[0];
    assert!(ack.next * MSS + ack.window > windows[0]);
}

/// The widest window offered within the round trip in which a gap before `held` segments is filled, and in the next
/// one.
fn windows_after_a_filled_gap(held: u64) -> (u64, u64) {
    let mut driver = Driver::new(HostOptions { receive_buffer: 64 << 20, ..options() });
    let widest = |driver: &mut Driver, from: u64| {
        (from..from + 40).flat_map(|seq| driver.data(seq)).map(|ack| ack.window).max().unwrap_or(0)
    };
    driver.later(Span::from_millis(1));
    (0..10).for_each(|seq| drop(driver.data(seq)));
    driver.later(Span::from_millis(25)).data(10);
    (12..12 + held).for_each(|seq| drop(driver.data(seq)));
    driver.later(Span::from_millis(25)).data(11);
    let soon = widest(&mut driver, 12 + held);
    driver.later(Span::from_millis(25));
    (soon, widest(&mut driver, 52 + held))
}

#[test]
fn the_buffer_grows_with_a_filled_gap_at_once_where_one_buffer_holds_it_and_else_a_round_trip_later() {
    // 162/256 of the first buffer of 128 KiB.
    let first = 84_000;
    let (soon, later) = windows_after_a_filled_gap(16);
    assert!(soon > first && later > first, "{soon} {later}");
    let (soon, later) = windows_after_a_filled_gap(17);
    assert!(soon < first && later > first, "{soon} {later}");
}

#[test]
fn what_is_read_in_the_first_round_trip_counts_from_the_end_of_the_handshake() {
    let mut driver = Driver::new(HostOptions { receive_buffer: 64 << 20, ..options() });
    // Eleven segments in the first round trip are one more than the window that all begin with.
    (0..11).for_each(|seq| drop(driver.later(Span::from_millis(1)).data(seq)));
    driver.later(Span::from_millis(10));
    (11..51).for_each(|seq| drop(driver.data(seq)));
    driver.later(Span::from_millis(25)).data(51);
    // 40 after 12 and not after 10: twice that, 16 more, and twice as much as it grew.
    let widest = (52..352).flat_map(|seq| driver.data(seq)).map(|ack| ack.window).max();
    let (copied, before) = (40.0, 12.0);
    let window = (2.0 * copied + 16.0) * (1.0 + 2.0 * (copied - before) / before) * MSS as f64;
    assert!((widest.unwrap_or(0) as f64 / window - 1.0).abs() < 0.02, "{widest:?} of {window}");
}

/// So many bytes from byte `seq` on.
fn short(driver: &mut Driver, seq: u64, length: u32) -> Vec<Ack> {
    let data = Data { seq, length, ..driver.segment(0, false) };
    driver.later(Span::from_millis(10)).take(data)
}

#[test]
fn a_short_segment_is_acknowledged_at_once() {
    let mut driver = Driver::warm(options());
    assert_eq!(short(&mut driver, 40 * MSS, 300).len(), 1);
    assert_eq!(driver.receiver.delivered(), 40 * MSS + 300);
    assert_eq!(driver.receiver.delivered_segments(), 41);
}

#[test]
fn where_short_segments_are_alike_every_second_is_acknowledged() {
    let mut driver = Driver::warm(options());
    let mut next = 40 * MSS;
    let acks: Vec<usize> = (0..8)
        .map(|_| {
            next += 600;
            short(&mut driver, next - 600, 600).len()
        })
        .collect();
    assert_eq!(acks, [1, 0, 1, 0, 1, 0, 1, 0]);
    // A full one is full again.
    assert_eq!(short(&mut driver, next, MSS as u32).len(), 1);
    assert_eq!(short(&mut driver, next + MSS, MSS as u32).len(), 0);
}

#[test]
fn a_mark_is_echoed_until_the_sender_has_answered() {
    let mut driver = Driver::echoing(HostOptions::default(), Echo::Classic).warmed();
    assert_eq!(driver.marked(40, Ecn::Ect0, false), []);
    assert_eq!(driver.marked(41, Ecn::Ect0, false), [(42, false)]);
    // The first mark is reported at once, and so is the segment after it.
    assert_eq!(driver.marked(42, Ecn::Ce, false), [(43, true)]);
    assert_eq!(driver.marked(43, Ecn::Ect0, false), [(44, true)]);
    assert_eq!(driver.marked(44, Ecn::Ce, false), []);
    assert_eq!(driver.marked(45, Ecn::Ect0, false), [(46, true)]);
    // CWR is acknowledged at once, for little may be in flight.
    assert_eq!(driver.marked(46, Ecn::Ect0, true), [(47, false)]);
    assert_eq!(driver.marked(47, Ecn::Ect0, false), []);
    assert_eq!(driver.marked(48, Ecn::Ce, true), [(49, true)], "a new mark, though the segment answers for another");
}

#[test]
fn what_cannot_be_marked_was_probably_sent_again_and_is_acknowledged_at_once() {
    let mut driver = Driver::echoing(HostOptions::default(), Echo::Classic).warmed();
    assert_eq!(driver.marked(40, Ecn::Ect0, false), []);
    assert_eq!(driver.marked(41, Ecn::Ect0, false), [(42, false)]);
    assert_eq!(driver.marked(42, Ecn::NotEct, false), [(43, false)]);
    assert_eq!(driver.marked(43, Ecn::Ect0, false), [(44, false)]);
    assert_eq!(driver.marked(44, Ecn::Ect0, false), []);
}

#[test]
fn the_receiving_end_of_dctcp_reports_each_change_at_once() {
    let mut driver = Driver::echoing(HostOptions::default(), Echo::Exact).warmed();
    assert_eq!(driver.marked(40, Ecn::Ect0, false), []);
    // The delayed acknowledgement reports the previous state (RFC 8257 section 3.2).
    assert_eq!(driver.marked(41, Ecn::Ce, false), [(41, false), (42, true)]);
    assert_eq!(driver.marked(42, Ecn::Ce, false), []);
    assert_eq!(driver.marked(43, Ecn::Ce, false), [(44, true)]);
    assert_eq!(driver.marked(44, Ecn::Ect0, false), [(45, false)]);
    let ack = driver.ack_of(45);
    assert_eq!((ack.ece, ack.ecn), (false, Ecn::Ect0), "its own packets may be marked as well");
}

#[test]
fn without_agreement_marks_are_not_seen() {
    let mut driver = Driver::warm(HostOptions::default());
    assert_eq!(driver.marked(40, Ecn::Ce, false), []);
    assert_eq!(driver.marked(41, Ecn::Ce, false), [(42, false)]);
}

/// As [`Driver::warm`]; its application has answered at once what came last, so that it is taken to answer again.
fn answering() -> Driver {
    let mut driver = Driver::warm(options());
    assert_eq!(driver.answer().next, 40);
    driver
}

impl Driver {
    fn answer(&mut self) -> Ack {
        let mut acks = Vec::new();
        let clock = self.clock();
        self.receiver.answer(clock, &mut |ack| acks.push(in_segments(ack)));
        acks[0]
    }
}

#[test]
fn what_is_pushed_to_an_application_that_answers_waits_for_the_answer() {
    let mut driver = answering();
    assert!(driver.later(Span::from_millis(50)).pushed(40).is_empty());
    driver.later(Span::from_millis(5));
    assert_eq!(driver.answer().next, 41);
    assert_eq!(driver.receiver.timer(), Time::NEVER);
}

#[test]
fn an_answer_that_does_not_come_in_time_is_no_longer_waited_for() {
    let mut driver = answering();
    assert!(driver.later(Span::from_millis(50)).pushed(40).is_empty());
    assert_eq!(driver.fire()[0].next, 41);
    assert_eq!(driver.later(Span::from_millis(50)).pushed(41).len(), 1, "pushed data is acknowledged at once again");
}

#[test]
fn data_sent_long_after_receiving_is_not_an_answer() {
    let mut driver = Driver::warm(options());
    driver.later(Span::from_millis(500)).answer();
    assert_eq!(driver.later(Span::from_millis(50)).pushed(40).len(), 1);
}

#[test]
fn two_segments_are_acknowledged_whether_an_answer_follows_or_not() {
    let mut driver = answering();
    assert!(driver.later(Span::from_millis(50)).data(40).is_empty());
    assert_eq!(driver.data(41).len(), 1);
}

#[test]
fn an_application_that_has_read_all_closes_and_its_fin_comes_again_until_it_is_heard() {
    let mut driver = Driver::warm(HostOptions::default());
    driver.later(Span::from_millis(10)).data(40);
    let clock = driver.clock();
    let mut said = 0;
    driver.receiver.close(clock, &mut |_| said += 1);
    assert_eq!(said, 1, "what was not acknowledged is");
    // A probe after the round trip and 200 ms, as the timeout after it; then that doubles.
    let mut last = driver.now;
    let mut gaps = Vec::new();
    for _ in 0..4 {
        driver.now = driver.receiver.timer();
        let clock = driver.clock();
        driver.receiver.on_timer(clock, &mut |ack| assert_eq!(ack.next, 41 * MSS));
        gaps.push(driver.now.since(last).micros() / 1_000);
        last = driver.now;
    }
    let about = |ms: u64| ms..ms + ms / 4;
    assert!(gaps.iter().zip([220, 220, 440, 880]).all(|(gap, ms)| about(ms).contains(gap)), "{gaps:?}");
    driver.receiver.heard();
    assert_eq!(driver.receiver.timer(), Time::NEVER);
}
