//! HyStart (Ha and Rhee, 2008), as in Linux 6.12: ends slow start before the queue overflows.
//!
//! Two signs end slow start: a train of closely spaced ACKs as long as the path's delay, or a round-trip time that grew
//! by an eighth (4 to 16 ms).
//!
//! # Where Linux differs
//!
//! From RFC 9406 (HyStart++); this file follows Linux.
//!
//! - It uses the ACK train of Ha and Rhee's "Taming the Elephants" (2008), which RFC 9406 leaves out.
//! - A rise of the delay ends slow start at once; there is no conservative phase from which to return.
//! - The round's delay is compared with the smallest delay since the last timeout, not with the previous round's.

use crate::cc::gso::MAX_PAYLOAD;
use crate::flight::Flight;
use crate::window::Window;

/// Below this window, in segments, slow start continues (`hystart_low_window`).
const LOW_WINDOW: u32 = 16;
/// ACKs up to this many microseconds apart belong to one train (`hystart_ack_delta_us`).
const ACK_DELTA_US: i32 = 2_000;
/// Samples in a round before its minimum counts (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;
/// Least and largest rise of the delay that ends slow start, in microseconds (`HYSTART_DELAY_MIN`,
/// `HYSTART_DELAY_MAX`).
const DELAY_RISE_US: (u32, u32) = (4_000, 16_000);
/// Largest allowance for aggregation, in microseconds (`hystart_ack_delay`).
const MAX_ACK_DELAY_US: u64 = 1_000;

#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// Whether the exit was found.
    pub(super) found: bool,
    round: Round,
}

/// Observations from a window's first acknowledgement to its last. Times are in microseconds, 32 bits, wrapping.
#[derive(Clone, Debug)]
struct Round {
    start_us: u32,
    /// The last ACK of the train that began the round.
    train_us: u32,
    /// The round ends when this segment is acknowledged.
    end: u64,
    /// The smallest delay, and its number of samples up to [`MIN_SAMPLES`].
    delay_us: u32,
    samples: u8,
}

impl Round {
    fn starting(flight: &Flight, now_us: u32) -> Self {
        Round { start_us: now_us, train_us: now_us, end: flight.snd_nxt, delay_us: u32::MAX, samples: 0 }
    }

    /// The length of the ACK train, if an ACK that arrives now still belongs to it.
    fn train(&mut self, now_us: u32) -> Option<u32> {
        let gap_us = now_us.wrapping_sub(self.train_us).cast_signed();
        (gap_us <= ACK_DELTA_US).then(|| {
            self.train_us = now_us;
            now_us.wrapping_sub(self.start_us)
        })
    }

    /// The smallest delay including this one, if there are enough samples.
    fn delay(&mut self, delay_us: u32) -> Option<u32> {
        let is_enough = self.samples == MIN_SAMPLES;
        self.samples += u8::from(!is_enough);
        self.delay_us = self.delay_us.min(delay_us);
        is_enough.then_some(self.delay_us)
    }
}

impl HyStart {
    pub(super) fn new(flight: &Flight, now_us: u32) -> Self {
        HyStart { found: false, round: Round::starting(flight, now_us) }
    }

