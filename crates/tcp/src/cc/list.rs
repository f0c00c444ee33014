//! The list of all algorithms. Dispatch is by enum, so a call costs one branch.

use super::agent::Observation;
use super::module::{Connected, Module};
use super::{
    AckSample, Control, Event, Loss, Phase, RateSample, abe, bbr, bbr3, cubic, dctcp, prague, prague2020, reno,
};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::packet::Ack;
use crate::window::Window;
use std::sync::Arc;

/// One line per algorithm: its variant, its type, and how a connection holds it (boxed if it is large).
macro_rules! controls {
    ($($variant:ident: $control:ty as $held:ty,)+) => {
        /// An algorithm by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Algorithm {
            $($variant,)+
        }

        impl Algorithm {
            pub const ALL: &[Algorithm] = &[$(Algorithm::$variant,)+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Algorithm::$variant => <$control>::NAME,)+
                }
            }

            pub fn needs_ecn(self) -> bool {
                match self {
                    $(Algorithm::$variant => <$control>::NEEDS_ECN,)+
                }
            }

            pub fn heeds_each_mark(self) -> bool {
                match self {
                    $(Algorithm::$variant => <$control>::HEEDS_EACH_MARK,)+
                }
            }

            pub fn needs_accurate_ecn(self) -> bool {
                match self {
                    $(Algorithm::$variant => <$control>::NEEDS_ACCURATE_ECN,)+
                }
            }

            /// `None`: it is Linux's version under this name.
            pub fn variant(self) -> Option<&'static str> {
                match self {
                    $(Algorithm::$variant => <$control>::VARIANT,)+
                }
            }
        }

        /// One connection's congestion control.
        #[derive(Debug)]
        pub enum Congestion {
            $($variant($held),)+
            Module(Box<dyn Connected>),
        }

        /// See [`Control`].
        impl Congestion {
            pub fn new(chosen: &Chosen, flight: &Flight, window: &mut Window, clock: Clock, seed: u64) -> Self {
                match chosen {
                    $(Chosen::Listed(Algorithm::$variant) => {
                        Congestion::$variant(<$control>::new(flight, window, clock, seed).into())
                    })+
                    Chosen::Module(module) => Congestion::Module(module.connect(flight, window, clock, seed)),
                }
            }

            pub fn has_cong_control(&self) -> bool {
                match self {
                    $(Congestion::$variant(_) => <$control>::HAS_CONG_CONTROL,)+
                    Congestion::Module(module) => module.has_cong_control(),
                }
            }

            pub fn heeds_each_mark(&self) -> bool {
                match self {
                    $(Congestion::$variant(_) => <$control>::HEEDS_EACH_MARK,)+
                    Congestion::Module(module) => module.needs_ecn(),
                }
            }

            pub fn needs_accurate_ecn(&self) -> bool {
                match self {
                    $(Congestion::$variant(_) => <$control>::NEEDS_ACCURATE_ECN,)+
                    Congestion::Module(_) => false,
                }
            }

            pub fn is_settled(&self, window: &Window, clock: Clock) -> bool {
                match self {
                    $(Congestion::$variant(control) => control.is_settled(window, clock),)+
                    Congestion::Module(_) => false,
                }
            }

            pub fn hears_of_acks(&self) -> bool {
                match self {
                    $(Congestion::$variant(_) => <$control>::HEARS_OF_ACKS,)+
                    Congestion::Module(_) => true,
                }
            }

            pub fn hears_of_losses(&self) -> bool {
                match self {
                    $(Congestion::$variant(_) => <$control>::HEARS_OF_LOSSES,)+
                    Congestion::Module(_) => false,
                }
            }

            pub fn notes_app_limit_on_ack(&self) -> bool {
                match self {
                    $(Congestion::$variant(_) => <$control>::NOTES_APP_LIMIT_ON_ACK,)+
                    Congestion::Module(_) => false,
                }
            }

            pub fn ssthresh(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32 {
                match self {
                    $(Congestion::$variant(control) => control.ssthresh(flight, window),)+
                    Congestion::Module(module) => module.ssthresh(flight, window, clock),
                }
            }

            pub fn ssthresh_marked(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32 {
                match self {
                    $(Congestion::$variant(control) => control.ssthresh_marked(flight, window),)+
                    Congestion::Module(module) => module.ssthresh(flight, window, clock),
                }
            }

            pub fn undo_cwnd(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32 {
                match self {
                    $(Congestion::$variant(control) => control.undo_cwnd(flight, window),)+
                    Congestion::Module(module) => module.undo_cwnd(flight, window, clock),
                }
            }

            pub fn cong_avoid(&mut self, flight: &Flight, window: &mut Window, acked: u32, clock: Clock) {
                match self {
                    $(Congestion::$variant(control) => control.cong_avoid(flight, window, acked, clock),)+
                    Congestion::Module(module) => module.cong_avoid(flight, window, acked, clock),
                }
            }

            /// True: nothing is sent before [`Self::choose`].
            pub fn cong_control(
                &mut self,
                flight: &Flight,
                window: &mut Window,
                sample: &RateSample,
                clock: Clock,
            ) -> bool {
                match self {
                    $(Congestion::$variant(control) => {
                        control.cong_control(flight, window, sample, clock);
                        false
                    })+
                    Congestion::Module(module) => module.cong_control(flight, window, sample, clock),
                }
            }

            pub fn in_ack_event(&mut self, flight: &Flight, window: &mut Window, is_window_update: bool, clock: Clock) {
                match self {
                    $(Congestion::$variant(control) => control.in_ack_event(flight),)+
                    Congestion::Module(module) => module.in_ack_event(flight, window, is_window_update, clock),
                }
            }

            pub fn pkts_acked(&mut self, flight: &Flight, window: &mut Window, sample: AckSample, clock: Clock) {
                match self {
                    $(Congestion::$variant(control) => control.pkts_acked(flight, window, sample, clock),)+
                    Congestion::Module(module) => module.pkts_acked(flight, window, sample, clock),
                }
            }

            pub fn skb_marked_lost(&mut self, flight: &Flight, window: &Window, loss: &Loss, clock: Clock) {
                match self {
                    $(Congestion::$variant(control) => control.skb_marked_lost(flight, window, loss, clock),)+
                    // No hook of Linux without the patch.
                    Congestion::Module(_) => {}
                }
            }

            pub fn set_state(&mut self, flight: &Flight, window: &mut Window, new: CaState, clock: Clock) {
                match self {
                    $(Congestion::$variant(control) => control.set_state(flight, window, new, clock),)+
                    Congestion::Module(module) => module.set_state(flight, window, new, clock),
                }
            }

            pub fn event(&mut self, flight: &Flight, window: &mut Window, event: Event, clock: Clock) {
                match self {
                    $(Congestion::$variant(control) => control.event(flight, window, event, clock),)+
                    Congestion::Module(module) => module.event(flight, window, event, clock),
                }
            }

            /// Most segments of a super-packet, where auto-sizing says `auto`.
            pub fn tso_segs(&self, flight: &Flight, window: &Window, auto: u32) -> u32 {
                match self {
                    $(Congestion::$variant(control) => {
                        let own = control.tso_segs(flight, window);
                        own.unwrap_or_else(|| auto.max(control.min_tso_segs(flight, window)))
                    })+
                    Congestion::Module(module) => auto.max(module.min_tso_segs(flight, window)),
                }
            }

            pub fn current_phase(&self) -> Phase {
                match self {
                    $(Congestion::$variant(control) => control.current_phase(),)+
                    Congestion::Module(_) => Phase::Other,
                }
            }

            pub fn sndbuf_expand(&self, flight: &Flight, window: &Window) -> u32 {
                match self {
                    $(Congestion::$variant(control) => control.sndbuf_expand(),)+
                    Congestion::Module(module) => module.sndbuf_expand(flight, window),
                }
            }
        }
    };
}

controls! {
    Reno: reno::Reno as reno::Reno,
    Cubic: cubic::Cubic as cubic::Cubic,
    Bbr: bbr::Bbr as Box<bbr::Bbr>,
    Bbr3: bbr3::Bbr3<bbr3::Linux> as Box<bbr3::Bbr3<bbr3::Linux>>,
    Dctcp: dctcp::Dctcp as dctcp::Dctcp,
    Prague: prague::Prague as Box<prague::Prague>,
    Prague2020: prague2020::Prague2020 as Box<prague2020::Prague2020>,
    Bbr3Draft: bbr3::Bbr3<bbr3::Draft> as Box<bbr3::Bbr3<bbr3::Draft>>,
    RenoAbe: abe::Abe<reno::Reno> as abe::Abe<reno::Reno>,
    CubicAbe: abe::Abe<cubic::Cubic> as abe::Abe<cubic::Cubic>,
    Bbr3Ecn: bbr3::Bbr3<bbr3::LowLatency> as Box<bbr3::Bbr3<bbr3::LowLatency>>,
}

/// The control chosen for a connection: one of the list, or a module.
#[derive(Clone, Debug)]
pub enum Chosen {
    Listed(Algorithm),
    Module(Arc<dyn Module>),
}

impl From<Algorithm> for Chosen {
    fn from(algorithm: Algorithm) -> Self {
        Chosen::Listed(algorithm)
    }
}

impl From<Arc<dyn Module>> for Chosen {
    fn from(module: Arc<dyn Module>) -> Self {
        Chosen::Module(module)
    }
}

impl Chosen {
    /// Whether a connection with it requests ECN.
    pub fn needs_ecn(&self) -> bool {
        match self {
            Chosen::Listed(algorithm) => algorithm.needs_ecn(),
            Chosen::Module(module) => module.needs_ecn(),
        }
    }

    /// See [`Control::HEEDS_EACH_MARK`].
    pub fn heeds_each_mark(&self) -> bool {
        match self {
            Chosen::Listed(algorithm) => algorithm.heeds_each_mark(),
            Chosen::Module(module) => module.needs_ecn(),
        }
    }

    /// See [`Module::asks`].
    pub fn asks(&self) -> bool {
        matches!(self, Chosen::Module(module) if module.asks())
    }

    /// Whether it requests accurate ECN.
    pub fn needs_accurate_ecn(&self) -> bool {
        matches!(self, Chosen::Listed(algorithm) if algorithm.needs_accurate_ecn())
    }
}

/// Calls that only modules use.
impl Congestion {
    pub fn ack_arrives(&mut self, ack: &Ack, send_window: u64) {
        if let Congestion::Module(module) = self {
            module.ack_arrives(ack, ack.window == send_window);
        }
    }

    pub fn observe(&self, flight: &Flight, window: &Window, clock: Clock) -> Option<Observation> {
        let Congestion::Module(module) = self else { return None };
        Some(module.observe(flight, window, clock))
    }

    pub fn choose(&mut self, action: f64, flight: &Flight, window: &mut Window, clock: Clock) {
        if let Congestion::Module(module) = self {
            module.choose(action, flight, window, clock);
        }
    }
}

impl Algorithm {
    /// The names, each once.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter(|one| one.variant().is_none()).map(|one| one.name())
    }

    /// Linux's version under that name.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Self::from_variant(name, None)
    }

    pub fn from_variant(name: &str, variant: Option<&str>) -> Option<Algorithm> {
        Self::ALL.iter().copied().find(|one| one.name() == name && one.variant() == variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_variant_stand_for_one_algorithm() {
        for &algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_variant(algorithm.name(), algorithm.variant()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_name("cubik"), None);
    }
}
