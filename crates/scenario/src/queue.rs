//! Queues of transmitters. Text is the limit of a tail-drop queue; a table selects a queueing discipline of Linux, with
//! tc's parameters. One file: a table for each discipline, with nothing between them.

use crate::files::Files;
use crate::kinds::{Kind, kinds};
use crate::policer::check_burst;
use crate::problem::{FieldProblems, Problem};
use crate::python;
use crate::schema::{self, Definitions};
use crate::table::{Field, ReadContext, Rule, table};
use crate::units::{Loss, Queue, Rate, Size, Span, Unit};
use crate::value::Value;
use crate::view::View;
use sawtooth_net::scenario as net;

/// Default queue length of a network device, which tc uses if no limit is given.
pub const DEFAULT_FRAMES: u64 = 1000;
/// Maximum number of full frames that CAKE's memory limit allows, and its least memory in bytes.
const CAKE_FRAMES: u64 = 10_240;
const CAKE_LEAST_BYTES: u64 = 4 << 20;

const PACKETS: Rule = Rule::In(&[Unit::Packets, Unit::Bdp], "\"1000 packets\" or \"2 bdp\"");
const BYTES: Rule = Rule::In(&[Unit::Bytes, Unit::Ns], "\"64 KiB\" or \"50 ms\"");
const STEP: Rule = Rule::In(&[Unit::Packets, Unit::Ns], "\"1 ms\" or \"5 packets\"");
const TIME: Rule = Rule::Between("1 ns", "3600 s");
const UPDATE: Rule = Rule::Between("100 us", "3600 s");
const QUANTUM: Rule = Rule::Between("256 bytes", "1 MiB");
const PACKET: Rule = Rule::Between("1 byte", "64 KiB");
const BURST: Rule = Rule::Between("1 byte", "1 GiB");
const ISOLATIONS: &[&str] =
    &["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"];

table! {
    /// First in, first out; drops what arrives at a full queue.
    Pfifo {
        kind: Kind, Any, Needed, "`pfifo`";
        limit: Queue, PACKETS, Text("1000 packets"), "most packets that wait";
    }
}

table! {
    /// First in, first out, with a limit in bytes.
    Bfifo {
        kind: Kind, Any, Needed, "`bfifo`";
        limit: Option<Queue>, BYTES, Nothing, "most bytes that wait; absent: 1000 full frames";
    }
}

table! {
    /// CoDel, RFC 8289: drops once packets have waited longer than the target for an interval, then ever more often.
    Codel {
        kind: Kind, Any, Needed, "`codel`";
        limit: Queue, PACKETS, Text("1000 packets"), "most packets that wait";
        target: Span, TIME, Text("5 ms"), "acceptable queue delay";
        interval: Span, TIME, Text("100 ms"), "about the longest RTT through the queue";
        ecn: bool, Any, Flag(false), "mark packets of connections that negotiated ECN, instead of dropping them";
        ce_threshold: Option<Span>, TIME, Nothing,
            "mark every ECN packet that waited longer than this; absent: no such threshold";
    }
}

table! {
    /// FQ-CoDel, RFC 8290: flows take turns, each with CoDel.
    FqCodel {
        kind: Kind, Any, Needed, "`fq_codel`";
        limit: Queue, PACKETS, Text("10240 packets"), "most packets that wait, all flows together";
        target: Span, TIME, Text("5 ms"), "acceptable queue delay";
        interval: Span, TIME, Text("100 ms"), "about the longest RTT through the queue";
        flows: u64, Within(1, 65_536), Whole(1024), "number of queues that flows are hashed to";
        quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow per round; absent: one full frame";
        ecn: bool, Any, Flag(true), "mark packets of connections that negotiated ECN, instead of dropping them";
        ce_threshold: Option<Span>, TIME, Nothing,
            "mark every ECN packet that waited longer than this; absent: no such threshold";
    }
}

