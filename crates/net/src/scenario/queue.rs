//! A transmitter's queue: the queueing discipline, its parameters, and how Linux takes them. One file: a type
//! for each discipline, with its limits.

use super::rtnetlink::{Room, UNLIMITED, attribute, large_rate, numbers, rate, saturating, us, words};
use super::{BURST_MAX, HOUR_NS, RATE_MAX_BPS, is_usual, within};
use serde::{Deserialize, Serialize};

/// Decides which packets are dropped, and which leaves next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Discipline {
    /// Drops packets that arrive at a full queue. Departure times are computed at arrival.
    #[default]
    TailDrop,
    /// The same behaviour, but packets are stored until they leave.
    Fifo {},
    Codel(Codel),
    FqCodel(FqCodel),
    Red(Red),
    Pie(Pie),
    FqPie(FqPie),
    Fq(Fq),
    Sfq(Sfq),
    Tbf(Tbf),
    Cake(Cake),
    #[serde(rename = "dualpi2")]
    DualPi2(DualPi2),
}

/// RFC 8289.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Codel {
    pub target_ns: u64,
    pub interval_ns: u64,
    /// Here and below: marks ECN-capable packets instead of dropping them.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub ecn: bool,
    /// Marks packets that waited longer than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold_ns: Option<u64>,
}

/// RFC 8290.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FqCodel {
    pub target_ns: u64,
    pub interval_ns: u64,
    pub flows: u32,
    /// Absent: one full frame.
    #[serde(default)]
    pub quantum_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub ecn: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold_ns: Option<u64>,
}

impl FqCodel {
    /// The CoDel parameters of each flow.
    pub fn codel(&self) -> Codel {
        let FqCodel { target_ns, interval_ns, ecn, ce_threshold_ns, .. } = *self;
        Codel { target_ns, interval_ns, ecn, ce_threshold_ns }
    }
}

/// Random early detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Red {
    pub min_bytes: u64,
    pub max_bytes: u64,
    /// The weight of the average, as an exponent of 1/2.
    pub weight_log: u8,
    /// Drop probability at the average's maximum.
    pub probability_ppb: u64,
    pub adaptive: bool,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub ecn: bool,
    /// With `ecn`: drops packets if the average is above its maximum.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub harddrop: bool,
}

/// PIE, RFC 8033. `alpha` and `beta` are in sixteenths, as in tc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pie {
    pub target_ns: u64,
    pub tupdate_ns: u64,
    pub alpha: u16,
    pub beta: u16,
    pub bytemode: bool,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub ecn: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FqPie {
    pub target_ns: u64,
    pub tupdate_ns: u64,
    pub alpha: u16,
    pub beta: u16,
    pub bytemode: bool,
    pub flows: u32,
    /// Absent: one full frame.
    #[serde(default)]
    pub quantum_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub ecn: bool,
}

/// Flow queueing: those parameters of tc-fq that matter on a forwarding host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fq {
    pub flow_limit: u64,
    /// Absent: two full frames here, ten for the initial quantum.
    #[serde(default)]
    pub quantum_bytes: Option<u32>,
    #[serde(default)]
    pub initial_quantum_bytes: Option<u32>,
    /// Bits of the hash that select the queue of flows without a socket on the host.
    pub orphan_mask: u32,
    pub refill_delay_ns: u64,
}

/// Stochastic fairness queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sfq {
    /// Absent: one full frame.
    #[serde(default)]
    pub quantum_bytes: Option<u32>,
    /// 0: never.
    pub perturb_ns: u64,
    pub flows: u32,
    pub divisor: u32,
    /// Maximum number of packets in one queue.
    pub depth: u32,
    pub headdrop: bool,
}

/// A token bucket before the transmitter, with a tail-drop queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tbf {
    pub rate_bps: u64,
    pub burst_bytes: u64,
    /// Absent: a burst passes at once. Otherwise, a second bucket of `minburst_bytes` with this rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peakrate_bps: Option<u64>,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub minburst_bytes: u64,
}

impl FqPie {
    /// The PIE parameters of each flow.
    pub fn pie(&self) -> Pie {
        let FqPie { target_ns, tupdate_ns, alpha, beta, bytemode, ecn, .. } = *self;
        Pie { target_ns, tupdate_ns, alpha, beta, bytemode, ecn }
    }
}

/// The parameters of `sch_cake`. Target and interval follow from its `rtt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cake {
    /// Rate of the shaper; absent: no shaping.
    #[serde(default)]
    pub bandwidth_bps: Option<u64>,
    pub interval_ns: u64,
    pub target_ns: u64,
    pub isolation: Isolation,
    /// Limit of the kernel memory for packets.
    pub memory_bytes: u64,
}

