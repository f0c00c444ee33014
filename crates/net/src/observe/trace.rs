//! The fate of packets: which were lost or dropped, and, while recording is on, each one's path from host to host.

use crate::observe::tables::{Hop, Hops, Sent, SentPackets, Table};
use crate::packet::{Kind, Packet};
use sawtooth_tcp::packet::Ecn;
use sawtooth_units::Time;
use sawtooth_units::width::{Approx, Fit};

/// Hops kept until they are taken; then recording ends.
const MOST_HOPS: usize = 1 << 20;

/// The fate of a packet at a host: it arrived, or it was lost or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fate {
    Arrived,
    /// Its queue had no room, or removed it.
    Dropped,
    /// By the link's loss.
    Lost,
    /// By the link's policer, or damaged on the link.
    Refused,
}

impl Fate {
    /// Their names, in order of their numbers.
    pub const NAMES: &[&str] = &["arrived", "dropped", "lost", "refused"];
}

/// A lost or dropped packet, as an event.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    pub time: Time,
    /// Connection.
    pub owner: u32,
    pub fate: Fate,
    pub is_data: bool,
    pub segments: u32,
}

#[derive(Default)]
pub struct Trace {
    recording: bool,
    /// The number of the packet in each slot, from 1; 0: it is not recorded.
    numbers: Vec<u64>,
    latest: u64,
    /// For each connection: its generation, and the number up to which data was sent.
    sent: Vec<(u32, u64)>,
    packets: SentPackets,
    hops: Hops,
    count: usize,
    gone: Vec<Gone>,
}

impl Trace {
    /// Starts or stops recording. Packets already on their way are not recorded.
    pub fn record(&mut self, on: bool) {
        self.recording = on;
        self.numbers.clear();
    }

    /// A host sends `packet`, which is kept at `slot` if it is kept at all.
    pub fn begin(&mut self, slot: u32, packet: &Packet, host: u32, headers: u32, now: Time) {
        let length = if packet.kind == Kind::Data { u32::from(packet.size).saturating_sub(headers) } else { 0 };
        let again = packet.kind == Kind::Data && self.is_again(packet, length);
        if !self.recording {
            return;
        }
        self.latest += 1;
        self.name(slot, self.latest);
        self.packets.push(Sent {
            t_s: seconds(now),
            packet: self.latest.cast_signed(),
            connection: i64::from(packet.owner),
            host: i64::from(host),
            kind: match packet.kind {
                Kind::Data => 0,
                Kind::Ack => 1,
                _ => 2,
            },
            seq: packet.seq.cast_signed(),
            bytes: i64::from(length),
            again: i64::from(again),
        });
    }

    fn name(&mut self, slot: u32, number: u64) {
        let slot = slot as usize;
        if slot >= self.numbers.len() {
            self.numbers.resize(slot + 1, 0);
        }
        self.numbers[slot] = number;
    }

    /// Whether it is a retransmission.
    fn is_again(&mut self, packet: &Packet, length: u32) -> bool {
        let owner = packet.owner as usize;
        if owner >= self.sent.len() {
            self.sent.resize(owner + 1, (0, 0));
        }
        let (generation, highest) = &mut self.sent[owner];
        if *generation != packet.generation {
            (*generation, *highest) = (packet.generation, 0);
        }
        let again = packet.seq < *highest;
        *highest = (*highest).max(packet.seq + u64::from(length));
        again
    }

    /// The packet at `slot` arrives at `host`.
    pub fn arrived(&mut self, slot: u32, host: usize, ecn: Ecn, now: Time) {
        self.hop(slot, host, Fate::Arrived, ecn == Ecn::Ce, now);
    }

    /// The packet at `slot` is lost or dropped at `host`.
    pub fn gone(&mut self, slot: Option<u32>, packet: &Packet, host: usize, gone: Gone) {
        if !matches!(packet.kind, Kind::ProbeRequest | Kind::ProbeReply | Kind::Datagram) {
            self.gone.push(gone);
        }
        if let Some(slot) = slot {
            self.hop(slot, host, gone.fate, false, gone.time);
            self.forget(slot);
        }
    }

    /// What is kept at `slot` from now on is not recorded.
    pub fn forget(&mut self, slot: u32) {
        if let Some(number) = self.numbers.get_mut(slot as usize) {
            *number = 0;
        }
    }

    fn hop(&mut self, slot: u32, host: usize, fate: Fate, marked: bool, now: Time) {
        let number = self.numbers.get(slot as usize).copied().unwrap_or_default();
        if !self.recording || number == 0 {
            return;
        }
        self.hops.push(Hop {
            t_s: seconds(now),
            packet: number.cast_signed(),
            host: host.fit_i64(),
            fate: fate as i64,
            marked: i64::from(marked),
        });
        self.count += 1;
        if self.count >= MOST_HOPS {
            self.record(false);
        }
    }

    /// Losses and drops since the last call.
    pub fn take_gone(&mut self) -> Vec<Gone> {
        std::mem::take(&mut self.gone)
    }

    /// What was recorded since the last call.
    pub fn take(&mut self) -> [Table; 2] {
        self.count = 0;
        [("packets", self.packets.take()), ("hops", self.hops.take())]
    }
}

fn seconds(time: Time) -> f64 {
    time.nanos().approx() / 1e9
}
