//! Round-trip time and retransmission timeout: `tcp_rtt_estimator`, `tcp_update_rtt_min`, `__tcp_set_rto` (RFC 6298 with
//! Linux's variance and its 200 ms floor under the variance, not under the timeout).

use crate::clock::Clock;
use crate::flight::Flight;
use crate::windowed::WindowedMin;
use sawtooth_units::width::Low;

/// `TCP_RTO_MIN` (HZ/5): also the floor of the variance term.
pub const RTO_MIN_US: u32 = 200_000;
/// `TCP_RTO_MAX`.
const RTO_MAX_SECONDS: u64 = 120;
/// `TCP_TIMEOUT_INIT`.
const RTO_INITIAL_SECONDS: u64 = 1;
/// `sysctl_tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW_SECONDS: u32 = 300;

#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    mdev_us: u32,
    mdev_max_us: u32,
    rttvar_us: u32,
    /// The variance may fall again once this is acknowledged.
    rtt_seq: u64,
    min: WindowedMin,
}

impl Rtt {
    /// Starts from the handshake's round trip (0: none was measured).
    pub fn new(flight: &mut Flight, handshake_us: u64, clock: Clock) -> Self {
        let mut rtt = Rtt {
            mdev_us: 1_000_000,
            mdev_max_us: 0,
            rttvar_us: 0,
            rtt_seq: 0,
            min: WindowedMin::new(clock.jiffies(), u32::MAX),
        };
        if handshake_us > 0 {
            rtt.update_min(flight, handshake_us.low_u32(), clock);
            rtt.update(flight, handshake_us.low_u32());
        }
        rtt
    }

    /// `tcp_rtt_estimator`.
    pub fn update(&mut self, flight: &mut Flight, sample_us: u32) {
        let sample = i64::from(sample_us);
        let srtt = i64::from(flight.srtt_us);
        if srtt == 0 {
            flight.srtt_us = (sample << 3).max(1).low_u32();
            self.mdev_us = (sample << 1).low_u32();
            self.rttvar_us = self.mdev_us.max(RTO_MIN_US);
            self.mdev_max_us = self.rttvar_us;
            self.rtt_seq = flight.snd_nxt;
            return;
        }
        let error = sample - (srtt >> 3);
        flight.srtt_us = (srtt + error).max(1).low_u32();
        let mut deviation = error.abs() - i64::from(self.mdev_us >> 2);
        // A falling round-trip time raises the deviation eight times slower.
        if error < 0 && deviation > 0 {
            deviation >>= 3;
        }
        self.mdev_us = (i64::from(self.mdev_us) + deviation).low_u32();
        if self.mdev_us > self.mdev_max_us {
            self.mdev_max_us = self.mdev_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
        }
        if flight.snd_una > self.rtt_seq {
            if self.mdev_max_us < self.rttvar_us {
                self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
            }
            self.rtt_seq = flight.snd_nxt;
            self.mdev_max_us = RTO_MIN_US;
        }
    }

    /// `tcp_update_rtt_min`.
    pub fn update_min(&mut self, flight: &mut Flight, sample_us: u32, clock: Clock) {
        let value = if sample_us == 0 { clock.micros_from_jiffies(1).low_u32() } else { sample_us };
        flight.min_rtt_us = self.min.update(MIN_RTT_WINDOW_SECONDS * clock.hz, clock.jiffies(), value);
    }

    /// `__tcp_set_rto`, bounded, in ticks.
    pub fn rto(&self, flight: &Flight, clock: Clock) -> u64 {
        if flight.srtt_us == 0 {
            return RTO_INITIAL_SECONDS * u64::from(clock.hz);
        }
        let us = u64::from(flight.srtt_us >> 3) + u64::from(self.rttvar_us);
        clock.jiffies_from_micros(us).min(Self::rto_max(clock))
    }

    /// `TCP_RTO_MAX` in ticks.
    pub fn rto_max(clock: Clock) -> u64 {
        RTO_MAX_SECONDS * u64::from(clock.hz)
    }
}
