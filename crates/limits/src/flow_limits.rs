//! Finds what limits each flow of a run, from the tables that every engine writes.

use super::compiled;
use super::limit::{FlowLimit, Limit, Taker, shared_rate_text};
use sawtooth_net::scenario::{Flow, Scenario};

/// The tables to read and their columns, in the order in which to add them: `flows` first, since the ends of flows
/// decide which rows of the other tables belong to them.
pub const TABLES: [(&str, &[&str]); 5] = [
    ("flows", &["flow", "start_s", "end_s", "completed"]),
    ("intervals", &["t_s", "flow", "goodput_bps", "segments_out", "retransmits"]),
    (
        "tcp_info",
        &["flow", "connection", "ssthresh_segments", "rwnd_limited_s", "sndbuf_limited_s", "delivered_ce_segments"],
    ),
    ("queues", &["t_s", "transmitter", "drops", "sent_packets", "sent_bytes"]),
    ("links", &["t_s", "link", "lost", "policed"]),
];

/// From this share of its rate on, a link is full, or an application's offer is sent.
const FULL_SHARE: f64 = 0.9;
/// A host that holds a flow back for a smaller share of its time does not limit it.
const MIN_HOST_SHARE: f64 = 0.1;
/// Flows that overlap for a smaller share of a lifetime do not share it.
const MIN_OVERLAP: f64 = 0.1;
/// If the others take a smaller share of a rate, one flow has it alone.
const MIN_TAKER_SHARE: f64 = 0.01;
/// BBRv3 slows down if more than this share is lost in a round trip (draft-ietf-ccwg-bbr, BBR.LossThresh).
const BBR3_LOSS: f64 = 0.02;
/// A larger slow-start threshold means none: Linux's initial value.
const NO_THRESHOLD: f64 = 1e8;

/// For one connection: how long hosts have held it back, and how many segments came back with a mark.
#[derive(Clone, Copy, Default)]
struct Sender {
    receiver_s: f64,
    buffer_s: f64,
    marked: f64,
    starts: bool,
}

#[derive(Clone, Default)]
struct FlowCounters {
    bits: f64,
    segments: f64,
    retransmits: f64,
    senders: Vec<Option<Sender>>,
    completed_s: Vec<f64>,
}

/// What the network carried while a flow existed.
#[derive(Clone)]
struct Traffic {
    drops: Vec<f64>,
    packets: Vec<f64>,
    bytes: Vec<f64>,
    lost: Vec<f64>,
    policed: Vec<f64>,
    /// Indexed by flow.
    bits: Vec<f64>,
}

/// What limits the flows of one run. Memory does not grow with the run's length.
pub struct FlowLimits {
    compiled: Scenario,
    counters: Vec<FlowCounters>,
    /// Flows that exist at the same times share one entry.
    traffic: Vec<Traffic>,
    lifetimes: Vec<Lifetime>,
    /// For each flow, its index in `traffic` and `lifetimes`.
    group: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Lifetime {
    start_s: f64,
    end_s: f64,
}

impl Lifetime {
    fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// What in the network holds a flow back, and for which share of its time.
struct NetworkLimit {
    limit: Limit,
    share: f64,
    words: String,
    takers: Vec<Taker>,
}

impl NetworkLimit {
    fn new(limit: Limit, share: f64, words: &str) -> Self {
        NetworkLimit { limit, share, words: words.to_owned(), takers: Vec::new() }
    }
}

impl FlowLimits {
    /// For a compiled scenario, given as JSON.
    pub fn new(json: &str) -> Result<FlowLimits, String> {
        let compiled = compiled::parse(json)?;
        let empty = Traffic {
            drops: vec![0.0; compiled.transmitters.len()],
            packets: vec![0.0; compiled.transmitters.len()],
            bytes: vec![0.0; compiled.transmitters.len()],
            lost: vec![0.0; compiled.links.len()],
            policed: vec![0.0; compiled.links.len()],
            bits: vec![0.0; compiled.flows.len()],
        };
        let (mut traffic, mut lifetimes, mut group, mut known) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for flow in &compiled.flows {
            // Flows that end after their bytes have individual ends.
            let when = (flow.traffic.bytes() == u64::MAX).then_some((flow.start_ns, flow.duration_ns));
            let found = when.and_then(|when| known.iter().position(|&one| one == Some(when)));
            group.push(found.unwrap_or(traffic.len()));
            if found.is_none() {
                let start_s = flow.start_ns as f64 / 1e9;
                let lasts_s = flow.duration_ns.map_or(f64::INFINITY, |ns| ns as f64 / 1e9);
                lifetimes.push(Lifetime { start_s, end_s: start_s + lasts_s });
                traffic.push(empty.clone());
                known.push(when);
            }
        }
        Ok(FlowLimits {
            counters: vec![FlowCounters::default(); compiled.flows.len()],
            traffic,
            lifetimes,
            group,
            compiled,
        })
    }

