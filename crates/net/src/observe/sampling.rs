//! The end of an interval: one row for each flow, sender, transmitter and lossy link.

use crate::hosts::Hosts;
use crate::hosts::connection::Phase;
use crate::network::Network;
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

    /// Closes the interval that ends now; the run's last one may be shorter than the others.
    pub fn sample(&mut self, now: Time, network: &mut Network, hosts: &mut Hosts, tables: &mut Tables) {
        let t_s = now.nanos().approx() / 1e9;
        let interval = now.since(self.time);
        if interval == Span::ZERO {
            return;
        }
        self.time = now;
        let interval_s = interval.secs_f64();
        let totals = hosts.flow_totals();
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
        if let Some(table) = &mut tables.datagrams {
            hosts.take_datagrams(t_s, |row| table.push(row));
        }
        sample_senders(t_s, now, hosts, tables);
        for (i, transmitter) in network.transmitters.iter_mut().enumerate() {
            let (packets, bytes) = transmitter.waiting(now);
            let quantiles = transmitter.take_delays([0.5, 0.95, 0.99]);
            let [median, high, highest] = quantiles.map_or([f64::NAN; 3], |all| all.map(Span::secs_f64));
            let flows = transmitter.flows().map(|flows| {
                let begun = flows.begun - std::mem::replace(&mut self.begun[i], flows.begun);
                [begun, flows.new, flows.old].map(Approx::approx)
            });
            let [begun, new, old] = flows.unwrap_or([f64::NAN; 3]);
            let ((now, ahead), (before, was)) =
                ((transmitter.counters(now), transmitter.ahead(now)), self.transmitters[i]);
            let waited_ns = now.waited_ns - before.waited_ns;
            let dropped_waited_ns = now.dropped_waited_ns - before.dropped_waited_ns;
            let queued_ns = (waited_ns + dropped_waited_ns).cast_signed() - (ahead.waits_ns - was.waits_ns);
            let given = now.packets - before.packets;
            let sent_packets = now.packets + was.packets - before.packets - ahead.packets;
            let sent_bytes = now.bytes + was.bytes - before.bytes - ahead.bytes;
            tables.queues.push(Queue {
                t_s,
                transmitter: i.fit_i64(),
                packets: packets.cast_signed(),
                bytes: bytes.cast_signed(),
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
        for (i, link) in network.links.iter().enumerate() {
            if self.lossy[i] {
                let now = [link.lost, link.policed];
                let [lost, policed] = [0, 1].map(|of| (now[of] - self.links[i][of]).fit_i64());
                tables.links.push(Loss { t_s, link: i.fit_i64(), lost, policed });
                self.links[i] = now;
            }
        }
    }
}

fn sample_senders(t_s: f64, now: Time, hosts: &Hosts, tables: &mut Tables) {
    for connection in hosts.connections.iter().filter(|c| c.number < SAMPLED_CONNECTIONS) {
        let Phase::Established(sender) = &connection.phase else {
            continue;
        };
        let clock = connection.sender_clock(now);
        let (flight, window) = (&sender.flight, &sender.window);
        let (rwnd, sndbuf) = sender.limited_ns(clock);
        let unlimited = window.pacing_rate == UNPACED;
        tables.tcp_info.push(TcpInfo {
            t_s,
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
            rwnd_limited_s: rwnd.approx() / 1e9,
            sndbuf_limited_s: sndbuf.approx() / 1e9,
        });
    }
}
