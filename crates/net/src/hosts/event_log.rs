//! Compares senders before and after each action, if requested, and reports what happened to them.

use crate::hosts::Hosts;
use crate::hosts::connection::Connection;
use crate::observe::tables::Event;
use crate::observe::trace::{Fate, Gone};
use sawtooth_tcp::sender::{SenderEvent, Snapshot};
use sawtooth_tcp::window::{INFINITE_SSTHRESH, UNPACED};
use sawtooth_units::Time;
use sawtooth_units::width::{Approx, Fit};

/// Connections watched per flow.
const WATCHED_CONNECTIONS: u32 = 16;

/// Events of packets, numbered after those of senders.
const PACKET_EVENTS: [&str; 6] =
    ["data-dropped", "ack-dropped", "data-lost", "ack-lost", "data-refused", "ack-refused"];

/// The names of events, in order of their numbers.
pub fn event_names() -> impl Iterator<Item = &'static str> {
    SenderEvent::NAMES.iter().copied().chain(PACKET_EVENTS)
}

/// The last state of each connection, and which connection it was.
#[derive(Default)]
pub struct EventLog(Vec<Option<(u32, Snapshot)>>);

impl Hosts {
    /// The sender of connection `index` has acted.
    #[cold]
    #[inline(never)]
    pub(super) fn log_events(&mut self, index: u32, now: Time) {
        let connection = &mut self.connections[index as usize];
        let (Some(EventLog(snapshots)), Some(events)) = (&mut self.event_log, &mut self.reports.events) else { return };
        if connection.number >= WATCHED_CONNECTIONS {
            return;
        }
        let generation = connection.generation;
        let Some(snapshot) = connection.sender().map(|sender| sender.snapshot()) else { return };
        if snapshots.len() <= index as usize {
            snapshots.resize(index as usize + 1, None);
        }
        let before = snapshots[index as usize].replace((generation, snapshot)).filter(|before| before.0 == generation);
        let cwnd_before = before.map_or(snapshot.cwnd, |(_, before)| before.cwnd);
        let mut report = |event: SenderEvent, segments: u64| {
            let row = Event {
                event: event as i64,
                segments: segments.cast_signed(),
                cwnd_before_segments: i64::from(cwnd_before),
                cwnd_segments: i64::from(snapshot.cwnd),
                ssthresh_segments: if snapshot.ssthresh >= INFINITE_SSTHRESH {
                    -1
                } else {
                    i64::from(snapshot.ssthresh)
                },
                pacing_bps: if snapshot.pacing_rate == UNPACED {
                    f64::NAN
                } else {
                    snapshot.pacing_rate.approx() * 8.0
                },
                ..of(connection, now)
            };
            events.push((now, row));
        };
        match before {
            Some((_, before)) => snapshot.events_since(&before, &mut report),
            None => snapshot.initial_events(&mut report),
        }
    }

    /// Reports packets that were lost or dropped.
    pub fn report_gone(&mut self, gone: Vec<Gone>) {
        let Some(events) = &mut self.reports.events else { return };
        for Gone { time, owner, fate, is_data, segments } in gone {
            let connection = &self.connections[owner as usize];
            if connection.number >= WATCHED_CONNECTIONS {
                continue;
            }
            let offset = 2 * (fate as usize - Fate::Dropped as usize) + usize::from(!is_data);
            let row = Event {
                event: (SenderEvent::NAMES.len() + offset).fit_i64(),
                segments: i64::from(segments),
                ssthresh_segments: -1,
                pacing_bps: f64::NAN,
                ..of(connection, time)
            };
            events.push((time, row));
        }
    }
}

fn of(connection: &Connection, now: Time) -> Event {
    Event {
        t_s: now.nanos().approx() / 1e9,
        flow: i64::from(connection.flow),
        connection: i64::from(connection.number),
        ..Event::default()
    }
}
