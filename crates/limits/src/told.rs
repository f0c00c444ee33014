//! Finds what limits each flow of a run, from the tables that every engine writes.

use super::compiled::{Compiled, Flow};
use super::words::{Limit, Taker, Told, shared};

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
const FULL: f64 = 0.9;
/// A host that holds a flow back for a smaller share of its time does not limit it.
const LEAST: f64 = 0.1;
/// Flows that overlap for a smaller share of a lifetime do not share it.
const TOGETHER: f64 = 0.1;
/// If the others take a smaller share of a rate, one flow has it alone.
const TAKES: f64 = 0.01;
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
struct Counted {
    bits: f64,
    segments: f64,
    retransmits: f64,
    senders: Vec<Option<Sender>>,
    completed_s: Vec<f64>,
}

/// What the network carried while a flow existed.
#[derive(Clone)]
struct Passed {
    drops: Vec<f64>,
    packets: Vec<f64>,
    bytes: Vec<f64>,
    lost: Vec<f64>,
    policed: Vec<f64>,
    /// Indexed by flow.
    bits: Vec<f64>,
}

/// What limits the flows of one run. Memory does not grow with the run's length.
pub struct Limits {
    compiled: Compiled,
    counted: Vec<Counted>,
    /// Flows that exist at the same times share one entry.
    passed: Vec<Passed>,
    lives: Vec<Life>,
    place: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Life {
    start_s: f64,
    end_s: f64,
}

impl Life {
    fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// What in the network holds a flow back, and for which share of its time.
struct Network {
    limit: Limit,
    share: f64,
    words: String,
    takers: Vec<Taker>,
}

impl Network {
    fn new(limit: Limit, share: f64, words: &str) -> Self {
        Network { limit, share, words: words.to_owned(), takers: Vec::new() }
    }
}

impl Limits {
    /// For a compiled scenario, given as JSON.
    pub fn new(json: &str) -> Result<Limits, String> {
        let compiled = Compiled::parse(json)?;
        let nothing = Passed {
            drops: vec![0.0; compiled.transmitters.len()],
            packets: vec![0.0; compiled.transmitters.len()],
            bytes: vec![0.0; compiled.transmitters.len()],
            lost: vec![0.0; compiled.links.len()],
            policed: vec![0.0; compiled.links.len()],
            bits: vec![0.0; compiled.flows.len()],
        };
        let (mut passed, mut lives, mut place, mut known) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for flow in &compiled.flows {
            // Flows that end after their bytes have individual ends.
            let when = flow.bytes.is_none().then_some((flow.start_ns, flow.duration_ns));
            let found = when.and_then(|when| known.iter().position(|&one| one == Some(when)));
            place.push(found.unwrap_or(passed.len()));
            if found.is_none() {
                let start_s = flow.start_ns as f64 / 1e9;
                let lasts_s = flow.duration_ns.map_or(f64::INFINITY, |ns| ns as f64 / 1e9);
                lives.push(Life { start_s, end_s: start_s + lasts_s });
                passed.push(nothing.clone());
                known.push(when);
            }
        }
        Ok(Limits { counted: vec![Counted::default(); compiled.flows.len()], passed, lives, place, compiled })
    }

    /// Adds rows of a table of [`TABLES`]: its columns, one after the other. A wrong number of columns is an error, and
    /// so is a row of a flow, transmitter or link that the scenario does not have.
    pub fn add(&mut self, table: &str, columns: &[f64]) -> Result<(), String> {
        let (_, names) =
            TABLES.iter().find(|(name, _)| *name == table).ok_or_else(|| format!("no limit is told by {table}"))?;
        if !columns.len().is_multiple_of(names.len()) {
            return Err(format!("{table} has {} columns of one length", names.len()));
        }
        let rows = columns.len() / names.len();
        let mut row = vec![0.0; names.len()];
        for at in 0..rows {
            for (column, value) in row.iter_mut().enumerate() {
                *value = columns[column * rows + at];
            }
            self.row(table, &row).ok_or_else(|| format!("{table} has a row of what the scenario has not: {row:?}"))?;
        }
        Ok(())
    }

