//! The data that one end sends, as captured, and what the other end acknowledges.

mod acknowledgement;
mod cause;
mod retransmission;

use std::collections::VecDeque;

pub use acknowledgement::Acknowledgement;
use cause::OVERTAKEN_NS;

use crate::analysis::bursts::Bursts;
use crate::analysis::counts::{Counts, Unseen, Volume};
use crate::analysis::duplicate_filter::DuplicateFilter;
use crate::analysis::gaps::{Gap, Gaps};
use crate::analysis::identification::Order;
use crate::analysis::kind::Kind;
use crate::analysis::limits::{Limits, Moment};
use crate::analysis::losses::Losses;
use crate::analysis::outstanding::{Outstanding, Sent};
use crate::analysis::reassembly::Reassembly;
use crate::analysis::round_trips::RoundTrips;
use crate::analysis::sack_blocks::Blocks;
use crate::analysis::series::Series;
use crate::analysis::shared::{ALL_OUTSTANDING, FEW, MOST_OUTSTANDING, Shared};
use crate::decode::segment::Segment;
use sawtooth_units::width::{Approx, Fit};

/// A window that is not known yet limits nothing.
pub const UNKNOWN_WINDOW: u64 = u64::MAX;

/// A retransmission, kept for a report that it was needless.
#[derive(Clone, Copy, Debug)]
struct Copy {
    start: i64,
    end: i64,
    segments: u64,
    /// It was recognized as spurious when it passed.
    known: bool,
    /// Its row in the details.
    row: u32,
}

/// What a flow needs of a segment with data.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    pub segment: &'a Segment,
    pub start: i64,
    pub end: i64,
    pub order: Order,
    /// The sender gives each packet a distinct identification.
    pub identified: bool,
    /// The segment, or the last part of a joined one, has full length.
    pub full: bool,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Whether SACK is permitted; None if the handshake was not captured.
    pub sack: Option<bool>,
}

impl Data<'_> {
    /// Packets on the wire that it represents, more than one if offload joined them.
    fn packets(&self) -> u32 {
        self.segment.payload.div_ceil(self.mss).max(1)
    }

    /// Packets and payload bytes of its part below `end`.
    fn below(&self, end: i64) -> (u64, u64) {
        let bytes = (end - self.start).clamp(0, i64::from(self.segment.payload)).fit_u64();
        (bytes.div_ceil(u64::from(self.mss)).max(1), bytes)
    }
}

/// What the connection knows about an end before its first data.
#[derive(Clone, Copy, Debug)]
pub struct EndState {
    /// Everything below was sent, with the time of that evidence; the last number is that of a FIN.
    pub sent: Option<(i64, u64)>,
    pub fin: bool,
    /// The peer acknowledged up to this sequence number.
    pub acked: Option<i64>,
}

#[derive(Debug)]
pub struct Flow {
    pub volume: Volume,
    pub counts: Counts,
    pub unseen: Unseen,
    pub trips: RoundTrips,
    pub series: Series,
    pub losses: Losses,
    pub limits: Limits,
    outstanding: Outstanding,
    reassembly: Reassembly,
    /// Acknowledged up to this sequence number, perhaps beyond the captured data.
    una: i64,
    gaps: Gaps,
    duplicates: Box<DuplicateFilter>,
    /// The acknowledgement that the sender last echoed; None without timestamps.
    echoed_ack: Option<i64>,
    /// Captured up to this sequence number.
    highest: i64,
    copies: VecDeque<Copy>,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Time of the receiver's last segment, and whether the sender's last one was full.
    heard_ns: u64,
    last_full: bool,
    /// Time of the last cumulative acknowledgement of new data.
    progress_ns: u64,
    duplicate_acks: u32,
    /// Recovery from a timeout ends when this sequence number is acknowledged.
    timeout_until: i64,
    /// Fast recovery ends when this sequence number is acknowledged (`high_seq` in Linux).
    recovery_until: i64,
    /// The number that must be acknowledged before the next tail loss probe.
    probed_until: i64,
    window: u64,
    /// The smallest window since the last data.
    least_window: u64,
    closed_ns: Option<u64>,
    /// Blocks of the last acknowledgement; only what is new in the next one is processed.
    blocks: Blocks,
}

