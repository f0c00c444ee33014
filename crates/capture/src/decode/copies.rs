//! Recognizes copies of packets in a capture of several devices, which records a packet at each device it passes: a
//! bridge and its port, a VLAN and its card, both sides of a router.
//!
//! All headers of a copy are the same except what a hop changes. A retransmission may look the same, too, if the sender
//! does not increment its identifications and its clock has not ticked. But it passes the first device again. So a
//! packet is a copy if its device has seen it less often than another device has.

#![expect(clippy::disallowed_types, reason = "packets are looked up in the map, which is never walked")]

use std::collections::{HashMap, VecDeque};

use crate::decode::segment::{Endpoint, Segment};

/// The device on which a frame was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The capture has one device.
    Only,
    /// One of several devices; the capture does not say which.
    Unknown,
    /// This device; the lowest bit is 1 for packets that its host sends.
    Id(u64),
}

/// Packets remembered once copies are expected; and before that, or if the devices are unknown.
const MAX_REMEMBERED: usize = 1 << 15;
const MAX_RECENT: usize = 16;

/// Devices distinguished for one packet.
const DEVICES: usize = 4;

/// Nanoseconds between copies if the devices are unknown.
const REPEAT_NS: u64 = 1_000_000;

/// How often each device has seen a packet; unused entries have 0.
type Sightings = [(u64, u32); DEVICES];

#[derive(Default)]
pub struct Copies {
    /// The latest packets, each with its device; the oldest is at `oldest`.
    recent: Vec<(Segment, u64)>,
    oldest: usize,
    /// The device of each direction, and the sender of the last incoming packet.
    devices: [Option<u64>; 2],
    last_incoming_sender: Option<Endpoint>,
    /// Packets by their headers, once copies are expected; `order` is their order of arrival.
    seen: Option<HashMap<Segment, Sightings>>,
    order: VecDeque<Segment>,
}

impl Copies {
    /// Whether `segment` is a copy of an earlier one; if not, it is recorded.
    #[inline]
    pub fn is_copy(&mut self, segment: &Segment, device: Device) -> bool {
        match device {
            Device::Only => false,
            Device::Unknown => self.is_immediate_repeat(segment),
            Device::Id(device) if self.seen.is_some() => self.is_repeat_on_other_device(segment, device),
            Device::Id(device) if self.is_one_of_several(segment, device) => {
                self.expect_copies();
                self.is_repeat_on_other_device(segment, device)
            }
            Device::Id(device) => {
                self.keep(segment, device);
                false
            }
        }
    }

    /// Without devices: a packet with the same identification within a time too short to detect a loss.
    fn is_immediate_repeat(&mut self, segment: &Segment) -> bool {
        let same = |(other, _): &(Segment, u64)| {
            other.seq == segment.seq
                && other.time_ns.abs_diff(segment.time_ns) <= REPEAT_NS
                && headers(other) == headers(segment)
        };
        if segment.ip_id.is_some_and(|id| id != 0) && self.recent.iter().any(same) {
            return true;
        }
        self.keep(segment, 0);
        false
    }

    /// Whether a direction has another device than before, or the host forwards incoming packets.
    fn is_one_of_several(&mut self, segment: &Segment, device: u64) -> bool {
        let outgoing = device & 1 == 1;
        let forwards = outgoing && self.last_incoming_sender == Some(segment.source);
        if !outgoing {
            self.last_incoming_sender = Some(segment.source);
        }
        *self.devices[usize::from(outgoing)].get_or_insert(device) != device || forwards
    }

    #[inline]
    fn keep(&mut self, segment: &Segment, device: u64) {
        if self.recent.len() < MAX_RECENT {
            self.recent.push((*segment, device));
        } else {
            self.recent[self.oldest] = (*segment, device);
            self.oldest = (self.oldest + 1) % MAX_RECENT;
        }
    }

    fn expect_copies(&mut self) {
        self.seen = Some(HashMap::new());
        self.recent.rotate_left(self.oldest);
        for (segment, device) in std::mem::take(&mut self.recent) {
            self.is_repeat_on_other_device(&segment, device);
        }
    }

    fn is_repeat_on_other_device(&mut self, segment: &Segment, device: u64) -> bool {
        let seen = self.seen.get_or_insert_default();
        let headers = headers(segment);
        let sightings = seen.entry(headers).or_default();
        let (new, taken) = (sightings[0].1 == 0, record_sighting(sightings, device));
        if new {
            self.order.push_back(headers);
            if self.order.len() > MAX_REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                seen.remove(&oldest);
            }
        }
        !taken
    }
}

/// Records that `device` saw a packet; true if no device has seen it more often.
fn record_sighting(sightings: &mut Sightings, device: u64) -> bool {
    let max_times = sightings.iter().map(|&(_, times)| times).max().unwrap_or(0);
    let entry = sightings.iter_mut().find(|(known, times)| *times == 0 || *known == device);
    let Some((known, times)) = entry else { return false };
    *known = device;
    *times += 1;
    *times > max_times
}

/// The fields that all copies of a packet share: a router decreases the time to live, and may mark congestion and lower
/// the MSS.
fn headers(segment: &Segment) -> Segment {
    let mut headers = Segment { frame: 0, time_ns: 0, ttl: 0, ecn: 0, via: 0, ..*segment };
    headers.options.mss = None;
    headers
}
