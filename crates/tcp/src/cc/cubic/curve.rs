//! CUBIC's window adjustment, Linux 6.12 (`bictcp_update` in `tcp_cubic.c`). [`super`] says where Linux differs.

use super::root::cube_root;
use crate::cc::jiffies;
use crate::clock::Clock;

/// Scale of beta and of C (`BICTCP_BETA_SCALE`, and `bic_scale`'s 1024).
const SCALE: u32 = 1024;
/// Multiplicative decrease in 1024ths (`beta`; RFC 9438 section 4.6: 0.7).
const BETA: u32 = 717;
/// The constant C in 1024ths of segments per second cubed (`cube_rtt_scale`; RFC 9438 section 5: 0.4).
const C: u64 = 410;
/// Time is in units of 2^-10 s (`BICTCP_HZ`).
const TIME_SHIFT: u32 = 10;
/// Removes the scale of C and of the cubed time.
const CUBE_SHIFT: u32 = 10 + 3 * TIME_SHIFT;
/// What turns segments below the plateau into K cubed (`cube_factor`).
pub(super) const CUBE_FACTOR: u64 = (1 << CUBE_SHIFT) / C;
/// Acknowledged windows, in eighths, that grow Reno's window by one segment (`beta_scale`): (1 + beta) / (3 (1 -
/// beta)).
const RENO_EIGHTHS: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// Fewest acknowledged segments an increase takes: 1.5 times the window in a round (RFC 9438 section 4.2).
const MIN_PER_INCREASE: u32 = 2;
/// Most acknowledged segments an increase takes before the first loss: 5% in a round.
const MAX_PER_INCREASE_AT_FIRST: u32 = 20;

/// Where the window is on the cubic function.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    /// Acknowledged segments that an increase takes (`cnt`).
    per_increase: u32,
    /// Window before the last loss, reduced by fast convergence (`last_max_cwnd`, RFC 9438's `W_max`); 0: none
    /// remembered.
    w_max: u32,
    /// Window and tick when `per_increase` was last computed.
    last_cwnd: u32,
    last_jiffies: u32,
    /// The plateau (`bic_origin_point`), in segments.
    origin: u32,
    /// From the epoch's start to the plateau, in 1/1024 s.
    k: u32,
    /// Tick at which this epoch began.
    epoch_start: Option<u32>,
    /// Acknowledged segments not yet counted into `w_est` (`ack_cnt`).
    acked: u32,
    /// The window that Reno would have (`tcp_cwnd`, RFC 9438's `W_est`).
    w_est: u32,
}

impl Curve {
    /// The tick of this epoch, if one has begun.
    pub(super) fn age(&self, clock: Clock) -> Option<i32> {
        self.epoch_start.map(|start| jiffies::elapsed(clock.jiffies(), start))
    }

    pub(super) fn per_increase(&self) -> u32 {
        self.per_increase
    }

    pub(super) fn on_loss(&mut self, cwnd: u32) {
        self.epoch_start = None;
        // Fast convergence (RFC 9438 section 4.7): a flow that lost below its last plateau makes room.
        self.w_max = if cwnd < self.w_max { cwnd.wrapping_mul(SCALE + BETA) / (2 * SCALE) } else { cwnd };
    }

    pub(super) fn skip_idle(&mut self, last_send: u32, now: u32) {
        let idle = jiffies::elapsed(now, last_send);
        if idle > 0 {
            self.epoch_start = self.epoch_start.map(|start| {
                let shifted = start.wrapping_add(idle.cast_unsigned());
                if jiffies::after(shifted, now) { now } else { shifted }
            });
        }
    }

