//! BBR v3's long-term bound on the flight: what probing has shown to be too much, or safe (the draft's "Probing for
//! Bandwidth In ProbeBW", `bbr_adapt_upper_bounds`).

use super::mode::Mode;
use super::probing::{Acks, Phase};
use super::short_term::kept;
use super::{Bbr3, Edition, NO_BOUND};
use crate::cc::bbr::min_rtt::MIN_CWND;
use crate::cc::bbr::mode::{UNIT, UNIT_SHIFT};
use crate::cc::{Loss, RateSample};
use crate::clock::Clock;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::Low;

/// LossThresh: the tolerated loss share of a flight, in 256ths (`bbr_loss_thresh`).
const LOSS_THRESHOLD: u32 = UNIT * 2 / 100;
/// Headroom: the share of the bound that is left to others, in 256ths (`bbr_inflight_headroom`).
const HEADROOM: u32 = UNIT * 15 / 100;
/// Most doublings of the bound's growth per round.
const MOST_DOUBLINGS: u32 = 30;

/// `part` 256ths of `value`, rounded down.
pub(super) fn part_of(value: u32, part: u32) -> u32 {
    ((u64::from(value) * u64::from(part)) >> UNIT_SHIFT).low_u32()
}

/// InflightAtLoss: the segment, among those lost together, at which the loss became too high. They belong to a flight
/// of `tx_in_flight` that has lost `lost`, including themselves. `None`: the counts are inconsistent and bound nothing.
fn inflight_at_loss(loss: &Loss) -> Option<u32> {
    let before = loss.tx_in_flight.checked_sub(loss.segments)?;
    let lost_before = loss.lost.checked_sub(loss.segments)?;
    let tolerated = (u64::from(before) * u64::from(LOSS_THRESHOLD)).div_ceil(u64::from(UNIT)).low_u32();
    let more = tolerated.saturating_sub(lost_before);
    // A lost segment is in flight too, so the tolerated share applies to all segments up to it.
    Some(before + (u64::from(more) * u64::from(UNIT) / u64::from(UNIT - LOSS_THRESHOLD)).low_u32())
}

impl<E: Edition> Bbr3<E> {
    /// IsInflightTooHigh, by loss.
    pub(super) fn is_too_high(lost: u32, tx_in_flight: u32) -> bool {
        lost > 0 && tx_in_flight > 0 && lost > part_of(tx_in_flight, LOSS_THRESHOLD)
    }

    /// HandleInflightTooHigh: once per probing phase.
    fn lower_long_term(
        &mut self,
        flight: &Flight,
        window: &Window,
        tx_in_flight: u32,
        is_app_limited: bool,
        clock: Clock,
    ) {
        self.probe.was_too_high = true;
        self.probe.gives_samples = false;
        // If the application was the limit, the flight says nothing about the path.
        if !is_app_limited {
            self.long_term = kept(self.target_inflight(flight, window)).max(tx_in_flight);
        }
        if self.mode == Mode::ProbeBw(Phase::Up) {
            self.undo.mode = Some(self.mode);
            self.probe_down(flight, clock);
        }
    }

    /// HandleLostPacket, after NoteLoss, for a segment sent while probing.
    pub(super) fn judge_lost(&mut self, flight: &Flight, window: &Window, loss: &Loss, clock: Clock) {
        if Self::is_too_high(loss.lost, loss.tx_in_flight) {
            let inflight = inflight_at_loss(loss).unwrap_or(NO_BOUND);
            self.lower_long_term(flight, window, inflight, loss.is_app_limited, clock);
        }
    }

    /// A tail loss probe has repaired a loss, of one segment (`bbr_run_loss_probe_recovery`).
    pub(super) fn see_tail_loss(&mut self, flight: &Flight, window: &Window, is_app_limited: bool, clock: Clock) {
        self.note_loss(flight, window);
        let tx_in_flight = self.latest.segments + 1;
        if self.probe.gives_samples && Self::is_too_high(1, tx_in_flight) {
            self.lower_long_term(flight, window, tx_in_flight, is_app_limited, clock);
        }
    }

