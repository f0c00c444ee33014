//! The sender's clock: simulated time, the kernel's tick ("jiffy") and its timer wheel's grain.

use sawtooth_units::Time;
use sawtooth_units::width::{Fit, Low};

/// The time, and the kernel's tick (`CONFIG_HZ`). Passed to everything that needs the time, in two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub now: Time,
    /// Whole ticks since the start, which are needed several times per packet; below them, in [`HZ_BITS`] bits, how
    /// many there are in a second.
    ticks: u64,
}

const HZ_BITS: u32 = 16;
const NANOS_PER_SEC: u64 = 1_000_000_000;
const MICROS_PER_SEC: u64 = 1_000_000;

impl Clock {
    #[inline]
    pub fn new(now: Time, hz: u32) -> Self {
        let nanos = now.nanos();
        // Division by a constant becomes a multiplication.
        let jiffies = match hz {
            100 => nanos / (NANOS_PER_SEC / 100),
            250 => nanos / (NANOS_PER_SEC / 250),
            1_000 => nanos / (NANOS_PER_SEC / 1_000),
            hz => (u128::from(nanos) * u128::from(hz) / u128::from(NANOS_PER_SEC)).fit_u64(),
        };
        Clock { now, ticks: jiffies << HZ_BITS | u64::from(hz.fit_u16()) }
    }

    /// Ticks per second.
    pub fn hz(self) -> u32 {
        self.ticks.low_u16().into()
    }
    /// `tcp_jiffies32`: whole ticks since the start. 32 bits, wrapping, as in Linux.
    pub fn jiffies(self) -> u32 {
        self.jiffies64().low_u32()
    }
    /// Whole ticks since the start.
    pub fn jiffies64(self) -> u64 {
        self.ticks >> HZ_BITS
    }
    /// `tcp_mstamp`: whole microseconds.
    pub fn micros(self) -> u64 {
        self.now.micros()
    }
    /// `tcp_time_stamp_ms`: the unit of the timestamp option. Starts at 1: an echo of 0 means "none".
    pub fn timestamp(self) -> u32 {
        (self.now.nanos() / 1_000_000).low_u32() + 1
    }

    /// Microseconds since the timestamp `echo`, at least one millisecond (`tcp_rtt_tsopt_us`).
    pub fn echoed_us(self, echo: u32) -> u32 {
        self.timestamp().wrapping_sub(echo).max(1).saturating_mul(1_000)
    }

    /// `usecs_to_jiffies`: rounds up.
    pub fn jiffies_from_micros(self, micros: u64) -> u64 {
        (micros * u64::from(self.hz())).div_ceil(MICROS_PER_SEC)
    }
    /// `jiffies_to_usecs`.
    pub fn micros_from_jiffies(self, jiffies: u64) -> u64 {
        match self.hz() {
            100 => jiffies * (MICROS_PER_SEC / 100),
            250 => jiffies * (MICROS_PER_SEC / 250),
            1_000 => jiffies * (MICROS_PER_SEC / 1_000),
            hz => jiffies * MICROS_PER_SEC / u64::from(hz),
        }
    }

    /// When a timer that expires at tick `expires` really fires. The wheel (kernel/time/timer.c) rounds up to the
    /// granularity of the level for the distance: 64 ticks at granularity 1, then 8 times coarser per level. It never
    /// fires early.
    pub fn wheel_time(self, expires: u64) -> Time {
        let mut shift = 0;
        let delta = expires.saturating_sub(self.jiffies64());
        while delta >= 63 << shift && shift < 24 {
            shift += 3;
        }
        let ticks = ((expires >> shift) + 1) << shift;
        Time::from_nanos(match self.hz() {
            100 => ticks * (NANOS_PER_SEC / 100),
            250 => ticks * (NANOS_PER_SEC / 250),
            1_000 => ticks * (NANOS_PER_SEC / 1_000),
            hz => (u128::from(ticks) * u128::from(NANOS_PER_SEC)).div_ceil(u128::from(hz)).fit_u64(),
        })
    }

    /// When `ticks` have passed since `tick`, which is not in the future.
    pub fn after(self, tick: u32, ticks: u32) -> Time {
        let age = self.jiffies().wrapping_sub(tick);
        let at = (self.jiffies64() + u64::from(ticks)).saturating_sub(u64::from(age));
        Time::from_nanos((u128::from(at) * u128::from(NANOS_PER_SEC)).div_ceil(u128::from(self.hz())).fit_u64())
    }

    /// The level of Linux's timer wheel on which a timer is that is set now for `due`; 0 is the nearest.
    pub fn wheel_level(self, due: Time) -> u32 {
        let ticks = Clock::new(due, self.hz()).jiffies64().saturating_sub(self.jiffies64());
        (ticks.checked_ilog2().unwrap_or(0) / 3).clamp(1, 8) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64, hz: u32) -> Clock {
        Clock::new(Time::from_nanos(nanos), hz)
    }

    #[test]
    fn a_jiffy_at_hz_250_is_four_milliseconds() {
        assert_eq!(at(3_999_999, 250).jiffies(), 0);
        assert_eq!(at(4_000_000, 250).jiffies(), 1);
        assert_eq!(at(10_000_000, 300).jiffies(), 3);
    }

    #[test]
    fn microseconds_round_up_to_jiffies() {
        assert_eq!(at(0, 250).jiffies_from_micros(200_000), 50);
        assert_eq!(at(0, 250).jiffies_from_micros(200_001), 51);
    }

    #[test]
    fn a_near_timer_fires_at_the_tick_after_its_expiry() {
        assert_eq!(at(1_000_000, 250).wheel_time(50), Time::from_nanos(51 * 4_000_000));
    }

    #[test]
    fn a_timer_past_63_ticks_fires_on_a_multiple_of_eight_ticks() {
        assert_eq!(at(0, 250).wheel_time(85), Time::from_nanos(88 * 4_000_000));
        assert_eq!(at(0, 250).wheel_time(88), Time::from_nanos(96 * 4_000_000));
    }
}
