//! Datagrams: sent at their times, whatever happens to them, and counted at the receiver.

use crate::frames::DATAGRAM_HEADERS;
use crate::hosts::arrivals::Transfers;
use crate::network::queue::delays::Delays;
use crate::observe::tables::{Datagrams, FlowEnd};
use crate::packet::{Kind, Packet};
use crate::scenario::{Paced, Scenario};
use sawtooth_units::width::{Approx, Fit, Low};
use sawtooth_units::{Span, Time};

/// When the next one is sent.
#[derive(Clone, Debug)]
enum Pace {
    Steady(Paced),
    Poisson(Box<Transfers>),
}

/// One sender, and its receiver.
#[derive(Clone, Debug)]
pub struct Stream {
    pub flow: u32,
    number: u32,
    pub forward_at: u32,
    size: u16,
    pace: Pace,
    begins: Time,
    until: Time,
    sent: u64,
    received: u64,
    /// The highest number received plus one: how many were sent by then.
    expected: u64,
    transit_ns: Option<u64>,
    /// In nanoseconds (RFC 3550 section 6.4.1).
    jitter: f64,
}

impl Stream {
    /// The streams of a flow whose route begins at `forward_at`. Several take turns instead of sending at once.
    pub fn of(scenario: &Scenario, flow: usize, forward_at: u32) -> Vec<Stream> {
        let config = &scenario.flows[flow];
        let Some(datagrams) = config.traffic.datagrams() else { return Vec::new() };
        let end = config.duration_ns.map_or(u64::MAX, |ns| config.start_ns.saturating_add(ns));
        let until = Time::from_nanos(end.min(scenario.duration_ns));
        let stream = |number: usize| {
            let after = u128::from(datagrams.every_ns()) * number as u128 / config.count as u128;
            let begins = Time::from_nanos(config.start_ns.saturating_add(u64::try_from(after).unwrap_or(u64::MAX)));
            let mut stream = Stream {
                flow: flow.fit_u32(),
                number: number.fit_u32(),
                forward_at,
                size: (datagrams.bytes.fit_u32() + DATAGRAM_HEADERS).fit_u16(),
                pace: Pace::Steady(datagrams.writes()),
                begins,
                until,
                sent: 0,
                received: 0,
                expected: 0,
                transit_ns: None,
                jitter: 0.0,
            };
            if let Some(mut times) = Transfers::of(scenario, flow, number) {
                stream.begins = times.next().map_or(Time::NEVER, |transfer| transfer.at);
                stream.pace = Pace::Poisson(Box::new(times));
            }
            stream
        };
        (0..config.count).map(stream).collect()
    }

    /// When the first one is sent.
    pub fn begins(&self) -> Time {
        if self.begins < self.until { self.begins } else { Time::NEVER }
    }

    /// The datagram to send now for stream `index`, and when the next one is sent.
    pub fn send(&mut self, index: u32, now: Time) -> (Packet, Time) {
        let packet = Packet {
            seq: self.sent,
            tsval: now.nanos().low_u32(),
            tsecr: (now.nanos() >> 32).low_u32(),
            ..Packet::new(index, Kind::Datagram, self.size, self.forward_at)
        };
        self.sent += 1;
        let next = match &mut self.pace {
            Pace::Steady(writes) => writes.next(self.begins, now),
            Pace::Poisson(times) => times.next().map_or(Time::NEVER, |transfer| transfer.at),
        };
        (packet, if next < self.until { next } else { Time::NEVER })
    }

    fn payload(&self) -> u64 {
        u64::from(u32::from(self.size) - DATAGRAM_HEADERS)
    }

    /// The row of `flows`.
    pub fn end(&self, now: Time) -> FlowEnd {
        FlowEnd {
            flow: i64::from(self.flow),
            connection: i64::from(self.number),
            start_s: self.begins.min(now).nanos().approx() / 1e9,
            end_s: self.until.min(now).nanos().approx() / 1e9,
            delivered_bytes: (self.received * self.payload()).cast_signed(),
            segments_out: self.sent.cast_signed(),
            ..FlowEnd::default()
        }
    }
}

/// What the receivers of a flow's streams have seen in the interval.
#[derive(Clone, Debug)]
pub struct Seen {
    pub flow: u32,
    received: u64,
    out_of_order: u64,
    delay_ns: u64,
    longest: Span,
    delays: Delays,
    /// Totals at the end of the last interval.
    before: Totals,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    sent: u64,
    expected: u64,
}

impl Seen {
    pub fn new(flow: u32) -> Self {
        let (received, out_of_order, delay_ns) = (0, 0, 0);
        Seen {
            flow,
            received,
            out_of_order,
            delay_ns,
            longest: Span::ZERO,
            delays: Delays::new(),
            before: Totals::default(),
        }
    }

    /// A datagram of `stream` arrives; returns its bytes.
    pub fn arrive(&mut self, stream: &mut Stream, packet: &Packet, now: Time) -> u64 {
        let sent = u64::from(packet.tsval) | u64::from(packet.tsecr) << 32;
        let delay = now.since(Time::from_nanos(sent));
        stream.received += 1;
        self.received += 1;
        if packet.seq < stream.expected {
            self.out_of_order += 1;
        }
        stream.expected = stream.expected.max(packet.seq + 1);
        if let Some(before) = stream.transit_ns.replace(delay.nanos()) {
            stream.jitter += (delay.nanos().abs_diff(before).approx() - stream.jitter) / 16.0;
        }
        self.delay_ns += delay.nanos();
        self.longest = self.longest.max(delay);
        self.delays.add(delay);
        stream.payload()
    }

    /// The row for the interval that ends at `t_s`, for these `streams`.
    pub fn take(&mut self, t_s: f64, streams: &[Stream]) -> Datagrams {
        let own = || streams.iter().filter(|stream| stream.flow == self.flow);
        let sum = |of: fn(&Stream) -> u64| own().map(of).sum::<u64>();
        let now = Totals { sent: sum(|stream| stream.sent), expected: sum(|stream| stream.expected) };
        let heard = own().filter(|stream| stream.received > 1);
        let (heard, jitter) = heard.fold((0u64, 0.0), |(count, sum), stream| (count + 1, sum + stream.jitter / 1e9));
        let quantiles = self.delays.take([0.5, 0.95, 0.99]);
        let [median, high, highest] = quantiles.map_or([f64::NAN; 3], |all| all.map(Span::secs_f64));
        let received = self.received.approx();
        let lost = (now.expected - self.before.expected).cast_signed() - self.received.cast_signed();
        let row = Datagrams {
            t_s,
            flow: i64::from(self.flow),
            sent: (now.sent - self.before.sent).cast_signed(),
            received: self.received.cast_signed(),
            lost,
            out_of_order: self.out_of_order.cast_signed(),
            delay_mean_s: if self.received > 0 { self.delay_ns.approx() / received / 1e9 } else { f64::NAN },
            delay_p50_s: median,
            delay_p95_s: high,
            delay_p99_s: highest,
            delay_max_s: if self.received > 0 { self.longest.secs_f64() } else { f64::NAN },
            jitter_s: if heard > 0 { jitter / heard.approx() } else { f64::NAN },
        };
        (self.received, self.out_of_order, self.delay_ns, self.longest) = (0, 0, 0, Span::ZERO);
        self.before = now;
        row
    }
}