table! {
    /// Random early detection: drops arriving packets with a probability that grows with the average queue, in bytes.
    Red check red_agrees {
        kind: Kind, Any, Needed, "`red`";
        limit: Queue, BYTES, Needed, "most bytes that wait";
        min: Option<Queue>, BYTES, Nothing, "average queue below which nothing is dropped; absent: `max` / 3";
        max: Option<Queue>, BYTES, Nothing, "average queue from which on everything is dropped; absent: `limit` / 4";
        avpkt: Size, PACKET, Text("1000 bytes"),
            "size of an average packet, from which the weight of the average is computed";
        burst: Option<u64>, Within(1, 1_000_000), Nothing,
            "number of average packets that may arrive at once; absent: (2 `min` + `max`) / (3 `avpkt`)";
        probability: Loss, Any, Text("2%"), "drop probability at an average near `max`";
        adaptive: bool, Any, Flag(false), "adjust the probability between 1 and 50% to keep the average halfway";
        ecn: bool, Any, Flag(false), "mark packets of connections that negotiated ECN, instead of dropping them";
        harddrop: bool, Any, Flag(false),
            "with `ecn`, drop instead of marking above `max`; without `ecn` this is always so";
    }
}

fn red_agrees(red: &Red, _: &dyn Files) -> Result<(), Problem> {
    if red.probability.ppb == 0 {
        let problem = Problem::new("out-of-range", "a probability of 0% drops nothing", "write \"2%\"");
        return Err(problem.of("probability"));
    }
    for (name, given) in [("min", red.min), ("max", red.max)] {
        if given.is_some_and(|given| given.unit != red.limit.unit) {
            let message = format!("{name} and limit must both be sizes or both be times");
            return Err(
                Problem::new("conflict", message, format!("write it like the limit, \"{}\"", red.limit)).of(name)
            );
        }
    }
    Ok(())
}

