//! Packets: data segments, acknowledgements, probes and datagrams on links.

use sawtooth_tcp::packet::Ecn;
pub use sawtooth_tcp::packet::{AE, CWR, ECE, PUSH};
use sawtooth_tcp::steady::Visit;

/// The meaning of a packet for the receiving host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Syn,
    SynAck,
    /// The third packet of the handshake.
    Established,
    Data,
    Ack,
    /// A sender's question whether the receiver's window is still closed.
    WindowProbe,
    /// Hosts the connection at the receiver.
    Reset,
    ProbeRequest,
    ProbeReply,
    /// It is never answered.
    Datagram,
    /// A reader opens a connection: the handshake's three packets.
    Call,
    CallTaken,
    CallConfirmed,
    /// A reader requests more, and acknowledges everything received.
    Request,
    /// A reader closes.
    HangUp,
}

/// A packet; SACK blocks are stored separately and referenced by index. The order of fields lets it be copied in whole
/// words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// The connection, probe, or stream of datagrams.
    pub owner: u32,
    /// Which of the connections in this slot it belongs to.
    pub generation: u32,
    /// Data: first byte; ACK: next expected byte; window probe: the byte after the one that it repeats; probe and
    /// datagram: number; call: when it was opened; request: the end of the requested range.
    pub seq: u64,
    /// For a datagram, together with the next field: when it was sent.
    pub tsval: u32,
    pub tsecr: u32,
    /// ACK: window in bytes. Data that travels in a super-packet: where its next segment is, plus one; 0: none.
    pub window: u32,
    /// ACK: where its SACK blocks are, plus one; 0: none.
    pub sack: u32,
    /// Its place on its route (see [`crate::network::routes`]).
    pub at: u32,
    /// Frame bytes as Linux counts them: payload and headers, including Ethernet's 14.
    pub size: u16,
    pub kind: Kind,
    /// See [`PUSH`].
    pub flags: u8,
}

/// Where the three flags begin, which are a number in accurate ECN (RFC 9768 section 3.2.1).
const ACE: u32 = ECE.trailing_zeros();

/// That number as flags.
pub fn ace(number: u8) -> u8 {
    (number & 7) << ACE
}

impl Default for Packet {
    fn default() -> Self {
        Packet::new(0, Kind::Data, 0, 0)
    }
}

impl Packet {
    /// Marks a datagram. It is in the field for a connection's generation, which never gets this large.
    pub const DATAGRAMS: u64 = (u32::MAX - 1) as u64;

    /// Tells flows apart, both directions of one alike: what a queue for each flow may know.
    pub fn flow(&self) -> u64 {
        if self.kind == Kind::Datagram {
            return u64::from(self.owner) << 32 | Self::DATAGRAMS;
        }
        let is_probe = matches!(self.kind, Kind::ProbeRequest | Kind::ProbeReply);
        u64::from(self.owner) << 32 | u64::from(self.generation) << 1 | u64::from(is_probe)
    }

    /// See [`sawtooth_tcp::steady`]. Timestamps follow the clock.
    pub fn visit(&mut self, visit: &mut Visit) {
        let Packet { owner, generation, seq, tsval: _, tsecr: _, window, sack, at, size, kind, flags } = self;
        visit.needs(matches!(kind, Kind::Data | Kind::Ack) && *sack == 0);
        visit.owner(*owner);
        visit.sequence(seq);
        [*owner, *generation, *window, *at].into_iter().for_each(|word| visit.same(word));
        visit.same(u64::from(*size) << 16 | u64::from(*flags) << 8 | *kind as u64);
    }

    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.flags)
    }

    pub fn set_ecn(&mut self, ecn: Ecn) {
        self.flags = self.flags & !3 | ecn as u8;
    }

    /// See [`ace`].
    pub fn ace(&self) -> u8 {
        self.flags >> ACE & 7
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn new(owner: u32, kind: Kind, size: u16, at: u32) -> Self {
        Packet { owner, kind, flags: 0, size, seq: 0, tsval: 0, tsecr: 0, window: 0, sack: 0, generation: 0, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_five_words_and_its_ecn_field_leaves_the_other_flags_alone() {
        assert_eq!(size_of::<Packet>(), 40);
        let mut packet = Packet { flags: PUSH, ..Packet::default() };
        assert_eq!(packet.ecn(), Ecn::NotEct);
        for ecn in [Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            packet.set_ecn(ecn);
            assert_eq!((packet.ecn(), packet.has(PUSH), packet.has(ECE)), (ecn, true, false));
        }
    }
}
