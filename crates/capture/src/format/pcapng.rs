//! Packet blocks of a pcapng file (draft-ietf-opsawg-pcapng): sections of either byte order, several interfaces.

use crate::decode::link::LinkType;
use crate::format::buffer::{Buffer, LARGEST};
use crate::format::problems::Problems;
use crate::format::record::{Broken, Record};
use pcap_parser::{Block, InterfaceDescriptionBlock, parse_block_be, parse_block_le};
use sawtooth_units::width::{Fit, Low};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const SWAPPED_BYTE_ORDER: u32 = BYTE_ORDER.swap_bytes();
/// Block type and length; the length is repeated at the end.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// Interfaces kept per section: a hostile file may declare one in every 20 bytes.
const INTERFACES: usize = 4_096;

/// The properties of an interface that its packets need.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// Bytes kept of a packet; 0: all.
    snaplen: u32,
    resolution: Resolution,
    offset_s: i64,
}

/// The unit of timestamps, `if_tsresol`.
#[derive(Clone, Copy, Debug)]
enum Resolution {
    /// 10 to minus this power, in seconds.
    Decimal(u8),
    /// 2 to minus this power, in seconds.
    Binary(u8),
}

impl Resolution {
    fn nanos(self, ticks: u64) -> u64 {
        const SECOND: u128 = 1_000_000_000;
        let wide = match self {
            Resolution::Decimal(exponent @ 0..=9) => {
                return ticks.saturating_mul(10_u64.pow(9 - u32::from(exponent)));
            }
            Resolution::Decimal(exponent) => {
                u128::from(ticks).checked_div(10_u128.saturating_pow(u32::from(exponent) - 9)).unwrap_or(0)
            }
            Resolution::Binary(exponent) => (u128::from(ticks) * SECOND) >> exponent,
        };
        u64::try_from(wide).unwrap_or(u64::MAX)
    }
}

impl Interface {
    fn time_ns(&self, ticks: u64) -> u64 {
        let time = i128::from(self.resolution.nanos(ticks)) + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }
}

/// The state of a section.
#[derive(Default)]
pub struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// The previous packet's time, for packets without one.
    time_ns: u64,
}

/// The facts of a packet block.
struct Packet {
    interface: usize,
    ticks: Option<u64>,
    kept: usize,
    wire: u32,
    /// Offset of the packet's bytes in the block.
    start: usize,
}

impl Pcapng {
    /// Whether the stream begins with a section.
    pub fn begins(buffer: &Buffer) -> bool {
        buffer.data().starts_with(&SECTION.to_le_bytes())
    }

    /// Passes blocks up to and including the next packet, which gets the number `number`; None at the end of the file.
    pub(crate) fn next_record(
        &mut self,
        buffer: &mut Buffer,
        number: u64,
        problems: &mut Problems,
    ) -> Result<Option<Record>, Broken> {
        loop {
            let byte = buffer.position();
            let broken = |text: String| Broken { byte, text };
            let Some((kind, length)) = self.head(buffer).map_err(broken)? else { return Ok(None) };
            let known = matches!(kind, SECTION | INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET);
            if !known || length > LARGEST {
                if known {
                    problems.add(number, byte, format_args!("a block of {length} bytes is left out"));
                }
                self.leave_out(buffer, length).map_err(broken)?;
                continue;
            }
            if !buffer.need(length) {
                return Err(broken(ends_inside(length)));
            }
            let block = &buffer.data()[..length];
            self.check_tail(&block[length - TAIL..], length).map_err(broken)?;
            let found = self.block(kind, block);
            buffer.pass(length);
            match found {
                Ok(Some(packet)) => match self.record(&packet, byte, length) {
                    Ok(record) => return Ok(Some(record)),
                    Err(text) => problems.add(number, byte, text),
                },
                Ok(None) => {}
                Err(text) => problems.add(number, byte, text),
            }
        }
    }

