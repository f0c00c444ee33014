//! The end of an interval: one row for each flow, sender, transmitter and lossy link.

use crate::hosts::Hosts;
use crate::hosts::connection::Phase;
use crate::network::Network;
use crate::network::queue::Flows;
use crate::network::transmitter::{Ahead, Counters};
use crate::observe::tables::{Interval, Loss, Queue, Tables, TcpInfo};
use crate::scenario::Scenario;
use sawtooth_tcp::sender::SenderStats;
use sawtooth_tcp::window::{INFINITE_SSTHRESH, UNPACED};
use sawtooth_units::width::{Approx, Fit};
use sawtooth_units::{Span, Time};

/// Connections sampled per flow.
const SAMPLED_CONNECTIONS: u32 = 16;

/// The counters at the end of the last interval.
#[derive(Clone, Debug)]
pub struct Baseline {
    time: Time,
    flows: Vec<(SenderStats, u64)>,
    transmitters: Vec<(Counters, Ahead)>,
    /// For each transmitter, the number of flows that had begun to wait.
    begun: Vec<u64>,
    links: Vec<[u64; 2]>,
    /// Whether the link has a loss model or a policer.
    lossy: Vec<bool>,
}

impl Baseline {
    pub fn new(scenario: &Scenario) -> Self {
        Baseline {
            time: Time::ZERO,
            flows: vec![(SenderStats::default(), 0); scenario.flows.len()],
            transmitters: vec![Default::default(); scenario.transmitters.len()],
            begun: vec![0; scenario.transmitters.len()],
            links: vec![[0; 2]; scenario.links.len()],
            lossy: scenario.links.iter().map(|link| link.may_lose() || link.policer.is_some()).collect(),
        }
    }

    /// Closes the interval that ends with `seen`; the run's last one may be shorter than the others.
    /// False: it has no length.
    pub fn record(&mut self, seen: Observed, tables: &mut Tables) -> bool {
        let Observed { now, totals, senders, transmitters, links } = seen;
        let t_s = now.nanos().approx() / 1e9;
        let interval = now.since(self.time);
        if interval == Span::ZERO {
            return false;
        }
        self.time = now;
        let interval_s = interval.secs_f64();
        for (flow, &(stats, bytes)) in totals.iter().enumerate() {
            let (before, before_bytes) = self.flows[flow];
            tables.intervals.push(Interval {
                t_s,
                flow: flow.fit_i64(),
                goodput_bps: (bytes - before_bytes).approx() * 8.0 / interval_s,
                segments_out: (stats.segments_out - before.segments_out).cast_signed(),
                retransmits: (stats.retransmits - before.retransmits).cast_signed(),
                timeouts: (stats.timeouts - before.timeouts).cast_signed(),
                tail_probes: (stats.tail_probes - before.tail_probes).cast_signed(),
                window_probes: (stats.window_probes - before.window_probes).cast_signed(),
            });
        }
        self.flows = totals;
        senders.into_iter().for_each(|sender| tables.tcp_info.push(sender.row(t_s)));
        for (i, seen) in transmitters.into_iter().enumerate() {
            let [median, high, highest] = seen.delays.map_or([f64::NAN; 3], |all| all.map(Span::secs_f64));
            let flows = seen.flows.map(|flows| {
                let begun = flows.begun - std::mem::replace(&mut self.begun[i], flows.begun);
                [begun, flows.new, flows.old].map(Approx::approx)
            });
            let [begun, new, old] = flows.unwrap_or([f64::NAN; 3]);
            let ((now, ahead), (before, was)) = ((seen.counters, seen.ahead), self.transmitters[i]);
            let waited_ns = now.waited_ns - before.waited_ns;
            let dropped_waited_ns = now.dropped_waited_ns - before.dropped_waited_ns;
            let queued_ns = (waited_ns + dropped_waited_ns).cast_signed() - (ahead.waits_ns - was.waits_ns);
            let given = now.packets - before.packets;
            let sent_packets = now.packets + was.packets - before.packets - ahead.packets;
            let sent_bytes = now.bytes + was.bytes - before.bytes - ahead.bytes;
            tables.queues.push(Queue {
                t_s,
                transmitter: i.fit_i64(),
                packets: seen.waiting.0.cast_signed(),
                bytes: seen.waiting.1.cast_signed(),
                mean_packets: queued_ns.max(0).cast_unsigned().approx() / interval.nanos().approx(),
                drops: (now.drops - before.drops).cast_signed(),
                sent_packets: sent_packets.cast_signed(),
                sent_bytes: sent_bytes.cast_signed(),
                early_drops: (now.early_drops - before.early_drops).cast_signed(),
                marks: (now.marks - before.marks).cast_signed(),
                delay_mean_s: if given > 0 { waited_ns.approx() / given.approx() / 1e9 } else { f64::NAN },
                delay_p50_s: median,
                delay_p95_s: high,
                delay_p99_s: highest,
                overlimits: (now.overlimits - before.overlimits).approx(),
                new_flow_count: begun,
                new_flows: new,
                old_flows: old,
            });
            self.transmitters[i] = (now, ahead);
        }
        for (i, now) in links.into_iter().enumerate() {
            if self.lossy[i] {
                let [lost, policed] = [0, 1].map(|of| (now[of] - self.links[i][of]).fit_i64());
                tables.links.push(Loss { t_s, link: i.fit_i64(), lost, policed });
                self.links[i] = now;
            }
        }
        true
    }
}

