//! Reports what happened to a sender between two snapshots. A snapshot only reads, so it changes nothing.

use super::Sender;
use crate::cc::Phase;
use crate::flight::CaState;
use crate::window::{INFINITE_SSTHRESH, UNPACED};

/// A snapshot of the sender's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    state: CaState,
    phase: Phase,
    lost: u64,
    marked: u64,
    timeouts: u64,
    tail_probes: u64,
    window_probes: u64,
    sack: bool,
    /// A reduction may still be undone.
    undoable: bool,
    /// A tail loss probe is outstanding.
    probing: bool,
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Bytes per second, [`UNPACED`] without pacing.
    pub pacing_rate: u64,
}

macro_rules! sender_events {
    ($($(#[$doc:meta])* $name:ident: $word:literal,)+) => {
        /// Something that happened to a sender.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum SenderEvent { $($(#[$doc])* $name,)+ }

        impl SenderEvent {
            /// Their names, in order of their numbers.
            pub const NAMES: &[&str] = &[$($word,)+];
        }
    };
}

sender_events! {
    /// It begins to send.
    Start: "start",
    /// Segments count as lost because later ones have arrived.
    LostBySack: "lost-by-sack",
    /// Or because of duplicate acknowledgements, without SACK.
    LostByDuplicates: "lost-by-duplicates",
    /// A recovery begins, with a reduction of the window if the algorithm has one.
    Recovery: "recovery",
    /// A recovery begins during a reduction of the window.
    RecoveryAmidReduction: "recovery-amid-reduction",
    /// An echoed mark reduces the window.
    ReducedByMark: "reduced-by-mark",
    /// A tail loss probe repaired a loss, which reduces the window.
    ReducedByProbe: "reduced-by-probe",
    Timeout: "timeout",
    /// Everything in flight when a recovery, or a reduction without one, began is acknowledged.
    Recovered: "recovered",
    /// A recovery or timeout turned out to be needless: window and threshold are restored.
    Undone: "undone",
    /// HyStart ends slow start before anything is lost.
    HyStart: "hystart",
    /// The window has reached the threshold.
    SlowStartOver: "slow-start-over",
    TailProbe: "tail-probe",
    WindowProbe: "window-probe",
    BbrStartup: "bbr-startup",
    BbrDrain: "bbr-drain",
    BbrCruise: "bbr-cruise",
    BbrRefill: "bbr-refill",
    BbrUp: "bbr-up",
    BbrDown: "bbr-down",
    BbrProbeRtt: "bbr-probe-rtt",
}

impl Sender {
    /// See [`Snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.flight.ca_state,
            phase: self.congestion.current_phase(),
            lost: self.flight.lost,
            marked: self.flight.delivered_ce,
            timeouts: self.stats.timeouts,
            tail_probes: self.stats.tail_probes,
            window_probes: self.stats.window_probes,
            sack: self.sack,
            undoable: self.undo.is_some(),
            probing: self.tlp_high_seq.is_some(),
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            pacing_rate: if self.window.pacing { self.window.pacing_rate } else { UNPACED },
        }
    }
}

impl Snapshot {
    /// The initial events of a sender.
    pub fn initial_events(&self, report: &mut impl FnMut(SenderEvent, u64)) {
        report(SenderEvent::Start, 0);
        if let Some(phase) = self.phase.entered() {
            report(phase, 0);
        }
    }

    /// What happened since `before`, in causal order, with the number of segments if there is one.
    pub fn events_since(&self, before: &Snapshot, report: &mut impl FnMut(SenderEvent, u64)) {
        let reduces = |state| matches!(state, CaState::Cwr | CaState::Recovery);
        let timed_out = self.timeouts > before.timeouts;
        let lost = self.lost - before.lost;
        if timed_out {
            // Everything that it declares lost.
            report(SenderEvent::Timeout, lost);
        } else if lost > 0 {
            report(if self.sack { SenderEvent::LostBySack } else { SenderEvent::LostByDuplicates }, lost);
        }
        // An echoed mark also removes the saved state for an undo.
        if before.undoable && !self.undoable && self.state != CaState::Cwr {
            report(SenderEvent::Undone, 0);
        } else if before.state >= CaState::Cwr && self.state < CaState::Cwr {
            report(SenderEvent::Recovered, 0);
        }
        if self.state != before.state {
            match self.state {
                CaState::Recovery if reduces(before.state) => report(SenderEvent::RecoveryAmidReduction, 0),
                CaState::Recovery => report(SenderEvent::Recovery, 0),
                CaState::Cwr if before.probing && self.marked == before.marked => {
                    report(SenderEvent::ReducedByProbe, 0)
                }
                CaState::Cwr => report(SenderEvent::ReducedByMark, self.marked - before.marked),
                CaState::Open | CaState::Disorder | CaState::Loss => {}
            }
        }
        if self.phase == Phase::HyStartFound && before.phase == Phase::Other {
            report(SenderEvent::HyStart, 0);
        } else if self.grew_to_threshold(before) {
            report(SenderEvent::SlowStartOver, 0);
        }
        if self.phase != before.phase
            && let Some(phase) = self.phase.entered()
        {
            report(phase, 0);
        }
        for (event, now, then) in [
            (SenderEvent::TailProbe, self.tail_probes, before.tail_probes),
            (SenderEvent::WindowProbe, self.window_probes, before.window_probes),
        ] {
            if now > then {
                report(event, 0);
            }
        }
    }

