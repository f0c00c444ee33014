//! Packets of the host under test, and how they are compared with those that a script expects.
//!
//! As in packetdrill (gtests/net/packetdrill/run_packet.c), the window is compared if the script states it, the ECN
//! field of the IP header likewise, and the options unless the script says `<...>`. Differences: PSH and padding are
//! not compared, and the echo of a timestamp is.

use crate::script::{Mark, Packet, TcpOption};
use sawtooth_tcp::packet::Ecn;
use std::collections::BTreeMap;

/// A packet that was sent, in bytes; its sequence numbers count from the SYN. With offload it may contain several
/// segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Microseconds since the script's start.
    pub at_us: i64,
    pub syn: bool,
    pub fin: bool,
    pub reset: bool,
    /// ECE and CWR.
    pub ece: bool,
    pub cwr: bool,
    pub ecn: Ecn,
    pub start: u64,
    pub length: u64,
    pub ack: Option<u64>,
    /// The window field.
    pub window: u64,
    /// Without padding; timestamps as sent.
    pub options: Vec<TcpOption>,
}

/// The relation of the script's timestamps to those that were sent: the first of each correspond.
#[derive(Debug, Default)]
pub struct Stamps {
    first: Option<(u32, u32)>,
    sent: BTreeMap<u32, u32>,
    /// Microseconds of a timestamp's unit; with it, their values are compared.
    pub tick_us: Option<i64>,
}

impl Stamps {
    /// The script calls the value `actual` `written`; returns how far the script is off, in units.
    fn learn(&mut self, written: u32, actual: u32) -> i64 {
        self.sent.insert(written, actual);
        let (first_written, first_actual) = *self.first.get_or_insert((written, actual));
        let (expected, sent) = (written.wrapping_sub(first_written), actual.wrapping_sub(first_actual));
        i64::from(expected.wrapping_sub(sent).cast_signed())
    }

    /// The echo to inject for one in the script.
    pub fn echo(&self, written: u32) -> u32 {
        match (self.sent.get(&written), self.first) {
            (Some(&actual), _) => actual,
            (None, Some((first_written, first_actual))) if written > 0 => {
                written.wrapping_sub(first_written).wrapping_add(first_actual)
            }
            _ => written,
        }
    }
}

impl Sent {
    pub fn end(&self) -> u64 {
        self.start + self.length
    }

    fn timestamps(&self) -> Option<(u32, u32)> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Timestamps(value, echo) => Some((*value, *echo)),
            _ => None,
        })
    }

    /// Whether it is the `expected` packet, apart from its time; `tolerance_us` is for timestamps.
    pub fn matches(&self, expected: &Packet, stamps: &mut Stamps, tolerance_us: i64) -> bool {
        let flags = [('S', self.syn), ('F', self.fin), ('R', self.reset), ('.', self.ack.is_some())];
        let has_flags = flags.into_iter().all(|(letter, set)| expected.has(letter) == set)
            && (expected.has('E'), expected.has('W')) == (self.ece, self.cwr);
        let is_marked = match expected.mark {
            None => true,
            Some(Mark::Is(ecn)) => ecn == self.ecn,
            Some(Mark::Ect) => matches!(self.ecn, Ecn::Ect0 | Ecn::Ect1),
        };
        has_flags
            && is_marked
            && (expected.start, expected.length) == (self.start, self.length)
            && (self.ack.is_none() || expected.ack.unwrap_or(0) == self.ack.unwrap_or(0))
            && expected.window.is_none_or(|window| window == self.window)
            && (expected.any_options || self.has_options(expected, stamps, tolerance_us))
    }

    fn has_options(&self, expected: &Packet, stamps: &mut Stamps, tolerance_us: i64) -> bool {
        let compared = |option: &&TcpOption| !matches!(option, TcpOption::Nothing | TcpOption::Timestamps(..));
        let same = expected.options.iter().filter(compared).eq(self.options.iter().filter(compared));
        let stamped = match (expected.timestamps(), self.timestamps()) {
            (None, None) => true,
            (Some((value, echo)), Some((actual, actual_echo))) => {
                let off = stamps.learn(value, actual).abs();
                echo == actual_echo && stamps.tick_us.is_none_or(|tick_us| off.saturating_mul(tick_us) <= tolerance_us)
            }
            _ => false,
        };
        same && stamped
    }

    /// In the script's language, with its time. What the script does not state for `expected` is left out.
    pub fn describe(&self, expected: &Packet) -> String {
        let mut text = String::new();
        for (letter, set) in [('S', self.syn), ('F', self.fin), ('R', self.reset), ('E', self.ece), ('W', self.cwr)] {
            if set {
                text.push(letter);
            }
        }
        if !text.is_empty() {
            text.push(' ');
        }
        if expected.mark.is_some() {
            text.insert_str(0, &format!("{:?} ", self.ecn));
        }
        text += &format!("{}:{}({})", self.start, self.end(), self.length);
        if let Some(ack) = self.ack.filter(|_| self.ack != expected.ack) {
            text += &format!(" ack {ack}");
        }
        if expected.window.is_some_and(|window| window != self.window) {
            text += &format!(" win {}", self.window);
        }
        if !expected.any_options {
            text += &options(&self.options);
        }
        format!("{text} at {}", seconds(self.at_us))
    }
}

/// In the script's language.
pub fn describe(packet: &Packet) -> String {
    let mut flags: String = packet.flags.chars().filter(|letter| "SFREW".contains(*letter)).collect();
    if !flags.is_empty() {
        flags.push(' ');
    }
    if let Some(mark) = packet.mark {
        flags.insert_str(0, &format!("{mark:?} "));
    }
    let mut text = format!("{flags}{}:{}({})", packet.start, packet.start + packet.length, packet.length);
    if let Some(ack) = packet.ack.filter(|&ack| ack > 1) {
        text += &format!(" ack {ack}");
    }
    if let Some(window) = packet.window {
        text += &format!(" win {window}");
    }
    text + &options(&packet.options)
}

fn options(options: &[TcpOption]) -> String {
    let mut parts = Vec::new();
    for option in options {
        parts.push(match option {
            TcpOption::Nothing => continue,
            TcpOption::Mss(mss) => format!("mss {mss}"),
            TcpOption::SackPermitted => "sackOK".to_owned(),
            TcpOption::WindowScale(shift) => format!("wscale {shift}"),
            TcpOption::Timestamps(value, echo) => format!("TS val {value} ecr {echo}"),
            TcpOption::Other(name) => name.clone(),
            TcpOption::Sack(blocks) => {
                let blocks: Vec<String> = blocks.iter().map(|(start, end)| format!("{start}:{end}")).collect();
                format!("sack {}", blocks.join(" "))
            }
        });
    }
    if parts.is_empty() { String::new() } else { format!(" <{}>", parts.join(",")) }
}

pub fn seconds(us: i64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let short = text.trim_end_matches('0').trim_end_matches('.');
    format!("{short} s")
}
