//! The compiled scenario, which has only integers. This code checks for values that would crash or hang the core. A
//! user's errors are reported earlier, where files and fields are known.

mod application;
mod arrivals;
mod datagrams;
mod link;
mod paced;
mod queue;
mod rtnetlink;
mod traffic;

pub use application::{Application, Rule, Think};
pub use arrivals::{Arrivals, Sizes, Times};
pub use datagrams::Datagrams;
pub use link::{Jitter, Link, LossPattern, Policer, RateSchedule, Reorder, Trace};
pub use paced::Paced;
pub use queue::{Cake, Codel, Discipline, DualPi2, Fq, FqCodel, FqPie, Isolation, Pie, Red, Sfq, Tbf};
pub use rtnetlink::Room;
pub use traffic::{Traffic, Writes};

use crate::frames::{DATAGRAM_HEADERS, HEADERS, TIMESTAMP_OPTION};
use sawtooth_tcp::cc::module::Module;
use sawtooth_tcp::cc::{Algorithm, Chosen};
use sawtooth_tcp::options::HostOptions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub duration_ns: u64,
    pub interval_ns: u64,
    pub seed: u64,
    pub hosts: Vec<Host>,
    pub transmitters: Vec<Transmitter>,
    pub links: Vec<Link>,
    pub flows: Vec<Flow>,
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// Whether to compute percentiles of the delay in all queues, also in those with tail drop, which do not store
    /// their packets.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub queue_delays: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub name: String,
    pub hz: u32,
    pub mss: u32,
    pub initial_window: u32,
    pub receive_buffer: u64,
    pub send_buffer: u64,
    pub delayed_ack: bool,
    pub sack: bool,
    pub timestamps: bool,
    /// Segmentation offload: loss on this host's own link drops whole super-packets, and its queues take those that
    /// it forwards as one packet.
    pub offload: bool,
    /// `net.ipv4.tcp_ecn`. 1: requests and accepts ECN; 2: only accepts it.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub ecn: u8,
    /// Whether every SYN requests ECN, not only the first (`tcp_ecn_fallback` off).
    #[serde(default, skip_serializing_if = "is_usual")]
    pub ecn_insists: bool,
    /// How long the host's network cards wait for segments to merge (GRO). 0: merge only segments that arrive together;
    /// absent: no merging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro_ns: Option<u64>,
    /// `net.ipv4.tcp_adv_win_scale`, by Linux's rules before 6.6; absent: those of 6.12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adv_win_scale: Option<u32>,
    /// Its kernel does not pace.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub unpaced: bool,
}

impl Host {
    /// The settings for one end of a connection, with the MSS that both ends agreed on.
    pub fn options(&self, mss: u32) -> HostOptions {
        HostOptions {
            hz: self.hz,
            mss,
            initial_window: self.initial_window,
            receive_buffer: self.receive_buffer,
            send_buffer: self.send_buffer,
            delayed_ack: self.delayed_ack,
            sack: self.sack,
            timestamps: self.timestamps,
            adv_win_scale: self.adv_win_scale,
            unpaced: self.unpaced,
            ..HostOptions::default()
        }
    }
}

/// Serializes packets. It belongs to one link, or is a network card that several links share.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Transmitter {
    pub name: String,
    pub rate_bps: u64,
    pub queue_packets: Option<u64>,
    pub queue_bytes: Option<u64>,
    /// Absent: tail drop.
    #[serde(default, skip_serializing_if = "Discipline::is_tail_drop")]
    pub discipline: Discipline,
    /// Absent: the rate is constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<RateSchedule>,
}

/// Whether a field has its default value and therefore need not be written.
fn is_usual<A: Default + PartialEq>(value: &A) -> bool {
    *value == A::default()
}

fn within(value: u64, low: u64, high: u64, what: &str) -> Result<(), String> {
    if (low..=high).contains(&value) { Ok(()) } else { Err(format!("{what} = {value} is not in {low}..{high}")) }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "traffic::Fields", into = "traffic::Fields")]
