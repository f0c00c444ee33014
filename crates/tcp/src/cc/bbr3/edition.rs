//! Where Linux's BBR v3 and draft-ietf-ccwg-bbr (the text of August 2026) differ: each constant and each rule once,
//! with the draft's section in words. The same is a table in docs/explanation/bbr3.md.

use crate::cc::bbr::mode::UNIT;
use std::fmt::Debug;

/// One of the two. Gains are in 256ths.
pub trait Edition: Clone + Debug {
    /// `None`: Linux's.
    const VARIANT: Option<&'static str>;
    /// Drain: paces at this part of the bandwidth.
    const DRAIN_GAIN: u32;
    /// Drain: the number of rounds after which it ends, whatever is in flight.
    const DRAIN_ROUNDS: Option<u32>;
    /// ProbeBW_DOWN: paces at this part of the bandwidth.
    const DOWN_GAIN: u32;
    /// Exiting acceleration based on bandwidth plateau: growth counts with every sample, not only once a round.
    const GROWTH_AT_ANY_TIME: bool;
    /// ProbeBW algorithm details: entering CRUISE lowers the short-term bound to the long-term one.
    const CRUISE_WITHIN_LONG_TERM: bool;
    /// ProbeBW algorithm details: an ACK that reports too much loss lowers the long-term bound, in addition to the lost
    /// packet itself.
    const ACKS_LOWER_LONG_TERM: bool;
    /// Updating the model upon packet loss: an answer to a tail loss probe keeps earlier measurements.
    const PROBES_KEEP_LATEST: bool;
    /// Tracking time for the max filter: a cycle without samples does not count.
    const EMPTY_CYCLES_KEEP_MAX: bool;
    /// ProbeRTT logic: an equal smallest round-trip time renews it.
    const EQUAL_RTT_RENEWS: bool;
    /// BBR.extra_acked: the maximum is over two halves of five rounds, and worth at most 100 ms; else over ten rounds.
    const AGGREGATION_IN_HALVES: bool;
    /// Send quantum, offload budget: super-packets are larger on short paths.
    const QUANTUM_BY_RTT: bool;
    /// Flight: data scheduled by the pacer counts as delivered by its departure.
    const LOOKS_TO_DEPARTURE: bool;
    /// cwnd adjustment mechanism: at first the window grows to two initial windows; else until one of them was
    /// delivered.
    const GROWS_TO_TWO_WINDOWS: bool;
    /// Modulating cwnd in loss recovery: the window is restored after every recovery; otherwise only after a timeout.
    const RECOVERY_RESTORES_CWND: bool;
    /// Modulating cwnd in loss recovery: a timeout sets the short-term bound on the flight.
    const TIMEOUT_BOUNDS_FLIGHT: bool;
    /// Saving state upon loss recovery: also at the first loss of a round. Handling a spurious loss recovery: return to
    /// the state that the loss ended.
    const UNDO_RESTORES_STATE: bool;
    /// The tree's low-latency ECN: marks bound the flight. A route must say so (`features ecn_low`).
    const HEEDS_MARKS: bool = false;
    /// Each ACK and timer checks whether the application is the limit.
    const NOTES_APP_LIMIT_ON_ACK: bool;
}

/// As in the public tree and in distributions' patches.
#[derive(Clone, Debug)]
pub struct Linux;

impl Edition for Linux {
    const VARIANT: Option<&'static str> = None;
    const DRAIN_GAIN: u32 = UNIT * 1_000 / 2_885;
    const DRAIN_ROUNDS: Option<u32> = None;
    const DOWN_GAIN: u32 = UNIT * 91 / 100;
    const GROWTH_AT_ANY_TIME: bool = true;
    const CRUISE_WITHIN_LONG_TERM: bool = true;
    const ACKS_LOWER_LONG_TERM: bool = true;
    const PROBES_KEEP_LATEST: bool = true;
    const EMPTY_CYCLES_KEEP_MAX: bool = true;
    const EQUAL_RTT_RENEWS: bool = true;
    const AGGREGATION_IN_HALVES: bool = true;
    const QUANTUM_BY_RTT: bool = true;
    const LOOKS_TO_DEPARTURE: bool = true;
    const GROWS_TO_TWO_WINDOWS: bool = true;
    const RECOVERY_RESTORES_CWND: bool = false;
    const TIMEOUT_BOUNDS_FLIGHT: bool = true;
    const UNDO_RESTORES_STATE: bool = false;
    const NOTES_APP_LIMIT_ON_ACK: bool = true;
}

