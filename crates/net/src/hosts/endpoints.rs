//! How hosts process data and acknowledgements, and how their packets reach the first link.

use crate::calendar::Calendar;
use crate::frames::{HEADERS, sack_option};
use crate::hosts::connection::{Due, Queued};
use crate::hosts::gro::Merged;
use crate::hosts::{Hosts, Outside, RECEIVER, SENDER};
use crate::network::forwarding::Sent;
use crate::network::held::Left;
use crate::network::slice_queue::SliceQueue;
use crate::packet::{CWR, ECE, Kind, PUSH, Packet, ace};
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::packet::{Ack, Burst, Sack};
use sawtooth_tcp::receiver::{Data, Receiver};
use sawtooth_tcp::sender::{SEGMENT_OVERHEAD, Sender};
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};

/// After this, everything of one instant has arrived, and cards have passed up what they kept.
const INSTANT: Span = Span::from_nanos(2);

impl Hosts {
    #[inline(always)]
    pub(super) fn take_data<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let connection = &self.connections[packet.owner as usize];
        let length = u32::from(packet.size) - HEADERS - connection.options();
        if connection.card > 0 {
            // The copy is made only on this path.
            return self.merge(Packet { ..packet }, length, outside);
        }
        self.take_segments(packet, length, length, outside);
    }

    /// A card receives a packet and may keep it for a while.
    #[cold]
    fn merge<C: Calendar>(&mut self, packet: Packet, length: u32, outside: &mut Outside<C>) {
        let card = self.connections[packet.owner as usize].card - 1;
        let due = self.cards[card as usize].take(packet, length, outside.now, &mut self.up);
        outside.calendar.timer(self.card_timer(card), due);
        outside.more |= due < outside.now + INSTANT;
        self.go_up(outside);
    }

    /// A card's waiting time is over.
    #[cold]
    pub(super) fn flush<C: Calendar>(&mut self, card: u32, outside: &mut Outside<C>) {
        self.cards[card as usize].flush(&mut self.up);
        outside.more = false;
        self.go_up(outside);
    }

    /// Passes up what a card keeps of a connection, before another packet of it.
    #[inline]
    pub(super) fn let_up<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        if let Some(card) = self.connections[index as usize].card.checked_sub(1) {
            self.cards[card as usize].give_up(index, &mut self.up);
            self.go_up(outside);
        }
    }

    fn go_up<C: Calendar>(&mut self, outside: &mut Outside<C>) {
        let mut up = std::mem::take(&mut self.up);
        for Merged { first, bytes, unit } in up.drain(..) {
            self.take_segments(first, bytes, unit, outside);
        }
        self.up = up;
    }

    /// Segments of `unit` bytes (the last may be shorter), `length` in total.
    #[inline(always)]
    fn take_segments<C: Calendar>(&mut self, packet: Packet, length: u32, unit: u32, outside: &mut Outside<C>) {
        let index = packet.owner;
        let connection = &mut self.connections[index as usize];
        if packet.generation != connection.receiver_generation {
            return;
        }
        let (clock, flow, total) = (connection.receiver_clock(outside.now), connection.flow, connection.total);
        let Some(mut receiver) = connection.receiver.take() else {
            return;
        };
        if receiver.note_handshake(outside.now.since(connection.synack_sent).micros(), clock) {
            self.accept(index, &mut receiver, outside);
        }
        if outside.more {
            receiver.sleep(outside.now + INSTANT);
        }
        let Packet { seq, flags, tsval, tsecr, .. } = packet;
        let data = Data { seq, length, flags, tsval, tsecr };
        let read = if length > unit {
            receiver.on_merged(data, unit, clock, &mut |ack| self.send_ack(index, ack, outside))
        } else {
            receiver.on_data(data, clock, &mut |ack| self.send_ack(index, ack, outside))
        };
        let delivered = &mut self.delivered[flow as usize];
        delivered.segments += read.segments;
        delivered.bytes += read.bytes;
        let (is_asked, bytes) = (delivered.is_asked, receiver.delivered());
        if bytes == total {
            self.finish_reading(index, &mut receiver, outside);
        }
        self.put_receiver(index, receiver, clock, outside);
        if is_asked {
            self.take_answer(index, [seq + u64::from(length), bytes], outside);
        }
    }

    pub(super) fn receiver_timer<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let connection = &mut self.connections[index as usize];
        if connection.receiver.as_ref().is_some_and(|receiver| !receiver.is_open()) {
            return self.repeat_synack(index, outside);
        }
        let clock = connection.receiver_clock(outside.now);
        if let Some(mut receiver) = connection.receiver.take() {
            if receiver.closes_at() < Time::NEVER && !connection.is_sending() {
                receiver.heard();
            }
            receiver.on_timer(clock, &mut |ack| self.send_ack(index, ack, outside));
            let woken = receiver.wakes_at() <= outside.now;
            if woken {
                self.wake(index, &mut receiver, outside);
            }
            if receiver.reads_at() <= outside.now {
                self.read(index, &mut receiver, outside);
            }
            let bytes = receiver.delivered();
            if bytes == self.connections[index as usize].total {
                self.finish_reading(index, &mut receiver, outside);
            }
            self.put_receiver(index, receiver, clock, outside);
            if woken && self.delivered[self.connections[index as usize].flow as usize].is_asked {
                self.take_answer(index, [0, bytes], outside);
            }
        }
    }

    #[inline(always)]
    pub(super) fn put_receiver<C: Calendar>(
        &mut self,
        index: u32,
        receiver: Box<Receiver>,
        clock: Clock,
        outside: &mut Outside<C>,
    ) {
        outside.calendar.tick(self.timer(index, RECEIVER), receiver.timer(), receiver.tick(), clock);
        self.connections[index as usize].receiver = Some(receiver);
    }

    #[inline]
    pub(super) fn send_ack<C: Calendar>(&mut self, index: u32, ack: &Ack, outside: &mut Outside<C>) {
        let connection = &self.connections[index as usize];
        let size = HEADERS + connection.options() + sack_option(ack.sack.count);
        let mut packet = Packet {
            seq: ack.next,
            tsval: ack.tsval,
            tsecr: ack.tsecr,
            window: ack.window.min(u64::from(u32::MAX)).fit_u32(),
            flags: ack.ecn as u8 | ace(ack.ace) | if ack.ece { ECE } else { 0 },
            generation: connection.receiver_generation,
            ..Packet::new(index, Kind::Ack, size.fit_u16(), connection.backward_at)
        };
        if ack.sack.count > 0 {
            outside.network.packets.keep_sack(&mut packet, ack.sack);
        }
        if self.wire.is_some() {
            self.tap_sent(&Packet { ..packet }, outside.now, &mut outside.network);
        }
        outside.network.forward(packet, outside.now, &mut outside.calendar);
    }

    #[inline(always)]
    pub(super) fn take_ack<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let index = packet.owner;
        let Packet { seq: next, tsval, tsecr, .. } = packet;
        let (window, ece, ace, ecn) = (u64::from(packet.window), packet.has(ECE), packet.ace(), packet.ecn());
        let mut ack = Ack { next, window, tsval, tsecr, sack: Sack::default(), ece, ace, ecn };
        if packet.sack != 0 {
            ack.sack = outside.network.packets.sack(&packet);
            outside.network.packets.release(&packet);
        }
        if packet.generation != self.connections[index as usize].generation {
            return self.send_reset(index, packet.generation, packet.seq, outside);
        }
        self.with_sender(index, outside, |sender, clock, out| sender.on_ack(&ack, clock, out));
    }

    /// Lets the sender of a connection act, sends its packets, and re-arms its timers.
    pub(super) fn with_sender<C: Calendar>(
        &mut self,
        index: u32,
        outside: &mut Outside<C>,
        act: impl FnOnce(&mut Sender, Clock, &mut Vec<Burst>),
    ) {
        let now = outside.now;
        let connection = &mut self.connections[index as usize];
        let clock = connection.sender_clock(now);
        if connection.host_queued {
            connection.settle_host_queue(now);
        }
        let Some(sender) = connection.sender() else {
            return;
        };
        act(sender, clock, &mut self.bursts);
        if sender.is_waiting() {
            self.waiting = Some(index);
        }
        if self.event_log.is_some() {
            self.log_events(index, now);
        }
        if !self.bursts.is_empty() {
            self.send_bursts(index, outside);
        }
        let Some(Due { next, tick, is_done }) = self.connections[index as usize].due(now) else { return };
        outside.calendar.tick(self.timer(index, SENDER), next, tick, clock);
        if is_done {
            self.close(index, true, outside);
        }
    }

    fn send_bursts<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let mut bursts = std::mem::take(&mut self.bursts);
        for &burst in &bursts {
            if burst.is_window_probe() {
                self.send_window_probe(index, burst, outside);
            } else {
                self.send_burst(index, burst, outside);
            }
        }
        bursts.clear();
        self.bursts = bursts;
    }

    #[inline(always)]
    fn send_burst<C: Calendar>(&mut self, index: u32, burst: Burst, outside: &mut Outside<C>) {
        let now = outside.now;
        let connection = &self.connections[index as usize];
        let (headers, mss) = (HEADERS + connection.options(), connection.mss);
        let (offload, queued, whole) = (connection.offload, connection.host_queued, connection.whole);
        let packet = Packet {
            tsval: burst.tsval,
            tsecr: burst.tsecr,
            generation: connection.generation,
            flags: burst.ecn as u8 | if burst.cwr { CWR } else { 0 },
            ..Packet::new(index, Kind::Data, (mss + headers).fit_u16(), connection.forward_at)
        };
        let network = &mut outside.network;
        let first = network.routes.link(packet.at);
        let whole_lost = offload && network.links[first as usize].loses(now);
        let tapped = self.wire.is_some();
        if tapped && offload {
            self.tap_super_packet(&packet, burst, whole_lost, now, network);
        }
        let mut gone = 0;
        if whole_lost {
            if tapped {
                network.lost_first(&packet, first, burst.count, now);
            }
            gone = u64::from(burst.bytes) + u64::from(burst.count) * SEGMENT_OVERHEAD;
        } else if whole {
            self.send_whole(packet, burst, [mss, headers], outside);
        } else {
            if queued
                && !offload
                && let Some(mut entrance) = network.entrance(first)
            {
                let queue = &mut self.connections[index as usize].host_queue;
                each_segment(packet, burst, [mss, headers], |packet, bytes| {
                    let begins = entrance.begins(now);
                    let sent = entrance.send(packet, now, &mut outside.calendar);
                    gone += wait(queue, sent, begins, bytes, now);
                });
            } else {
                each_segment(packet, burst, [mss, headers], |packet, bytes| {
                    if tapped {
                        self.tap_sent(packet, now, network);
                    }
                    let begins = if queued { network.begins(first, now) } else { now };
                    let sent = if offload || !network.links[first as usize].loses(now) {
                        let packet = network.packets.insert(*packet);
                        network.send(packet, first, now, &mut outside.calendar)
                    } else {
                        if tapped {
                            network.lost_first(packet, first, 1, now);
                        }
                        Sent::Dropped
                    };
                    if queued {
                        let queue = &mut self.connections[index as usize].host_queue;
                        gone += wait(queue, sent, begins, bytes, now);
                    }
                });
            }
        }
        if queued
            && gone > 0
            && let Some(sender) = self.connections[index as usize].sender()
        {
            sender.host_queue -= gone;
        }
    }

    /// Sends the packets of a burst as one.
    #[inline(never)]
    fn send_whole<C: Calendar>(&mut self, first: Packet, burst: Burst, sizes: [u32; 2], outside: &mut Outside<C>) {
        let (now, network) = (outside.now, &mut outside.network);
        let mut joined = None;
        each_segment(first, burst, sizes, |packet, _| {
            self.tap_sent(packet, now, network);
            let segment = network.packets.insert(*packet);
            let whole = joined.map_or(segment, |(whole, last)| network.packets.join(whole, last, segment));
            joined = Some((whole, segment));
        });
        if let Some((whole, _)) = joined {
            network.send(whole, network.routes.link(first.at), now, &mut outside.calendar);
        }
    }

    /// A packet that was held before its link has left or was dropped. If it was its host's own link, the sender has
    /// room again.
    pub fn left<C: Calendar>(&mut self, left: Left, outside: &mut Outside<C>) {
        let Left { packet, link } = left;
        if packet.kind != Kind::Data {
            return;
        }
        let connection = &mut self.connections[packet.owner as usize];
        if packet.generation == connection.generation && outside.network.routes.link(connection.forward_at) == link {
            connection.leaves_host_queue(outside.now);
            let Some(Due { next, .. }) = connection.due(outside.now) else { return };
            outside.calendar.timer(self.timer(packet.owner, SENDER), next);
        }
    }
}

/// A packet with this payload waits in the host's queue until it begins to leave; returns its memory if it does not.
#[inline(always)]
fn wait(queue: &mut SliceQueue<Queued>, sent: Sent, begins: Time, bytes: u32, now: Time) -> u64 {
    let memory = u64::from(bytes) + SEGMENT_OVERHEAD;
    let leaves = match sent {
        Sent::Leaves => begins,
        Sent::Held => Time::NEVER,
        Sent::Dropped => now,
    };
    if leaves <= now {
        return memory;
    }
    queue.push(Queued { leaves, memory: memory.fit_u32() });
    0
}

/// Calls `send` with each packet of a burst, of which `packet` is the first one if that has full size.
#[inline(always)]
fn each_segment(mut packet: Packet, burst: Burst, [mss, headers]: [u32; 2], mut send: impl FnMut(&Packet, u32)) {
    packet.seq = burst.start;
    for _ in 1..burst.count {
        send(&packet, mss);
        packet.flags &= !CWR;
        packet.seq += u64::from(mss);
    }
    let bytes = burst.bytes - (burst.count - 1) * mss;
    packet.flags |= if burst.push { PUSH } else { 0 };
    packet.size = (bytes + headers).fit_u16();
    send(&packet, bytes);
}