impl Red {
    /// `min` and `max` in bytes, for a limit in bytes.
    fn sizes(&self, limit: u64) -> Result<(u64, u64), Problem> {
        let scaled = |given: Queue| {
            let bytes = u128::from(given.amount) * u128::from(limit) / u128::from(self.limit.amount);
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let most = self.max.map_or(limit / 4, scaled);
        let least = self.min.map_or(most / 3, scaled);
        if 0 < least && least < most && most <= limit {
            return Ok((least, most));
        }
        let message = format!("min < max < limit does not hold: {least}, {most}, {limit} bytes");
        Err(Problem::new("conflict", message, "remove min and max, or choose min < max < limit"))
    }

    fn compile(&self, limit: u64) -> Result<net::Discipline, Problem> {
        let (min_bytes, max_bytes) = self.sizes(limit)?;
        let avpkt = self.avpkt.bytes;
        let burst = self.burst.unwrap_or_else(|| ((2 * min_bytes + max_bytes) / (3 * avpkt)).max(1));
        let Some(weight_log) = weight(min_bytes as f64 / avpkt as f64, burst as f64) else {
            let message = format!("the average does not pass min, {min_bytes} bytes, with a burst of {burst} packets");
            let fix = format!("choose a burst of at least {}, or a smaller min", min_bytes / avpkt + 1);
            return Err(Problem::new("conflict", message, fix).of("burst"));
        };
        Ok(net::Discipline::Red(net::Red {
            min_bytes,
            max_bytes,
            weight_log,
            probability_ppb: self.probability.ppb,
            adaptive: self.adaptive,
            ecn: self.ecn,
            harddrop: self.ecn && self.harddrop,
        }))
    }
}

/// The weight of the average, as an exponent of 1/2: the largest weight with which a burst into an empty queue stays
/// below `min`.
///
/// Floyd and Jacobson 1993, section 6, equation 3, including the burst's last packet as in tc. None if no weight does.
fn weight(min_packets: f64, burst: f64) -> Option<u8> {
    let passes = |power: &u8| {
        let weight = libm::pow(0.5, f64::from(*power));
        // After a burst of L packets the average is L + 1 + ((1 - w)^L - 1) / w packets.
        burst + 1.0 - (1.0 - libm::pow(1.0 - weight, burst)) / weight <= min_packets
    };
    if burst < min_packets { None } else { (1..32).find(passes) }
}

table! {
    /// PIE, RFC 8033: drops arriving packets with a probability that follows the queue delay and its change.
    Pie {
        kind: Kind, Any, Needed, "`pie`";
        limit: Queue, PACKETS, Text("1000 packets"), "most packets that wait";
        target: Span, TIME, Text("15 ms"), "target queue delay";
        tupdate: Span, TIME, Text("15 ms"),
            "interval between updates of the drop probability, in whole ticks of the host's kernel";
        alpha: u64, Within(0, 32), Whole(2), "weight of the difference between delay and target, in sixteenths";
        beta: u64, Within(0, 32), Whole(20), "weight of the change of the delay, in sixteenths";
        bytemode: bool, Any, Flag(false), "drop small packets less often";
        ecn: bool, Any, Flag(false), "mark packets of connections that negotiated ECN, instead of dropping them";
    }
}

table! {
    /// FQ-PIE: flows take turns, each with PIE.
    FqPie {
        kind: Kind, Any, Needed, "`fq_pie`";
        limit: Queue, PACKETS, Text("10240 packets"), "most packets that wait, all flows together";
        flows: u64, Within(1, 65_536), Whole(1024), "number of queues that flows are hashed to";
        target: Span, TIME, Text("15 ms"), "target queue delay";
        tupdate: Span, TIME, Text("15 ms"),
            "interval between updates of the drop probability, in whole ticks of the host's kernel";
        alpha: u64, Within(0, 32), Whole(2), "weight of the difference between delay and target, in sixteenths";
        beta: u64, Within(0, 32), Whole(20), "weight of the change of the delay, in sixteenths";
        quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow per round; absent: one full frame";
        bytemode: bool, Any, Flag(false), "drop small packets less often";
        ecn: bool, Any, Flag(false), "mark packets of connections that negotiated ECN, instead of dropping them";
    }
}

table! {
    /// Flow queueing: flows take turns, each with a limit. The part of tc-fq that a router uses, without pacing.
    Fq {
        kind: Kind, Any, Needed, "`fq`";
        limit: Queue, PACKETS, Text("10000 packets"), "most packets that wait, all flows together";
        flow_limit: u64, Within(1, 1_000_000_000), Whole(100), "most packets of one flow that wait";
        quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow per round; absent: two full frames";
        initial_quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow in its first round; absent: ten full frames";
        refill_delay: Span, TIME, Text("40 ms"), "silence after which a flow gets a new quantum";
        orphan_mask: u64, Within(0, 65_535), Whole(1023),
            "mask of the hash bits that distinguish flows that the host only forwards";
    }
}

table! {
    /// Stochastic fairness queueing: hashed flows take turns; a full queue drops the last packet of the longest flow.
    Sfq check sfq_is_tcs {
        kind: Kind, Any, Needed, "`sfq`";
        limit: Queue, PACKETS, Text("127 packets"), "most packets that wait, all flows together";
        quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow per round; absent: one full frame";
        perturb: Span, Any, Text("0 s"), "interval at which flows are hashed again, in whole seconds; \"0 s\": never";
        flows: u64, Within(1, 65_408), Whole(128), "number of queues";
        divisor: u64, Within(1, 65_536), Whole(1024), "number of hash values, a power of two";
        depth: u64, Within(1, 127), Whole(127), "most packets of one queue that wait";
        headdrop: bool, Any, Flag(false), "drop the first packet of the longest queue instead of the last";
    }
}

fn sfq_is_tcs(sfq: &Sfq, _: &dyn Files) -> Result<(), Problem> {
    let refused = |message: String, fix: &str, field: &str| Err(Problem::new("out-of-range", message, fix).of(field));
    if !sfq.perturb.ns.is_multiple_of(1_000_000_000) {
        return refused("tc takes whole seconds only".into(), "write e.g. \"10 s\"", "perturb");
    }
    if !sfq.divisor.is_power_of_two() {
        return refused(format!("{} is not a power of two", sfq.divisor), "choose e.g. 1024", "divisor");
    }
    if sfq.limit.unit == Unit::Packets && sfq.limit.amount < 2 {
        return refused("sfq needs a limit of at least 2 packets".into(), "write \"2 packets\"", "limit");
    }
    Ok(())
}

table! {
    /// A token bucket before the transmitter: shapes to a rate below the transmitter's, with a queue in bytes.
    Tbf check tbf_agrees {
        kind: Kind, Any, Needed, "`tbf`";
        rate: Rate, Any, Needed, "long-term rate";
        burst: Size, BURST, Needed, "bytes that leave at the transmitter's rate after silence; at least one full frame";
        latency: Option<Span>, TIME, Nothing, "longest time that a packet waits for tokens; instead of `limit`";
        limit: Option<Size>, BURST, Nothing, "most bytes that wait; instead of `latency`";
        peakrate: Option<Rate>, Any, Nothing, "rate of a burst; absent: the transmitter's";
        minburst: Option<Size>, BURST, Nothing, "bytes that leave at once at `peakrate`; absent: one full frame";
    }
}

fn tbf_agrees(tbf: &Tbf, _: &dyn Files) -> Result<(), Problem> {
    if tbf.latency.is_none() == tbf.limit.is_none() {
        let (code, fix) = match tbf.limit {
            None => ("missing-field", "add latency = \"50 ms\" or limit = \"100 kB\""),
            Some(_) => ("conflict", "remove latency or limit"),
        };
        let message = "a token bucket needs exactly one of latency and limit";
        return Err(Problem::new(code, message, fix).of("latency"));
    }
    match tbf.peakrate {
        Some(peak) if peak <= tbf.rate => {
            let message = format!("a peak rate of \"{peak}\" is not above the rate");
            Err(Problem::new("out-of-range", message, "remove peakrate, or choose a higher one").of("peakrate"))
        }
        None if tbf.minburst.is_some() => {
            let message = "minburst needs peakrate, which is missing";
            Err(Problem::new("conflict", message, "remove minburst, or add peakrate").of("minburst"))
        }
        _ => Ok(()),
    }
}

impl Tbf {
    /// The limit: as given, or computed from the latency as tc does.
    fn waiting_bytes(&self, frame: u64) -> u64 {
        let Some(latency) = self.latency else {
            return self.limit.map_or(0, |limit| limit.bytes).max(frame);
        };
        let waits = |rate: Rate, more: u64| sent(rate.bps, latency.ns).saturating_add(more);
        let peak = self.peakrate.map(|rate| waits(rate, self.minburst.map_or(frame, |size| size.bytes)));
        waits(self.rate, self.burst.bytes).min(peak.unwrap_or(u64::MAX)).max(frame)
    }