    fn row(&mut self, table: &str, row: &[f64]) -> Option<()> {
        let count = |value: f64| if value.is_nan() { 0.0 } else { value };
        match (table, row) {
            ("flows", &[flow, start_s, end_s, completed]) => {
                let at = index(flow)?;
                let one = self.counted.get_mut(at)?;
                if completed > 0.0 {
                    one.completed_s.push(end_s - start_s);
                }
                if let Some(completed_s) = self.completed_s(at) {
                    let life = &mut self.lives[self.place[at]];
                    life.end_s = life.start_s + completed_s;
                }
            }
            ("intervals", &[t_s, flow, bps, segments, retransmits]) => {
                let at = index(flow)?;
                let one = self.counted.get_mut(at)?;
                let bits = count(bps) * self.compiled.interval_s();
                one.bits += bits;
                one.segments += count(segments);
                one.retransmits += count(retransmits);
                self.within(t_s, |passed| {
                    *passed.bits.get_mut(at)? += bits;
                    Some(())
                })?;
            }
            ("tcp_info", &[flow, connection, threshold, receiver_s, buffer_s, marked]) => {
                let (at, one) = (index(connection)?, self.counted.get_mut(index(flow)?)?);
                if one.senders.len() <= at {
                    one.senders.resize(at + 1, None);
                }
                let starts = !(0.0..NO_THRESHOLD).contains(&threshold);
                let sender =
                    Sender { receiver_s: count(receiver_s), buffer_s: count(buffer_s), marked: count(marked), starts };
                one.senders[at] = Some(sender);
            }
            ("queues", &[t_s, transmitter, drops, packets, bytes]) => {
                let at = index(transmitter)?;
                self.within(t_s, |passed| {
                    *passed.drops.get_mut(at)? += count(drops);
                    *passed.packets.get_mut(at)? += count(packets);
                    *passed.bytes.get_mut(at)? += count(bytes);
                    Some(())
                })?;
            }
            ("links", &[t_s, link, lost, policed]) => {
                let at = index(link)?;
                self.within(t_s, |passed| {
                    *passed.lost.get_mut(at)? += count(lost);
                    *passed.policed.get_mut(at)? += count(policed);
                    Some(())
                })?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Calls `act` for each entry whose flows exist for at least half of the interval that ends at `t_s`.
    fn within(&mut self, t_s: f64, mut act: impl FnMut(&mut Passed) -> Option<()>) -> Option<()> {
        let middle = t_s - self.compiled.interval_s() / 2.0;
        let lives = self.lives.iter().map(|life| (life.start_s..=life.end_s).contains(&middle));
        self.passed.iter_mut().zip(lives).filter(|&(_, lives)| lives).try_for_each(|(passed, _)| act(passed))
    }

    /// Time from its start until all its connections had sent their bytes.
    fn completed_s(&self, flow: usize) -> Option<f64> {
        let (given, counted) = (&self.compiled.flows[flow], &self.counted[flow]);
        (given.bytes.is_some() && counted.completed_s.len() == given.count)
            .then(|| counted.completed_s.iter().copied().fold(0.0, f64::max))
    }

    fn life(&self, flow: usize, now_s: f64) -> Life {
        let life = self.lives[self.place[flow]];
        Life { end_s: now_s.min(life.end_s), ..life }
    }

    /// What limits each flow of a run that has reached `now_s`.
    pub fn told(&self, now_s: f64) -> Vec<Told> {
        let now_s = now_s.min(self.compiled.duration_ns as f64 / 1e9);
        (0..self.compiled.flows.len()).map(|flow| self.flow(flow, now_s)).collect()
    }

    fn flow(&self, at: usize, now_s: f64) -> Told {
        let (flow, counted) = (&self.compiled.flows[at], &self.counted[at]);
        let life = self.life(at, now_s);
        let seconds = life.seconds();
        let goodput_bps = if seconds > 0.0 { counted.bits / seconds } else { 0.0 };
        let allowed = self.bottleneck(at, &life).map_or(f64::INFINITY, |(_, bps)| bps / self.compiled.headers(flow));
        let share_of_rate = goodput_bps / allowed;
        let hosts = self.hosts(flow, counted, seconds, goodput_bps);
        let free = (1.0 - hosts.iter().map(|(_, share, _)| share).sum::<f64>()).max(0.0);
        let network = if seconds <= 0.0 {
            Network::new(Limit::NotBegun, 0.0, "it has not begun")
        } else if flow.is_asked() {
            Network::new(Limit::Unknown, 0.0, "not known: its application decides when there is something to send")
        } else {
            self.network(at, &life, share_of_rate, free)
        };
        let held: Vec<f64> = hosts
            .iter()
            .map(|&(_, share, _)| if share >= LEAST && seconds > 0.0 { share } else { 0.0 })
            .chain([network.share])
            .collect();
        let shares: Vec<(Limit, f64)> =
            hosts.iter().map(|&(limit, share, _)| (limit, share)).chain([(network.limit, network.share)]).collect();
        let (limit, share, words, takers) = match super::largest(&held).and_then(|found| hosts.get(found)) {
            Some(&(limit, share, words)) => (limit, share, words.to_owned(), Vec::new()),
            None => (network.limit, network.share, network.words, network.takers),
        };
        Told {
            flow: flow.name.clone(),
            limit,
            share,
            shares: shares.into_iter().filter(|&(_, share)| share > 0.0).collect(),
            words,
            takers,
            start_s: life.start_s,
            end_s: life.end_s,
            completed_s: self.completed_s(at),
            goodput_bps,
            share_of_rate,
        }
    }

    /// The shares of time in which its hosts hold it back; hosts come before the network if shares are equal.
    fn hosts(&self, flow: &Flow, counted: &Counted, seconds: f64, bps: f64) -> [(Limit, f64, &'static str); 3] {
        let senders = || counted.senders.iter().flatten();
        let many = senders().count().max(1) as f64;
        let share = |sum: f64| if seconds > 0.0 { (sum / many / seconds).clamp(0.0, 1.0) } else { 0.0 };
        let receiver = share(senders().map(|one| one.receiver_s).sum());
        let buffer = share(senders().map(|one| one.buffer_s).sum());
        let offered = flow.writes.as_ref().map_or(f64::INFINITY, |writes| writes.bps() * flow.count as f64);
        let application = if bps >= FULL * offered { (1.0 - receiver - buffer).max(0.0) } else { 0.0 };
        [
            (Limit::Application, application, "its application, which has no more to send"),
            (Limit::ReceiveWindow, receiver, "the receiver's window"),
            (Limit::SendBuffer, buffer, "the send buffer"),
        ]
    }

    /// The transmitter on its path with the highest utilization, and its rate; None if no link on the path has a rate.
    fn bottleneck(&self, at: usize, life: &Life) -> Option<(usize, f64)> {
        let passed = &self.passed[self.place[at]];
        let seconds = life.seconds();
        let used = |&(one, bps): &(usize, f64)| passed.bytes[one] * 8.0 / seconds / bps;
        let on_way = self.compiled.transmitters(&self.compiled.flows[at].forward);
        let rates = on_way.into_iter().map(|one| (one, self.compiled.bps(one, life.start_s, life.end_s)));
        // The slowest, if nothing has passed.
        rates
            .filter(|(_, bps)| *bps > 0.0)
            .max_by(|one, other| used(one).total_cmp(&used(other)).then(other.1.total_cmp(&one.1)))
    }

    fn network(&self, at: usize, life: &Life, share_of_rate: f64, free: f64) -> Network {
        let (flow, counted) = (&self.compiled.flows[at], &self.counted[at]);
        let passed = &self.passed[self.place[at]];
        let is_full = |one: usize| {
            passed.bytes[one] * 8.0 / life.seconds() > FULL * self.compiled.bps(one, life.start_s, life.end_s)
        };
        let [path, policer] = self.lost(at);
        let by_path = path > counted.retransmits - path;
        // A control that takes losses for congestion leaves room, so a full link does not limit it.
        let mistaken = by_path && flow.mistakes();
        let bottleneck = self.bottleneck(at, life);
        if let Some((transmitter, _)) = bottleneck
            && (share_of_rate > FULL || (is_full(transmitter) && !mistaken))
        {
            return self.rate(at, life, transmitter, free);
        }
        if self.compiled.transmitters(&flow.backward).into_iter().any(is_full) {
            return Network::new(Limit::WayBack, free, "the return path, full of acknowledgements");
        }
        let marked: f64 = counted.senders.iter().flatten().map(|one| one.marked).sum();
        let dropped: f64 = self.compiled.transmitters(&flow.forward).iter().map(|&one| passed.drops[one]).sum();
        // Segments that timers repeated before an answer could arrive were not lost.
        let gone = path > 0.0 || policer > 0.0 || dropped > 0.0;
        if counted.segments == 0.0 && !gone {
            return Network::new(Limit::Start, 0.0, "its start: the handshake was not over");
        }
        if (counted.retransmits == 0.0 || !gone) && marked == 0.0 {
            return if flow.cc.starts_with("bbr") {
                Network::new(Limit::Pace, 0.0, "its own pace: nothing was lost")
            } else if counted.senders.first().copied().flatten().is_none_or(|one| one.starts) {
                Network::new(Limit::Start, 0.0, "its start: nothing was lost")
            } else {
                Network::new(Limit::Growth, 0.0, "its window, which still grew")
            };
        }
        if marked > counted.retransmits {
            return Network::new(Limit::Marks, free, "marks of the queue");
        }
        let segments = counted.segments.max(1.0);
        // A control that does not slow down for a loss is held back by its retransmissions only.
        let comes_down = flow.mistakes() || (flow.cc.starts_with("bbr3") && path > BBR3_LOSS * counted.segments);
        let share = |lost: f64| if comes_down { free } else { lost / segments };
        let queue = counted.retransmits - path - policer;
        if by_path {
            let words = if mistaken { "loss on the path, taken for congestion" } else { "loss on the path" };
            return Network::new(Limit::PathLoss, share(path), words);
        }
        if policer > queue {
            return Network::new(Limit::PolicerDrops, share(policer), "drops of the policer");
        }
        Network::new(Limit::QueueDrops, share(counted.retransmits), "drops at the queue")
    }

    /// A rate that is used up: by the flow alone, or with others, each with its part.
    fn rate(&self, at: usize, life: &Life, transmitter: usize, free: f64) -> Network {
        let passed = &self.passed[self.place[at]];
        let rate_bps = self.compiled.bps(transmitter, life.start_s, life.end_s);
        let mut takers: Vec<Taker> = (0..self.compiled.flows.len())
            .filter(|&other| other != at && self.meet(at, other, life))
            .filter(|&other| self.compiled.transmitters(&self.compiled.flows[other].forward).contains(&transmitter))
            .map(|other| {
                let goodput_bps = passed.bits[other] / life.seconds();
                let one = &self.compiled.flows[other];
                let share = goodput_bps * self.compiled.headers(one) / rate_bps;
                Taker { flow: one.name.clone(), goodput_bps, share }
            })
            .collect();
        if takers.iter().map(|one| one.share).sum::<f64>() < TAKES {
            let words = if self.compiled.flows[at].count > 1 {
                "the rate, which its connections share"
            } else {
                "the path's rate"
            };
            return Network::new(Limit::Rate, free, words);
        }
        takers.sort_by(|one, other| other.goodput_bps.total_cmp(&one.goodput_bps));
        Network { limit: Limit::SharedRate, share: free, words: shared(&takers), takers }
    }

    /// Whether another flow exists for a substantial part of a lifetime.
    fn meet(&self, at: usize, other: usize, life: &Life) -> bool {
        let its = if self.place[other] == self.place[at] { return true } else { self.life(other, life.end_s) };
        its.end_s.min(life.end_s) - its.start_s.max(life.start_s) > TOGETHER * life.seconds()
    }

    /// About how many of its segments links lost and policers dropped: they affect all flows alike, so in proportion to
    /// what passed at that time.
    fn lost(&self, at: usize) -> [f64; 2] {
        let (flow, counted) = (&self.compiled.flows[at], &self.counted[at]);
        let passed = &self.passed[self.place[at]];
        let mut packets = f64::NAN;
        let (mut through, mut taken) = (1.0, [0.0, 0.0]);
        for &link in &flow.forward {
            packets = self.compiled.links[link].transmitter.map_or(packets, |one| passed.packets[one]);
            for (sum, gone) in taken.iter_mut().zip([passed.policed[link], passed.lost[link]]) {
                let rate = if packets > 0.0 { (gone / packets).min(1.0) } else { 0.0 };
                *sum += through * rate;
                through *= 1.0 - rate;
            }
        }
        let whole: f64 = taken.iter().sum();
        // Packets dropped by a queue never reached the link: lost = rate (segments - (retransmits - lost)).
        let most = if whole < 1.0 {
            (whole * (counted.segments - counted.retransmits) / (1.0 - whole)).min(counted.retransmits)
        } else {
            counted.retransmits
        };
        let part = |one: f64| if whole > 0.0 { most * one / whole } else { 0.0 };
        [part(taken[1]), part(taken[0])]
    }
}

fn index(value: f64) -> Option<usize> {
    (value >= 0.0 && value <= f64::from(u32::MAX)).then_some(value as usize)
}
