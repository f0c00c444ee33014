//! ECN in SYN and SYN-ACK (RFC 3168 section 6.1.1), and accurate ECN (RFC 9768 section 3.1).

use crate::packet::{AE, CWR, ECE, Packet};
use crate::scenario::Host;
use sawtooth_tcp::cc::Chosen;
use sawtooth_tcp::packet::Ecn;
use sawtooth_tcp::receiver::Echo;

/// The ECN requirements of a connection's congestion control.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    /// It requests ECN itself, and all its packets may be marked.
    needs: bool,
    /// Its receiver reports each change.
    exact: bool,
    /// All marks are counted, too.
    accurate: bool,
}

impl Wish {
    pub fn of(chosen: Option<&Chosen>) -> Self {
        Wish {
            needs: chosen.is_some_and(Chosen::needs_ecn),
            exact: chosen.is_some_and(Chosen::heeds_each_mark),
            accurate: chosen.is_some_and(Chosen::needs_accurate_ecn),
        }
    }

    /// The ECN field of handshakes and acknowledgements, which most controls do not allow to be marked.
    pub fn ect(self) -> u8 {
        let ecn = match (self.needs, self.accurate) {
            (false, _) => Ecn::NotEct,
            (true, false) => Ecn::Ect0,
            (true, true) => Ecn::Ect1,
        };
        ecn as u8
    }

    /// The flags of a SYN after `tries` earlier ones. If one got no answer, ECN may be the reason (section 6.1.1.1).
    pub fn syn(self, host: &Host, tries: u32) -> u8 {
        let asks = (host.ecn == 1 || self.needs) && (tries == 0 || host.ecn_insists);
        let accurate = if self.accurate { AE } else { 0 };
        self.ect() | if asks { ECE | CWR | accurate } else { 0 }
    }

    /// Whether the end that receives a SYN agrees.
    pub fn agrees(self, host: &Host, syn: &Packet) -> bool {
        host.ecn != 0 && syn.has(ECE) && syn.has(CWR)
    }

    /// The flags of its answer to a SYN with these flags; with accurate ECN, how that SYN arrived.
    pub fn synack(self, agreed: bool, syn: u8) -> u8 {
        let flags = match (self.accurate, Ecn::from_bits(syn)) {
            (false, _) => ECE,
            (true, Ecn::NotEct) => CWR,
            (true, Ecn::Ect1) => CWR | ECE,
            (true, Ecn::Ect0) => AE,
            (true, Ecn::Ce) => AE | CWR,
        };
        if agreed { flags | self.ect() } else { 0 }
    }

    /// Whether an answer agrees.
    pub fn agreed(self, synack: &Packet) -> bool {
        if self.accurate { synack.has(AE) || synack.has(CWR) } else { synack.has(ECE) }
    }

    /// How marks are reported.
    pub fn echo(self, agreed: bool) -> Echo {
        match (agreed, self.exact, self.accurate) {
            (false, ..) => Echo::Nothing,
            (true, false, _) => Echo::Classic,
            (true, true, false) => Echo::Exact,
            (true, true, true) => Echo::Accurate,
        }
    }
}
