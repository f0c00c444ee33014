//! The end of an interval: one row for each flow, sender, transmitter and lossy link.

use crate::ends::connection::Phase;
use crate::engine::clock::Simulation;
use crate::network::transmitter::Counters;
use crate::observe::tables::{FlowEnd, Interval, Loss, Queue, TcpInfo};
use crate::scenario::Scenario;
use sawtooth_tcp::sender::SenderStats;
use sawtooth_tcp::window::{INFINITE_SSTHRESH, UNPACED};
use sawtooth_units::width::{Approx, Fit};
use sawtooth_units::{Span, Time};

/// Of each flow only so many connections are sampled.
const SAMPLED_CONNECTIONS: u32 = 16;

/// What the counters said at the end of the last interval, and what ended connections had counted.
#[derive(Clone, Debug)]
pub struct Baseline {
    time: Time,
    flows: Vec<(SenderStats, u64)>,
    retired: Vec<SenderStats>,
    transmitters: Vec<Counters>,
    links: Vec<u64>,
}

impl Baseline {
    pub fn new(scenario: &Scenario) -> Self {
        Baseline {
            time: Time::ZERO,
            flows: vec![(SenderStats::default(), 0); scenario.flows.len()],
            retired: vec![SenderStats::default(); scenario.flows.len()],
            transmitters: vec![Counters::default(); scenario.transmitters.len()],
            links: vec![0; scenario.links.len()],
        }
    }

    /// A connection of `flow` ended.
    pub fn retire(&mut self, flow: usize, stats: SenderStats) {
        self.retired[flow] = self.retired[flow] + stats;
    }
}

impl Simulation {
    /// Counters of each flow's connections since the start, ended ones included, and the bytes read at the receiver.
    pub(crate) fn flow_totals(&self) -> Vec<(SenderStats, u64)> {
        let mut totals: Vec<_> =
            self.baseline.retired.iter().copied().zip(self.delivered.iter().map(|d| d.bytes)).collect();
        for connection in &self.connections {
            let total = &mut totals[connection.flow as usize];
            total.0 = total.0 + connection.stats();
        }
        totals
    }

    /// Closes the interval that ends now; the run's last one may be shorter than the others.
    pub(crate) fn sample(&mut self) {
        let t_s = self.now.nanos().approx() / 1e9;
        let interval = self.now.since(self.baseline.time);
        if interval == Span::ZERO {
            return;
        }
        self.baseline.time = self.now;
        let interval_s = interval.secs_f64();
        let totals = self.flow_totals();
        for (flow, &(stats, bytes)) in totals.iter().enumerate() {
            let (before, before_bytes) = self.baseline.flows[flow];
            self.tables.intervals.push(Interval {
                t_s,
                flow: flow.fit_i64(),
                goodput_bps: (bytes - before_bytes).approx() * 8.0 / interval_s,
                segments_out: (stats.segments_out - before.segments_out).cast_signed(),
                retransmits: (stats.retransmits - before.retransmits).cast_signed(),
                timeouts: (stats.timeouts - before.timeouts).cast_signed(),
                tail_probes: (stats.tail_probes - before.tail_probes).cast_signed(),
            });
        }
        self.baseline.flows = totals;
        self.sample_senders(t_s);
        for (i, transmitter) in self.transmitters.iter_mut().enumerate() {
            let (packets, bytes) = transmitter.waiting(self.now);
            let (now, before) = (transmitter.counters, self.baseline.transmitters[i]);
            self.tables.queues.push(Queue {
                t_s,
                transmitter: i.fit_i64(),
                packets: packets.cast_signed(),
                bytes: bytes.cast_signed(),
                mean_packets: (now.waited_ns - before.waited_ns).approx() / interval.nanos().approx(),
                drops: (now.drops - before.drops).cast_signed(),
                sent_packets: (now.packets - before.packets).cast_signed(),
                sent_bytes: (now.bytes - before.bytes).cast_signed(),
            });
            self.baseline.transmitters[i] = now;
        }
        for (i, link) in self.links.iter().enumerate() {
            if self.scenario.links[i].loss_ppb > 0 {
                let lost = link.lost - self.baseline.links[i];
                self.tables.links.push(Loss { t_s, link: i.fit_i64(), lost: lost.fit_i64() });
                self.baseline.links[i] = link.lost;
            }
        }
    }

    fn sample_senders(&mut self, t_s: f64) {
        for connection in self.connections.iter().filter(|c| c.number < SAMPLED_CONNECTIONS) {
            let Phase::Established(sender) = &connection.phase else {
                continue;
            };
            let clock = connection.sender_clock(self.now);
            let (flight, window) = (&sender.flight, &sender.window);
            let (rwnd, sndbuf) = sender.limited_ns(clock);
            let unlimited = window.pacing_rate == UNPACED;
            self.tables.tcp_info.push(TcpInfo {
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
                delivered_segments: flight.delivered.cast_signed(),
                lost_segments: i64::from(flight.lost_out),
                state: flight.ca_state as i64,
                rwnd_limited_s: rwnd.approx() / 1e9,
                sndbuf_limited_s: sndbuf.approx() / 1e9,
            });
        }
    }

    pub(crate) fn report_end(&mut self, index: u32, completed: bool) {
        let connection = &self.connections[index as usize];
        let stats = connection.stats();
        let row = FlowEnd {
            flow: i64::from(connection.flow),
            connection: i64::from(connection.number),
            generation: i64::from(connection.generation),
            start_s: connection.started.nanos().approx() / 1e9,
            end_s: self.now.nanos().approx() / 1e9,
            delivered_bytes: connection.acknowledged_bytes().cast_signed(),
            segments_out: stats.segments_out.cast_signed(),
            retransmits: stats.retransmits.cast_signed(),
            timeouts: stats.timeouts.cast_signed(),
            tail_probes: stats.tail_probes.cast_signed(),
            completed: i64::from(completed),
        };
        self.tables.flows.push((self.now, row));
    }
}