/// The same, if both ends' routes have the feature `ecn_low`.
#[derive(Clone, Debug)]
pub struct LowLatency;

impl Edition for LowLatency {
    const VARIANT: Option<&'static str> = Some("ecn");
    const HEEDS_MARKS: bool = true;
    const DRAIN_GAIN: u32 = Linux::DRAIN_GAIN;
    const DRAIN_ROUNDS: Option<u32> = Linux::DRAIN_ROUNDS;
    const DOWN_GAIN: u32 = Linux::DOWN_GAIN;
    const GROWTH_AT_ANY_TIME: bool = Linux::GROWTH_AT_ANY_TIME;
    const CRUISE_WITHIN_LONG_TERM: bool = Linux::CRUISE_WITHIN_LONG_TERM;
    const ACKS_LOWER_LONG_TERM: bool = Linux::ACKS_LOWER_LONG_TERM;
    const PROBES_KEEP_LATEST: bool = Linux::PROBES_KEEP_LATEST;
    const EMPTY_CYCLES_KEEP_MAX: bool = Linux::EMPTY_CYCLES_KEEP_MAX;
    const EQUAL_RTT_RENEWS: bool = Linux::EQUAL_RTT_RENEWS;
    const AGGREGATION_IN_HALVES: bool = Linux::AGGREGATION_IN_HALVES;
    const QUANTUM_BY_RTT: bool = Linux::QUANTUM_BY_RTT;
    const LOOKS_TO_DEPARTURE: bool = Linux::LOOKS_TO_DEPARTURE;
    const GROWS_TO_TWO_WINDOWS: bool = Linux::GROWS_TO_TWO_WINDOWS;
    const RECOVERY_RESTORES_CWND: bool = Linux::RECOVERY_RESTORES_CWND;
    const TIMEOUT_BOUNDS_FLIGHT: bool = Linux::TIMEOUT_BOUNDS_FLIGHT;
    const UNDO_RESTORES_STATE: bool = Linux::UNDO_RESTORES_STATE;
    const NOTES_APP_LIMIT_ON_ACK: bool = Linux::NOTES_APP_LIMIT_ON_ACK;
}

/// As in draft-ietf-ccwg-bbr, with Linux's TCP where the draft leaves it open.
#[derive(Clone, Debug)]
pub struct Draft;

impl Edition for Draft {
    const VARIANT: Option<&'static str> = Some("draft");
    const DRAIN_GAIN: u32 = UNIT / 2;
    const DRAIN_ROUNDS: Option<u32> = Some(3);
    const DOWN_GAIN: u32 = UNIT * 90 / 100;
    const GROWTH_AT_ANY_TIME: bool = false;
    const CRUISE_WITHIN_LONG_TERM: bool = false;
    const ACKS_LOWER_LONG_TERM: bool = false;
    const PROBES_KEEP_LATEST: bool = false;
    const EMPTY_CYCLES_KEEP_MAX: bool = false;
    const EQUAL_RTT_RENEWS: bool = false;
    const AGGREGATION_IN_HALVES: bool = false;
    const QUANTUM_BY_RTT: bool = false;
    const LOOKS_TO_DEPARTURE: bool = false;
    const GROWS_TO_TWO_WINDOWS: bool = false;
    const RECOVERY_RESTORES_CWND: bool = true;
    const TIMEOUT_BOUNDS_FLIGHT: bool = false;
    const UNDO_RESTORES_STATE: bool = true;
    const NOTES_APP_LIMIT_ON_ACK: bool = true;
}
