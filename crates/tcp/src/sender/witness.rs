//! Reports what happened to a sender between two snapshots. A snapshot only reads, so it changes nothing.

use super::Sender;
use crate::cc::Phase;
use crate::flight::CaState;
use crate::window::{INFINITE_SSTHRESH, UNPACED};

/// A snapshot of the sender's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
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

macro_rules! happenings {
    ($($(#[$doc:meta])* $name:ident: $word:literal,)+) => {
        /// Something that happened to a sender.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Happening { $($(#[$doc])* $name,)+ }

        impl Happening {
            /// Their names, in order of their numbers.
            pub const NAMES: &[&str] = &[$($word,)+];
        }
    };
}

happenings! {
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
    /// See [`Glance`].
    pub fn glance(&self) -> Glance {
        Glance {
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

impl Glance {
    /// The initial events of a sender.
    pub fn begins(&self, tell: &mut impl FnMut(Happening, u64)) {
        tell(Happening::Start, 0);
        if let Some(phase) = self.phase.entered() {
            tell(phase, 0);
        }
    }

    /// What happened since `before`, in causal order, with the number of segments if there is one.
    pub fn since(&self, before: &Glance, tell: &mut impl FnMut(Happening, u64)) {
        let reduces = |state| matches!(state, CaState::Cwr | CaState::Recovery);
        let timed_out = self.timeouts > before.timeouts;
        let lost = self.lost - before.lost;
        if timed_out {
            // Everything that it declares lost.
            tell(Happening::Timeout, lost);
        } else if lost > 0 {
            tell(if self.sack { Happening::LostBySack } else { Happening::LostByDuplicates }, lost);
        }
        // An echoed mark also removes the saved state for an undo.
        if before.undoable && !self.undoable && self.state != CaState::Cwr {
            tell(Happening::Undone, 0);
        } else if before.state >= CaState::Cwr && self.state < CaState::Cwr {
            tell(Happening::Recovered, 0);
        }
        if self.state != before.state {
            match self.state {
                CaState::Recovery if reduces(before.state) => tell(Happening::RecoveryAmidReduction, 0),
                CaState::Recovery => tell(Happening::Recovery, 0),
                CaState::Cwr if before.probing && self.marked == before.marked => tell(Happening::ReducedByProbe, 0),
                CaState::Cwr => tell(Happening::ReducedByMark, self.marked - before.marked),
                CaState::Open | CaState::Disorder | CaState::Loss => {}
            }
        }
        if self.phase == Phase::HyStartFound && before.phase == Phase::Other {
            tell(Happening::HyStart, 0);
        } else if self.grew_to_threshold(before) {
            tell(Happening::SlowStartOver, 0);
        }
        if self.phase != before.phase
            && let Some(phase) = self.phase.entered()
        {
            tell(phase, 0);
        }
        for (happening, now, then) in [
            (Happening::TailProbe, self.tail_probes, before.tail_probes),
            (Happening::WindowProbe, self.window_probes, before.window_probes),
        ] {
            if now > then {
                tell(happening, 0);
            }
        }
    }

    /// By growth, not because one of the two was reduced.
    fn grew_to_threshold(&self, before: &Glance) -> bool {
        let is_same = self.ssthresh == before.ssthresh && self.ssthresh < INFINITE_SSTHRESH;
        let is_quiet = |state| !matches!(state, CaState::Cwr | CaState::Recovery);
        let quiet = is_quiet(self.state) && is_quiet(before.state) && self.phase.entered().is_none();
        is_same && quiet && before.cwnd < self.ssthresh && self.cwnd >= self.ssthresh
    }
}

impl Phase {
    /// The event of entering this state.
    fn entered(self) -> Option<Happening> {
        Some(match self {
            Phase::Other | Phase::HyStartFound => return None,
            Phase::Startup => Happening::BbrStartup,
            Phase::Drain => Happening::BbrDrain,
            Phase::Cruise => Happening::BbrCruise,
            Phase::Refill => Happening::BbrRefill,
            Phase::Up => Happening::BbrUp,
            Phase::Down => Happening::BbrDown,
            Phase::ProbeRtt => Happening::BbrProbeRtt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Glance = Glance {
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

    fn told(before: Glance, after: Glance) -> Vec<(Happening, u64)> {
        let mut told = Vec::new();
        after.since(&before, &mut |happening, segments| told.push((happening, segments)));
        told
    }

    #[test]
    fn every_happening_has_a_name() {
        assert_eq!(Happening::NAMES.len(), Happening::BbrProbeRtt as usize + 1);
        assert_eq!(Happening::NAMES[Happening::BbrUp as usize], "bbr-up");
    }

    #[test]
    fn nothing_happens_where_only_the_window_grows() {
        assert_eq!(told(QUIET, Glance { cwnd: 101, ..QUIET }), []);
    }

    #[test]
    fn a_loss_is_found_before_its_recovery_begins() {
        let after = Glance { lost: 2, state: CaState::Recovery, undoable: true, ssthresh: 70, ..QUIET };
        assert_eq!(told(QUIET, after), [(Happening::LostBySack, 2), (Happening::Recovery, 0)]);
        let after = Glance { sack: false, ..after };
        assert_eq!(told(QUIET, after)[0], (Happening::LostByDuplicates, 2));
    }

    #[test]
    fn a_recovery_ends_or_is_undone() {
        let within = Glance { state: CaState::Recovery, undoable: true, ..QUIET };
        assert_eq!(told(within, Glance { undoable: true, ..QUIET }), [(Happening::Recovered, 0)]);
        assert_eq!(told(within, QUIET), [(Happening::Undone, 0)]);
    }

    #[test]
    fn a_recovery_after_a_mark_is_no_second_reduction() {
        let marked = Glance { state: CaState::Cwr, marked: 3, ..QUIET };
        assert_eq!(told(QUIET, marked), [(Happening::ReducedByMark, 3)]);
        let lost = Glance { state: CaState::Recovery, lost: 1, undoable: true, ..marked };
        assert_eq!(told(marked, lost), [(Happening::LostBySack, 1), (Happening::RecoveryAmidReduction, 0)]);
    }

    #[test]
    fn a_reduction_after_a_tail_loss_probe_is_not_one_by_a_mark() {
        let probing = Glance { probing: true, tail_probes: 1, ..QUIET };
        assert_eq!(told(QUIET, probing), [(Happening::TailProbe, 0)]);
        assert_eq!(
            told(probing, Glance { state: CaState::Cwr, tail_probes: 1, ..QUIET }),
            [(Happening::ReducedByProbe, 0)]
        );
    }

    #[test]
    fn slow_start_ends_by_hystart_or_at_the_threshold() {
        let slow = Glance { cwnd: 49, ..QUIET };
        assert_eq!(told(slow, QUIET), [(Happening::SlowStartOver, 0)]);
        let before = Glance { ssthresh: INFINITE_SSTHRESH, ..QUIET };
        let found = Glance { ssthresh: 100, phase: Phase::HyStartFound, ..QUIET };
        assert_eq!(told(before, found), [(Happening::HyStart, 0)]);
    }

    #[test]
    fn phases_of_bbr_are_reported_when_they_begin() {
        let startup = Glance { phase: Phase::Startup, ..QUIET };
        let drain = Glance { phase: Phase::Drain, ..QUIET };
        let mut begun = Vec::new();
        startup.begins(&mut |happening, _| begun.push(happening));
        assert_eq!(begun, [Happening::Start, Happening::BbrStartup]);
        assert_eq!(told(startup, drain), [(Happening::BbrDrain, 0)]);
        assert_eq!(told(drain, drain), []);
    }
}