/// RFC 9332. Gains are in 1/256 per second, as tc passes them to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DualPi2 {
    pub target_ns: u64,
    pub tupdate_ns: u64,
    pub alpha_256: u32,
    pub beta_256: u32,
    /// The ratio between the mark probability of low-latency packets and the square root of the classic one.
    pub coupling_factor: u8,
    /// If the given one is exceeded, all low-latency packets are marked: how long a packet waited, or how many wait
    /// behind it.
    #[serde(default)]
    pub step_thresh_ns: Option<u64>,
    #[serde(default)]
    pub step_thresh_packets: Option<u64>,
    /// The step marks a packet only if it found at least this many packets in the low-latency queue.
    pub min_qlen_step: u64,
    /// The classic queue's share of transmission turns, in percent.
    pub classic_protection: u8,
    /// Whether to drop packets as soon as all low-latency packets are marked; otherwise packets are dropped only if the
    /// queue is full.
    pub drop_on_overload: bool,
    /// Whether to drop and mark arriving packets instead of leaving ones.
    pub drop_enqueue: bool,
    /// Whether all ECN-capable packets use the low-latency queue, not only ECT(1).
    pub any_ect: bool,
}

/// What gets equal shares in CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nothing: one queue.
    Flowblind,
    Srchost,
    Dsthost,
    /// Pairs of hosts.
    Hosts,
    Flows,
    /// Source hosts, and for each its flows.
    DualSrchost,
    DualDsthost,
    /// Hosts on both sides, and flows.
    TripleIsolate,
}

impl Isolation {
    /// Identifies the queue of a packet from its flow and its source and destination hosts; `None`: one queue for all.
    pub fn key(self, flow: u64, [from, to]: [u32; 2]) -> Option<u64> {
        match self {
            Isolation::Flowblind => None,
            Isolation::Srchost => Some(u64::from(from)),
            Isolation::Dsthost => Some(u64::from(to)),
            Isolation::Hosts => Some(u64::from(from) << 32 | u64::from(to)),
            Isolation::Flows | Isolation::DualSrchost | Isolation::DualDsthost | Isolation::TripleIsolate => Some(flow),
        }
    }

    /// Whether the turns of a queue are shared per source host, and per destination host.
    pub fn counts(self) -> [bool; 2] {
        match self {
            Isolation::DualSrchost => [true, false],
            Isolation::DualDsthost => [false, true],
            Isolation::TripleIsolate => [true, true],
            Isolation::Flowblind | Isolation::Srchost | Isolation::Dsthost | Isolation::Hosts | Isolation::Flows => {
                [false, false]
            }
        }
    }
}

const FLOWS_MAX: u64 = 65_536;
/// Least interval of updates, because each is a simulation event even when nothing else happens.
const TUPDATE_LEAST_NS: u64 = 100_000;

