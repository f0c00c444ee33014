//! The data that one end of a connection sends, as the capture shows it, and what the other end acknowledges.

mod acknowledgement;
mod cause;

use std::collections::VecDeque;

pub use acknowledgement::Acknowledgement;

use crate::counts::Counts;
use crate::identification::Order;
use crate::kind::{Cause, Kind};
use crate::limits::{Limits, Moment};
use crate::losses::Losses;
use crate::outstanding::{Outstanding, Sent};
use crate::round_trips::RoundTrips;
use crate::sack_blocks::Blocks;
use crate::segment::Segment;
use crate::series::Series;
use crate::shared::{ALL_OUTSTANDING, FEW, MOST_OUTSTANDING, Shared};

/// Retransmissions that a report of duplicates is looked up in.
const MOST_COPIES: usize = 1024;

/// A window that has not been told yet limits nothing.
pub const UNTOLD: u64 = u64::MAX;

/// A retransmission, for the report that it was not needed.
#[derive(Clone, Copy, Debug)]
struct Copy {
    start: i64,
    end: i64,
    segments: u64,
    /// It was seen to be spurious when it came by.
    known: bool,
    /// In the details.
    row: u32,
}

/// What a flow has to know of a segment with data.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    pub segment: &'a Segment,
    pub start: i64,
    pub end: i64,
    pub order: Order,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// SACK may be used; None where the handshake was not seen.
    pub sack: Option<bool>,
}

#[derive(Debug)]
pub struct Flow {
    pub counts: Counts,
    pub trips: RoundTrips,
    pub series: Series,
    pub losses: Losses,
    pub limits: Limits,
    outstanding: Outstanding,
    /// Acknowledged up to here.
    una: i64,
    /// The acknowledgement that the sender echoed last; None without timestamps.
    echoed_ack: Option<i64>,
    /// Sent up to here.
    highest: i64,
    copies: VecDeque<Copy>,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Of the receiver's last segment, and whether the sender's last one was full.
    heard_ns: u64,
    last_full: bool,
    /// Of the last cumulative acknowledgement of new data.
    progress_ns: u64,
    duplicate_acks: u32,
    /// Recovery from a timeout goes on up to here.
    timeout_until: i64,
    /// Fast recovery goes on up to here (`high_seq` in Linux).
    recovery_until: i64,
    /// What a tail loss probe has to wait for before the next one.
    probed_until: i64,
    window: u64,
    /// The smallest one since the last data.
    least_window: u64,
    closed_ns: Option<u64>,
    /// Blocks of the last acknowledgement, so that only what is new in the next one is looked at.
    blocks: Blocks,
}

impl Flow {
    /// `start` is the first number, `window` what the receiver last offered or [`UNTOLD`], `trips` what the handshake tells.
    pub fn new(start: i64, window: u64, now_ns: u64, trips: RoundTrips) -> Self {
        Flow {
            counts: Counts::default(),
            trips,
            series: Series::default(),
            losses: Losses::default(),
            limits: Limits::default(),
            outstanding: Outstanding::default(),
            una: start,
            echoed_ack: None,
            highest: start,
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
        }
    }

    /// Bytes sent that the sender did not know the receiver to have. What it knew it tells by the TSecr of its data; where
    /// there is none, what was acknowledged here counts.
    pub fn in_flight(&self) -> u64 {
        let known = self.echoed_ack.map_or(self.una, |ack| ack.min(self.una));
        (self.highest - known - self.outstanding.sacked_bytes()).max(0) as u64
    }

