//! Packets at transmitters that hold them until they leave.

use crate::calendar::Calendar;
use crate::network::Network;
use crate::network::forwarding::Sent;
use crate::network::link::Handle;
use crate::network::queue::{Drops, Waiting};
use crate::observe::trace::Fate;
use crate::packet::Packet;
use sawtooth_tcp::packet::Ecn;
use sawtooth_units::Time;

/// A held packet begins to leave over `link`, or was dropped.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    pub packet: Packet,
    pub link: u32,
}

impl Network {
    /// Puts a packet before its link's transmitter, which holds packets.
    #[cold]
    #[inline(never)]
    pub(super) fn hold(
        &mut self,
        transmitter: u32,
        packet: Handle,
        link: u32,
        now: Time,
        calendar: &mut impl Calendar,
    ) -> Sent {
        let size = packet.size() + self.links[link as usize].overhead;
        let kept = self.packets.get_mut(packet);
        let waiting = Waiting { packet, link, size, ecn: kept.ecn(), since: now, flow: kept.flow(), at: kept.at };
        let mut drops = Drops::default();
        let departure = self.transmitters[transmitter as usize].put(waiting, &mut drops);
        let mut refused = false;
        for other in drops.packets {
            let is_it = other.packet == waiting.packet;
            refused |= is_it;
            self.drop_held(other, !is_it, now);
        }
        let sent = match departure {
            Some((first, departure)) => {
                self.marked(&first);
                self.carry(waiting.packet, waiting.link, departure, calendar);
                calendar.departure(transmitter, departure);
                Sent::Leaves
            }
            None if refused => Sent::Dropped,
            None => Sent::Held,
        };
        self.ask_again(transmitter, now, calendar);
        sent
    }

    /// A transmitter that holds packets is free: the next one begins to leave. What was dropped before it is in `left`.
    #[inline]
    pub fn depart(&mut self, transmitter: u32, now: Time, calendar: &mut impl Calendar) -> Option<Left> {
        let mut drops = Drops::default();
        let next = self.transmitters[transmitter as usize].next(now, &mut drops);
        drops.packets.into_iter().for_each(|other| self.drop_held(other, true, now));
        let left = next.map(|(waiting, departure)| {
            self.marked(&waiting);
            let packet = *self.packets.get_mut(waiting.packet);
            self.carry(waiting.packet, waiting.link, departure, calendar);
            calendar.departure(transmitter, departure);
            Left { packet, link: waiting.link }
        });
        self.ask_again(transmitter, now, calendar);
        left
    }

    /// Schedules the next attempt for a transmitter whose packets a shaper holds back.
    fn ask_again(&self, transmitter: u32, now: Time, calendar: &mut impl Calendar) {
        if let Some(time) = self.transmitters[transmitter as usize].lets_go(now) {
            calendar.departure(transmitter, time);
        }
    }

    /// Copies the queue's mark into a packet.
    fn marked(&mut self, waiting: &Waiting) {
        if waiting.ecn == Ecn::Ce {
            self.packets.get_mut(waiting.packet).set_ecn(Ecn::Ce);
        }
    }

    /// `host_knows`: its host knows that it waits.
    fn drop_held(&mut self, waiting: Waiting, host_knows: bool, now: Time) {
        if host_knows {
            let packet = *self.packets.get_mut(waiting.packet);
            self.left.push_back(Left { packet, link: waiting.link });
        }
        self.discard(waiting.packet, waiting.link, Fate::Dropped, now);
    }
}