    /// How many acknowledged segments the next increase takes (`bictcp_update`).
    pub(super) fn update(&mut self, cwnd: u32, acked: u32, delay_min_us: u32, clock: Clock) {
        self.acked = self.acked.wrapping_add(acked);
        let now = clock.jiffies();
        if self.last_cwnd == cwnd && jiffies::elapsed(now, self.last_jiffies) <= (clock.hz / 32).cast_signed() {
            return;
        }
        if self.epoch_start.is_none() || now != self.last_jiffies {
            self.last_cwnd = cwnd;
            self.last_jiffies = now;
            let start = match self.epoch_start {
                Some(start) => start,
                None => self.begin_epoch(cwnd, acked, now),
            };
            let target = self.w_cubic(ahead(start, delay_min_us, clock));
            self.per_increase = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.wrapping_mul(100) };
            if self.w_max == 0 {
                self.per_increase = self.per_increase.min(MAX_PER_INCREASE_AT_FIRST);
            }
        }
        self.keep_up_with_reno(cwnd);
        self.per_increase = self.per_increase.max(MIN_PER_INCREASE);
    }

    /// The curve passes through the window now, and its plateau is `K` away (RFC 9438 section 4.2).
    fn begin_epoch(&mut self, cwnd: u32, acked: u32, now: u32) -> u32 {
        self.epoch_start = Some(now);
        self.acked = acked;
        self.w_est = cwnd;
        self.k = cube_root(CUBE_FACTOR.wrapping_mul(u64::from(self.w_max.saturating_sub(cwnd))));
        self.origin = self.w_max.max(cwnd);
        now
    }

    /// `W_cubic(t) = C (t - K)^3 + W_max` (RFC 9438 section 4.2), `t` in 1/1024 s. 64 bits wrap, as in the kernel, when
    /// `t` and K are more than 347 s apart.
    fn w_cubic(&self, t: u64) -> u32 {
        let offset = t.abs_diff(u64::from(self.k));
        let cubed = C.wrapping_mul(offset).wrapping_mul(offset).wrapping_mul(offset);
        let delta = (cubed >> CUBE_SHIFT) as u32;
        if t < u64::from(self.k) { self.origin.wrapping_sub(delta) } else { self.origin.wrapping_add(delta) }
    }

    /// The Reno-friendly region (RFC 9438 section 4.3): grow at least so fast as to reach `W_est` in one window.
    fn keep_up_with_reno(&mut self, cwnd: u32) {
        let per_segment = (cwnd.wrapping_mul(RENO_EIGHTHS) >> 3).max(1);
        if self.acked > per_segment {
            // 1 to `per_segment` are left over: the kernel subtracts while there is more than that.
            let segments = (self.acked - 1) / per_segment;
            self.acked -= segments * per_segment;
            self.w_est = self.w_est.wrapping_add(segments);
        }
        if self.w_est > cwnd {
            self.per_increase = self.per_increase.min(cwnd / (self.w_est - cwnd));
        }
    }
}

/// The time in the epoch that the window should be ready for: now and one smallest delay, in 1/1024 s.
fn ahead(start: u32, delay_min_us: u32, clock: Clock) -> u64 {
    let ticks = i64::from(jiffies::elapsed(clock.jiffies(), start)).cast_unsigned();
    let ticks = ticks.wrapping_add(clock.jiffies_from_micros(u64::from(delay_min_us)));
    (ticks << TIME_SHIFT) / u64::from(clock.hz)
}

