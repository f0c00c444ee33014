//! The hosts' part of a visit (see [`sawtooth_tcp::steady`]).

use crate::calendar::Calendar;
use crate::frames::HEADERS;
use crate::hosts::connection::{Connection, Phase};
use crate::hosts::{CONNECTION_TIMERS, Hosts, LIFE, RECEIVER, SENDER};
use sawtooth_tcp::cc::Chosen;
use sawtooth_tcp::steady::Visit;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

impl Hosts {
    /// Whether packets do nothing that this visit does not see: merging cards, readers, captures, modules.
    pub fn is_plain(&self) -> bool {
        let is_watched = self.wire.is_some() || self.event_log.is_some();
        let is_asked = self.delivered.iter().any(|delivered| delivered.is_asked);
        // Nothing is known of what a module keeps.
        let are_listed = self.chosen.iter().flatten().all(|chosen| matches!(chosen, Chosen::Listed(_)));
        !is_watched && !is_asked && are_listed && self.cards.is_empty() && self.streams.is_empty()
    }

    /// The links that data of active connections passes, and the bytes of a full frame there.
    pub fn frames(&self) -> impl Iterator<Item = (usize, u32)> {
        let active = self.connections.iter().filter(|one| matches!(one.phase, Phase::Established(_)));
        active.flat_map(|one| {
            let size = one.mss + HEADERS + one.options();
            self.scenario.flows[one.flow as usize].forward.iter().map(move |&link| (link, size))
        })
    }

    pub fn visit(&mut self, now: Time, visit: &mut Visit) {
        self.connections.iter_mut().for_each(|connection| connection.visit(now, visit));
        for delivered in &mut self.delivered {
            visit.count(&mut delivered.segments);
            visit.count(&mut delivered.bytes);
        }
    }

    /// Whether a timer moves with a connection's packets.
    pub fn moves(&self, timer: u32) -> bool {
        let Some(timer) = timer.checked_sub(self.first_timer) else { return false };
        let is_active = |connection: &Connection| matches!(connection.phase, Phase::Established(_));
        timer % CONNECTION_TIMERS != LIFE
            && self.connections.get((timer / CONNECTION_TIMERS) as usize).is_some_and(is_active)
    }

    /// Sets the timers that move with packets.
    pub fn set_timers(&self, now: Time, calendar: &mut impl Calendar) {
        for (index, connection) in self.connections.iter().enumerate() {
            let index = index.fit_u32();
            let Some((due, receiver)) = connection.due(now).zip(connection.receiver.as_ref()) else { continue };
            calendar.tick(self.timer(index, SENDER), due.next, due.tick, connection.sender_clock(now));
            let clock = connection.receiver_clock(now);
            calendar.tick(self.timer(index, RECEIVER), receiver.timer(), receiver.tick(), clock);
        }
    }
}
