//! What the receiver acknowledges, by number, by SACK and by DSACK.

use super::Flow;
use crate::analysis::gaps::Gap;
use crate::analysis::kind::Kind;
use crate::analysis::losses::{LossSide, SegmentGroup};
use crate::analysis::sack_blocks::{Blocks, is_duplicate, news};
use crate::analysis::shared::Shared;
use crate::decode::segment::Segment;
use sawtooth_units::width::{Approx, Fit, Whole};

/// What a flow needs of a segment that acknowledges.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement<'a> {
    pub segment: &'a Segment,
    pub ack: i64,
    /// Bytes, scaled.
    pub window: u64,
    pub mss: u32,
}

impl Flow {
    /// The receiver reported `start..end` as received twice (RFC 2883).
    fn reported(&mut self, start: i64, end: i64, shared: &mut Shared) {
        self.counts.dsacks += 1;
        let Some(index) = self.copies.iter().rposition(|copy| copy.start < end && copy.end > start) else {
            return;
        };
        let Some(copy) = self.copies.remove(index) else { return };
        if copy.known {
            return;
        }
        self.counts.reported_spurious += copy.segments;
        self.counts.spurious += copy.segments;
        self.reassembly.duplicated(copy.start, copy.end);
        self.losses.duplicated(copy.start, copy.end);
        for sent in self.outstanding.within(copy.start, copy.end) {
            sent.duplicated = sent.duplicated.saturating_add(1);
        }
        if let Some(details) = &mut shared.details {
            details.spurious(copy.row as usize);
        }
    }

    /// Takes the acknowledgements of a receiver's segment. Returns the kind of the segment, if it is a pure
    /// acknowledgement, and the round trip in nanoseconds of the newest acknowledged segment, if it is unambiguous.
    pub fn acknowledge(&mut self, seen: &Acknowledgement, shared: &mut Shared) -> (Kind, Option<u64>) {
        let now_ns = seen.segment.time_ns;
        self.counts.acks += 1;
        self.heard_ns = now_ns;
        let window_before = std::mem::replace(&mut self.window, seen.window);
        self.least_window = self.least_window.min(seen.window);
        self.window_changed(seen, now_ns);
        let mut trip = None;
        let advanced = seen.ack > self.una;
        let was_outstanding = !self.outstanding.is_empty();
        if advanced {
            trip = self.advance(seen, shared);
        }
        let news = self.sacks(seen, &mut trip, shared);
        if let Some(ns) = trip {
            self.trips.by_sequence(ns);
            let both_ns = ns + self.trips.sender_ns();
            self.limits.trip(both_ns, now_ns, self.trips.base_ns().unwrap_or(0.0));
        }
        let interval = self.series.at(shared.since_start(now_ns), shared.intervals);
        interval.window(seen.window.min(u64::from(u32::MAX)).fit_u32());
        if let Some(ns) = trip {
            interval.rtt(ns.approx_f32() / 1e9);
        }
        let kind = if advanced || seen.ack < self.una {
            Kind::Plain
        } else if was_outstanding && (seen.window == window_before || news) && seen.window > 0 {
            self.duplicate_acks += 1;
            self.counts.duplicate_acks += u64::from(seen.segment.payload == 0);
            Kind::DuplicateAck
        } else if seen.window != window_before {
            self.counts.window_updates += u64::from(seen.segment.payload == 0);
            Kind::WindowUpdate
        } else {
            Kind::Plain
        };
        (kind, trip)
    }

    fn window_changed(&mut self, seen: &Acknowledgement, now_ns: u64) {
        self.counts.window_max_bytes = self.counts.window_max_bytes.max(seen.window);
        let least = self.counts.window_min_bytes.map_or(seen.window, |least| least.min(seen.window));
        self.counts.window_min_bytes = Some(least);
        if seen.window == 0 {
            self.counts.zero_windows += 1;
            self.closed_ns.get_or_insert(now_ns);
        } else if let Some(since_ns) = self.closed_ns.take() {
            self.counts.zero_window_ns += now_ns.saturating_sub(since_ns);
        }
    }