    /// Adds rows of a table of [`TABLES`]: its columns, one after the other. A wrong number of columns is an error, and
    /// so is a row of a flow, transmitter or link that the scenario does not have.
    pub fn add(&mut self, table: &str, columns: &[f64]) -> Result<(), String> {
        let (_, names) = TABLES
            .iter()
            .find(|(name, _)| *name == table)
            .ok_or_else(|| format!("the table {table} says nothing about limits"))?;
        if !columns.len().is_multiple_of(names.len()) {
            return Err(format!("{table} has {} columns of one length", names.len()));
        }
        let rows = columns.len() / names.len();
        let mut row = vec![0.0; names.len()];
        for at in 0..rows {
            for (column, value) in row.iter_mut().enumerate() {
                *value = columns[column * rows + at];
            }
            self.add_row(table, &row).ok_or_else(|| format!("{table} has a row that the scenario lacks: {row:?}"))?;
        }
        Ok(())
    }

    fn add_row(&mut self, table: &str, row: &[f64]) -> Option<()> {
        let count = |value: f64| if value.is_nan() { 0.0 } else { value };
        match (table, row) {
            ("flows", &[flow, start_s, end_s, completed]) => {
                let index = index(flow)?;
                let one = self.counters.get_mut(index)?;
                if completed > 0.0 {
                    one.completed_s.push(end_s - start_s);
                }
                if let Some(completed_s) = self.completed_s(index) {
                    let lifetime = &mut self.lifetimes[self.group[index]];
                    lifetime.end_s = lifetime.start_s + completed_s;
                }
            }
            ("intervals", &[t_s, flow, bps, segments, retransmits]) => {
                let index = index(flow)?;
                let bits = count(bps) * self.interval_s();
                let one = self.counters.get_mut(index)?;
                one.bits += bits;
                one.segments += count(segments);
                one.retransmits += count(retransmits);
                self.for_each_alive_at(t_s, |traffic| {
                    *traffic.bits.get_mut(index)? += bits;
                    Some(())
                })?;
            }
            ("tcp_info", &[flow, connection, threshold, receiver_s, buffer_s, marked]) => {
                let (index, one) = (index(connection)?, self.counters.get_mut(index(flow)?)?);
                if one.senders.len() <= index {
                    one.senders.resize(index + 1, None);
                }
                let starts = !(0.0..NO_THRESHOLD).contains(&threshold);
                let sender =
                    Sender { receiver_s: count(receiver_s), buffer_s: count(buffer_s), marked: count(marked), starts };
                one.senders[index] = Some(sender);
            }
            ("queues", &[t_s, transmitter, drops, packets, bytes]) => {
                let index = index(transmitter)?;
                self.for_each_alive_at(t_s, |traffic| {
                    *traffic.drops.get_mut(index)? += count(drops);
                    *traffic.packets.get_mut(index)? += count(packets);
                    *traffic.bytes.get_mut(index)? += count(bytes);
                    Some(())
                })?;
            }
            ("links", &[t_s, link, lost, policed]) => {
                let index = index(link)?;
                self.for_each_alive_at(t_s, |traffic| {
                    *traffic.lost.get_mut(index)? += count(lost);
                    *traffic.policed.get_mut(index)? += count(policed);
                    Some(())
                })?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Calls `act` for each entry whose flows exist for at least half of the interval that ends at `t_s`.
    fn for_each_alive_at(&mut self, t_s: f64, mut act: impl FnMut(&mut Traffic) -> Option<()>) -> Option<()> {
        let middle = t_s - self.interval_s() / 2.0;
        let alive = self.lifetimes.iter().map(|lifetime| (lifetime.start_s..=lifetime.end_s).contains(&middle));
        self.traffic.iter_mut().zip(alive).filter(|&(_, alive)| alive).try_for_each(|(traffic, _)| act(traffic))
    }

    /// Time from its start until all its connections had sent their bytes.
    fn completed_s(&self, flow: usize) -> Option<f64> {
        let (config, counters) = (&self.compiled.flows[flow], &self.counters[flow]);
        (config.traffic.bytes() < u64::MAX && counters.completed_s.len() == config.count)
            .then(|| counters.completed_s.iter().copied().fold(0.0, f64::max))
    }

    fn lifetime(&self, flow: usize, now_s: f64) -> Lifetime {
        let lifetime = self.lifetimes[self.group[flow]];
        Lifetime { end_s: now_s.min(lifetime.end_s), ..lifetime }
    }

    fn interval_s(&self) -> f64 {
        self.compiled.interval_ns as f64 / 1e9
    }

    fn bps(&self, transmitter: usize, lifetime: &Lifetime) -> f64 {
        compiled::bps(&self.compiled.transmitters[transmitter], lifetime.start_s, lifetime.end_s)
    }

    /// What limits each flow of a run that has reached `now_s`.
    pub fn report(&self, now_s: f64) -> Vec<FlowLimit> {
        let now_s = now_s.min(self.compiled.duration_ns as f64 / 1e9);
        (0..self.compiled.flows.len()).map(|flow| self.flow_limit(flow, now_s)).collect()
    }

    fn flow_limit(&self, flow: usize, now_s: f64) -> FlowLimit {
        let (config, counters) = (&self.compiled.flows[flow], &self.counters[flow]);
        let lifetime = self.lifetime(flow, now_s);
        let seconds = lifetime.seconds();
        let goodput_bps = if seconds > 0.0 { counters.bits / seconds } else { 0.0 };
        let allowed = self
            .bottleneck(flow, &lifetime)
            .map_or(f64::INFINITY, |(_, bps)| bps / compiled::headers(&self.compiled, config));
        let share_of_rate = goodput_bps / allowed;
        let hosts = self.host_limits(config, counters, seconds, goodput_bps);
        let unheld_share = (1.0 - hosts.iter().map(|(_, share, _)| share).sum::<f64>()).max(0.0);
        let network = if seconds <= 0.0 {
            NetworkLimit::new(Limit::NotBegun, 0.0, "it has not begun")
        } else if compiled::is_application_driven(config) {
            NetworkLimit::new(Limit::Unknown, 0.0, "not known: its application decides when there is something to send")
        } else {
            self.network_limit(flow, &lifetime, share_of_rate, unheld_share)
        };
        let candidates: Vec<f64> = hosts
            .iter()
            .map(|&(_, share, _)| if share >= MIN_HOST_SHARE && seconds > 0.0 { share } else { 0.0 })
            .chain([network.share])
            .collect();
        let shares: Vec<(Limit, f64)> =
            hosts.iter().map(|&(limit, share, _)| (limit, share)).chain([(network.limit, network.share)]).collect();
        let (limit, share, words, takers) = match super::largest(&candidates).and_then(|found| hosts.get(found)) {
            Some(&(limit, share, words)) => (limit, share, words.to_owned(), Vec::new()),
            None => (network.limit, network.share, network.words, network.takers),
        };
        FlowLimit {
            flow: config.name.clone(),
            limit,
            share,
            shares: shares.into_iter().filter(|&(_, share)| share > 0.0).collect(),
            words,
            takers,
            start_s: lifetime.start_s,
            end_s: lifetime.end_s,
            completed_s: self.completed_s(flow),
            goodput_bps,
            share_of_rate,
        }
    }

    /// The shares of time in which its hosts hold it back; hosts come before the network if shares are equal.
    fn host_limits(
        &self,
        flow: &Flow,
        counters: &FlowCounters,
        seconds: f64,
        bps: f64,
    ) -> [(Limit, f64, &'static str); 3] {
        let senders = || counters.senders.iter().flatten();
        let many = senders().count().max(1) as f64;
        let share = |sum: f64| if seconds > 0.0 { (sum / many / seconds).clamp(0.0, 1.0) } else { 0.0 };
        let receiver = share(senders().map(|one| one.receiver_s).sum());
        let buffer = share(senders().map(|one| one.buffer_s).sum());
        let offered = compiled::offered_bps(flow);
        let application = if bps >= FULL_SHARE * offered { (1.0 - receiver - buffer).max(0.0) } else { 0.0 };
        [
            (Limit::Application, application, "its application, which has no more to send"),
            (Limit::ReceiveWindow, receiver, "the receiver's window"),
            (Limit::SendBuffer, buffer, "the send buffer"),
        ]
    }

    /// The transmitter on its path with the highest utilization, and its rate; None if no link on the path has a rate.
    fn bottleneck(&self, flow: usize, lifetime: &Lifetime) -> Option<(usize, f64)> {
        let traffic = &self.traffic[self.group[flow]];
        let seconds = lifetime.seconds();
        let used = |&(one, bps): &(usize, f64)| traffic.bytes[one] * 8.0 / seconds / bps;
        let on_way = compiled::transmitters(&self.compiled, &self.compiled.flows[flow].forward);
        let rates = on_way.into_iter().map(|one| (one, self.bps(one, lifetime)));
        // The slowest, if nothing has passed.
        rates
            .filter(|(_, bps)| *bps > 0.0)
            .max_by(|one, other| used(one).total_cmp(&used(other)).then(other.1.total_cmp(&one.1)))
    }

    fn network_limit(
        &self,
        flow_index: usize,
        lifetime: &Lifetime,
        share_of_rate: f64,
        unheld_share: f64,
    ) -> NetworkLimit {
        let (flow, counters) = (&self.compiled.flows[flow_index], &self.counters[flow_index]);
        let traffic = &self.traffic[self.group[flow_index]];
        let is_full = |one: usize| traffic.bytes[one] * 8.0 / lifetime.seconds() > FULL_SHARE * self.bps(one, lifetime);
        let [path, policer] = self.segments_lost(flow_index);
        let dropped: f64 =
            compiled::transmitters(&self.compiled, &flow.forward).iter().map(|&one| traffic.drops[one]).sum();
        // A loss counts once, even if it is a super-packet of many segments.
        let by_path = path > counters.retransmits - path || (path > 0.0 && policer == 0.0 && dropped == 0.0);
        // A control that takes losses for congestion leaves room, so a full link does not limit it.
        let is_misread = by_path && compiled::treats_loss_as_congestion(flow);
        let bottleneck = self.bottleneck(flow_index, lifetime);
        if let Some((transmitter, _)) = bottleneck
            && (share_of_rate > FULL_SHARE || (is_full(transmitter) && !is_misread))
        {
            return self.rate_limit(flow_index, lifetime, transmitter, unheld_share);
        }
        if compiled::transmitters(&self.compiled, &flow.backward).into_iter().any(is_full) {
            return NetworkLimit::new(Limit::ReturnPath, unheld_share, "the return path, full of acknowledgements");
        }
        let marked: f64 = counters.senders.iter().flatten().map(|one| one.marked).sum();
        // Segments that timers repeated before an answer could arrive were not lost.
        let any_lost = path > 0.0 || policer > 0.0 || dropped > 0.0;
        if counters.segments == 0.0 && !any_lost {
            return NetworkLimit::new(Limit::Start, 0.0, "its start: the handshake was not over");
        }
        if (counters.retransmits == 0.0 || !any_lost) && marked == 0.0 {
            return if flow.cc.starts_with("bbr") {
                NetworkLimit::new(Limit::Pace, 0.0, "its own pace: nothing was lost")
            } else if counters.senders.first().copied().flatten().is_none_or(|one| one.starts) {
                NetworkLimit::new(Limit::Start, 0.0, "its start: nothing was lost")
            } else {
                NetworkLimit::new(Limit::Growth, 0.0, "its window, which still grew")
            };
        }
        if marked > counters.retransmits {
            return NetworkLimit::new(Limit::Marks, unheld_share, "marks of the queue");
        }
        let segments = counters.segments.max(1.0);
        // A control that does not slow down for a loss is held back by its retransmissions only.
        let slows_down = compiled::treats_loss_as_congestion(flow)
            || (flow.cc.starts_with("bbr3") && path > BBR3_LOSS * counters.segments);
        let share = |lost: f64| if slows_down { unheld_share } else { lost / segments };
        let queue = counters.retransmits - path - policer;
        if by_path {
            let words = if is_misread { "loss on the path, taken for congestion" } else { "loss on the path" };
            return NetworkLimit::new(Limit::PathLoss, share(path), words);
        }
        if policer > queue {
            return NetworkLimit::new(Limit::PolicerDrops, share(policer), "drops of the policer");
        }
        NetworkLimit::new(Limit::QueueDrops, share(counters.retransmits), "drops at the queue")
    }

    /// A rate that is used up: by the flow alone, or with others, each with its part.
    fn rate_limit(
        &self,
        flow_index: usize,
        lifetime: &Lifetime,
        transmitter: usize,
        unheld_share: f64,
    ) -> NetworkLimit {
        let traffic = &self.traffic[self.group[flow_index]];
        let rate_bps = self.bps(transmitter, lifetime);
        let mut takers: Vec<Taker> = (0..self.compiled.flows.len())
            .filter(|&other| other != flow_index && self.overlaps(flow_index, other, lifetime))
            .filter(|&other| {
                compiled::transmitters(&self.compiled, &self.compiled.flows[other].forward).contains(&transmitter)
            })
            .map(|other| {
                let goodput_bps = traffic.bits[other] / lifetime.seconds();
                let one = &self.compiled.flows[other];
                let share = goodput_bps * compiled::headers(&self.compiled, one) / rate_bps;
                Taker { flow: one.name.clone(), goodput_bps, share }
            })
            .collect();
        if takers.iter().map(|one| one.share).sum::<f64>() < MIN_TAKER_SHARE {
            let words = if self.compiled.flows[flow_index].count > 1 {
                "the rate, which its connections share"
            } else {
                "the path's rate"
            };
            return NetworkLimit::new(Limit::Rate, unheld_share, words);
        }
        takers.sort_by(|one, other| other.goodput_bps.total_cmp(&one.goodput_bps));
        NetworkLimit { limit: Limit::SharedRate, share: unheld_share, words: shared_rate_text(&takers), takers }
    }

    /// Whether another flow exists for a substantial part of a lifetime.
    fn overlaps(&self, at: usize, other: usize, lifetime: &Lifetime) -> bool {
        let other =
            if self.group[other] == self.group[at] { return true } else { self.lifetime(other, lifetime.end_s) };
        other.end_s.min(lifetime.end_s) - other.start_s.max(lifetime.start_s) > MIN_OVERLAP * lifetime.seconds()
    }

    /// About how many of its segments links lost and policers dropped: they affect all flows alike, so in proportion to
    /// what passed at that time.
    fn segments_lost(&self, flow_index: usize) -> [f64; 2] {
        let (flow, counters) = (&self.compiled.flows[flow_index], &self.counters[flow_index]);
        let traffic = &self.traffic[self.group[flow_index]];
        let mut packets = f64::NAN;
        let (mut passing, mut dropped) = (1.0, [0.0, 0.0]);
        for &link in &flow.forward {
            packets = self.compiled.links[link].transmitter.map_or(packets, |one| traffic.packets[one]);
            for (sum, gone) in dropped.iter_mut().zip([traffic.policed[link], traffic.lost[link]]) {
                let rate = if packets > 0.0 { (gone / packets).min(1.0) } else { 0.0 };
                *sum += passing * rate;
                passing *= 1.0 - rate;
            }
        }
        let loss_rate: f64 = dropped.iter().sum();
        // Packets dropped by a queue never reached the link: lost = rate (segments - (retransmits - lost)).
        let dropped_segments = if loss_rate < 1.0 {
            (loss_rate * (counters.segments - counters.retransmits) / (1.0 - loss_rate)).min(counters.retransmits)
        } else {
            counters.retransmits
        };
        let part = |one: f64| if loss_rate > 0.0 { dropped_segments * one / loss_rate } else { 0.0 };
        [part(dropped[1]), part(dropped[0])]
    }
}

fn index(value: f64) -> Option<usize> {
    (value >= 0.0 && value <= f64::from(u32::MAX)).then_some(value as usize)
}