impl Flow {
    /// `start` is the number of the data in `first`, `window` the receiver's last offer or [`UNKNOWN_WINDOW`], `trips`
    /// the handshake's round trips.
    pub fn new(
        start: i64,
        before: EndState,
        window: u64,
        first: &Segment,
        trips: RoundTrips,
        shared: &mut Shared,
    ) -> Self {
        let now_ns = first.time_ns;
        let (sent, shown_ns) = before.sent.unwrap_or((start, now_ns));
        let mut flow = Flow {
            volume: Volume::default(),
            counts: Counts::default(),
            unseen: Unseen::default(),
            trips,
            series: Series::default(),
            losses: Losses::default(),
            limits: Limits::default(),
            outstanding: Outstanding::default(),
            reassembly: Reassembly::default(),
            una: start.min(sent),
            gaps: Gaps::default(),
            duplicates: Box::default(),
            echoed_ack: None,
            highest: start.min(sent),
            copies: VecDeque::new(),
            first_ns: now_ns,
            last_ns: now_ns,
            heard_ns: now_ns,
            last_full: false,
            progress_ns: now_ns,
            duplicate_acks: 0,
            timeout_until: i64::MIN,
            recovery_until: i64::MIN,
            probed_until: i64::MIN,
            window,
            least_window: window,
            closed_ns: None,
            blocks: [(0, 0); 4],
        };
        if let Some(acked) = before.acked {
            flow.acknowledged_unseen(acked, first);
            flow.una = flow.una.max(acked);
        }
        // What follows was sent before it was captured.
        let fin = i64::from(before.fin && sent > start);
        flow.hole(sent - fin, CaptureTime { time_ns: shown_ns, ..CaptureTime::of(first) }, shared);
        flow.put(sent, CaptureTime { time_ns: shown_ns, ..CaptureTime::of(first) }, false, shared);
        flow
    }

    /// Bytes sent that the sender did not know to be received. The TSecr of its data shows what it knew; without it,
    /// the acknowledgements at the capture point count.
    pub fn in_flight(&self) -> u64 {
        let known = self.echoed_ack.map_or(self.una, |ack| ack.min(self.una));
        (self.highest - known - self.outstanding.sacked_bytes()).max(0).fit_u64()
    }

    /// Takes a segment with data, or a FIN.
    pub fn data(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        let now_ns = data.segment.time_ns;
        let flight_before = self.in_flight();
        let kind = self.classified(data, shared);
        let packets = data.packets();
        self.volume.data_packets += u64::from(packets);
        self.volume.super_packets += u64::from(packets > 1);
        self.volume.payload_bytes += u64::from(data.segment.payload);
        let in_flight = self.in_flight();
        self.counts.in_flight_max_bytes = self.counts.in_flight_max_bytes.max(in_flight);
        let retransmitted = !matches!(kind, Kind::InOrder | Kind::OutOfOrder | Kind::Probe | Kind::Copy);
        let interval = self.series.at(shared.since_start(now_ns), shared.intervals);
        interval.packets += packets;
        interval.retransmits += if retransmitted { packets } else { 0 };
        interval.in_flight = interval.in_flight.max(in_flight.min(u64::from(u32::MAX)).fit_u32());
        if self.window != UNKNOWN_WINDOW {
            interval.window(self.window.min(u64::from(u32::MAX)).fit_u32());
        }
        self.last_full = data.full;
        // A FIN waits for nothing and may come long after the last data.
        if data.segment.payload > 0 {
            if self.volume.payload_bytes == u64::from(data.segment.payload) {
                self.first_ns = now_ns;
            }
            self.last_ns = now_ns;
            let moment = Moment {
                now_ns,
                // Retransmitted data was in flight, even if the capture point never saw it.
                emptied: flight_before == 0 && kind == Kind::InOrder,
                flight_after: in_flight,
                window: self.window,
                least_window: std::mem::replace(&mut self.least_window, self.window),
                mss: data.mss,
                full: self.last_full,
                emptied_ns: self.progress_ns.saturating_add(self.trips.sender_ns()),
                base_ns: self.trips.base_ns(),
            };
            self.limits.sent(moment, &mut self.series, shared.start_ns);
        }
        kind
    }

    fn classified(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        let known = data.end <= self.highest
            && self.duplicates.knows(data.segment, data.identified, self.trips.soonest_ns().unwrap_or(OVERTAKEN_NS));
        self.duplicates.keep(data.segment);
        if self.is_probe(data) {
            return self.probe();
        }
        if data.start >= self.highest {
            if data.segment.payload == 1 && self.window == 0 && data.start == self.una {
                self.probe();
                self.push(data, shared);
                return Kind::Probe;
            }
            if let Some(gap) = self.gaps.find(data.start, data.end).filter(|_| data.end <= self.una)
                && !self.was_overtaken(data, gap.found_ns, gap.tsval)
            {
                self.push(data, shared);
                return self.in_vain(data, shared);
            }
            if self.is_new_data_probe(data) {
                self.counts.new_data_probes += 1;
                self.probed_until = data.end;
            }
            self.push(data, shared);
            return Kind::InOrder;
        }
        if known {
            self.counts.duplicated_packets += u64::from(data.packets());
            return Kind::Copy;
        }
        if data.start + 1 == self.highest && data.end > self.highest && data.segment.payload > 1 {
            // The byte that probed a closed window or an idle peer, and what follows it.
            self.push(data, shared);
            return Kind::InOrder;
        }
        let kind =
            if data.end.min(self.highest) <= self.una { self.had(data, shared) } else { self.again(data, shared) };
        self.push(data, shared);
        kind
    }

    /// Whether a single byte was sent only to provoke an answer (RFC 9293 section 3.8.4): the last byte, already
    /// acknowledged, or sent into a closed window, or without any captured acknowledgement.
    fn is_probe(&self, data: &Data) -> bool {
        data.segment.payload == 1
            && data.end == self.highest
            && data.start + 1 == data.end
            && (data.end <= self.una || self.window == 0 || self.counts.acks == 0)
    }

