//! Captures at hosts: each packet as its host hands it to its first link, and as it arrives.
//!
//! Its header fields are computed once, by the sending host, and kept while it travels. Captures do not influence the
//! simulation.

use crate::observe::trace::{Gone, Trace};
use crate::packet::Packet;
use crate::scenario::Scenario;
use sawtooth_capture::{HEADERS_ONLY, Ping, Segment, Writer};
use sawtooth_tcp::packet::Ecn;
use sawtooth_units::Time;
use std::io::{self, Write};

/// The start of a run: 2026-01-01 00:00:00 UTC, like the clock of the engine `kernel`.
const EPOCH_NS: u64 = 1_767_225_600 * 1_000_000_000;
/// Time to live of a sent packet.
pub const TTL: u8 = 64;

/// The destination of a capture. Records are small, so buffer it.
pub type Output = Box<dyn Write + Send + Sync>;

/// The captures of a run.
pub struct Taps {
    /// For each host.
    files: Vec<Option<Writer<Output>>>,
    /// The host to which each link leads.
    leads_to: Vec<usize>,
    /// The host that each link leaves.
    leaves: Vec<usize>,
    /// Travelling frames, by the slot of their packet.
    frames: Vec<Frame>,
    fault: Option<(usize, io::Error)>,
    /// Some host has a capture.
    pub captures: bool,
    /// Present if packets are followed.
    pub trace: Option<Trace>,
}

#[derive(Clone, Copy)]
struct Frame {
    /// Where its route begins.
    begins: u32,
    what: What,
}

#[derive(Clone, Copy)]
pub enum What {
    Tcp(Segment),
    Echo(Ping),
    /// Not captured.
    Datagram,
}

impl Taps {
    /// Captures at hosts, by their index in `scenario`.
    ///
    /// # Errors
    ///
    /// Those of the streams.
    pub fn new(scenario: &Scenario, outputs: impl IntoIterator<Item = (usize, Output)>) -> io::Result<Self> {
        let mut files: Vec<_> = scenario.hosts.iter().map(|_| None).collect();
        for (host, output) in outputs {
            files[host] = Some(Writer::new(output, HEADERS_ONLY)?);
        }
        let [leads_to, leaves] =
            [true, false].map(|to| scenario.links.iter().map(|link| if to { link.to } else { link.from }).collect());
        let captures = files.iter().any(Option::is_some);
        Ok(Taps { files, leads_to, leaves, frames: Vec::new(), fault: None, captures, trace: None })
    }

    /// Captures nothing, but follows packets.
    pub fn tracing(scenario: &Scenario) -> Self {
        let files = scenario.hosts.iter().map(|_| None).collect();
        let [leads_to, leaves] =
            [true, false].map(|to| scenario.links.iter().map(|link| if to { link.to } else { link.from }).collect());
        let trace = Some(Trace::default());
        Taps { files, leads_to, leaves, frames: Vec::new(), fault: None, captures: false, trace }
    }

    /// Hosts where packets are recorded.
    pub fn hosts(&self) -> impl Iterator<Item = usize> {
        let all = self.trace.is_some();
        self.files.iter().enumerate().filter(move |(_, file)| all || file.is_some()).map(|(host, _)| host)
    }

    /// The first failed write, with the host of the capture; the capture ends there. Reported once.
    pub fn fault(&mut self) -> Option<(usize, io::Error)> {
        self.fault.take()
    }

    /// A host puts a packet on its route, which begins at place `begins`. If it is kept at all, it is kept at `slot`.
    pub fn keep(&mut self, slot: u32, begins: u32, what: What) {
        let frame = Frame { begins, what };
        match self.frames.get_mut(slot as usize) {
            Some(kept) => *kept = frame,
            // Slots are used one after the other; a skipped one is filled later.
            None => self.frames.resize(slot as usize + 1, frame),
        }
    }

    /// What is kept at `slot` is also kept at `copy`.
    pub fn copied(&mut self, slot: u32, copy: u32) {
        if let Some(trace) = &mut self.trace {
            trace.forget(copy);
        }
        if self.captures {
            let Frame { begins, what } = self.frames[slot as usize];
            self.keep(copy, begins, what);
        }
    }

    /// The packet at `slot` arrives over `link` with `ecn` in its ECN field; `links` gives the link's distance from the
    /// beginning of its route.
    #[cold]
    #[inline(never)]
    pub fn arrived(&mut self, slot: u32, link: u32, ecn: Ecn, now: Time, links: impl FnOnce(u32) -> u32) {
        let host = self.leads_to[link as usize];
        if let Some(trace) = &mut self.trace {
            trace.arrived(slot, host, ecn, now);
        }
        if self.files[host].is_none() {
            return;
        }
        let Frame { begins, mut what } = self.frames[slot as usize];
        if let What::Tcp(segment) = &mut what {
            segment.ecn = ecn as u8;
        }
        let routers = u8::try_from(links(begins) - 1).unwrap_or(TTL);
        self.write(host, what, now, TTL.saturating_sub(routers).max(1));
    }

    /// A packet ends where `link` begins.
    pub fn gone(&mut self, slot: Option<u32>, packet: &Packet, link: u32, gone: Gone) {
        if let Some(trace) = &mut self.trace {
            trace.gone(slot, packet, self.leaves[link as usize], gone);
        }
    }

    /// A host sends `what`.
    pub fn sent(&mut self, host: usize, what: What, now: Time) {
        self.write(host, what, now, TTL);
    }

    fn write(&mut self, host: usize, what: What, now: Time, ttl: u8) {
        let Some(file) = &mut self.files[host] else { return };
        let time_ns = EPOCH_NS + now.nanos();
        let written = match what {
            What::Tcp(segment) => file.write(&Segment { time_ns, ttl, ..segment }),
            What::Echo(ping) => file.write_ping(&Ping { time_ns, ttl, ..ping }),
            What::Datagram => Ok(()),
        };
        if let Err(error) = written {
            self.files[host] = None;
            self.fault.get_or_insert((host, error));
        }
    }

    /// The end of the run.
    pub fn finish(&mut self) {
        for (host, file) in self.files.iter_mut().enumerate() {
            if let Some(Err(error)) = file.take().map(Writer::finish) {
                self.fault.get_or_insert((host, error));
            }
        }
    }
}
