//! Where packets are kept while they travel: links and queues hold only their slots.

use crate::packet::Packet;

#[derive(Clone, Debug, Default)]
pub struct Packets {
    slots: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    /// Keeps `packet`; its slot.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = packet;
            return slot;
        }
        self.slots.push(packet);
        self.slots.len() as u32 - 1
    }

    /// Takes the packet out of `slot`.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.slots[slot as usize]
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut Packet {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;

    #[test]
    fn a_freed_slot_is_used_again() {
        let mut packets = Packets::default();
        let packet = |owner| Packet::new(owner, Kind::Data, 100, 0);
        let slots = [1, 2, 3].map(|owner| packets.insert(packet(owner)));
        assert_eq!(packets.remove(slots[1]).owner, 2);
        assert_eq!(packets.insert(packet(4)), slots[1]);
        assert_eq!(slots.map(|slot| packets.remove(slot).owner), [1, 4, 3]);
    }
}