    fn compile(&self, frame: u64, line_bps: u64) -> Result<net::Discipline, Problem> {
        if self.rate.bps >= line_bps {
            let line = Rate { bps: line_bps };
            let message =
                format!("a rate of \"{}\" is not below the transmitter's, \"{line}\", so it limits nothing", self.rate);
            return Err(Problem::new("out-of-range", message, "choose a lower rate, or remove the queue").of("rate"));
        }
        check_burst(self.burst, frame, "burst")?;
        let least = self.minburst.unwrap_or(Size { bytes: frame });
        check_burst(least, frame, "minburst")?;
        Ok(net::Discipline::Tbf(net::Tbf {
            rate_bps: self.rate.bps,
            burst_bytes: self.burst.bytes,
            peakrate_bps: self.peakrate.map(|rate| rate.bps),
            minburst_bytes: self.peakrate.map_or(0, |_| least.bytes),
        }))
    }
}

/// Bytes sent at a rate in a time.
fn sent(bps: u64, ns: u64) -> u64 {
    u64::try_from(u128::from(bps) * u128::from(ns) / 8_000_000_000).unwrap_or(u64::MAX)
}

table! {
    /// CAKE: a shaper, fair sharing among hosts and flows, and COBALT (CoDel and BLUE) on each flow.
    Cake {
        kind: Kind, Any, Needed, "`cake`";
        bandwidth: Option<Rate>, Between("1 kbit/s", "10 Tbit/s"), Nothing,
            "rate of its shaper; absent: no shaper, only the transmitter's rate";
        rtt: RoundTrip, Between("1 us", "3600 s"), Text("100 ms"),
            "about the longest RTT through the queue, or tc's name for one: `datacentre`, `lan`, `metro`, `regional`, `internet`, `oceanic`, `satellite`, `interplanetary`";
        isolation: String, OneOf(ISOLATIONS), Text("triple-isolate"), "what gets equal shares, in tc's words";
        memlimit: Option<Size>, Between("4 KiB", "1 GiB"), Nothing,
            "kernel memory for waiting packets; absent: 4 `bandwidth` × `rtt`, at least 4 MiB, at most 10240 full frames";
    }
}

/// An RTT, or tc-cake's name for one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip(pub Span);

const PRESETS: [(&str, &str); 8] = [
    ("datacentre", "100 us"),
    ("lan", "1 ms"),
    ("metro", "10 ms"),
    ("regional", "30 ms"),
    ("internet", "100 ms"),
    ("oceanic", "300 ms"),
    ("satellite", "1 s"),
    ("interplanetary", "1000 s"),
];

impl Field for RoundTrip {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<RoundTrip, FieldProblems> {
        let preset = PRESETS.iter().find(|(name, _)| given.as_text() == Some(name));
        let meant = preset.map(|(_, time)| Value::text(*time));
        Span::read(meant.as_ref().unwrap_or(given), rule, at).map(RoundTrip)
    }

