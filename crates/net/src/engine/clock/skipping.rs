//! When to search for a period, and the search. What repeats is skipped ([`super::repeating`]).

use super::Simulation;
use crate::hosts::connection::Phase;
use sawtooth_tcp::steady::View;
use sawtooth_units::{Span, Time};

/// Events before the first search, and between two considerations.
const FIRST: u64 = 1 << 16;
/// After a search that finds nothing, the next one waits until this many times as many events.
const BACKOFF: u64 = 2;
/// Windows are checked for a change each time the number of events has grown by one part of this many.
const PATIENCE: u64 = 16;
/// States that may seem equal and not be, in one search.
const MOST_LOOKS: u32 = 16;
/// Events that are processed one by one at once.
pub(super) const MOST_EVENTS: u64 = 1 << 22;
/// Units of one search.
const MOST_TURNS: u64 = 1 << 12;
/// Longer ones are not searched for.
const LONGEST_UNIT: Span = Span::from_millis(10_000);

const PICOS_PER_NANO: u64 = 1_000;
const PICOS_PER_MICRO: u64 = 1_000_000;

/// When to search for a period, and what has been skipped.
#[derive(Clone, Debug)]
pub(super) struct Skipping {
    /// The number of events at which to consider it again; `u64::MAX`: never.
    pub due: u64,
    /// The time of the next look of a search.
    pub at: Option<Time>,
    pub packets: u64,
    /// See [`Simulation::is_calm`].
    unrest: Vec<u64>,
    /// The last period.
    span: Option<Span>,
    /// Nothing repeats before.
    pub not_before: Time,
    search_at: u64,
    search: Option<Box<Search>>,
}

/// A search for a period: after each `unit` the state is compared with an earlier one, which is renewed at turns 1, 2,
/// 4, and so on (Brent 1980).
#[derive(Clone, Debug)]
struct Search {
    unit: Span,
    turn: u64,
    renew: u64,
    glimpse: u64,
    first: View,
    /// States that seemed equal and were not.
    looks: u32,
}

impl Default for Skipping {
    fn default() -> Self {
        Skipping {
            due: u64::MAX,
            at: None,
            packets: 0,
            unrest: Vec::new(),
            span: None,
            not_before: Time::ZERO,
            search_at: 0,
            search: None,
        }
    }
}

impl Simulation {
    /// Data packets that were skipped, of those delivered.
    pub fn skipped_packets(&self) -> u64 {
        self.skipping.packets
    }

    /// From now on, packets that repeat others exactly are skipped. No row of a table changes; but a call of
    /// [`Self::advance`] may process a period more than its events.
    pub fn skip_repeated(&mut self) {
        self.skipping.due = FIRST;
    }

    /// Decides whether to search for a period, or to try the last one again.
    #[cold]
    pub(super) fn consider(&mut self) {
        let wait = if self.skipping.span.is_some() { FIRST } else { FIRST.max(self.events / PATIENCE) };
        self.skipping.due = self.events + wait;
        if !self.is_plain() {
            return self.skipping = Skipping::default();
        }
        if !self.is_calm() || self.outside.now < self.skipping.not_before || self.skipping.search.is_some() {
            return;
        }
        if self.skipping.span.is_some() {
            self.skipping.at = Some(self.even());
        } else if self.events >= self.skipping.search_at
            && let Some(unit) = self.unit()
        {
            self.skipping.at = Some(self.even() + unit);
            let (glimpse, first) = (0, View::default());
            self.skipping.search = Some(Box::new(Search { unit, turn: 0, renew: 1, glimpse, first, looks: 0 }));
        }
    }

    /// A time that no cell has passed.
    fn even(&self) -> Time {
        self.outside.calendar.cells.iter().fold(self.outside.now, |time, cell| time.max(cell.reached))
    }

    /// Whether nothing was lost and no window changed since the last call.
    fn is_calm(&mut self) -> bool {
        let senders = self.hosts.connections.iter().filter_map(|connection| match &connection.phase {
            Phase::Established(sender) => Some(sender),
            _ => None,
        });
        let unrest = senders.flat_map(|sender| {
            [u64::from(sender.window.cwnd), sender.stats.retransmits, sender.flight.ca_state as u64]
        });
        let unrest = unrest.collect();
        let before = std::mem::replace(&mut self.skipping.unrest, unrest);
        before == self.skipping.unrest
    }

    /// A period should be a multiple of this: of how long a full frame takes at the slowest transmitter that data passes.
    /// Microseconds repeat only after whole ones.
    fn unit(&self) -> Option<Span> {
        let network = &self.outside.network;
        let took = self.hosts.frames().filter_map(|(link, size)| {
            let link = &network.links[link];
            Some(network.transmitters[link.transmitter? as usize].picos_of(size + link.overhead))
        });
        let picos = took.max()?;
        let span = Span::from_nanos(picos * (PICOS_PER_MICRO / common(picos, PICOS_PER_MICRO)) / PICOS_PER_NANO);
        (span < LONGEST_UNIT).then_some(span)
    }

    /// One unit of the search is over: skips if the state is that of some units before.
    #[cold]
    pub(super) fn search(&mut self, until: Time) {
        self.skipping.at = None;
        let Some(mut search) = self.skipping.search.take() else {
            if self.skipping.span.is_some_and(|span| !self.skip(span, until)) {
                self.skipping.search_at = self.events;
            }
            return;
        };
        let now = self.glimpse();
        search.turn += 1;
        if search.turn == search.renew {
            search.renew *= 2;
            (search.glimpse, search.first) = (now, self.look());
            if !search.first.is_known() || !self.is_calm() {
                return;
            }
            if search.turn > MOST_TURNS {
                return self.back_off();
            }
        } else if now == search.glimpse {
            search.looks += 1;
            let second = self.look();
            if search.first.step(&second).is_some() {
                if !self.skip(second.now - search.first.now, until) {
                    self.back_off();
                }
                return;
            }
            if search.looks == MOST_LOOKS {
                return self.back_off();
            }
        }
        self.skipping.at = Some(self.outside.now + search.unit);
        self.skipping.search = Some(search);
    }

    fn back_off(&mut self) {
        self.skipping.search_at = BACKOFF * self.events;
    }

    /// Skips what repeats after `span`. False: nothing.
    fn skip(&mut self, span: Span, until: Time) -> bool {
        self.skipping.span = self.repeat(span, until).map(|()| span);
        self.skipping.span.is_some()
    }
}

/// The greatest common divisor.
fn common(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
