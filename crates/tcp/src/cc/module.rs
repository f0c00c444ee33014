//! The seam to a control that was not compiled with this crate: a module of Linux, by the crate that loads it.
//!
//! [`super::Control`] is for algorithms that are known here, and costs a branch; this is for one that isn't, and costs a call
//! through a pointer. It has what a module may have beside it: `in_ack_event`, and the timestamps of each acknowledgement.

use super::{AckSample, Event, RateSample};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::packet::Ack;
use crate::window::Window;
use std::fmt::Debug;

/// A control that connections can have.
pub trait Module: Debug + Send + Sync {
    /// As it calls itself.
    fn name(&self) -> &str;

    /// `TCP_CONG_NEEDS_ECN`.
    fn needs_ecn(&self) -> bool;

    /// `init`: a connection was established that has it. `seed` is the only randomness it gets.
    fn connect(&self, flight: &Flight, window: &mut Window, clock: Clock, seed: u64) -> Box<dyn Connected>;
}

/// One connection's; dropped when the connection ends (`release`). Its methods are those of [`super::Control`], where they are told.
pub trait Connected: Debug + Send + Sync {
    fn has_cong_control(&self) -> bool;
    fn needs_ecn(&self) -> bool;
    fn ssthresh(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32;
    fn undo_cwnd(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32;
    fn cong_avoid(&mut self, flight: &Flight, window: &mut Window, acked: u32, clock: Clock);
    fn cong_control(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock);
    fn pkts_acked(&mut self, flight: &Flight, window: &mut Window, sample: AckSample, clock: Clock);
    fn set_state(&mut self, flight: &Flight, window: &mut Window, new: CaState, clock: Clock);
    fn event(&mut self, flight: &Flight, window: &mut Window, event: Event, clock: Clock);

    /// An acknowledgement comes that will be looked into. `repeats_window`: it offers the window that the last one did.
    fn ack_arrives(&mut self, ack: &Ack, repeats_window: bool);

    /// `in_ack_event`: what the acknowledgement takes out is taken out, what is lost is not judged yet. `told_window`: it is no
    /// duplicate.
    fn in_ack_event(&mut self, flight: &Flight, window: &mut Window, told_window: bool, clock: Clock);

    /// Of these two the time is that of the call before.
    fn min_tso_segs(&self, flight: &Flight, window: &Window) -> u32;
    fn sndbuf_expand(&self, flight: &Flight, window: &Window) -> u32;
}