/// What can be seen at one time, since the start of the run.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Time,
    totals: Vec<(SenderStats, u64)>,
    senders: Vec<SenderSeen>,
    transmitters: Vec<TransmitterSeen>,
    links: Vec<[u64; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct SenderSeen {
    /// Without the time and what follows.
    info: TcpInfo,
    delivered: u64,
    /// Nanoseconds limited by the receive window and by the send buffer.
    limited_ns: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
struct TransmitterSeen {
    waiting: (u64, u64),
    delays: Option<[Span; 3]>,
    flows: Option<Flows>,
    counters: Counters,
    ahead: Ahead,
}

impl Observed {
    pub fn new(now: Time, network: &mut Network, hosts: &Hosts) -> Self {
        let transmitters = network.transmitters.iter_mut().map(|transmitter| TransmitterSeen {
            waiting: transmitter.waiting(now),
            delays: transmitter.take_delays([0.5, 0.95, 0.99]),
            flows: transmitter.flows(),
            counters: transmitter.counters(now),
            ahead: transmitter.ahead(now),
        });
        Observed {
            now,
            totals: hosts.flow_totals(),
            senders: senders(now, hosts),
            transmitters: transmitters.collect(),
            links: network.links.iter().map(|link| [link.lost, link.policed]).collect(),
        }
    }

    /// The same later, where everything repeats `times` times as from `first` to `second`: what counts differs.
    pub fn later(mut self, [first, second]: [&Observed; 2], times: u64) -> Self {
        let more = |value: &mut u64, from: u64, to: u64| *value += (to - from) * times;
        self.now += Span::from_nanos((second.now - first.now).nanos() * times);
        for ((own, from), to) in self.totals.iter_mut().zip(&first.totals).zip(&second.totals) {
            more(&mut own.0.segments_out, from.0.segments_out, to.0.segments_out);
            more(&mut own.1, from.1, to.1);
        }
        for ((own, from), to) in self.senders.iter_mut().zip(&first.senders).zip(&second.senders) {
            more(&mut own.delivered, from.delivered, to.delivered);
            (0..2).for_each(|of| more(&mut own.limited_ns[of], from.limited_ns[of], to.limited_ns[of]));
        }
        for ((own, from), to) in self.transmitters.iter_mut().zip(&first.transmitters).zip(&second.transmitters) {
            let (own, from, to) = (&mut own.counters, from.counters, to.counters);
            more(&mut own.packets, from.packets, to.packets);
            more(&mut own.bytes, from.bytes, to.bytes);
            own.waited_ns += (to.waited_ns - from.waited_ns) * u128::from(times);
        }
        self
    }
}

fn senders(now: Time, hosts: &Hosts) -> Vec<SenderSeen> {
    let sampled = hosts.connections.iter().filter(|c| c.number < SAMPLED_CONNECTIONS);
    let seen = sampled.filter_map(|connection| {
        let Phase::Established(sender) = &connection.phase else { return None };
        let clock = connection.sender_clock(now);
        let (flight, window) = (&sender.flight, &sender.window);
        let (rwnd, sndbuf) = sender.limited_ns(clock);
        let unlimited = window.pacing_rate == UNPACED;
        let info = TcpInfo {
            flow: i64::from(connection.flow),
            connection: i64::from(connection.number),
            cwnd_segments: i64::from(window.cwnd),
            ssthresh_segments: if window.ssthresh >= INFINITE_SSTHRESH { -1 } else { i64::from(window.ssthresh) },
            srtt_s: f64::from(flight.srtt_us) / 8e6,
            min_rtt_s: if flight.min_rtt_us == u32::MAX { f64::NAN } else { f64::from(flight.min_rtt_us) / 1e6 },
            rto_s: sender.rto_us(clock).approx() / 1e6,
            in_flight_segments: i64::from(flight.in_flight()),
            pacing_bps: if unlimited { f64::NAN } else { window.pacing_rate.approx() * 8.0 },
            delivery_bps: sender.delivery_rate().map_or(f64::NAN, |bytes| bytes * 8.0),
            delivered_segments: flight.delivered.cast_signed(),
            delivered_ce_segments: flight.delivered_ce.cast_signed(),
            lost_segments: i64::from(flight.lost_out),
            state: flight.ca_state as i64,
            ..TcpInfo::default()
        };
        Some(SenderSeen { info, delivered: flight.delivered, limited_ns: [rwnd, sndbuf] })
    });
    seen.collect()
}

impl SenderSeen {
    fn row(self, t_s: f64) -> TcpInfo {
        let [rwnd_limited_s, sndbuf_limited_s] = self.limited_ns.map(|ns| ns.approx() / 1e9);
        let delivered_segments = self.delivered.cast_signed();
        TcpInfo { t_s, delivered_segments, rwnd_limited_s, sndbuf_limited_s, ..self.info }
    }
}