/// The window after a loss, in segments (RFC 9438 section 4.6), at least 2.
pub(super) fn decreased(cwnd: u32) -> u32 {
    (cwnd.wrapping_mul(BETA) / SCALE).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::clock;

    const START_US: u64 = 1_000_000;

    #[test]
    fn the_scaled_constants_are_the_kernels() {
        assert_eq!((CUBE_FACTOR, RENO_EIGHTHS), (2_681_735_677, 15));
    }

    #[test]
    fn the_curve_is_flat_at_the_plateau_and_steep_around_it() {
        let mut curve = Curve { w_max: 1_000, ..Curve::default() };
        curve.begin_epoch(700, 1, 0);
        // (300 / 0.4)^(1/3) = 9.086 s, 9304 units; the kernel's root is 0.1% less.
        assert_eq!(curve.k, 9294);
        let seconds = [0, 3, 6, 8, 9, 10, 12, 15, 18].map(|s| curve.w_cubic(s << TIME_SHIFT));
        assert_eq!(seconds, [701, 911, 989, 1000, 1000, 1000, 1010, 1083, 1284]);
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_at_least_two() {
        assert_eq!([1_000, 100, 10, 3, 1].map(decreased), [700, 70, 7, 2, 2]);
    }

    #[test]
    fn a_loss_below_the_last_plateau_lowers_it_further() {
        let mut curve = Curve::default();
        let plateaus = [100, 80, 90].map(|cwnd| {
            curve.on_loss(cwnd);
            curve.w_max
        });
        assert_eq!(plateaus, [100, 68, 90], "80 * (1 + 0.7) / 2, but not where the last was passed");
    }

    #[test]
    fn an_unchanged_window_is_not_recomputed_within_a_thirty_second_of_a_second() {
        for (hz, ticks) in [(100, 4), (250, 8), (1_000, 32)] {
            let mut curve = Curve::default();
            let tick_us = 1_000_000 / u64::from(hz);
            let mut update = |tick| {
                curve.update(100, 1, 600, clock(START_US + tick * tick_us, hz));
                curve.last_jiffies
            };
            let first = update(0);
            let next = (1..100).find(|&tick| update(tick) != first);
            assert_eq!(next, Some(ticks), "at {hz} Hz");
        }
    }

    #[test]
    fn a_changed_window_is_recomputed_once_a_tick_at_most() {
        let mut curve = Curve::default();
        let seen = [(100, 0), (101, 3_999), (101, 4_000)].map(|(cwnd, after_us)| {
            curve.update(cwnd, 1, 600, clock(START_US + after_us, 250));
            curve.last_cwnd
        });
        assert_eq!(seen, [100, 100, 101]);
    }

    #[test]
    fn a_new_epoch_is_computed_even_within_the_tick() {
        let mut curve = Curve::default();
        curve.update(100, 1, 600, clock(START_US, 250));
        curve.on_loss(100);
        curve.update(70, 1, 600, clock(START_US, 250));
        assert_eq!((curve.last_cwnd, curve.origin), (70, 100));
    }

    #[test]
    fn before_the_first_loss_the_window_grows_by_a_twentieth_a_round() {
        let mut curve = Curve::default();
        curve.update(1_000, 1, 600, clock(START_US, 250));
        assert_eq!(curve.per_increase, 20);
    }

    #[test]
    fn the_window_grows_by_half_a_round_at_most() {
        let mut curve = Curve { w_max: 100, ..Curve::default() };
        curve.update(100, 1, 600, clock(START_US, 250));
        curve.update(101, 1, 600, clock(START_US + 60_000_000, 250));
        assert_eq!(curve.per_increase, 2);
    }

    #[test]
    fn reno_would_have_grown_by_eight_fifteenths_of_a_segment_a_window() {
        let mut curve = Curve { w_est: 100, ..Curve::default() };
        for _ in 0..15 {
            curve.acked += 100;
            curve.per_increase = 10_000;
            curve.keep_up_with_reno(100);
        }
        assert_eq!((curve.w_est, curve.acked), (108, 4), "187 segments an increase: 100 * 15 / 8");
        assert_eq!(curve.per_increase, 12, "eight segments behind: 100 / 8");
    }

    #[test]
    fn idle_time_shifts_the_epoch_but_not_into_the_future() {
        let mut curve = Curve { epoch_start: Some(100), ..Curve::default() };
        curve.skip_idle(150, 200);
        assert_eq!(curve.epoch_start, Some(150));
        curve.skip_idle(100, 200);
        assert_eq!(curve.epoch_start, Some(200));
        curve.skip_idle(200, 200);
        assert_eq!(curve.epoch_start, Some(200));
        let mut none = Curve::default();
        none.skip_idle(100, 200);
        assert_eq!(none.epoch_start, None);
    }
}