    fn word(&self, bytes: &[u8]) -> u32 {
        let bytes = bytes.first_chunk().copied().unwrap_or_default();
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Type and length in bytes of the next block, and the byte order if it is a section's. None: the end.
    fn head(&mut self, buffer: &mut Buffer) -> Result<Option<(u32, usize)>, String> {
        if !buffer.need(HEAD + TAIL) {
            return match buffer.data().len() {
                0 => Ok(None),
                there => Err(format!("the file ends here, {there} bytes into a block")),
            };
        }
        let head = buffer.data();
        let kind = self.word(head);
        if kind == SECTION {
            self.big_endian ^= match self.word(&head[HEAD..]) {
                BYTE_ORDER => false,
                SWAPPED_BYTE_ORDER => true,
                other => return Err(format!("a section of the unknown byte order {other:#010x}")),
            };
        }
        match self.word(&head[4..]) as usize {
            length if length < HEAD + TAIL => Err(format!("a block claims {length} bytes: damaged from here on")),
            length => Ok(Some((kind, length))),
        }
    }

    fn leave_out(&self, buffer: &mut Buffer, length: usize) -> Result<(), String> {
        if !buffer.skip((length - TAIL) as u64) || !buffer.need(TAIL) {
            return Err(ends_inside(length));
        }
        self.check_tail(buffer.data(), length)?;
        buffer.pass(TAIL);
        Ok(())
    }

    fn check_tail(&self, tail: &[u8], length: usize) -> Result<(), String> {
        match self.word(tail) as usize {
            again if again == length => Ok(()),
            again => Err(format!("a block of {length} bytes that ends with {again}: damaged from here on")),
        }
    }

    /// Takes a complete block of a known type; returns the facts of a packet, if it has one.
    fn block(&mut self, kind: u32, block: &[u8]) -> Result<Option<Packet>, String> {
        if kind == OBSOLETE_PACKET {
            return self.obsolete_packet(block).map(Some);
        }
        let parse = if self.big_endian { parse_block_be } else { parse_block_le };
        let parsed = parse(block).map_err(|_| format!("a block of type {kind} contradicts itself"))?.1;
        match parsed {
            Block::SectionHeader(_) => {
                self.interfaces.clear();
                Ok(None)
            }
            Block::InterfaceDescription(described) => self.interface(&described).map(|()| None),
            Block::EnhancedPacket(packet) => Ok(Some(Packet {
                interface: packet.if_id as usize,
                ticks: Some(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low)),
                kept: packet.caplen as usize,
                wire: packet.origlen,
                start: 28,
            })),
            Block::SimplePacket(packet) => {
                let snaplen = self.interfaces.first().map_or(0, |interface| interface.snaplen);
                let limit = if snaplen == 0 { u32::MAX } else { snaplen };
                let kept = (packet.origlen.min(limit) as usize).min(packet.data.len());
                Ok(Some(Packet { interface: 0, ticks: None, kept, wire: packet.origlen, start: 12 }))
            }
            _ => Ok(None),
        }
    }

    /// The packet block that pcapng used before the enhanced one.
    fn obsolete_packet(&self, block: &[u8]) -> Result<Packet, String> {
        const START: usize = 28;
        let kept = block.get(20..).map_or(0, |rest| self.word(rest)) as usize;
        if block.len() < START + TAIL || kept > block.len() - START - TAIL {
            return Err(format!("a block of type {OBSOLETE_PACKET} contradicts itself"));
        }
        let interface: [u8; 2] = block[8..].first_chunk().copied().unwrap_or_default();
        let interface = if self.big_endian { u16::from_be_bytes(interface) } else { u16::from_le_bytes(interface) };
        Ok(Packet {
            interface: usize::from(interface),
            ticks: Some(u64::from(self.word(&block[12..])) << 32 | u64::from(self.word(&block[16..]))),
            kept,
            wire: self.word(&block[24..]),
            start: START,
        })
    }

    fn interface(&mut self, block: &InterfaceDescriptionBlock) -> Result<(), String> {
        if self.interfaces.len() == INTERFACES {
            return Err(format!("more than {INTERFACES} interfaces: this one's packets are left out"));
        }
        let link = LinkType::from_number(block.linktype.0.cast_unsigned().low_u16());
        let exponent = block.if_tsresol & 0x7f;
        let resolution =
            if block.if_tsresol & 0x80 == 0 { Resolution::Decimal(exponent) } else { Resolution::Binary(exponent) };
        // The crate always reads this option as little-endian.
        let offset_s = if self.big_endian { block.if_tsoffset.swap_bytes() } else { block.if_tsoffset };
        self.interfaces.push(Interface { link, snaplen: block.snaplen, resolution, offset_s });
        Ok(())
    }

    fn record(&mut self, packet: &Packet, byte: u64, length: usize) -> Result<Record, String> {
        let Some(interface) = self.interfaces.get(packet.interface) else {
            return Err(format!("a packet of interface {}, which is not declared", packet.interface));
        };
        if let Some(ticks) = packet.ticks {
            self.time_ns = interface.time_ns(ticks);
        }
        Ok(Record {
            byte,
            time_ns: self.time_ns,
            link: interface.link,
            interface: (self.interfaces.len() > 1).then_some(packet.interface.fit_u32()),
            wire: packet.wire,
            kept: packet.kept,
            behind: length - packet.start - packet.kept,
        })
    }
}

fn ends_inside(length: usize) -> String {
    format!("the file ends inside a block of {length} bytes that begins here")
}
