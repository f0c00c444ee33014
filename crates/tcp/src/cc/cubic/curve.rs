//! CUBIC's window adjustment (RFC 9438 sections 4.2 to 4.7), as in Linux 6.12. [`super`] says where Linux differs.

use super::root::cube_root;
use crate::cc::jiffies;
use crate::clock::Clock;
use sawtooth_units::width::Low;

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
/// Converts segments below the plateau to K cubed (`cube_factor`).
pub(super) const CUBE_FACTOR: u64 = (1 << CUBE_SHIFT) / C;
/// Acknowledged windows, in eighths, that grow Reno's window by one segment (`beta_scale`): (1 + beta) / (3 (1 -
/// beta)).
const RENO_EIGHTHS: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// Fewest acknowledged segments an increase takes: 1.5 times the window in a round (RFC 9438 section 4.2).
const MIN_PER_INCREASE: u32 = 2;
/// Most acknowledged segments an increase takes before the first loss: 5% in a round.
const MAX_PER_INCREASE_AT_FIRST: u32 = 20;

/// How fast the window grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    /// Acknowledged segments that an increase takes.
    per_increase: u32,
    /// `W_max`: the window before the last loss, reduced by fast convergence; 0: none remembered.
    w_max: u32,
    /// Window and tick when `per_increase` was last taken from the curve.
    seen_cwnd: u32,
    seen_at: u32,
    epoch: Option<Epoch>,
}

/// The growth since a reduction of the window.
#[derive(Clone, Debug)]
struct Epoch {
    /// Tick at which it began.
    start: u32,
    /// The flat part of the curve: its window in segments, and its time after the start in 1/1024 s: `K`.
    plateau: u32,
    k: u32,
    /// `W_est`: the window that Reno would have, and acknowledged segments not counted in it yet.
    w_est: u32,
    acked: u32,
}

impl Epoch {
    /// The curve passes through the window now (RFC 9438 section 4.2, equation 2).
    fn beginning(cwnd: u32, w_max: u32, now: u32) -> Self {
        let plateau = w_max.max(cwnd);
        let k = cube_root(CUBE_FACTOR.wrapping_mul(u64::from(plateau - cwnd)));
        Epoch { start: now, plateau, k, w_est: cwnd, acked: 0 }
    }

    /// `W_cubic(t) = C (t - K)^3 + W_max` (equation 1), `t` in 1/1024 s. 64 bits wrap, as in the kernel, when `t` and K
    /// are more than 347 s apart.
    fn w_cubic(&self, t: u64) -> u32 {
        let k = u64::from(self.k);
        let distance = t.abs_diff(k);
        let height = C.wrapping_mul(distance).wrapping_mul(distance).wrapping_mul(distance) >> CUBE_SHIFT;
        let height = height.low_u32();
        if k > t { self.plateau.wrapping_sub(height) } else { self.plateau.wrapping_add(height) }
    }

    /// `W_est` (section 4.3). Each `per_segment` acknowledged segments add one, once at least one more is present, so 1
    /// to `per_segment` remain.
    fn reno_window(&mut self, cwnd: u32) -> u32 {
        let per_segment = (cwnd.wrapping_mul(RENO_EIGHTHS) >> 3).max(1);
        let segments = self.acked.saturating_sub(1) / per_segment;
        self.acked -= segments * per_segment;
        self.w_est = self.w_est.wrapping_add(segments);
        self.w_est
    }

    /// Idle time does not count in the epoch, which began at `now` at the latest.
    fn skip(&mut self, ticks: u32, now: u32) {
        let later = self.start.wrapping_add(ticks);
        self.start = if jiffies::after(later, now) { now } else { later };
    }
}

impl Curve {
    /// Ticks since the epoch's beginning, if there is one.
    pub(super) fn age(&self, clock: Clock) -> Option<i32> {
        self.epoch.as_ref().map(|epoch| jiffies::elapsed(clock.jiffies(), epoch.start))
    }

    pub(super) fn per_increase(&self) -> u32 {
        self.per_increase
    }

    /// Ends the epoch. A flow that lost below its previous plateau releases bandwidth (fast convergence, section 4.7).
    pub(super) fn on_loss(&mut self, cwnd: u32) {
        let makes_room = cwnd < self.w_max;
        self.w_max = if makes_room { cwnd.wrapping_mul(SCALE + BETA) / (2 * SCALE) } else { cwnd };
        self.epoch = None;
    }

