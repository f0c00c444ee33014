//! Round-trip time and retransmission timeout (RFC 6298).
//!
//! # Where Linux differs
//!
//! - The floor of 200 ms is under the variance, not under the timeout.
//! - The variance follows the largest deviation of each round trip; a falling round-trip time raises it slowly.

use crate::clock::Clock;
use crate::flight::Flight;
use crate::steady::Visit;
use crate::windowed::WindowedMin;
use sawtooth_units::width::Low;

/// `TCP_RTO_MIN` (HZ/5): also the floor of the variance term.
pub const RTO_MIN_US: u32 = 200_000;
/// `TCP_RTO_MAX`.
const RTO_MAX_SECONDS: u64 = 120;
/// `TCP_TIMEOUT_FALLBACK`: where the handshake told no round-trip time (RFC 6298 section 5.7).
const RTO_FALLBACK_SECONDS: u64 = 3;
/// `sysctl_tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW_SECONDS: u32 = 300;

/// SRTT is in `Flight`. Deviations are four times the mean deviation, in microseconds, as K in RFC 6298 is 4.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    deviation_us: u32,
    /// The largest deviation in this round trip, at least the floor.
    peak_us: u32,
    /// What the timeout adds to the round-trip time (K RTTVAR): follows the peaks, up at once and down slowly.
    variance_us: u32,
    /// The round trip ends when this segment is acknowledged.
    pub(super) round_end: u64,
    min: WindowedMin,
}

impl Rtt {
    /// Starts from the handshake's round trip (0: none was measured).
    pub fn new(flight: &mut Flight, handshake_us: u64, clock: Clock) -> Self {
        let min = WindowedMin::new(clock.jiffies(), u32::MAX);
        let mut rtt = Rtt { deviation_us: 1_000_000, peak_us: 0, variance_us: 0, round_end: 0, min };
        if handshake_us > 0 {
            let handshake_us = handshake_us.low_u32();
            rtt.update_min(flight, handshake_us, clock);
            rtt.update(flight, handshake_us);
        }
        rtt
    }

    /// Takes a sample (RFC 6298 section 2.2, then 2.3).
    pub fn update(&mut self, flight: &mut Flight, sample_us: u32) {
        if flight.srtt_us == 0 {
            return self.begin(flight, sample_us);
        }
        let error_us = i64::from(sample_us) - i64::from(flight.srtt_us >> 3);
        flight.srtt_us = (i64::from(flight.srtt_us) + error_us).max(1).low_u32();
        self.deviate(error_us);
        if flight.snd_una > self.round_end {
            self.end_round(flight.snd_nxt);
        }
    }

    fn begin(&mut self, flight: &mut Flight, sample_us: u32) {
        let sample_us = u64::from(sample_us);
        flight.srtt_us = (8 * sample_us).max(1).low_u32();
        // Four times half of it.
        self.deviation_us = (2 * sample_us).low_u32();
        self.variance_us = self.deviation_us.max(RTO_MIN_US);
        self.peak_us = self.variance_us;
        self.round_end = flight.snd_nxt;
    }

    /// Moves by a quarter towards `|error|`; eight times slower if a falling round-trip time would raise it.
    fn deviate(&mut self, error_us: i64) {
        let change = error_us.abs() - i64::from(self.deviation_us >> 2);
        let change = if change > 0 && error_us < 0 { change >> 3 } else { change };
        self.deviation_us = (i64::from(self.deviation_us) + change).low_u32();
        self.peak_us = self.peak_us.max(self.deviation_us);
        self.variance_us = self.variance_us.max(self.peak_us);
    }

    /// Once per round trip the variance moves a quarter down towards the round's peak.
    fn end_round(&mut self, end: u64) {
        self.variance_us -= (self.variance_us - self.peak_us) >> 2;
        self.peak_us = RTO_MIN_US;
        self.round_end = end;
    }

    /// A round trip too short for the clock counts as one tick.
    #[inline(always)]
    pub fn update_min(&mut self, flight: &mut Flight, sample_us: u32, clock: Clock) {
        let value = if sample_us == 0 { clock.micros_from_jiffies(1).low_u32() } else { sample_us };
        flight.min_rtt_us = self.min.update(MIN_RTT_WINDOW_SECONDS * clock.hz(), clock.jiffies(), value);
    }

    /// See [`crate::steady`]. The end of a round changes nothing where the variance is at its floor.
    pub fn visit(&mut self, clock: Clock, visit: &mut Visit) {
        visit.needs(self.peak_us == RTO_MIN_US && (self.variance_us - self.peak_us) >> 2 == 0);
        visit.round(&mut self.round_end);
        self.min.visit(MIN_RTT_WINDOW_SECONDS * clock.hz(), clock, visit);
    }

    /// The timeout in ticks (section 2.4 without its floor, and 2.5).
    pub fn rto(&self, flight: &Flight, clock: Clock) -> u64 {
        if flight.srtt_us == 0 {
            return RTO_FALLBACK_SECONDS * u64::from(clock.hz());
        }
        let us = u64::from(flight.srtt_us >> 3) + u64::from(self.variance_us);
        clock.jiffies_from_micros(us).min(Self::rto_max(clock))
    }

    /// `TCP_RTO_MAX` in ticks.
    pub fn rto_max(clock: Clock) -> u64 {
        RTO_MAX_SECONDS * u64::from(clock.hz())
    }
}
