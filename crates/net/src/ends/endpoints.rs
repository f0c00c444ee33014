//! What hosts do with data and acknowledgements, and how what they answer gets onto their first link.

use crate::engine::clock::{RECEIVER, ROOM, SENDER, Simulation};
use crate::frames::{HEADERS, TIMESTAMP_OPTION, sack_option};
use crate::network::packet::{Kind, Packet};
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::packet::{Ack, Burst, Sack};
use sawtooth_tcp::receiver::{Data, Receiver};
use sawtooth_tcp::sender::{SUPER_PACKET_OVERHEAD, Sender};
use sawtooth_units::width::Fit;

impl Simulation {
    pub(crate) fn take_data(&mut self, packet: Packet) {
        let index = packet.owner;
        let connection = &mut self.connections[index as usize];
        if packet.generation != connection.receiver_generation {
            return;
        }
        let clock = connection.receiver_clock(self.now);
        let Some(mut receiver) = connection.receiver.take() else {
            return;
        };
        receiver.note_handshake(self.now.since(connection.synack_sent).micros(), clock);
        let data = Data { seq: packet.seq, push: packet.push, tsval: packet.tsval, tsecr: packet.tsecr };
        let before = receiver.delivered();
        receiver.on_data(data, clock, &mut |ack| self.send_ack(index, ack));
        let connection = &self.connections[index as usize];
        let delivered = &mut self.delivered[connection.flow as usize];
        delivered.segments += receiver.delivered() - before;
        delivered.bytes += connection.bytes(receiver.delivered()) - connection.bytes(before);
        self.put_receiver(index, receiver);
    }

    pub(crate) fn put_receiver(&mut self, index: u32, receiver: Box<Receiver>) {
        self.timers.set(self.timer_index(index, RECEIVER), receiver.timer());
        self.connections[index as usize].receiver = Some(receiver);
    }

    pub(crate) fn send_ack(&mut self, index: u32, ack: &Ack) {
        let connection = &self.connections[index as usize];
        let timestamps = if connection.timestamps { TIMESTAMP_OPTION } else { 0 };
        let size = HEADERS + timestamps + sack_option(ack.sack.count);
        let mut packet = Packet {
            seq: ack.next,
            tsval: ack.tsval,
            tsecr: ack.tsecr,
            window: ack.window.min(u64::from(u32::MAX)).fit_u32(),
            generation: connection.receiver_generation,
            ..Packet::new(index, Kind::Ack, size.fit_u16(), connection.backward_at)
        };
        if ack.sack.count > 0 {
            let slot = self.free_sacks.pop().unwrap_or_else(|| {
                self.sacks.push(Sack::default());
                self.sacks.len().fit_u32() - 1
            });
            self.sacks[slot as usize] = ack.sack;
            packet.sack = slot + 1;
        }
        self.forward(packet);
    }

    pub(crate) fn take_ack(&mut self, packet: Packet) {
        let index = packet.owner;
        let sack = match packet.sack {
            0 => Sack::default(),
            slot => self.sacks[slot as usize - 1],
        };
        self.drop(packet);
        if packet.generation != self.connections[index as usize].generation {
            return self.send_reset(index, packet.generation, packet.seq);
        }
        let ack =
            Ack { next: packet.seq, window: u64::from(packet.window), tsval: packet.tsval, tsecr: packet.tsecr, sack };
        self.with_sender(index, |sender, clock, out| sender.on_ack(&ack, clock, out));
    }

    /// Lets the sender of a connection act, sends what it wants sent, and re-arms its timers.
    pub(crate) fn with_sender(&mut self, index: u32, act: impl FnOnce(&mut Sender, Clock, &mut Vec<Burst>)) {
        let now = self.now;
        let connection = &mut self.connections[index as usize];
        let clock = connection.sender_clock(now);
        if connection.host_queued {
            connection.settle_host_queue(now);
        }
        let Some(sender) = connection.sender() else { return };
        let mut bursts = std::mem::take(&mut self.bursts);
        act(sender, clock, &mut bursts);
        for &burst in &bursts {
            self.send_burst(index, burst);
        }
        bursts.clear();
        self.bursts = bursts;
        let connection = &mut self.connections[index as usize];
        let leaves = connection.host_queue.front().map_or(now, |&(departure, _)| departure);
        let Some(sender) = connection.sender() else { return };
        let done = sender.is_done();
        let timer = sender.timer();
        let room = sender.next_room(leaves);
        self.timers.set(self.timer_index(index, SENDER), timer);
        self.timers.set(self.timer_index(index, ROOM), room);
        if done {
            self.close(index, true);
        }
    }

    pub(crate) fn send_burst(&mut self, index: u32, burst: Burst) {
        let connection = &self.connections[index as usize];
        let options = HEADERS + if connection.timestamps { TIMESTAMP_OPTION } else { 0 };
        let (mss, total, last_size) = (connection.mss, connection.total, connection.last_size);
        let (offload, queued) = (connection.offload, connection.host_queued);
        let mut packet = Packet {
            tsval: burst.tsval,
            tsecr: burst.tsecr,
            generation: connection.generation,
            ..Packet::new(index, Kind::Data, (mss + options).fit_u16(), connection.forward_at)
        };
        let first = self.routes.link(packet.at);
        let memory = u64::from(burst.count) * u64::from(mss) + SUPER_PACKET_OVERHEAD;
        let whole_lost = offload && self.links[first as usize].loses();
        let tapped = self.taps.is_some();
        if tapped && offload {
            self.tap_super_packet(&packet, burst, whole_lost);
        }
        let mut leaves = self.now;
        if !whole_lost {
            for seq in burst.start..burst.start + u64::from(burst.count) {
                packet.seq = seq;
                packet.push = burst.push && seq + 1 == burst.start + u64::from(burst.count);
                if seq + 1 == total {
                    packet.size = (last_size + options).fit_u16();
                }
                if tapped {
                    self.tap_sent(&packet);
                }
                let departure = if offload || !self.links[first as usize].loses() {
                    let packet = self.packets.insert(packet);
                    self.send(packet, first, self.now)
                } else {
                    None
                };
                leaves = departure.unwrap_or(leaves);
            }
        }
        let connection = &mut self.connections[index as usize];
        if !queued {
            return;
        }
        if leaves > self.now {
            connection.host_queue.push_back((leaves, memory.fit_u32()));
        } else if let Some(sender) = connection.sender() {
            sender.host_queue -= memory;
        }
    }
}