pub struct Flow {
    pub name: String,
    pub cc: String,
    /// Variant of `cc`; absent: Linux's behaviour.
    pub variant: Option<String>,
    pub count: usize,
    pub start_ns: u64,
    pub duration_ns: Option<u64>,
    pub traffic: Traffic,
    pub forward: Vec<usize>,
    pub backward: Vec<usize>,
    /// Replaces the congestion control; `cc` is then only a label.
    pub module: Option<Arc<dyn Module>>,
}

impl Flow {
    /// The congestion control of the connections; `None` if it does not exist.
    pub fn chosen(&self) -> Option<Chosen> {
        match &self.module {
            Some(module) => Some(Chosen::Module(module.clone())),
            None => Algorithm::from_variant(&self.cc, self.variant.as_deref()).map(Chosen::Listed),
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub name: String,
    pub start_ns: u64,
    pub interval_ns: u64,
    pub count: u64,
    pub forward: Vec<usize>,
    pub backward: Vec<usize>,
}

/// 30 days in nanoseconds: the longest run. Its picoseconds fit well into 64 bits.
const DURATION_MAX_NS: u64 = 30 * 86_400 * 1_000_000_000;
const HOUR_NS: u64 = 3_600 * 1_000_000_000;
/// Largest token bucket in bytes.
const BURST_MAX: u64 = 1 << 30;
const RATE_MAX_BPS: u64 = 100_000_000_000_000;
const CONNECTIONS_MAX: usize = 1 << 20;
/// A packet's TTL has eight bits.
const HOPS_MAX: usize = 255;
/// TCP's clock counts microseconds. With a shorter RTT, time would hardly advance, or not at all.
const ROUND_TRIP_MIN_PS: u64 = 1_000_000;

impl Scenario {
    /// Parses and checks a compiled scenario. The error says which value was wrong.
    pub fn parse(json: &str) -> Result<Scenario, String> {
        Scenario::with_modules(json, &BTreeMap::new())
    }

    /// The same, with modules for the flows with these numbers.
    pub fn with_modules(json: &str, modules: &BTreeMap<usize, Arc<dyn Module>>) -> Result<Scenario, String> {
        let mut scenario: Scenario = serde_json::from_str(json).map_err(|e| format!("compiled scenario: {e}"))?;
        for (&index, module) in modules {
            let flow = scenario.flows.get_mut(index).ok_or_else(|| format!("no flow {index} to have a module"))?;
            flow.module = Some(module.clone());
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// Bytes of the largest frame that a flow sends, without the link's overhead.
    pub fn largest_frame(&self) -> u32 {
        let frame = |flow: &Flow| {
            if let Some(datagrams) = flow.traffic.datagrams() {
                return u32::try_from(datagrams.bytes).unwrap_or(u32::MAX).saturating_add(DATAGRAM_HEADERS);
            }
            let [from, to] = [&flow.forward, &flow.backward].map(|way| &self.hosts[self.links[way[0]].from]);
            from.mss.min(to.mss) + HEADERS + if from.timestamps && to.timestamps { TIMESTAMP_OPTION } else { 0 }
        };
        self.flows.iter().map(frame).max().unwrap_or(0)
    }

    /// The links of a flow that its super-packets cross whole, up to the one whose transmitter queues them as one
    /// packet and cuts them: all hosts up to there have offload, none of the links separates segments, and the sending
    /// host has no transmitter. Empty if they are cut earlier: CAKE, DualPI2 and TBF cut them before they queue them,
    /// as Linux does.
    pub fn whole<'a>(&self, flow: &'a Flow) -> &'a [usize] {
        let transmitter = |&link: &usize| self.links[link].transmitter.map(|index| &self.transmitters[index]);
        let Some(at) = flow.forward.iter().position(|link| transmitter(link).is_some()) else { return &[] };
        let takes = transmitter(&flow.forward[at]).is_some_and(|one| match one.discipline {
            Discipline::Cake(_) | Discipline::DualPi2(_) | Discipline::Tbf(_) => false,
            _ => one.pace.is_none(),
        });
        let way = &flow.forward[..=at];
        let mut links = way.iter().map(|&link| &self.links[link]);
        let whole = links.all(|link| self.hosts[link.from].offload && !link.separates());
        if takes && at > 0 && whole { way } else { &[] }
    }

    /// Whether a queue needs the source and destination hosts of packets.
    pub fn isolates(&self) -> bool {
        self.transmitters.iter().any(|transmitter| matches!(transmitter.discipline, Discipline::Cake(_)))
    }

    fn check(&self) -> Result<(), String> {
        within(self.duration_ns, 1, DURATION_MAX_NS, "duration_ns")?;
        within(self.interval_ns, 1_000_000, DURATION_MAX_NS, "interval_ns")?;
        for (i, host) in self.hosts.iter().enumerate() {
            within(u64::from(host.hz), 10, 10_000, &format!("hosts[{i}].hz"))?;
            within(u64::from(host.mss), 1, 65_400, &format!("hosts[{i}].mss"))?;
            within(u64::from(host.initial_window), 1, 10_000, &format!("hosts[{i}].initial_window"))?;
            within(u64::from(host.ecn), 0, 2, &format!("hosts[{i}].ecn"))?;
            within(host.adv_win_scale.unwrap_or(0).into(), 0, 31, &format!("hosts[{i}].adv_win_scale"))?;
            within(host.receive_buffer, 1_024, 1 << 40, &format!("hosts[{i}].receive_buffer"))?;
            within(host.send_buffer, 1_024, 1 << 40, &format!("hosts[{i}].send_buffer"))?;
        }
        for (i, t) in self.transmitters.iter().enumerate() {
            within(t.rate_bps, 1, RATE_MAX_BPS, &format!("transmitters[{i}].rate_bps"))?;
            t.pace.iter().try_for_each(|pace| pace.check(&format!("transmitters[{i}].pace")))?;
            if t.queue_packets.is_some() && t.queue_bytes.is_some() {
                return Err(format!("transmitters[{i}] limits its queue in packets and in bytes"));
            }
            if t.pace.is_some() && matches!(t.discipline, Discipline::Tbf(_)) {
                return Err(format!("transmitters[{i}] has a token bucket and a rate that varies"));
            }
            t.discipline.check().map_err(|wrong| format!("transmitters[{i}].discipline: {wrong}"))?;
        }
        let mut host_of = vec![None; self.transmitters.len()];
        for (i, link) in self.links.iter().enumerate() {
            within(link.loss_ppb, 0, 1_000_000_000, &format!("links[{i}].loss_ppb"))?;
            let pattern = format!("links[{i}].loss_pattern");
            match &link.loss_pattern {
                None => {}
                Some(LossPattern::Every(period)) => within(*period, 1, 1_000_000_000, &pattern)?,
                Some(LossPattern::Packets(numbers)) => {
                    for number in numbers {
                        within(*number, 1, 1_000_000_000, &pattern)?;
                    }
                    if !numbers.is_sorted_by(|one, next| one < next) {
                        return Err(format!("{pattern} is not in ascending order"));
                    }
                }
                &Some(LossPattern::GilbertElliott { p_ppb, r_ppb, bad_ppb, good_ppb }) => {
                    for ppb in [p_ppb, r_ppb, bad_ppb, good_ppb] {
                        within(ppb, 0, 1_000_000_000, &pattern)?;
                    }
                }
            }
            link.check(&format!("links[{i}]"))?;
            within(link.delay_ns, 0, DURATION_MAX_NS, &format!("links[{i}].delay_ns"))?;
            within(link.overhead_bytes, 0, 65_535, &format!("links[{i}].overhead_bytes"))?;
            let known = link.from < self.hosts.len()
                && link.to < self.hosts.len()
                && link.transmitter.is_none_or(|t| t < self.transmitters.len());
            if !known {
                return Err(format!("links[{i}] names a host or transmitter that does not exist"));
            }
            if let Some(transmitter) = link.transmitter
                && *host_of[transmitter].get_or_insert(link.from) != link.from
            {
                return Err(format!("links[{i}].transmitter is another host's"));
            }
        }
        let mut connections = 0usize;
        for (i, flow) in self.flows.iter().enumerate() {
            if flow.traffic.datagrams().is_none() && flow.chosen().is_none() {
                let variant = flow.variant.as_deref().map_or(String::new(), |variant| format!(", variant {variant:?}"));
                return Err(format!("flows[{i}].cc = {:?}{variant} is not a congestion control", flow.cc));
            }
            flow.traffic.check(flow.count, &format!("flows[{i}]"))?;
            connections = connections.saturating_add(flow.count);
            if let Traffic::Arrivals(arrivals) = &flow.traffic {
                connections = connections.saturating_add(arrivals.open);
            }
            within(flow.start_ns, 0, DURATION_MAX_NS, &format!("flows[{i}].start_ns"))?;
            within(flow.duration_ns.unwrap_or(0), 0, DURATION_MAX_NS, &format!("flows[{i}].duration_ns"))?;
            self.check_path(&flow.forward, &flow.backward, &format!("flows[{i}]"))?;
            within(self.round_trip_ps(flow), ROUND_TRIP_MIN_PS, u64::MAX, &format!("flows[{i}]: round trip in ps"))?;
        }
        within(connections as u64, 0, CONNECTIONS_MAX as u64, "connections in all")?;
        for (i, probe) in self.probes.iter().enumerate() {
            within(probe.interval_ns, 1_000, DURATION_MAX_NS, &format!("probes[{i}].interval_ns"))?;
            self.check_path(&probe.forward, &probe.backward, &format!("probes[{i}]"))?;
        }
        Ok(())
    }

    /// The first flow whose full segment and acknowledgement, alone on the path, return before TCP's clock advances;
    /// with that RTT in picoseconds.
    pub fn too_short(&self) -> Option<(&Flow, u64)> {
        let mut round_trips = self.flows.iter().map(|flow| (flow, self.round_trip_ps(flow)));
        round_trips.find(|(_, ps)| *ps < ROUND_TRIP_MIN_PS)
    }

    /// RTT of a full segment and its acknowledgement without other traffic.
    fn round_trip_ps(&self, flow: &Flow) -> u64 {
        let (from, to) =
            (&self.hosts[self.links[flow.forward[0]].from], &self.hosts[self.links[flow.backward[0]].from]);
        let headers = HEADERS + if from.timestamps && to.timestamps { TIMESTAMP_OPTION } else { 0 };
        let takes_ps = |size: u32, route: &[usize]| -> u128 {
            let link_ps = |&index: &usize| {
                let link = &self.links[index];
                let bits = 8 * u128::from(u64::from(size) + link.overhead_bytes);
                let rate = link.transmitter.map(|t| u128::from(self.transmitters[t].rate_bps));
                u128::from(link.least_delay_ns()) * 1_000 + rate.map_or(0, |bps| bits * 1_000_000_000_000 / bps)
            };
            route.iter().map(link_ps).sum()
        };
        let segment = from.mss.min(to.mss) + headers;
        let ps = takes_ps(segment, &flow.forward) + takes_ps(headers, &flow.backward);
        u64::try_from(ps).unwrap_or(u64::MAX)
    }

    fn check_path(&self, forward: &[usize], backward: &[usize], what: &str) -> Result<(), String> {
        for (path, way) in [(forward, "forward"), (backward, "backward")] {
            if path.is_empty() || path.len() > HOPS_MAX || path.iter().any(|&l| l >= self.links.len()) {
                return Err(format!("{what}.{way} is empty, too long or names a link that does not exist"));
            }
            for pair in path.windows(2) {
                if self.links[pair[0]].to != self.links[pair[1]].from {
                    return Err(format!("{what}.{way} does not join up"));
                }
            }
        }
        let ends = |path: &[usize]| (self.links[path[0]].from, self.links[path[path.len() - 1]].to);
        let (from, to) = ends(forward);
        if ends(backward) != (to, from) {
            return Err(format!("{what}.backward does not lead back"));
        }
        Ok(())
    }
}