    /// By growth, not because one of the two was reduced.
    fn grew_to_threshold(&self, before: &Snapshot) -> bool {
        let is_same = self.ssthresh == before.ssthresh && self.ssthresh < INFINITE_SSTHRESH;
        let is_quiet = |state| !matches!(state, CaState::Cwr | CaState::Recovery);
        let quiet = is_quiet(self.state) && is_quiet(before.state) && self.phase.entered().is_none();
        is_same && quiet && before.cwnd < self.ssthresh && self.cwnd >= self.ssthresh
    }
}

impl Phase {
    /// The event of entering this state.
    fn entered(self) -> Option<SenderEvent> {
        Some(match self {
            Phase::Other | Phase::HyStartFound => return None,
            Phase::Startup => SenderEvent::BbrStartup,
            Phase::Drain => SenderEvent::BbrDrain,
            Phase::Cruise => SenderEvent::BbrCruise,
            Phase::Refill => SenderEvent::BbrRefill,
            Phase::Up => SenderEvent::BbrUp,
            Phase::Down => SenderEvent::BbrDown,
            Phase::ProbeRtt => SenderEvent::BbrProbeRtt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Snapshot = Snapshot {
        state: CaState::Open,
        phase: Phase::Other,
        lost: 0,
        marked: 0,
        timeouts: 0,
        tail_probes: 0,
        window_probes: 0,
        sack: true,
        undoable: false,
        probing: false,
        cwnd: 100,
        ssthresh: 50,
        pacing_rate: UNPACED,
    };

    fn events_between(before: Snapshot, after: Snapshot) -> Vec<(SenderEvent, u64)> {
        let mut events = Vec::new();
        after.events_since(&before, &mut |event, segments| events.push((event, segments)));
        events
    }

    #[test]
    fn every_event_has_a_name() {
        assert_eq!(SenderEvent::NAMES.len(), SenderEvent::BbrProbeRtt as usize + 1);
        assert_eq!(SenderEvent::NAMES[SenderEvent::BbrUp as usize], "bbr-up");
    }

    #[test]
    fn window_growth_is_no_event() {
        assert_eq!(events_between(QUIET, Snapshot { cwnd: 101, ..QUIET }), []);
    }

    #[test]
    fn loss_is_reported_before_recovery() {
        let after = Snapshot { lost: 2, state: CaState::Recovery, undoable: true, ssthresh: 70, ..QUIET };
        assert_eq!(events_between(QUIET, after), [(SenderEvent::LostBySack, 2), (SenderEvent::Recovery, 0)]);
        let after = Snapshot { sack: false, ..after };
        assert_eq!(events_between(QUIET, after)[0], (SenderEvent::LostByDuplicates, 2));
    }

    #[test]
    fn recovery_ends_or_is_undone() {
        let within = Snapshot { state: CaState::Recovery, undoable: true, ..QUIET };
        assert_eq!(events_between(within, Snapshot { undoable: true, ..QUIET }), [(SenderEvent::Recovered, 0)]);
        assert_eq!(events_between(within, QUIET), [(SenderEvent::Undone, 0)]);
    }

    #[test]
    fn recovery_during_cwr_is_not_a_second_reduction() {
        let marked = Snapshot { state: CaState::Cwr, marked: 3, ..QUIET };
        assert_eq!(events_between(QUIET, marked), [(SenderEvent::ReducedByMark, 3)]);
        let lost = Snapshot { state: CaState::Recovery, lost: 1, undoable: true, ..marked };
        assert_eq!(
            events_between(marked, lost),
            [(SenderEvent::LostBySack, 1), (SenderEvent::RecoveryAmidReduction, 0)]
        );
    }

    #[test]
    fn reduction_by_tail_loss_probe_is_not_by_mark() {
        let probing = Snapshot { probing: true, tail_probes: 1, ..QUIET };
        assert_eq!(events_between(QUIET, probing), [(SenderEvent::TailProbe, 0)]);
        assert_eq!(
            events_between(probing, Snapshot { state: CaState::Cwr, tail_probes: 1, ..QUIET }),
            [(SenderEvent::ReducedByProbe, 0)]
        );
    }

    #[test]
    fn slow_start_ends_by_hystart_or_at_the_threshold() {
        let slow = Snapshot { cwnd: 49, ..QUIET };
        assert_eq!(events_between(slow, QUIET), [(SenderEvent::SlowStartOver, 0)]);
        let before = Snapshot { ssthresh: INFINITE_SSTHRESH, ..QUIET };
        let found = Snapshot { ssthresh: 100, phase: Phase::HyStartFound, ..QUIET };
        assert_eq!(events_between(before, found), [(SenderEvent::HyStart, 0)]);
    }

    #[test]
    fn bbr_phases_are_reported_when_they_begin() {
        let startup = Snapshot { phase: Phase::Startup, ..QUIET };
        let drain = Snapshot { phase: Phase::Drain, ..QUIET };
        let mut begun = Vec::new();
        startup.initial_events(&mut |event, _| begun.push(event));
        assert_eq!(begun, [SenderEvent::Start, SenderEvent::BbrStartup]);
        assert_eq!(events_between(startup, drain), [(SenderEvent::BbrDrain, 0)]);
        assert_eq!(events_between(drain, drain), []);
    }
}