    /// Takes a round-trip sample. `delay_min_us` is the path's smallest delay, this sample included. Sets `ssthresh` to
    /// the window if slow start should end.
    pub(super) fn on_sample(
        &mut self,
        flight: &Flight,
        window: &mut Window,
        delay_us: u32,
        delay_min_us: u32,
        now_us: u32,
    ) {
        if self.found || !window.in_slow_start() {
            return;
        }
        if flight.snd_una > self.round.end {
            *self = HyStart::new(flight, now_us);
        }
        if window.cwnd < LOW_WINDOW {
            return;
        }
        let train = self.round.train(now_us).is_some_and(|us| us > longest_train_us(window, delay_min_us));
        let delay = self.round.delay(delay_us).is_some_and(|us| us > longest_delay_us(delay_min_us));
        if train || delay {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
    }
}

/// A train may last half of the round trip, or all of it where pacing spreads the segments.
fn longest_train_us(window: &Window, delay_min_us: u32) -> u32 {
    let whole = delay_min_us.wrapping_add(ack_delay_us(window.pacing_rate));
    if window.pacing { whole } else { whole / 2 }
}

/// The delay may rise by an eighth, within bounds.
fn longest_delay_us(delay_min_us: u32) -> u32 {
    delay_min_us.wrapping_add((delay_min_us / 8).clamp(DELAY_RISE_US.0, DELAY_RISE_US.1))
}

/// The delay that aggregation may add, in microseconds (`hystart_ack_delay`): four full super-packets at the pacing
/// rate (twice the window's rate in slow start), at most 1 ms.
fn ack_delay_us(pacing_rate: u64) -> u32 {
    if pacing_rate == 0 {
        return 0;
    }
    (u64::from(MAX_PAYLOAD) * 4 * 1_000_000 / pacing_rate).min(MAX_ACK_DELAY_US) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{flight, window};
    use crate::window::{INFINITE_SSTHRESH, UNPACED};

    const DELAY_US: u32 = 20_000;

    fn wide() -> (Flight, Window) {
        let (f, mut w) = (flight(), window());
        w.cwnd = 32;
        (f, w)
    }

    /// Feeds one sample each `gap_us` until slow start ends; the time at which it did, if within 100 ms.
    fn exit_at_us(f: &Flight, w: &mut Window, gap_us: usize) -> Option<u32> {
        let mut h = HyStart::new(f, 0);
        (0..100_000).step_by(gap_us).find(|&now| {
            h.on_sample(f, w, DELAY_US, DELAY_US, now);
            h.found
        })
    }

    #[test]
    fn the_allowance_for_aggregation_is_four_super_packets_capped_at_a_millisecond() {
        assert_eq!([0, 1, 125_000_000].map(ack_delay_us), [0, 1_000, 1_000]);
        assert_eq!(ack_delay_us(1_250_000_000), 208, "65215 bytes * 4 at 10 Gbit/s");
        assert_eq!(ack_delay_us(UNPACED), 0);
    }

    #[test]
    fn a_train_of_half_the_delay_ends_slow_start() {
        let (f, mut w) = wide();
        assert_eq!(exit_at_us(&f, &mut w, 100), Some(10_100));
        assert_eq!(w.ssthresh, 32);
    }

    #[test]
    fn the_train_may_last_longer_by_the_allowance() {
        let (f, mut w) = wide();
        w.pacing_rate = 10_000_000;
        assert_eq!(exit_at_us(&f, &mut w, 100), Some(10_600), "half of 20 ms and 1 ms");
    }

    #[test]
    fn pacing_doubles_how_long_a_train_may_last() {
        let (f, mut w) = wide();
        w.pacing = true;
        assert_eq!(exit_at_us(&f, &mut w, 100), Some(20_100));
    }

    #[test]
    fn acks_more_than_two_milliseconds_apart_are_no_train() {
        let exit_at_us = |gap| exit_at_us(&wide().0, &mut wide().1, gap);
        assert_eq!([2_000, 2_001].map(exit_at_us), [Some(12_000), None]);
    }

    #[test]
    fn a_window_below_sixteen_segments_stays_in_slow_start() {
        let (f, mut w) = wide();
        w.cwnd = 15;
        assert_eq!(exit_at_us(&f, &mut w, 100), None);
        assert_eq!(w.ssthresh, INFINITE_SSTHRESH);
    }

    #[test]
    fn the_ninth_sample_of_a_slower_round_ends_slow_start() {
        for (min, last_allowed) in [(8_000, 12_000), (80_000, 90_000), (800_000, 816_000)] {
            for (delay, exits) in [(last_allowed, false), (last_allowed + 1, true)] {
                let (f, mut w) = wide();
                let mut h = HyStart::new(&f, 0);
                for _ in 0..8 {
                    h.on_sample(&f, &mut w, delay, min, 5_000);
                    assert!(!h.found);
                }
                h.on_sample(&f, &mut w, delay, min, 5_000);
                assert_eq!(h.found, exits, "{delay} us over {min} us");
            }
        }
    }

    #[test]
    fn one_quick_sample_keeps_the_round_quick() {
        let (f, mut w) = wide();
        let mut h = HyStart::new(&f, 0);
        h.on_sample(&f, &mut w, 20_000, 20_000, 5_000);
        for _ in 0..20 {
            h.on_sample(&f, &mut w, 60_000, 20_000, 5_000);
        }
        assert!(!h.found);
    }

    #[test]
    fn a_round_ends_when_its_last_segment_is_acknowledged() {
        let (mut f, mut w) = wide();
        f.snd_nxt = 40;
        let mut h = HyStart::new(&f, 0);
        f.snd_una = 40;
        h.on_sample(&f, &mut w, 20_000, 20_000, 9_000);
        assert_eq!((h.round.start_us, h.round.samples), (0, 1));
        f.snd_una = 41;
        f.snd_nxt = 90;
        h.on_sample(&f, &mut w, 20_000, 20_000, 9_500);
        assert_eq!((h.round.start_us, h.round.end, h.round.samples), (9_500, 90, 1));
    }

    #[test]
    fn nothing_happens_after_the_exit_or_outside_slow_start() {
        let (f, mut w) = wide();
        let mut h = HyStart::new(&f, 0);
        h.found = true;
        h.on_sample(&f, &mut w, 20_000, 20_000, 1_500);
        assert_eq!(h.round.train_us, 0);
        h.found = false;
        w.ssthresh = 32;
        h.on_sample(&f, &mut w, 20_000, 20_000, 1_500);
        assert_eq!(h.round.train_us, 0);
    }

    #[test]
    fn the_microsecond_clock_may_wrap() {
        let (f, mut w) = wide();
        let start = u32::MAX - 5_000;
        let mut h = HyStart::new(&f, start);
        let exit = (0..20_000).step_by(100).find(|&d| {
            h.on_sample(&f, &mut w, DELAY_US, DELAY_US, start.wrapping_add(d));
            h.found
        });
        assert_eq!(exit, Some(10_100));
    }
}