    fn write(&self) -> Value {
        self.0.write()
    }

    fn view(&self) -> View {
        self.0.view()
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        schema::any([Span::schema(rule, definitions), schema::one_of(&PRESETS.map(|(name, _)| name))])
    }
}

impl Cake {
    fn compile(&self, frame: u64) -> net::Discipline {
        let (most, rtt) = (CAKE_FRAMES * frame, self.rtt.0.ns);
        let share = self.bandwidth.map_or(most, |rate| sent(4 * rate.bps, rtt));
        let isolation = match self.isolation.as_str() {
            "flowblind" => net::Isolation::Flowblind,
            "srchost" => net::Isolation::Srchost,
            "dsthost" => net::Isolation::Dsthost,
            "hosts" => net::Isolation::Hosts,
            "flows" => net::Isolation::Flows,
            "dual-srchost" => net::Isolation::DualSrchost,
            "dual-dsthost" => net::Isolation::DualDsthost,
            _ => net::Isolation::TripleIsolate,
        };
        net::Discipline::Cake(net::Cake {
            bandwidth_bps: self.bandwidth.map(|rate| rate.bps),
            interval_ns: rtt,
            target_ns: (rtt / 20).max(1000),
            isolation,
            memory_bytes: self.memlimit.map_or(share.max(CAKE_LEAST_BYTES).min(most), |size| size.bytes),
        })
    }
}

table! {
    /// DualPI2, RFC 9332: a low-latency queue for ECT(1), a classic queue, and one controller for both.
    DualPi2 check dualpi2_is_tcs {
        kind: Kind, Any, Needed, "`dualpi2`";
        limit: Queue, PACKETS, Text("10000 packets"), "most packets that wait, both queues together";
        target: Span, TIME, Text("15 ms"), "target delay of the classic queue";
        tupdate: Span, UPDATE, Text("16 ms"), "interval between updates of the drop probability";
        alpha: f64, Decimal(0.004, 8e6), Real(0.16), "weight of the difference between delay and target, in Hz";
        beta: f64, Decimal(0.004, 8e6), Real(3.2), "weight of the change of the delay, in Hz";
        coupling_factor: u64, Within(1, 255), Whole(2),
            "ratio of the low-latency marking probability to the square root of the classic one";
        step_thresh: Queue, STEP, Text("1 ms"),
            "delay, or number of packets, above which every low-latency packet is marked";
        min_qlen_step: u64, Within(0, 1_000_000_000), Whole(0),
            "packets that must wait in the low-latency queue before the step marks";
        classic_protection: Loss, Any, Text("10%"),
            "share of the classic queue if both queues have packets, in whole percent";
        drop_on_overload: bool, Any, Flag(true),
            "drop from both queues once every low-latency packet is marked; false: drop only when the queue is full";
        drop_enqueue: bool, Any, Flag(false),
            "mark and drop arriving packets; false: departing packets (tc's `drop_dequeue`)";
        any_ect: bool, Any, Flag(false),
            "ECT(0) packets use the low-latency queue too; false: only ECT(1) (tc's `l4s_ect`)";
    }
}

fn dualpi2_is_tcs(dualpi2: &DualPi2, _: &dyn Files) -> Result<(), Problem> {
    if dualpi2.classic_protection.ppb.is_multiple_of(10_000_000) {
        return Ok(());
    }
    let message = format!("\"{}\" is not a whole percentage", dualpi2.classic_protection);
    Err(Problem::new("out-of-range", message, "write e.g. \"10%\"").of("classic_protection"))
}

impl DualPi2 {
    fn compile(&self) -> net::Discipline {
        let step = self.step_thresh;
        net::Discipline::DualPi2(net::DualPi2 {
            target_ns: self.target.ns,
            tupdate_ns: self.tupdate.ns,
            alpha_256: python::round(self.alpha * 256.0) as u32,
            beta_256: python::round(self.beta * 256.0) as u32,
            coupling_factor: self.coupling_factor as u8,
            step_thresh_ns: (step.unit == Unit::Ns).then_some(step.amount),
            step_thresh_packets: (step.unit != Unit::Ns).then_some(step.amount),
            min_qlen_step: self.min_qlen_step,
            classic_protection: (self.classic_protection.ppb / 10_000_000) as u8,
            drop_on_overload: self.drop_on_overload,
            drop_enqueue: self.drop_enqueue,
            any_ect: self.any_ect,
        })
    }
}

kinds! {
    /// A queue of Linux, by tc's names.
    Discipline of "queue", like "queue = { kind = \"codel\" }" {
        "pfifo" Pfifo,
        "bfifo" Bfifo,
        "codel" Codel,
        "fq_codel" FqCodel,
        "red" Red,
        "pie" Pie,
        "fq_pie" FqPie,
        "fq" Fq,
        "sfq" Sfq,
        "tbf" Tbf,
        "cake" Cake,
        "dualpi2" DualPi2,
    }
}

/// What people call a kind of queue, and which of its fields a page asks for.
pub struct Record {
    pub kind: &'static str,
    pub label: &'static str,
    /// The field that limits it, and what that is where it is not a number of packets or bytes.
    pub limit: (&'static str, &'static str),
    /// The field above whose delay it marks at once.
    pub marks_above: Option<&'static str>,
    /// Values that a page enters first into the fields that this kind needs.
    pub needs: &'static [(&'static str, &'static str)],
}

const fn record(kind: &'static str, label: &'static str) -> Record {
    Record { kind, label, limit: ("limit", ""), marks_above: None, needs: &[] }
}

/// One record for each kind.
pub const RECORDS: &[Record] = &[
    record("pfifo", "pfifo: tail drop, in packets"),
    record("bfifo", "bfifo: tail drop, in bytes"),
    Record { marks_above: Some("ce_threshold"), ..record("codel", "CoDel") },
    Record { marks_above: Some("ce_threshold"), ..record("fq_codel", "FQ-CoDel") },
    Record { needs: &[("limit", "400 kB")], ..record("red", "RED") },
    record("pie", "PIE"),
    record("fq_pie", "FQ-PIE"),
    record("fq", "FQ"),
    record("sfq", "SFQ"),
    Record {
        limit: ("latency", "longest wait"),
        needs: &[("rate", "5 Mbit/s"), ("burst", "20 kB"), ("latency", "50 ms")],
        ..record("tbf", "token bucket")
    },
    Record { limit: ("memlimit", "memory"), ..record("cake", "CAKE") },
    Record { marks_above: Some("step_thresh"), ..record("dualpi2", "DualPI2 (L4S)") },
];

/// The limit of a queue.
pub enum Limit {
    /// The given limit.
    Of(Queue),
    /// A number of bytes that the discipline computes itself.
    Bytes(u64),
    /// Only the memory limits it.
    Memory,
}

impl Discipline {
    /// The queue's limit, for frames of `frame` bytes.
    pub fn limit(&self, frame: u64) -> Limit {
        let usual = Queue { unit: Unit::Bytes, amount: DEFAULT_FRAMES * frame };
        match self {
            Discipline::Pfifo(one) => Limit::Of(one.limit),
            Discipline::Bfifo(one) => Limit::Of(one.limit.unwrap_or(usual)),
            Discipline::Codel(one) => Limit::Of(one.limit),
            Discipline::FqCodel(one) => Limit::Of(one.limit),
            Discipline::Red(one) => Limit::Of(one.limit),
            Discipline::Pie(one) => Limit::Of(one.limit),
            Discipline::FqPie(one) => Limit::Of(one.limit),
            Discipline::Fq(one) => Limit::Of(one.limit),
            Discipline::Sfq(one) => Limit::Of(one.limit),
            Discipline::DualPi2(one) => Limit::Of(one.limit),
            Discipline::Tbf(one) => Limit::Bytes(one.waiting_bytes(frame)),
            Discipline::Cake(_) => Limit::Memory,
        }
    }