    fn advance(&mut self, seen: &Acknowledgement, shared: &mut Shared) -> Option<u64> {
        let now_ns = seen.segment.time_ns;
        let hold_ns = self.trips.smoothed_ns().map_or(1e9, |trip| (4.0 * trip).max(1e9)).whole();
        let (pieces, losses, runs) = (&mut self.reassembly, &mut self.losses, &mut shared.runs);
        let (mut newest, mut ambiguous, mut unseen) = (None, false, 0);
        let mut missed = Vec::new();
        let before = self.outstanding.len();
        self.outstanding.acknowledge(seen.ack, |sent| {
            let bytes = (sent.end - sent.start).fit_u64();
            if sent.unseen {
                unseen += bytes;
                missed.push(Gap { start: sent.start, end: sent.end, found_ns: sent.first_ns, tsval: sent.tsval });
                newest = None;
            } else if sent.copies > 1 || sent.lost_before {
                ambiguous = true;
                newest = None;
            } else {
                newest = (!sent.sacked).then_some(sent.last_ns);
            }
            let copies = sent.copies + u8::from(sent.lost_before);
            let passed = SegmentGroup {
                start: sent.start,
                end: sent.end,
                segments: 0,
                lost: copies.saturating_sub(1).saturating_sub(sent.duplicated),
                at: if sent.lost_before { LossSide::BeforeCapture } else { LossSide::AfterCapture },
                sent_ns: sent.first_ns,
                acknowledged_ns: now_ns,
            };
            pieces.take(passed, sent.first, seen.mss, |segments| losses.pass(segments, hold_ns, runs));
        });
        shared.outstanding = (shared.outstanding + self.outstanding.len()).saturating_sub(before);
        for gap in missed {
            self.gaps.add(gap);
        }
        let beyond = seen.ack > self.highest;
        self.unseen.unseen_bytes += unseen;
        self.acknowledged_unseen(seen.ack, seen.segment);
        let bytes = (seen.ack - self.una).fit_u64();
        self.volume.acknowledged_bytes += bytes;
        self.series.at(shared.since_start(now_ns), shared.intervals).acknowledged += bytes;
        self.una = seen.ack;
        self.progress_ns = now_ns;
        self.duplicate_acks = 0;
        // Without SACK, the data after a filled gap arrived long ago.
        let covered = ambiguous || beyond;
        newest.filter(|_| !covered).map(|sent_ns| now_ns.saturating_sub(sent_ns))
    }

    /// Takes SACK blocks; true if they report data that was not known to have arrived.
    fn sacks(&mut self, seen: &Acknowledgement, trip: &mut Option<u64>, shared: &mut Shared) -> bool {
        let blocks = seen.segment.options.sacks();
        if blocks.is_empty() {
            self.blocks = [(0, 0); 4];
            return false;
        }
        let now_ns = seen.segment.time_ns;
        let absolute = |raw: u32| seen.ack + i64::from(raw.wrapping_sub(seen.segment.ack).cast_signed());
        let mut all: Blocks = [(0, 0); 4];
        for (block, &(left, right)) in all.iter_mut().zip(blocks) {
            *block = (absolute(left), absolute(right));
        }
        let duplicate = is_duplicate(&all[..blocks.len()], seen.ack);
        self.counts.sack_blocks += blocks.len() as u64;
        for (index, &(start, end)) in all[..blocks.len()].iter().enumerate() {
            let dsack = duplicate && index == 0;
            if let Some(details) = &mut shared.details {
                details.sack(start, end, dsack);
            }
            if dsack && !self.blocks.contains(&(start, end)) {
                self.reported(start, end, shared);
            }
        }
        let mut newest = None;
        let before = self.outstanding.len();
        for &(start, end) in &all[usize::from(duplicate)..blocks.len()] {
            for (start, end) in news(start, end, &self.blocks) {
                self.outstanding.sack(start, end, |sent| {
                    if sent.copies == 1 && !sent.lost_before && !sent.unseen {
                        newest = newest.max(Some(sent.last_ns));
                    }
                });
            }
        }
        shared.outstanding += self.outstanding.len() - before;
        let known = std::mem::replace(&mut self.blocks, all);
        let news = known != all;
        if trip.is_none() {
            *trip = newest.map(|sent_ns: u64| now_ns.saturating_sub(sent_ns));
        }
        news
    }
}
