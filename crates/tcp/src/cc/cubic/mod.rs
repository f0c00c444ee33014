//! CUBIC, Linux 6.12 (`tcp_cubic.c`, version 2.3): the window follows a cubic function of time since the last loss.
//!
//! Slow start ([`hystart`]) and window adjustment (here) are two parts that share only the path's smallest delay.
//!
//! # Where Linux differs
//!
//! From RFC 9438; this file follows Linux, with its integers.
//!
//! - Time is counted in ticks (`CONFIG_HZ`), scaled to 1/1024 s. The rate of growth is recomputed at most once a tick, and
//!   while the window has not changed only once more than `HZ/32` ticks have passed (40 ms at 100 Hz, 32 ms at 250 Hz). On
//!   short paths this is slower than the round trip, so results depend on HZ.
//! - C is 410/1024 (section 5: 0.4), beta 717/1024 (section 4.6: 0.7); K comes from an approximate cube root ([`root`]).
//! - `W_cubic` is taken one smallest delay ahead, not one smoothed round-trip time (section 4.2).
//! - The Reno-friendly window (section 4.3) grows by 8/15 segment a window for ever; the RFC goes to a whole segment once it
//!   passes the window of the last loss.
//! - While no loss is remembered the window grows by at least 5% a window.
//! - The decrease (section 4.6) starts from the window, not from the flight.
//! - A timeout forgets everything (section 4.8 keeps `W_max`). A spurious recovery (section 4.9) restores only the window.

mod hystart;
mod root;

use super::growth::{additive_increase, is_cwnd_limited, slow_start};
use super::{AckSample, Event, jiffies};
use crate::clock::Clock;
use crate::window::{CaState, Window};
use hystart::HyStart;
use root::cube_root;

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
const CUBE_FACTOR: u64 = (1 << CUBE_SHIFT) / C;
/// Acknowledged windows, in eighths, that grow Reno's window by one segment (`beta_scale`): `(1 + beta) / 3 (1 - beta)`.
const RENO_EIGHTHS: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// Fewest acknowledged segments an increase takes: 1.5 times the window in a round (RFC 9438 section 4.2).
const MIN_PER_INCREASE: u32 = 2;
/// Most acknowledged segments an increase takes before the first loss: 5% in a round.
const MAX_PER_INCREASE_AT_FIRST: u32 = 20;

/// One connection's CUBIC (`struct bictcp`).
#[derive(Clone, Debug)]
pub struct Cubic {
    hystart: HyStart,
    curve: Curve,
    /// Smallest delay since the last timeout in microseconds; 0 before the first sample.
    delay_min_us: u32,
}

/// Where the window is on the cubic function.
#[derive(Clone, Debug, Default)]
struct Curve {
    /// Acknowledged segments that an increase takes (`cnt`).
    per_increase: u32,
    /// Window before the last loss, reduced by fast convergence (`last_max_cwnd`, RFC 9438's `W_max`); 0: none remembered.
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

impl Cubic {
    /// `cubictcp_init`.
    pub(super) fn new(window: &Window, clock: Clock) -> Self {
        Cubic {
            hystart: HyStart::new(window, clock.micros() as u32),
            curve: Curve::default(),
            delay_min_us: 0,
        }
    }

    /// The window times 0.7, at least 2 segments; ends the epoch (`cubictcp_recalc_ssthresh`).
    pub(super) fn ssthresh(&mut self, window: &Window) -> u32 {
        self.curve.on_loss(window.cwnd);
        (window.cwnd.wrapping_mul(BETA) / SCALE).max(2)
    }

    /// `cubictcp_cong_avoid`.
    pub(super) fn cong_avoid(&mut self, window: &mut Window, mut acked: u32, clock: Clock) {
        if !is_cwnd_limited(window) {
            return;
        }
        if window.in_slow_start() {
            acked = slow_start(window, acked);
            if acked == 0 {
                return;
            }
        }
        self.curve.update(window.cwnd, acked, self.delay_min_us, clock);
        additive_increase(window, self.curve.per_increase, acked);
    }

    /// Learn the delay (`cubictcp_acked`). Samples in the first second of an epoch still carry the recovery's queue.
    pub(super) fn pkts_acked(&mut self, window: &mut Window, sample: AckSample, clock: Clock) {
        if sample.rtt_us < 0 {
            return;
        }
        let age = self
            .curve
            .epoch_start
            .map(|start| jiffies::elapsed(clock.jiffies(), start));
        if age.is_some_and(|ticks| ticks < clock.hz as i32) {
            return;
        }
        let delay_us = (sample.rtt_us as u32).max(1);
        if self.delay_min_us == 0 || delay_us < self.delay_min_us {
            self.delay_min_us = delay_us;
        }
        self.hystart
            .on_sample(window, delay_us, self.delay_min_us, clock.micros() as u32);
    }

    /// A timeout starts over (`cubictcp_state`).
    pub(super) fn set_state(&mut self, window: &Window, new: CaState, clock: Clock) {
        if new == CaState::Loss {
            *self = Cubic::new(window, clock);
        }
    }

    /// After idle time the curve goes on where it was (`cubictcp_cwnd_event`).
    pub(super) fn event(&mut self, event: Event, clock: Clock) {
        if let Event::TxStart { last_send_jiffies } = event {
            self.curve.skip_idle(last_send_jiffies, clock.jiffies());
        }
    }
}

impl Curve {
    fn on_loss(&mut self, cwnd: u32) {
        self.epoch_start = None;
        // Fast convergence (RFC 9438 section 4.7): a flow that lost below its last plateau makes room.
        self.w_max = if cwnd < self.w_max {
            cwnd.wrapping_mul(SCALE + BETA) / (2 * SCALE)
        } else {
            cwnd
        };
    }

    fn skip_idle(&mut self, last_send: u32, now: u32) {
        let idle = jiffies::elapsed(now, last_send);
        if idle > 0 {
            self.epoch_start = self.epoch_start.map(|start| {
                let shifted = start.wrapping_add(idle as u32);
                if jiffies::after(shifted, now) { now } else { shifted }
            });
        }
    }

    /// How many acknowledged segments the next increase takes (`bictcp_update`).
    fn update(&mut self, cwnd: u32, acked: u32, delay_min_us: u32, clock: Clock) {
        self.acked = self.acked.wrapping_add(acked);
        let now = clock.jiffies();
        if self.last_cwnd == cwnd && jiffies::elapsed(now, self.last_jiffies) <= (clock.hz / 32) as i32 {
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
            self.per_increase = if target > cwnd {
                cwnd / (target - cwnd)
            } else {
                cwnd.wrapping_mul(100)
            };
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

    /// `W_cubic(t) = C (t - K)^3 + W_max` (RFC 9438 section 4.2), `t` in 1/1024 s. 64 bits wrap, as in the kernel, when `t`
    /// and K are more than 347 s apart.
    fn w_cubic(&self, t: u64) -> u32 {
        let offset = t.abs_diff(u64::from(self.k));
        let cubed = C.wrapping_mul(offset).wrapping_mul(offset).wrapping_mul(offset);
        let delta = (cubed >> CUBE_SHIFT) as u32;
        if t < u64::from(self.k) {
            self.origin.wrapping_sub(delta)
        } else {
            self.origin.wrapping_add(delta)
        }
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
    let ticks = i64::from(jiffies::elapsed(clock.jiffies(), start)) as u64;
    let ticks = ticks.wrapping_add(clock.jiffies_from_micros(u64::from(delay_min_us)));
    (ticks << TIME_SHIFT) / u64::from(clock.hz)
}
