//! BBR v3's short-term model: after a loss, and except while probing, the last round's delivery bounds rate and flight
//! (the draft's "When not Probing for Bandwidth").

use super::{Bbr3, Edition, NO_BOUND};
use crate::cc::RateSample;
use crate::cc::bbr::mode::{UNIT, UNIT_SHIFT};
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::{Fit, Low};

/// With each round that has a loss, a bound falls to at least this part, in 256ths (1 - `bbr_beta`).
pub(super) const KEPT: u32 = UNIT - UNIT * 30 / 100;

/// That part of `value`.
pub(super) fn kept(value: u32) -> u32 {
    ((u64::from(value) * u64::from(KEPT)) >> UNIT_SHIFT).low_u32()
}

/// Delivered rate and volume.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// `bw_latest`.
    pub(super) bandwidth: u32,
    /// `inflight_latest`.
    pub(super) segments: u32,
}

/// Bounds on rate and flight (in segments).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) bandwidth: u32,
    pub(super) inflight: u32,
}

impl Bounds {
    pub(super) const NONE: Bounds = Bounds { bandwidth: NO_BOUND, inflight: NO_BOUND };

    /// The larger of each.
    pub(super) fn max(self, other: Bounds) -> Bounds {
        Bounds { bandwidth: self.bandwidth.max(other.bandwidth), inflight: self.inflight.max(other.inflight) }
    }

    /// Lowers the bounds towards what was delivered. An unset bound begins at the value in use.
    fn reduce(&mut self, latest: Delivery, bandwidth_in_use: u32, cwnd: u32) {
        if self.bandwidth == NO_BOUND {
            self.bandwidth = bandwidth_in_use;
        }
        if self.inflight == NO_BOUND {
            self.inflight = cwnd;
        }
        self.bandwidth = kept(self.bandwidth).max(latest.bandwidth).max(1);
        self.inflight = kept(self.inflight).max(latest.segments);
    }
}

/// A round that begins with the first loss, or at the end of the previous such round.
#[derive(Clone, Debug)]
pub(super) struct LossRound {
    /// It ends with the delivery of the first segment that was sent after this many had been delivered.
    ends_at: u64,
    /// It began with this ACK.
    pub(super) started: bool,
    pub(super) has_loss: bool,
    /// ACKs that reported a loss, in startup.
    pub(super) events: u8,
}

impl LossRound {
    pub(super) fn ending_at(delivered: u64) -> Self {
        LossRound { ends_at: delivered, started: false, has_loss: false, events: 0 }
    }
}

/// Whether the ACK delivered anything with a known rate.
fn is_observation(sample: &RateSample) -> bool {
    sample.interval_us > 0 && sample.acked_sacked > 0
}

impl<E: Edition> Bbr3<E> {
    /// UpdateLatestDeliverySignals.
    pub(super) fn note_delivery(&mut self, flight: &Flight, sample: &RateSample, bandwidth: u32) {
        self.loss_round.started = is_observation(sample) && sample.prior_delivered >= self.loss_round.ends_at;
        if !is_observation(sample) {
            return;
        }
        self.latest.bandwidth = self.latest.bandwidth.max(bandwidth);
        self.latest.segments = self.latest.segments.max(sample.delivered.fit_u32());
        if self.loss_round.started {
            self.loss_round.ends_at = flight.delivered;
        }
    }

    /// AdvanceLatestDeliverySignals. A possible answer to a tail loss probe does not count as a round: if it shows that
    /// the tail was lost, the earlier delivery is needed.
    pub(super) fn forget_delivery(&mut self, sample: &RateSample, bandwidth: u32) {
        let may_answer_probe = E::PROBES_KEEP_LATEST && sample.is_acking_tlp_retrans_seq;
        if self.loss_round.started && !may_answer_probe {
            self.latest = Delivery { bandwidth, segments: sample.delivered.fit_u32() };
        }
    }

    /// UpdateCongestionSignals: each sample for the maximum, each round for the bounds.
    pub(super) fn note_congestion(&mut self, window: &Window, sample: &RateSample, bandwidth: u32) {
        if !is_observation(sample) {
            return;
        }
        if !sample.is_app_limited || bandwidth >= self.max_bandwidth.get() {
            self.max_bandwidth.take(bandwidth);
        }
        self.loss_round.has_loss |= sample.losses > 0;
        if self.loss_round.started {
            if !self.mode.is_probing() {
                let by_marks = self.bound_by_marks(window);
                if self.loss_round.has_loss {
                    self.short_term.reduce(self.latest, self.max_bandwidth.get(), window.cwnd);
                }
                self.short_term.inflight = self.short_term.inflight.min(by_marks);
            }
            self.loss_round.has_loss = false;
            self.marks.end_round();
        }
    }

    /// NoteLoss: the round of a loss lasts a full round from its first loss, so that it shows what the path can
    /// deliver.
    pub(super) fn note_loss(&mut self, flight: &Flight, window: &Window) {
        if !self.loss_round.has_loss {
            self.loss_round.ends_at = flight.delivered;
            if E::UNDO_RESTORES_STATE {
                self.save_for_undo(window);
            }
        }
        self.loss_round.has_loss = true;
        self.marks.note_loss();
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_round.has_loss = false;
        self.marks.forget();
        self.latest = Delivery::default();
    }
}