    /// Takes a segment with data, or a FIN.
    pub fn data(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        let now_ns = data.segment.time_ns;
        let flight_before = self.in_flight();
        let kind = self.classified(data, shared);
        self.last_ns = now_ns;
        let packets = packets(data);
        self.counts.data_packets += u64::from(packets);
        self.counts.super_packets += u64::from(packets > 1);
        self.counts.payload_bytes += u64::from(data.segment.payload);
        let in_flight = self.in_flight();
        self.counts.in_flight_max = self.counts.in_flight_max.max(in_flight);
        let retransmitted = !matches!(kind, Kind::InOrder | Kind::OutOfOrder | Kind::Probe);
        let interval = self.series.at(shared.since_start(now_ns), shared.intervals);
        interval.packets += packets;
        interval.retransmits += if retransmitted { packets } else { 0 };
        interval.in_flight = interval.in_flight.max(in_flight.min(u64::from(u32::MAX)) as u32);
        if self.window != UNTOLD {
            interval.window(self.window.min(u64::from(u32::MAX)) as u32);
        }
        self.last_full = data.segment.payload > 0 && data.segment.payload.is_multiple_of(data.mss);
        let moment = Moment {
            now_ns,
            // What is sent again was in flight, also where the capture point never saw it.
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
        kind
    }

    fn classified(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        if data.segment.payload <= 1 && data.start < self.highest && data.end <= self.highest && data.end <= self.una {
            // One byte that was acknowledged already (RFC 9293 section 3.8.4).
            return self.probe();
        }
        if data.start >= self.highest {
            if data.segment.payload == 1 && self.window == 0 && data.start == self.una {
                self.probe();
                self.push(data, shared);
                return Kind::Probe;
            }
            if self.replaces_a_lost_tail(data) {
                let cause = self.cause(data, None);
                self.retransmitted(data, cause, false, shared);
                self.push(data, shared);
                self.counts.filled_holes += u64::from(packets(data));
                self.outstanding.within(data.start, data.end).for_each(|sent| sent.lost_before = true);
                return Kind::FillsHole;
            }
            if self.is_new_data_probe(data) {
                self.counts.new_data_probes += 1;
                self.probed_until = data.end;
            }
            self.push(data, shared);
            return Kind::InOrder;
        }
        let kind = if data.end <= self.una { self.had(data, shared) } else { self.again(data, shared) };
        if data.end > self.highest {
            self.push(&Data { start: self.highest, ..*data }, shared);
        }
        kind
    }

    /// Whether a segment that starts here is below what was sent.
    pub fn is_below(&self, start: i64) -> bool {
        start < self.highest && start < self.una
    }

    /// A zero-window probe where the window is closed, else a keep-alive.
    pub fn probe(&mut self) -> Kind {
        if self.window == 0 {
            self.counts.zero_window_probes += 1;
        } else {
            self.counts.keep_alives += 1;
        }
        Kind::Probe
    }

    /// New data, perhaps after a hole.
    fn push(&mut self, data: &Data, shared: &mut Shared) {
        let now_ns = data.segment.time_ns;
        let tsval = data.segment.options.timestamps.map_or(0, |(tsval, _)| tsval);
        let sent = Sent {
            start: data.start,
            end: data.end,
            first_ns: now_ns,
            last_ns: now_ns,
            tsval,
            identification: data.segment.ip_id.unwrap_or(0),
            copies: 1,
            sacked: false,
            unseen: false,
            lost_before: false,
            duplicated: 0,
        };
        if data.start > self.highest {
            let (start, end) = (self.highest, data.start);
            self.outstanding.push(Sent { start, end, copies: 0, unseen: true, ..sent });
            shared.outstanding += 1;
        }
        self.outstanding.push(sent);
        shared.outstanding += 1;
        self.counts.new_bytes += (data.end - data.start) as u64;
        let interval = self.series.at(shared.since_start(now_ns), shared.intervals);
        interval.sent += (data.end - data.start) as u64;
        self.highest = data.end;
        self.keep_bounds(shared);
    }

    /// Gives up the oldest where acknowledgements do not come by, so that memory stays bounded.
    fn keep_bounds(&mut self, shared: &mut Shared) {
        while self.outstanding.len() > MOST_OUTSTANDING
            || (shared.outstanding > ALL_OUTSTANDING && self.outstanding.len() > FEW)
        {
            let Some(first) = self.outstanding.first() else { return };
            let end = first.end;
            self.outstanding.acknowledge(end, |_| ());
            shared.outstanding = shared.outstanding.saturating_sub(1);
            shared.given_up += 1;
            self.counts.given_up += 1;
            self.una = self.una.max(end);
        }
    }

    /// Data below what is acknowledged.
    fn had(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        if matches!(data.order, Order::Late | Order::Again) {
            self.counts.duplicated_packets += 1;
            return Kind::OutOfOrder;
        }
        let segments = u64::from(packets(data));
        let cause = self.cause(data, None);
        self.retransmitted(data, cause, true, shared);
        self.counts.spurious += segments;
        Kind::Spurious
    }

    /// Data that is, at least in part, outstanding.
    fn again(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        let now_ns = data.segment.time_ns;
        let before = self.outstanding.len();
        let (mut seen, mut sacked, mut unseen_bytes) = (false, true, 0);
        let mut first: Option<Sent> = None;
        for sent in self.outstanding.within(data.start, data.end) {
            seen |= !sent.unseen;
            sacked &= sent.sacked;
            unseen_bytes += if sent.unseen { sent.end - sent.start } else { 0 };
            first.get_or_insert(*sent);
        }
        shared.outstanding += self.outstanding.len() - before;
        let Some(first) = first else { return Kind::InOrder };
        if !seen && self.was_overtaken(data, &first) {
            self.counts.out_of_order += u64::from(packets(data));
            self.counts.overtaken_by_bytes = self.counts.overtaken_by_bytes.max((self.highest - data.end) as u64);
            self.counts.overtaken_by_ns = self.counts.overtaken_by_ns.max(now_ns.saturating_sub(first.first_ns));
            self.counts.new_bytes += unseen_bytes as u64;
            for sent in self.outstanding.within(data.start, data.end) {
                (sent.unseen, sent.copies, sent.last_ns) = (false, 1, now_ns);
            }
            return Kind::OutOfOrder;
        }
        let same_packet = first.identification != 0
            && data.segment.ip_id == Some(first.identification)
            && matches!(data.order, Order::Late | Order::Again);
        if seen && same_packet {
            self.counts.duplicated_packets += 1;
            return Kind::OutOfOrder;
        }
        let cause = self.cause(data, Some(&first));
        self.retransmitted(data, cause, seen && sacked, shared);
        self.counts.new_bytes += unseen_bytes as u64;
        for sent in self.outstanding.within(data.start, data.end) {
            if sent.unseen {
                (sent.unseen, sent.lost_before) = (false, true);
            }
            sent.copies = sent.copies.saturating_add(1);
            sent.last_ns = now_ns;
        }
        let segments = u64::from(packets(data));
        if !seen {
            self.counts.filled_holes += segments;
            return Kind::FillsHole;
        }
        if sacked {
            self.counts.spurious += segments;
            for sent in self.outstanding.within(data.start, data.end) {
                sent.duplicated = sent.duplicated.saturating_add(1);
            }
            return Kind::Spurious;
        }
        cause.kind()
    }

    fn retransmitted(&mut self, data: &Data, cause: Cause, known: bool, shared: &Shared) {
        let segments = u64::from(packets(data));
        self.counts.retransmits += segments;
        self.counts.retransmitted_bytes += u64::from(data.segment.payload);
        self.counts.timeouts += u64::from(cause == Cause::Timer);
        match cause {
            Cause::Fast => self.counts.fast += segments,
            Cause::TailProbe => self.counts.tail_probes += segments,
            Cause::Timer | Cause::AfterTimer => self.counts.timeout_retransmits += segments,
        }
        if self.copies.len() == MOST_COPIES {
            self.copies.pop_front();
        }
        self.copies.push_back(Copy { start: data.start, end: data.end, segments, known, row: shared.row() });
    }

    /// A TSval of the receiver came back on data; it was sent with the acknowledgement `ack`, `ns` ago.
    pub fn sender_echo(&mut self, ns: u64, ack: i64, now_ns: u64, shared: &Shared) {
        self.echoed_ack = Some(ack);
        self.trips.by_sender_echo(ns);
        self.series.at(shared.since_start(now_ns), shared.intervals).sender(ns as f32 / 1e9);
    }

    /// Ends the accounts at the capture's end.
    pub fn finish(&mut self, shared: &mut Shared) {
        self.losses.finish(&mut shared.runs);
    }
}

/// Packets on the wire that a segment with data stands for, more than one where offload has joined them.
fn packets(data: &Data) -> u32 {
    data.segment.payload.div_ceil(data.mss).max(1)
}