impl Discipline {
    pub(super) fn is_tail_drop(&self) -> bool {
        *self == Discipline::TailDrop
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let times = |one: u64, other: u64| {
            within(one, 1, HOUR_NS, "target_ns")?;
            within(other, 1, HOUR_NS, "interval_ns or tupdate_ns")
        };
        let codel = |given: Codel| {
            within(given.ce_threshold_ns.unwrap_or(0), 0, HOUR_NS, "ce_threshold_ns")?;
            times(given.target_ns, given.interval_ns)
        };
        let flows = |flows: u32, quantum_bytes: Option<u32>| {
            within(u64::from(flows), 1, FLOWS_MAX, "flows")?;
            within(u64::from(quantum_bytes.unwrap_or(1)), 1, 1 << 30, "quantum_bytes")
        };
        match *self {
            Discipline::TailDrop | Discipline::Fifo {} => Ok(()),
            Discipline::Codel(given) => codel(given),
            Discipline::FqCodel(given) => {
                codel(given.codel())?;
                flows(given.flows, given.quantum_bytes)
            }
            Discipline::Red(given) => {
                within(given.max_bytes, 2, 1 << 40, "max_bytes")?;
                within(given.min_bytes, 1, given.max_bytes - 1, "min_bytes")?;
                within(u64::from(given.weight_log), 1, 31, "weight_log")?;
                within(given.probability_ppb, 1, 1_000_000_000, "probability_ppb")
            }
            Discipline::Pie(given) => times(given.target_ns, given.tupdate_ns),
            Discipline::Fq(given) => {
                within(given.flow_limit, 1, 1 << 32, "flow_limit")?;
                within(u64::from(given.orphan_mask), 0, FLOWS_MAX - 1, "orphan_mask")?;
                within(given.refill_delay_ns, 0, HOUR_NS, "refill_delay_ns")?;
                within(u64::from(given.initial_quantum_bytes.unwrap_or(0)), 0, 1 << 20, "initial_quantum_bytes")?;
                flows(1, given.quantum_bytes)
            }
            Discipline::Sfq(given) => {
                within(u64::from(given.divisor), 1, FLOWS_MAX, "divisor")?;
                within(u64::from(given.depth), 1, 127, "depth")?;
                within(given.perturb_ns, 0, 1_000 * HOUR_NS, "perturb_ns")?;
                flows(given.flows, given.quantum_bytes)
            }
            Discipline::Tbf(given) => {
                within(given.rate_bps, 1, RATE_MAX_BPS, "rate_bps")?;
                within(given.burst_bytes, 1, BURST_MAX, "burst_bytes")?;
                let Some(peak) = given.peakrate_bps else { return Ok(()) };
                within(peak, given.rate_bps, RATE_MAX_BPS, "peakrate_bps")?;
                within(given.minburst_bytes, 1, BURST_MAX, "minburst_bytes")
            }
            Discipline::FqPie(given) => {
                times(given.target_ns, given.tupdate_ns)?;
                flows(given.flows, given.quantum_bytes)
            }
            Discipline::DualPi2(given) => {
                within(given.target_ns, 0, HOUR_NS, "target_ns")?;
                within(given.tupdate_ns, TUPDATE_LEAST_NS, HOUR_NS, "tupdate_ns")?;
                within(u64::from(given.alpha_256), 1, (1 << 31) - 1, "alpha_256")?;
                within(u64::from(given.beta_256), 1, (1 << 31) - 1, "beta_256")?;
                within(u64::from(given.coupling_factor), 1, 255, "coupling_factor")?;
                within(u64::from(given.classic_protection), 0, 100, "classic_protection")?;
                match (given.step_thresh_ns, given.step_thresh_packets) {
                    (Some(ns), None) => within(ns, 0, HOUR_NS, "step_thresh_ns"),
                    (None, Some(packets)) => within(packets, 0, 1 << 32, "step_thresh_packets"),
                    _ => Err("step_thresh_ns and step_thresh_packets: the one is needed".into()),
                }
            }
            Discipline::Cake(given) => {
                times(given.target_ns, given.interval_ns)?;
                within(given.interval_ns, given.target_ns, HOUR_NS, "interval_ns")?;
                within(given.bandwidth_bps.unwrap_or(1_000), 1_000, RATE_MAX_BPS, "bandwidth_bps")?;
                within(given.memory_bytes, 1, 1 << 40, "memory_bytes")
            }
        }
    }
}

/// How Linux takes a queue: the attributes of its discipline (linux/pkt_sched.h).
impl Discipline {
    /// tc's name of the discipline, and its options for rtnetlink.
    pub fn options(&self, room: Room) -> (&'static str, Vec<u8>) {
        let packets = Some(room.packets());
        let flag = |set: bool| Some(u32::from(set));
        let given = |bytes: Option<u32>| bytes.filter(|bytes| *bytes > 0);
        match *self {
            Discipline::TailDrop | Discipline::Fifo {} => match room.bytes {
                Some(bytes) => ("bfifo", words(&[saturating(bytes)])),
                None => ("pfifo", words(&[room.packets()])),
            },
            Discipline::Codel(law) => {
                let above = law.ce_threshold_ns.map(us);
                let target = Some(us(law.target_ns));
                let about = [(1, target), (2, packets), (3, Some(us(law.interval_ns))), (4, flag(law.ecn)), (5, above)];
                ("codel", numbers(&about))
            }
            Discipline::FqCodel(law) => {
                let about = [
                    (1, Some(us(law.target_ns))),
                    (2, packets),
                    (3, Some(us(law.interval_ns))),
                    (4, flag(law.ecn)),
                    (5, Some(law.flows)),
                    // The simulator counts packets, not kernel memory.
                    (9, Some(UNLIMITED)),
                    (7, law.ce_threshold_ns.map(us)),
                    (6, given(law.quantum_bytes)),
                ];
                ("fq_codel", numbers(&about))
            }
            Discipline::Red(law) => ("red", red(law, room)),
            Discipline::Pie(law) => {
                let about = [
                    (1, Some(us(law.target_ns))),
                    (2, packets),
                    (3, Some(us(law.tupdate_ns))),
                    (4, Some(u32::from(law.alpha))),
                    (5, Some(u32::from(law.beta))),
                    (6, flag(law.ecn)),
                    (7, flag(law.bytemode)),
                ];
                ("pie", numbers(&about))
            }
            Discipline::FqPie(law) => {
                let about = [
                    (1, packets),
                    (2, Some(law.flows)),
                    (3, Some(us(law.target_ns))),
                    (4, Some(us(law.tupdate_ns))),
                    (5, Some(u32::from(law.alpha))),
                    (6, Some(u32::from(law.beta))),
                    (8, Some(UNLIMITED)),
                    (10, flag(law.ecn)),
                    (11, flag(law.bytemode)),
                    (7, given(law.quantum_bytes)),
                ];
                ("fq_pie", numbers(&about))
            }
            Discipline::Fq(law) => {
                let about = [
                    (1, packets),
                    (2, Some(saturating(law.flow_limit))),
                    (9, Some(us(law.refill_delay_ns))),
                    (10, Some(law.orphan_mask)),
                    (3, given(law.quantum_bytes)),
                    (4, given(law.initial_quantum_bytes)),
                ];
                ("fq", numbers(&about))
            }
            Discipline::Sfq(law) => {
                let seconds = saturating(law.perturb_ns / 1_000_000_000);
                let own = [law.quantum_bytes.unwrap_or(0), seconds, room.packets(), law.divisor, law.flows];
                let more = [law.depth, u32::from(law.headdrop)];
                // struct tc_sfq_qopt_v1: without RED, to which the rest would apply.
                ("sfq", [words(&own), words(&more), vec![0; 44]].concat())
            }
            Discipline::Tbf(law) => ("tbf", tbf(law, room)),
            Discipline::Cake(law) => {
                let rate = attribute(2, &(law.bandwidth_bps.unwrap_or(0) / 8).to_ne_bytes());
                let about = [
                    (5, Some(law.isolation as u32)),
                    (6, Some(room.beyond_ip())),
                    (7, Some(us(law.interval_ns))),
                    (8, Some(us(law.target_ns))),
                    (10, Some(saturating(law.memory_bytes))),
                ];
                ("cake", [rate, numbers(&about)].concat())
            }
            Discipline::DualPi2(law) => ("dualpi2", dualpi2(law, room)),
        }
    }
}

