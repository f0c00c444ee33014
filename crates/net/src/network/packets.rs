//! Storage of travelling packets: links hold only handles.

use crate::network::link::Handle;
use crate::network::slice_queue::SliceQueue;
use crate::packet::{Kind, Packet};
use sawtooth_tcp::packet::Sack;
use sawtooth_units::width::Fit;

#[derive(Clone, Debug)]
pub struct Packets {
    slots: Vec<Packet>,
    /// First in, first out, so that consecutive packets tend to be adjacent in memory.
    free: SliceQueue<u32>,
    /// SACK blocks of the acknowledgements that have some.
    sacks: Vec<Sack>,
    free_sacks: Vec<u32>,
}

impl Packets {
    pub fn new() -> Self {
        Packets { slots: Vec::new(), free: SliceQueue::new(), sacks: Vec::new(), free_sacks: Vec::new() }
    }

    #[inline]
    pub fn insert(&mut self, packet: Packet) -> Handle {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = packet;
            return Handle::new(slot, packet.size);
        }
        self.slots.push(packet);
        Handle::new(self.slots.len().fit_u32() - 1, packet.size)
    }

    /// Where the next packet will be stored.
    pub fn next_slot(&self) -> u32 {
        self.free.front().copied().unwrap_or(self.slots.len().fit_u32())
    }

    #[inline]
    pub fn remove(&mut self, handle: Handle) -> Packet {
        self.free.push(handle.slot());
        self.slots[handle.slot() as usize]
    }

    /// A packet is lost, with what was stored separately for it and the rest of its super-packet.
    #[cold]
    pub fn discard(&mut self, handle: Handle) {
        let following = self.following(handle);
        let packet = self.remove(handle);
        self.release(&packet);
        if let Some(following) = following {
            self.discard(following);
        }
    }

    /// Lets a segment travel with `whole`, whose last segment so far is `last`: a handle with the size of all.
    pub fn join(&mut self, whole: Handle, last: Handle, segment: Handle) -> Handle {
        self.get_mut(last).window = segment.slot() + 1;
        whole.with_size(whole.size() + segment.size())
    }

    /// The next segment of a super-packet that travels as one.
    pub fn following(&self, handle: Handle) -> Option<Handle> {
        let packet = &self.slots[handle.slot() as usize];
        let slot = (packet.kind == Kind::Data).then_some(packet.window)?.checked_sub(1)?;
        Some(Handle::new(slot, self.slots[slot as usize].size))
    }

    /// A segment that travels by itself from now on, with the place on its route and the mark of the first one.
    pub fn part(&mut self, handle: Handle, first: &Packet) -> Handle {
        let packet = self.get_mut(handle);
        (packet.window, packet.at) = (0, first.at);
        packet.set_ecn(first.ecn());
        Handle::new(handle.slot(), packet.size)
    }

    /// Duplicates a packet.
    pub fn copy(&mut self, handle: Handle) -> Handle {
        let mut packet = *self.get_mut(handle);
        if packet.sack != 0 {
            let sack = self.sack(&packet);
            self.keep_sack(&mut packet, sack);
        }
        self.insert(packet)
    }

    /// The largest number travelling at one time.
    pub fn most(&self) -> u64 {
        self.slots.len() as u64
    }

    pub fn get_mut(&mut self, handle: Handle) -> &mut Packet {
        &mut self.slots[handle.slot() as usize]
    }

    /// Stores the SACK blocks of `packet`.
    pub fn keep_sack(&mut self, packet: &mut Packet, sack: Sack) {
        let slot = self.free_sacks.pop().unwrap_or_else(|| {
            self.sacks.push(Sack::default());
            self.sacks.len().fit_u32() - 1
        });
        self.sacks[slot as usize] = sack;
        packet.sack = slot + 1;
    }

    /// The SACK blocks of `packet`, which travels or has just arrived.
    #[inline]
    pub fn sack(&self, packet: &Packet) -> Sack {
        match packet.sack {
            0 => Sack::default(),
            slot => self.sacks[slot as usize - 1],
        }
    }

    /// Releases what was stored separately for `packet`.
    #[inline]
    pub fn release(&mut self, packet: &Packet) {
        if packet.sack != 0 {
            self.free_sacks.push(packet.sack - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;

    #[test]
    fn freed_slot_is_reused() {
        let mut packets = Packets::new();
        let packet = |owner| Packet::new(owner, Kind::Data, 100, 0);
        let handles = [1, 2, 3].map(|owner| packets.insert(packet(owner)));
        assert_eq!(packets.remove(handles[1]).owner, 2);
        assert_eq!(packets.insert(packet(4)), handles[1]);
        assert_eq!(handles.map(|handle| packets.remove(handle).owner), [1, 4, 3]);
    }

    #[test]
    fn a_packet_keeps_its_sack_blocks_until_it_is_lost() {
        let mut packets = Packets::new();
        let mut packet = Packet::new(1, Kind::Ack, 100, 0);
        packets.keep_sack(&mut packet, Sack { count: 2, ..Sack::default() });
        let handle = packets.insert(packet);
        assert_eq!(packets.sack(&packet).count, 2);
        packets.discard(handle);
        let mut next = Packet::new(2, Kind::Ack, 100, 0);
        packets.keep_sack(&mut next, Sack { count: 3, ..Sack::default() });
        assert_eq!((next.sack, packets.sack(&next).count), (packet.sack, 3));
    }
}