    /// Converts to the core's form. `frame`: bytes of a full frame; `line_bps`: rate of its transmitter; `limit`: in
    /// bytes, if it is limited in bytes.
    pub fn compile(&self, frame: u64, line_bps: u64, limit: u64) -> Result<net::Discipline, Problem> {
        let bytes = |size: Option<Size>| size.map(|size| size.bytes as u32);
        let ns = |span: Option<Span>| span.map(|span| span.ns);
        Ok(match self {
            Discipline::Pfifo(_) | Discipline::Bfifo(_) => net::Discipline::Fifo {},
            Discipline::Codel(one) => net::Discipline::Codel(net::Codel {
                target_ns: one.target.ns,
                interval_ns: one.interval.ns,
                ecn: one.ecn,
                ce_threshold_ns: ns(one.ce_threshold),
            }),
            Discipline::FqCodel(one) => net::Discipline::FqCodel(net::FqCodel {
                target_ns: one.target.ns,
                interval_ns: one.interval.ns,
                flows: one.flows as u32,
                quantum_bytes: bytes(one.quantum),
                ecn: one.ecn,
                ce_threshold_ns: ns(one.ce_threshold),
            }),
            Discipline::Red(one) => one.compile(limit)?,
            Discipline::Pie(one) => net::Discipline::Pie(net::Pie {
                target_ns: one.target.ns,
                tupdate_ns: one.tupdate.ns,
                alpha: one.alpha as u16,
                beta: one.beta as u16,
                bytemode: one.bytemode,
                ecn: one.ecn,
            }),
            Discipline::FqPie(one) => net::Discipline::FqPie(net::FqPie {
                target_ns: one.target.ns,
                tupdate_ns: one.tupdate.ns,
                alpha: one.alpha as u16,
                beta: one.beta as u16,
                bytemode: one.bytemode,
                flows: one.flows as u32,
                quantum_bytes: bytes(one.quantum),
                ecn: one.ecn,
            }),
            Discipline::Fq(one) => net::Discipline::Fq(net::Fq {
                flow_limit: one.flow_limit,
                quantum_bytes: bytes(one.quantum),
                initial_quantum_bytes: bytes(one.initial_quantum),
                orphan_mask: one.orphan_mask as u32,
                refill_delay_ns: one.refill_delay.ns,
            }),
            Discipline::Sfq(one) => net::Discipline::Sfq(net::Sfq {
                quantum_bytes: bytes(one.quantum),
                perturb_ns: one.perturb.ns,
                flows: one.flows as u32,
                divisor: one.divisor as u32,
                depth: one.depth as u32,
                headdrop: one.headdrop,
            }),
            Discipline::Tbf(one) => one.compile(frame, line_bps)?,
            Discipline::Cake(one) => one.compile(frame),
            Discipline::DualPi2(one) => one.compile(),
        })
    }
}