/// Without the decay of the average while idle: below a token bucket no queue is known to be idle.
fn red(law: Red, room: Room) -> Vec<u8> {
    // TC_RED_ECN, TC_RED_HARDDROP, TC_RED_ADAPTATIVE.
    let flags = u8::from(law.ecn) | u8::from(law.harddrop || !law.ecn) << 1 | u8::from(law.adaptive) << 2;
    let sizes = words(&[room.bytes(), saturating(law.min_bytes), saturating(law.max_bytes)]);
    // This is the exact one of two ways to give the probability; Plog, the other, is then unused.
    let parameters = [sizes, vec![law.weight_log, 1, 1, flags]].concat();
    let chance = saturating(law.probability_ppb.saturating_mul(1 << 32) / 1_000_000_000);
    [attribute(1, &parameters), attribute(2, &[0; 256]), numbers(&[(3, Some(chance))])].concat()
}

/// A token bucket with its own fifo.
fn tbf(law: Tbf, room: Room) -> Vec<u8> {
    let peak = law.peakrate_bps.map_or(vec![0; 12], |bps| rate(bps, room.overhead));
    let parameters = [rate(law.rate_bps, room.overhead), peak, words(&[room.bytes(), 0, 0])].concat();
    let mut made = [attribute(1, &parameters), large_rate(4, law.rate_bps)].concat();
    made.extend(numbers(&[(6, Some(saturating(law.burst_bytes)))]));
    if let Some(bps) = law.peakrate_bps {
        made.extend(large_rate(5, bps));
        made.extend(numbers(&[(7, Some(saturating(law.minburst_bytes)))]));
    }
    made
}

fn dualpi2(law: DualPi2, room: Room) -> Vec<u8> {
    let about = [
        (1, Some(room.packets())),
        (2, Some(UNLIMITED)),
        (3, Some(us(law.target_ns))),
        (4, Some(us(law.tupdate_ns))),
        (5, Some(law.alpha_256)),
        (6, Some(law.beta_256)),
        (9, Some(saturating(law.min_qlen_step))),
        (7, law.step_thresh_packets.map(saturating)),
        (8, law.step_thresh_ns.map(us)),
    ];
    let small = [
        (10, law.coupling_factor),
        (11, u8::from(law.drop_on_overload)),
        (12, u8::from(law.drop_enqueue)),
        (13, law.classic_protection),
        // The bits of the ECN field of which one suffices: 01, and 11 for any.
        (14, if law.any_ect { 3 } else { 1 }),
        // Split super-packets.
        (15, 1),
    ];
    let small = small.iter().flat_map(|(kind, value)| attribute(*kind, &[*value]));
    numbers(&about).into_iter().chain(small).collect()
}
