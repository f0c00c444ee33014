//! When to search for a period, and the search. What repeats is skipped ([`super::repeating`]).

use super::Simulation;
use crate::hosts::connection::Phase;
use sawtooth_tcp::steady::View;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};

/// When a period is first looked for.
const FIRST: Time = Time::from_nanos(10_000_000);
/// Events between two considerations.
const BETWEEN: u64 = 1 << 16;
/// After a search that finds nothing, the next one waits until this many times as many events.
const BACKOFF: u64 = 2;
/// Windows are checked for a change each time the time has grown by one part of this many.
const PATIENCE: u64 = 16;
/// States that may seem equal and not be, in one search.
const MOST_LOOKS: u32 = 16;
/// Events of a recorded period.
pub(super) const MOST_EVENTS: u64 = 1 << 22;
/// Units of one search.
const MOST_TURNS: u64 = 1 << 12;
/// Longer ones are not searched for.
const LONGEST_UNIT: Span = Span::from_millis(10_000);

const PICOS_PER_NANO: u64 = 1_000;
const PICOS_PER_MICRO: u64 = 1_000_000;

/// When to search for a period, and what has been skipped. All is decided at times, not at counts of events, so that it
/// does not depend on where a run pauses.
#[derive(Clone, Debug)]
pub(super) struct Skipping {
    /// When to consider it again, or the next look of a search; [`Time::NEVER`]: nothing is skipped.
    pub at: Time,
    pub packets: u64,
    /// When it was last considered, or a skip ended, and the events until then.
    since: (Time, u64),
    /// How long [`BETWEEN`] events take.
    wait: Span,
    /// See [`Simulation::is_calm`].
    unrest: Vec<u64>,
    /// The last period.
    span: Option<Span>,
    /// Nothing repeats before.
    pub not_before: Time,
    /// The number of events at which to search again.
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
            at: Time::NEVER,
            packets: 0,
            since: (Time::ZERO, 0),
            wait: Span::ZERO,
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
        self.skipping.at = FIRST.max(self.outside.now);
    }

    /// At the time for it: looks whether the state is that of a search's earlier one, or considers a search.
    #[cold]
    pub(super) fn consider(&mut self, until: Time) {
        match self.skipping.search.take() {
            Some(search) => self.search(search, until),
            None => self.consider_search(until),
        }
    }

    /// Tries the last period again, or begins to search for one.
    fn consider_search(&mut self, until: Time) {
        let (now, (time, events)) = (self.outside.now, self.skipping.since);
        let (took, happened) = (now.since(time).nanos(), self.events - events);
        if happened > 0 {
            let wait = u128::from(took) * u128::from(BETWEEN) / u128::from(happened);
            self.skipping.wait = Span::from_nanos(wait.min(u128::from(now.nanos())).fit_u64().max(1));
        }
        let is_calm = self.is_calm();
        if !self.is_plain() {
            return self.skipping = Skipping::default();
        }
        if let Some(span) = self.skipping.span.filter(|_| is_calm && now >= self.skipping.not_before)
            && !self.skip(span, until)
        {
            self.skipping.search_at = self.events;
        }
        self.consider_later();
        if self.skipping.span.is_none()
            && is_calm
            && self.events >= self.skipping.search_at
            && let Some(unit) = self.unit()
        {
            self.skipping.at = self.outside.now + unit;
            let (glimpse, first) = (0, View::default());
            self.skipping.search = Some(Box::new(Search { unit, turn: 0, renew: 1, glimpse, first, looks: 0 }));
        }
    }

    fn consider_later(&mut self) {
        let (now, wait) = (self.outside.now, self.skipping.wait);
        let wait = if self.skipping.span.is_some() { wait } else { wait.max(Span::from_nanos(now.nanos() / PATIENCE)) };
        self.skipping.since = (now, self.events);
        self.skipping.at = (now + wait).max(self.skipping.not_before);
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

    /// A period should be a multiple of this: of the time that a full frame takes at the slowest transmitter which data
    /// passes. Microseconds repeat only after whole ones.
    fn unit(&self) -> Option<Span> {
        let network = &self.outside.network;
        let took = self.hosts.frames().filter_map(|(link, size)| {
            let link = &network.links[link];
            Some(network.transmitters[link.transmitter? as usize].picos_of(size + link.overhead))
        });
        let picos = took.max()?;
        let whole = picos.checked_mul(PICOS_PER_MICRO / common(picos, PICOS_PER_MICRO))?;
        let span = Span::from_nanos(whole / PICOS_PER_NANO);
        (span < LONGEST_UNIT).then_some(span)
    }

    /// One unit of the search is over: skips if the state is that of some units before.
    fn search(&mut self, mut search: Box<Search>, until: Time) {
        self.consider_later();
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
                return self.consider_later();
            }
            if search.looks == MOST_LOOKS {
                return self.back_off();
            }
        }
        self.skipping.at = self.outside.now + search.unit;
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
