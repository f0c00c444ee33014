//! Where packets are kept while they travel: links hold only handles.

use crate::network::link::Handle;
use crate::network::packet::Packet;
use crate::network::ring::Ring;
use sawtooth_units::width::Fit;

#[derive(Clone, Debug)]
pub struct Packets {
    slots: Vec<Packet>,
    /// First in, first out, so that packets that follow each other tend to lie side by side.
    free: Ring<u32>,
}

impl Packets {
    pub fn new() -> Self {
        Packets { slots: Vec::new(), free: Ring::new() }
    }

    #[inline]
    pub fn insert(&mut self, packet: Packet) -> Handle {
        if self.free.len() > 0 {
            let slot = self.free.pop();
            self.slots[slot as usize] = packet;
            return Handle::new(slot, packet.size);
        }
        self.slots.push(packet);
        Handle::new(self.slots.len().fit_u32() - 1, packet.size)
    }

    /// Where the next packet will be kept.
    pub fn next_slot(&self) -> u32 {
        self.free.front().copied().unwrap_or(self.slots.len().fit_u32())
    }

    #[inline]
    pub fn remove(&mut self, handle: Handle) -> Packet {
        self.free.push(handle.slot());
        self.slots[handle.slot() as usize]
    }

    /// So many have travelled at a time.
    pub fn most(&self) -> u64 {
        self.slots.len() as u64
    }

    pub fn get_mut(&mut self, handle: Handle) -> &mut Packet {
        &mut self.slots[handle.slot() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::packet::Kind;

    #[test]
    fn a_freed_slot_is_used_again() {
        let mut packets = Packets::new();
        let packet = |owner| Packet::new(owner, Kind::Data, 100, 0);
        let handles = [1, 2, 3].map(|owner| packets.insert(packet(owner)));
        assert_eq!(packets.remove(handles[1]).owner, 2);
        assert_eq!(packets.insert(packet(4)), handles[1]);
        assert_eq!(handles.map(|handle| packets.remove(handle).owner), [1, 4, 3]);
    }
}