    /// AdaptLongTermModel. True: the state has already changed.
    pub(super) fn adapt_long_term(
        &mut self,
        flight: &Flight,
        window: &Window,
        sample: &RateSample,
        clock: Clock,
    ) -> bool {
        if self.rounds.started && self.follow_acks(flight, sample) {
            return true;
        }
        if self.shows_too_much(sample) {
            if E::ACKS_LOWER_LONG_TERM && self.probe.gives_samples {
                self.lower_long_term(flight, window, sample.tx_in_flight, sample.is_app_limited, clock);
            }
        } else if self.long_term != NO_BOUND {
            // A flight without too much loss is safe, in any phase.
            self.long_term = self.long_term.max(sample.tx_in_flight);
            if self.mode == Mode::ProbeBw(Phase::Up) {
                self.raise_long_term(flight, window, sample);
            }
        }
        false
    }

    /// A round began: evaluates its ACKs. True: probing resumes at once, because the last one stopped cautiously at the
    /// bound and showed no loss.
    fn follow_acks(&mut self, flight: &Flight, sample: &RateSample) -> bool {
        match self.probe.acks {
            Acks::OfProbeStarting => self.probe.acks = Acks::OfProbe,
            Acks::OfProbeStopping => {
                self.probe.gives_samples = false;
                self.probe.acks = Acks::Other;
                if !self.mode.is_probe_bw() {
                    return false;
                }
                if !sample.is_app_limited {
                    self.max_bandwidth.advance(E::EMPTY_CYCLES_KEEP_MAX);
                }
                if self.probe.was_cautious && !self.probe.was_too_high {
                    self.refill(flight);
                    return true;
                }
            }
            Acks::Other | Acks::OfRefill | Acks::OfProbe => {}
        }
        false
    }

    /// ProbeInflightLongtermUpward, if the bound is the limit.
    fn raise_long_term(&mut self, flight: &Flight, window: &Window, sample: &RateSample) {
        if !flight.is_cwnd_limited || window.cwnd < self.long_term {
            return;
        }
        self.probe.acked += sample.acked_sacked;
        let steps = self.probe.acked / self.probe.acked_per_step;
        if steps > 0 {
            self.probe.acked -= steps * self.probe.acked_per_step;
            self.long_term = self.long_term.saturating_add(steps);
            self.is_settled = false;
        }
        if self.rounds.started {
            self.raise_slope(window);
        }
    }

    /// RaiseInflightLongtermSlope: each round has twice as many steps as the previous one.
    pub(super) fn raise_slope(&mut self, window: &Window) {
        let steps = 1 << self.probe.up_rounds;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(MOST_DOUBLINGS);
        self.probe.acked_per_step = (window.cwnd / steps).max(1);
    }

    /// InflightWithHeadroom.
    pub(super) fn with_headroom(&self) -> u32 {
        match self.long_term {
            NO_BOUND => NO_BOUND,
            bound => bound.saturating_sub(part_of(bound, HEADROOM).max(1)).max(MIN_CWND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr3::Linux;

    fn loss(segments: u32, lost: u32, tx_in_flight: u32) -> Loss {
        Loss { segments, lost, tx_in_flight, is_app_limited: false }
    }

    #[test]
    fn two_percent_are_five_256ths_of_the_flight_rounded_down() {
        let too_high = |lost, in_flight| Bbr3::<Linux>::is_too_high(lost, in_flight);
        assert_eq!([too_high(0, 0), too_high(1, 0), too_high(0, 100)], [false; 3]);
        assert_eq!([too_high(1, 51), too_high(1, 52), too_high(5, 256), too_high(6, 256)], [true, false, false, true]);
    }

    #[test]
    fn the_flight_at_the_loss_is_where_two_percent_were_passed() {
        assert_eq!(inflight_at_loss(&loss(1, 1, 51)), Some(51), "one of fifty is tolerated, and it is in flight");
        assert_eq!(inflight_at_loss(&loss(1, 5, 201)), Some(200), "four were lost before it");
        assert_eq!(inflight_at_loss(&loss(20, 20, 220)), Some(204), "of a buffer the first four");
    }

    #[test]
    fn counts_that_make_no_sense_bound_nothing() {
        assert_eq!(inflight_at_loss(&loss(3, 3, 2)), None);
        assert_eq!(inflight_at_loss(&loss(3, 2, 10)), None);
    }
}