    /// Whether an empty segment with this number is below what was sent, and thus only provokes an answer.
    pub fn is_below(&self, start: i64) -> bool {
        start + 1 == self.highest && start < self.una || self.window == 0 && start + 1 == self.una
    }

    /// A zero-window probe if the window is closed, else a keep-alive.
    pub fn probe(&mut self) -> Kind {
        if self.window == 0 {
            self.counts.zero_window_probes += 1;
        } else {
            self.counts.keep_alives += 1;
        }
        Kind::Probe
    }

    /// Takes the new part of a segment, perhaps after a gap.
    fn push(&mut self, data: &Data, shared: &mut Shared) {
        if data.end <= self.highest {
            return;
        }
        let seen = CaptureTime::of(data.segment);
        self.hole(data.start, seen, shared);
        let from = self.highest;
        self.put(data.end, seen, true, shared);
        let bytes = (data.end - from).fit_u64();
        self.volume.new_bytes += bytes;
        self.series.at(shared.since_start(seen.time_ns), shared.intervals).sent += bytes;
        self.keep_bounds(shared);
    }

    /// A segment without data that starts at `start` shows that everything below was sent.
    pub fn must_have_sent(&mut self, start: i64, segment: &Segment, shared: &mut Shared) {
        self.hole(start, CaptureTime::of(segment), shared);
        self.keep_bounds(shared);
    }

    /// Everything up to `end` was sent but not captured.
    fn hole(&mut self, end: i64, seen: CaptureTime, shared: &mut Shared) {
        self.stretch(end, seen, false, shared);
    }

    /// Everything up to `end` was sent and captured, as data (`news`) or otherwise; a part that was already
    /// acknowledged is late.
    fn put(&mut self, end: i64, seen: CaptureTime, news: bool, shared: &mut Shared) {
        if news {
            self.unseen.unseen_bytes -= self.gaps.fill(self.highest, end);
        }
        self.stretch(end, seen, true, shared);
    }

    fn stretch(&mut self, end: i64, seen: CaptureTime, was_seen: bool, shared: &mut Shared) {
        let start = self.highest.max(self.una);
        if end > start {
            self.outstanding.push(Sent {
                start,
                end,
                first: (start, end),
                first_ns: seen.time_ns,
                last_ns: seen.time_ns,
                tsval: seen.tsval,
                copies: u8::from(was_seen),
                sacked: false,
                unseen: !was_seen,
                lost_before: false,
                duplicated: 0,
            });
            shared.outstanding += 1;
        }
        self.highest = self.highest.max(end);
    }

    /// `ack` is beyond what was captured: the capture lost it or shows it later.
    fn acknowledged_unseen(&mut self, ack: i64, segment: &Segment) {
        let start = self.highest.max(self.una);
        if ack > start {
            self.unseen.unseen_bytes += (ack - start).fit_u64();
            let CaptureTime { time_ns: found_ns, tsval } = CaptureTime::of(segment);
            self.gaps.add(Gap { start, end: ack, found_ns, tsval });
        }
    }

    /// Drops the oldest entries if acknowledgements are missing, so that memory stays bounded.
    fn keep_bounds(&mut self, shared: &mut Shared) {
        while self.outstanding.len() > MOST_OUTSTANDING
            || (shared.outstanding > ALL_OUTSTANDING && self.outstanding.len() > FEW)
        {
            let Some(first) = self.outstanding.first() else { return };
            let end = first.end;
            self.outstanding.acknowledge(end, |_| ());
            shared.outstanding = shared.outstanding.saturating_sub(1);
            shared.given_up += 1;
            self.unseen.given_up += 1;
            self.una = self.una.max(end);
        }
    }

    /// Data echoed a TSval of the receiver, which was sent with the acknowledgement `ack`, `ns` ago.
    pub fn sender_echo(&mut self, ns: u64, ack: i64, now_ns: u64, shared: &Shared) {
        self.echoed_ack = Some(ack);
        self.trips.by_sender_echo(ns);
        self.series.at(shared.since_start(now_ns), shared.intervals).sender(ns.approx_f32() / 1e9);
    }

    /// Its losses as bursts in time.
    pub fn bursts(&self) -> Bursts {
        let duration_ns = self.last_ns.saturating_sub(self.first_ns);
        Bursts::of(&self.losses.runs, duration_ns, self.trips.smoothed_ns())
    }

    /// Closes the flow at the capture's end.
    pub fn finish(&mut self, shared: &mut Shared) {
        if let Some(part) = self.reassembly.rest() {
            self.losses.pass(part, 0, &mut shared.runs);
        }
        self.losses.finish(&mut shared.runs);
    }
}

/// When a segment was captured, and its timestamp.
#[derive(Clone, Copy, Debug)]
struct CaptureTime {
    time_ns: u64,
    tsval: u32,
}

impl CaptureTime {
    fn of(segment: &Segment) -> Self {
        CaptureTime { time_ns: segment.time_ns, tsval: segment.options.timestamps.map_or(0, |(tsval, _)| tsval) }
    }
}