    pub(super) fn skip_idle(&mut self, last_send: u32, now: u32) {
        let idle = jiffies::elapsed(now, last_send).max(0).cast_unsigned();
        if let Some(epoch) = &mut self.epoch {
            epoch.skip(idle, now);
        }
    }

    /// Computes how many acknowledged segments the next increase takes, after `acked` more. The curve is evaluated at
    /// most once per tick, and at most every 1/32 s while the window is unchanged.
    pub(super) fn update(&mut self, cwnd: u32, acked: u32, delay_min_us: u32, clock: Clock) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked = epoch.acked.wrapping_add(acked);
        }
        let now = clock.jiffies();
        let patience = (clock.hz() / 32).cast_signed();
        if cwnd == self.seen_cwnd && jiffies::elapsed(now, self.seen_at) <= patience {
            return;
        }
        let is_due = self.epoch.is_none() || now != self.seen_at;
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch { acked, ..Epoch::beginning(cwnd, w_max, now) });
        if is_due {
            (self.seen_cwnd, self.seen_at) = (cwnd, now);
            let on_curve = epoch.w_cubic(ahead(epoch.start, delay_min_us, clock));
            // Above the curve the window hardly grows.
            let slow = cwnd.wrapping_mul(100);
            let most = if w_max == 0 { MAX_PER_INCREASE_AT_FIRST } else { u32::MAX };
            self.per_increase = per_increase_to(on_curve, cwnd).unwrap_or(slow).min(most);
        }
        // The Reno-friendly region (section 4.3).
        if let Some(as_reno) = per_increase_to(epoch.reno_window(cwnd), cwnd) {
            self.per_increase = self.per_increase.min(as_reno);
        }
        self.per_increase = self.per_increase.max(MIN_PER_INCREASE);
    }
}

/// Acknowledged segments per increase so that the window reaches `target` once all of it is acknowledged.
fn per_increase_to(target: u32, cwnd: u32) -> Option<u32> {
    (target > cwnd).then(|| cwnd / (target - cwnd))
}

/// The time in the epoch for which the window is computed: now plus one smallest delay, in 1/1024 s.
fn ahead(start: u32, delay_min_us: u32, clock: Clock) -> u64 {
    let delay = clock.jiffies_from_micros(u64::from(delay_min_us));
    let age = i64::from(jiffies::elapsed(clock.jiffies(), start)).cast_unsigned();
    (age.wrapping_add(delay) << TIME_SHIFT) / u64::from(clock.hz())
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
        let epoch = Epoch::beginning(700, 1_000, 0);
        // (300 / (410/1024))^(1/3) = 9.083 s.
        assert_eq!(epoch.k, 9301);
        let seconds = [0, 3, 6, 8, 9, 10, 12, 15, 18].map(|s| epoch.w_cubic(s << TIME_SHIFT));
        assert_eq!(seconds, [700, 910, 989, 1000, 1000, 1000, 1009, 1082, 1283]);
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
                curve.seen_at
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
            curve.seen_cwnd
        });
        assert_eq!(seen, [100, 100, 101]);
    }

    #[test]
    fn a_new_epoch_is_computed_even_within_the_tick() {
        let mut curve = Curve::default();
        curve.update(100, 1, 600, clock(START_US, 250));
        curve.on_loss(100);
        curve.update(70, 1, 600, clock(START_US, 250));
        assert_eq!((curve.seen_cwnd, curve.epoch.map(|epoch| epoch.plateau)), (70, Some(100)));
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
        let mut epoch = Epoch::beginning(100, 0, 0);
        for _ in 0..15 {
            epoch.acked += 100;
            epoch.reno_window(100);
        }
        assert_eq!((epoch.w_est, epoch.acked), (108, 4), "187 segments an increase: 100 * 15 / 8");
        assert_eq!(per_increase_to(epoch.w_est, 100), Some(12), "eight segments behind: 100 / 8");
    }

    #[test]
    fn idle_time_shifts_the_epoch_but_not_into_the_future() {
        let mut curve = Curve { epoch: Some(Epoch::beginning(10, 0, 100)), ..Curve::default() };
        let starts = [(150, 200), (100, 200), (200, 200)].map(|(last_send, now)| {
            curve.skip_idle(last_send, now);
            curve.epoch.as_ref().map(|epoch| epoch.start)
        });
        assert_eq!(starts, [Some(150), Some(200), Some(200)]);
        let mut none = Curve::default();
        none.skip_idle(100, 200);
        assert!(none.epoch.is_none());
    }
}
