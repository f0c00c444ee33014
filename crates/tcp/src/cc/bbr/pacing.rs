//! BBR's pacing rate and super-packet size (the draft's sections 4.2.1 and 4.2.2), as in Linux 6.12.

use super::Bbr;
use super::mode::{HIGH_GAIN, UNIT, UNIT_SHIFT};
use crate::cc::gso::{MAX_PAYLOAD, PACING_SHIFT};
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::{Fit, Low};

/// Bandwidths are in segments per microsecond, times 2^24 (`BW_SCALE`).
pub(in crate::cc) const BW_SHIFT: u32 = 24;
/// One segment per microsecond (`BW_UNIT`).
pub(in crate::cc) const BW_UNIT: u64 = 1 << BW_SHIFT;
/// Paces this much below the bandwidth, so that queues drain, in percent (`bbr_pacing_margin_percent`).
const MARGIN_PERCENT: u64 = 1;
/// Below this rate a super-packet is one segment, in bytes per second (`bbr_min_tso_rate`: 1.2 Mbit/s).
const MIN_TSO_RATE: u64 = 1_200_000 / 8;
/// Most segments of a super-packet (`bbr_tso_segs_goal`).
const MAX_TSO_SEGMENTS: u32 = 0x7f;
/// The round-trip time that is assumed before the first sample, in microseconds (`bbr_init_pacing_rate_from_rtt`).
pub(in crate::cc) const NOMINAL_RTT_US: u32 = 1_000;

/// `bandwidth` times `gain` in bytes per second, less the margin (`bbr_rate_bytes_per_sec`). The order of the
/// operations decides what is rounded and what overflows.
pub(in crate::cc) fn bytes_per_second(mss: u32, bandwidth: u32, gain: u32) -> u64 {
    let rate = u64::from(bandwidth).wrapping_mul(u64::from(mss)).wrapping_mul(u64::from(gain)) >> UNIT_SHIFT;
    rate.wrapping_mul(1_000_000 / 100 * (100 - MARGIN_PERCENT)) >> BW_SHIFT
}

/// The smallest super-packet in segments (`bbr_min_tso_segs`).
pub(super) fn min_tso_segs(pacing_rate: u64) -> u32 {
    if pacing_rate < MIN_TSO_RATE { 1 } else { 2 }
}

/// The likely size of a super-packet in segments (`bbr_tso_segs_goal`).
pub(super) fn tso_segs_goal(flight: &Flight, window: &Window) -> u32 {
    let bytes = (window.pacing_rate >> PACING_SHIFT).min(u64::from(MAX_PAYLOAD)).fit_u32();
    (bytes / flight.mss).max(min_tso_segs(window.pacing_rate)).min(MAX_TSO_SEGMENTS)
}

impl Bbr {
    /// BBRInitPacingRate: the window over the round-trip time, times the high gain.
    pub(super) fn init_pacing_rate(&mut self, flight: &Flight, window: &mut Window) {
        self.has_seen_rtt = flight.srtt_us > 0;
        let rtt_us = if self.has_seen_rtt { (flight.srtt_us >> 3).max(1) } else { NOMINAL_RTT_US };
        let bandwidth = (u64::from(window.cwnd) << BW_SHIFT) / u64::from(rtt_us);
        window.pacing_rate = bytes_per_second(flight.mss, bandwidth.low_u32(), HIGH_GAIN);
    }

    /// BBRSetPacingRateWithGain. Until the pipe is known to be full the rate only rises, except for the first
    /// round-trip sample, which corrects the assumed value.
    pub(super) fn set_pacing_rate(&mut self, flight: &Flight, window: &mut Window, bandwidth: u32, gain: u32) {
        if flight.srtt_us > 0 && !self.has_seen_rtt {
            self.init_pacing_rate(flight, window);
        }
        let least = if self.full_pipe.reached { 0 } else { window.pacing_rate };
        window.pacing_rate = bytes_per_second(flight.mss, bandwidth, gain).max(least);
    }

    /// Pace at the estimated bandwidth, neither probing nor draining.
    pub(super) fn pace_at_bandwidth(&mut self, flight: &Flight, window: &mut Window) {
        self.set_pacing_rate(flight, window, self.bandwidth(), UNIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::tests::startup;
    use crate::cc::testing::{flight, window};

    #[test]
    fn the_rate_is_one_percent_below_the_bandwidth() {
        // One segment of 1000 bytes in 100 us: 10 MB/s.
        assert_eq!(bytes_per_second(1_000, (BW_UNIT / 100) as u32, UNIT), 9_899_990);
        assert_eq!(bytes_per_second(1_000, (BW_UNIT / 100) as u32, UNIT * 5 / 4), 12_374_988);
    }

    #[test]
    fn three_terabits_do_not_overflow() {
        let full = bytes_per_second(1_448, u32::MAX, UNIT);
        assert_eq!(full / 1_000_000, 366_981, "MB/s");
        assert_eq!(bytes_per_second(1_448, u32::MAX, HIGH_GAIN) / 1_000_000, 1_059_371);
    }

    #[test]
    fn a_slow_rate_sends_single_segments() {
        assert_eq!([149_999, 150_000].map(min_tso_segs), [1, 2]);
    }

    #[test]
    fn a_super_packet_is_a_millisecond_long_up_to_64_kilobytes() {
        let (mut f, mut w) = (flight(), window());
        let goals = [100_000, 1_000_000, 12_500_000, 125_000_000].map(|rate| {
            w.pacing_rate = rate;
            tso_segs_goal(&f, &w)
        });
        assert_eq!(goals, [1, 2, 8, 45]);
        f.mss = 100;
        assert_eq!(tso_segs_goal(&f, &w), 127);
    }

    #[test]
    fn the_first_rate_assumes_a_millisecond() {
        let (_, _, w) = startup(flight(), window());
        // 10 segments * 1448 bytes / 1 ms * 2.887 * 0.99
        assert_eq!(w.pacing_rate, 41_381_651);
        assert!(w.pacing);
    }

    #[test]
    fn the_first_sample_corrects_the_rate_downwards() {
        let (mut bbr, mut f, mut w) = startup(flight(), window());
        f.srtt_us = 40_000 << 3;
        bbr.set_pacing_rate(&f, &mut w, 0, HIGH_GAIN);
        assert_eq!(w.pacing_rate, 1_034_467);
        f.srtt_us = 80_000 << 3;
        bbr.set_pacing_rate(&f, &mut w, 0, HIGH_GAIN);
        assert_eq!(w.pacing_rate, 1_034_467, "only the first");
    }

    #[test]
    fn the_rate_only_rises_until_the_pipe_is_full() {
        let (mut bbr, f, mut w) = startup(flight(), window());
        bbr.set_pacing_rate(&f, &mut w, 1_000, UNIT);
        assert_eq!(w.pacing_rate, 41_381_651);
        bbr.full_pipe.reached = true;
        bbr.set_pacing_rate(&f, &mut w, 1_000, UNIT);
        assert_eq!(w.pacing_rate, bytes_per_second(1_448, 1_000, UNIT));
    }
}
