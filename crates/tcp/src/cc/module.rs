//! The interface to a control that is not in the list: a Linux module, loaded by another crate, or an
//! [`super::agent::Agent`].
//!
//! [`super::Control`] is for built-in algorithms and costs a branch; this costs a call through a pointer. It has
//! additional hooks for modules: `in_ack_event`, and the timestamps of each acknowledgement.

use super::agent::Observation;
use super::{AckSample, Event, RateSample};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::packet::Ack;
use crate::window::Window;
use std::fmt::Debug;

/// A loaded control that connections can use.
pub trait Module: Debug + Send + Sync {
    /// Its own name.
    fn name(&self) -> &str;

    /// `TCP_CONG_NEEDS_ECN`.
    fn needs_ecn(&self) -> bool;

    /// Its connections wait for decisions from outside.
    fn asks(&self) -> bool {
        false
    }

    /// `init`: a connection with it was established. `seed` is its only source of randomness.
    fn connect(&self, flight: &Flight, window: &mut Window, clock: Clock, seed: u64) -> Box<dyn Connected>;
}

/// The state for one connection; dropped when the connection ends (`release`). Its methods are those of
/// [`super::Control`] unless documented.
pub trait Connected: Debug + Send + Sync {
    fn has_cong_control(&self) -> bool;
    fn needs_ecn(&self) -> bool;
    fn ssthresh(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32;
    fn undo_cwnd(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32;
    fn cong_avoid(&mut self, flight: &Flight, window: &mut Window, acked: u32, clock: Clock);
    /// True: nothing is sent before [`Self::choose`].
    fn cong_control(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) -> bool;
    fn pkts_acked(&mut self, flight: &Flight, window: &mut Window, sample: AckSample, clock: Clock);
    fn set_state(&mut self, flight: &Flight, window: &mut Window, new: CaState, clock: Clock);
    fn event(&mut self, flight: &Flight, window: &mut Window, event: Event, clock: Clock);

    /// An acknowledgement arrives that will be processed. `repeats_window`: it offers the same window as the last one.
    fn ack_arrives(&mut self, ack: &Ack, repeats_window: bool);

    /// `in_ack_event`: acknowledged segments are removed, losses not yet detected. `is_window_update`: it is not a
    /// duplicate.
    fn in_ack_event(&mut self, flight: &Flight, window: &mut Window, is_window_update: bool, clock: Clock);

    /// These two use the time of the previous call.
    fn min_tso_segs(&self, flight: &Flight, window: &Window) -> u32;
    fn sndbuf_expand(&self, flight: &Flight, window: &Window) -> u32;

    /// What a decision is based on.
    fn observe(&self, _flight: &Flight, _window: &Window, _clock: Clock) -> Observation {
        Observation::default()
    }

    /// The decision from outside.
    fn choose(&mut self, _action: f64, _flight: &Flight, _window: &mut Window, _clock: Clock) {}
}
