//! Queues of transmitters: text is the limit of a tail-drop queue; a table names one of Linux, with tc's parameters.

use crate::files::Files;
use crate::kinds::{Kind, kinds};
use crate::policer::check_burst;
use crate::problem::{Problem, Wrong};
use crate::python;
use crate::table::{At, Field, Rule, table};
use crate::units::{Loss, Queue, Rate, Size, Span, Unit};
use crate::value::Value;
use sawtooth_net::scenario as net;

/// A device's queue length, which tc takes where no limit is given.
pub const DEFAULT_FRAMES: u64 = 1000;
/// Full frames that CAKE takes memory for at most, and bytes of memory at least.
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
    /// First in, first out; what comes to a full queue is dropped.
    Pfifo {
        kind: Kind, Any, Needed, "`pfifo`";
        limit: Queue, PACKETS, Text("1000 packets"), "waiting packets";
    }
}

table! {
    /// First in, first out, with a limit in bytes.
    Bfifo {
        kind: Kind, Any, Needed, "`bfifo`";
        limit: Option<Queue>, BYTES, Nothing, "waiting bytes; absent: 1000 full frames";
    }
}

table! {
    /// CoDel, RFC 8289: drops when packets have waited longer than the target for an interval, then ever more often.
    Codel {
        kind: Kind, Any, Needed, "`codel`";
        limit: Queue, PACKETS, Text("1000 packets"), "waiting packets";
        target: Span, TIME, Text("5 ms"), "the delay that is accepted";
        interval: Span, TIME, Text("100 ms"), "about the longest round trip through the queue";
        ecn: bool, Any, Flag(false), "marks packets of connections that agreed on ECN, instead of dropping them";
        ce_threshold: Option<Span>, TIME, Nothing,
            "those that waited longer are marked, whatever else; absent: none for that";
    }
}

table! {
    /// FQ-CoDel, RFC 8290: flows by turns, and CoDel on each.
    FqCodel {
        kind: Kind, Any, Needed, "`fq_codel`";
        limit: Queue, PACKETS, Text("10240 packets"), "waiting packets of all flows together";
        target: Span, TIME, Text("5 ms"), "the delay that is accepted";
        interval: Span, TIME, Text("100 ms"), "about the longest round trip through the queue";
        flows: u64, Within(1, 65_536), Whole(1024), "queues that flows are hashed to";
        quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow's turn; absent: one full frame";
        ecn: bool, Any, Flag(true), "marks packets of connections that agreed on ECN, instead of dropping them";
        ce_threshold: Option<Span>, TIME, Nothing,
            "those that waited longer are marked, whatever else; absent: none for that";
    }
}

table! {
    /// Random early detection: drops at the tail by chance, the more the longer the queue is on average, in bytes.
    Red check red_agrees {
        kind: Kind, Any, Needed, "`red`";
        limit: Queue, BYTES, Needed, "waiting bytes";
        min: Option<Queue>, BYTES, Nothing, "of the average: below it nothing is dropped; absent: `max` / 3";
        max: Option<Queue>, BYTES, Nothing, "of the average: from it on all is dropped; absent: `limit` / 4";
        avpkt: Size, PACKET, Text("1000 bytes"), "an average packet, from which the average's weight is reckoned";
        burst: Option<u64>, Within(1, 1_000_000), Nothing,
            "so many of them may come at once; absent: (2 `min` + `max`) / (3 `avpkt`)";
        probability: Loss, Any, Text("2%"), "of a drop, where the average is near `max`";
        adaptive: bool, Any, Flag(false), "the probability changes, 1 to 50%, to keep the average halfway";
        ecn: bool, Any, Flag(false), "marks packets of connections that agreed on ECN, instead of dropping them";
        harddrop: bool, Any, Flag(false), "with `ecn`: drops, not marks, above `max`; without it that is so anyway";
    }
}

fn red_agrees(red: &Red, _: &dyn Files) -> Result<(), Problem> {
    if red.probability.ppb == 0 {
        let wrong = Problem::new("out-of-range", "a probability of 0% drops nothing", "write \"2%\"");
        return Err(wrong.of("probability"));
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
    /// `min` and `max` in bytes, of a limit in bytes.
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

/// Of the average, as a power of a half: the largest that lets a burst into an empty queue pass below `min`.
///
/// Floyd and Jacobson 1993, section 6, equation 3, with the burst's last packet as tc takes it. None: there is none.
fn weight(min_packets: f64, burst: f64) -> Option<u8> {
    let passes = |power: &u8| {
        let weight = libm::pow(0.5, f64::from(*power));
        // After a burst of L packets the average is L + 1 + ((1 - w)^L - 1) / w packets.
        burst + 1.0 - (1.0 - libm::pow(1.0 - weight, burst)) / weight <= min_packets
    };
    if burst < min_packets { None } else { (1..32).find(passes) }
}

table! {
    /// PIE, RFC 8033: drops at the tail by a probability that follows the delay and how it changes.
    Pie {
        kind: Kind, Any, Needed, "`pie`";
        limit: Queue, PACKETS, Text("1000 packets"), "waiting packets";
        target: Span, TIME, Text("15 ms"), "the delay that is aimed at";
        tupdate: Span, TIME, Text("15 ms"), "between two changes of the probability, in whole ticks of the host's kernel";
        alpha: u64, Within(0, 32), Whole(2), "weight of the delay's distance from the target, in sixteenths";
        beta: u64, Within(0, 32), Whole(20), "weight of the delay's change, in sixteenths";
        bytemode: bool, Any, Flag(false), "small packets are dropped less";
        ecn: bool, Any, Flag(false), "marks packets of connections that agreed on ECN, instead of dropping them";
    }
}

table! {
    /// FQ-PIE: flows by turns, and PIE on each.
    FqPie {
        kind: Kind, Any, Needed, "`fq_pie`";
        limit: Queue, PACKETS, Text("10240 packets"), "waiting packets of all flows together";
        flows: u64, Within(1, 65_536), Whole(1024), "queues that flows are hashed to";
        target: Span, TIME, Text("15 ms"), "the delay that is aimed at";
        tupdate: Span, TIME, Text("15 ms"), "between two changes of the probability, in whole ticks of the host's kernel";
        alpha: u64, Within(0, 32), Whole(2), "weight of the delay's distance from the target, in sixteenths";
        beta: u64, Within(0, 32), Whole(20), "weight of the delay's change, in sixteenths";
        quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow's turn; absent: one full frame";
        bytemode: bool, Any, Flag(false), "small packets are dropped less";
        ecn: bool, Any, Flag(false), "marks packets of connections that agreed on ECN, instead of dropping them";
    }
}

table! {
    /// Flow queueing: flows by turns, each with a limit; of tc-fq what a router uses, not the pacing of sockets.
    Fq {
        kind: Kind, Any, Needed, "`fq`";
        limit: Queue, PACKETS, Text("10000 packets"), "waiting packets of all flows together";
        flow_limit: u64, Within(1, 1_000_000_000), Whole(100), "waiting packets of a flow";
        quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow's turn; absent: two full frames";
        initial_quantum: Option<Size>, QUANTUM, Nothing, "of a flow's first turn; absent: ten full frames";
        refill_delay: Span, TIME, Text("40 ms"), "after so long without a packet, credit is a turn again";
        orphan_mask: u64, Within(0, 65_535), Whole(1023),
            "which bits of their hash tell flows apart, where the host only forwards them";
    }
}

table! {
    /// Stochastic fairness queueing: hashed flows by turns; a full queue drops the last packet of the longest.
    Sfq check sfq_is_tcs {
        kind: Kind, Any, Needed, "`sfq`";
        limit: Queue, PACKETS, Text("127 packets"), "waiting packets of all flows together";
        quantum: Option<Size>, QUANTUM, Nothing, "bytes of a flow's turn; absent: one full frame";
        perturb: Span, Any, Text("0 s"), "flows are hashed anew so often, in whole seconds; \"0 s\": never";
        flows: u64, Within(1, 65_408), Whole(128), "queues";
        divisor: u64, Within(1, 65_536), Whole(1024), "values of the hash, a power of two";
        depth: u64, Within(1, 127), Whole(127), "waiting packets of a queue";
        headdrop: bool, Any, Flag(false), "drops the first packet of the longest queue instead of the last";
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
        rate: Rate, Any, Needed, "of tokens: what leaves in the long run";
        burst: Size, BURST, Needed, "what leaves at the transmitter's rate after silence; at least one full frame";
        latency: Option<Span>, TIME, Nothing, "the longest wait for tokens; instead of `limit`";
        limit: Option<Size>, BURST, Nothing, "waiting bytes; instead of `latency`";
        peakrate: Option<Rate>, Any, Nothing, "at which a burst leaves; absent: the transmitter's";
        minburst: Option<Size>, BURST, Nothing, "what leaves at once at `peakrate`; absent: one full frame";
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
    /// The limit: as given, or as tc reckons it from the latency.
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

/// Bytes that leave at a rate in a time.
fn sent(bps: u64, ns: u64) -> u64 {
    u64::try_from(u128::from(bps) * u128::from(ns) / 8_000_000_000).unwrap_or(u64::MAX)
}

table! {
    /// CAKE: a shaper, flows and hosts by turns, and COBALT, which is CoDel and BLUE, on each flow.
    Cake {
        kind: Kind, Any, Needed, "`cake`";
        bandwidth: Option<Rate>, Between("1 kbit/s", "10 Tbit/s"), Nothing,
            "of its shaper; absent: the transmitter's rate alone limits";
        rtt: RoundTrip, Between("1 us", "3600 s"), Text("100 ms"),
            "about the longest round trip through the queue, or a name that tc has for one: `datacentre`, `lan`, `metro`, `regional`, `internet`, `oceanic`, `satellite`, `interplanetary`";
        isolation: String, OneOf(ISOLATIONS), Text("triple-isolate"), "what gets equal shares, by tc's words";
        memlimit: Option<Size>, Between("4 KiB", "1 GiB"), Nothing,
            "memory of a kernel that waiting packets take; absent: 4 `bandwidth` × `rtt`, at least 4 MiB, at most 10240 full frames";
    }
}

/// A round-trip time, or tc-cake's name for one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip(pub Span);

const PRESETS: &[(&str, &str)] = &[
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
    fn read(given: &Value, rule: &Rule, at: At) -> Result<RoundTrip, Wrong> {
        let preset = PRESETS.iter().find(|(name, _)| given.as_text() == Some(name));
        let meant = preset.map(|(_, time)| Value::text(*time));
        Span::read(meant.as_ref().unwrap_or(given), rule, at).map(RoundTrip)
    }

    fn write(&self) -> Value {
        self.0.write()
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
    /// DualPI2, RFC 9332: a queue of low latency for ECT(1), beside a classic one, and one controller for both.
    DualPi2 check dualpi2_is_tcs {
        kind: Kind, Any, Needed, "`dualpi2`";
        limit: Queue, PACKETS, Text("10000 packets"), "waiting packets of both queues together";
        target: Span, TIME, Text("15 ms"), "the classic queue's delay that is aimed at";
        tupdate: Span, UPDATE, Text("16 ms"), "between two changes of the probability";
        alpha: f64, Decimal(0.004, 8e6), Real(0.16), "weight of the delay's distance from the target, in Hz";
        beta: f64, Decimal(0.004, 8e6), Real(3.2), "weight of the delay's change, in Hz";
        coupling_factor: u64, Within(1, 255), Whole(2),
            "a mark of low latency is so much likelier than the root of a classic one";
        step_thresh: Queue, STEP, Text("1 ms"),
            "all of low latency is marked that waited longer, or that more packets wait behind";
        min_qlen_step: u64, Within(0, 1_000_000_000), Whole(0),
            "packets that one must have found in its queue, for the step to mark it";
        classic_protection: Loss, Any, Text("10%"),
            "the classic queue's share of turns where both wait, in whole percents";
        drop_on_overload: bool, Any, Flag(true),
            "drops from both once all of low latency is marked; else only where there is no room";
        drop_enqueue: bool, Any, Flag(false), "marks and drops what comes; else what leaves (tc's `drop_dequeue`)";
        any_ect: bool, Any, Flag(false), "ECT(0) is of low latency, too; else ECT(1) alone is (tc's `l4s_ect`)";
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

/// What bounds a queue.
pub enum Limit {
    /// As much as this says.
    Of(Queue),
    /// So many bytes, which the discipline itself reckons.
    Bytes(u64),
    /// Nothing but its memory.
    Memory,
}

impl Discipline {
    /// What bounds it; frames are of so many bytes.
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

    /// As the core has it. `frame`: bytes of a full one; `line_bps`: of its transmitter; `limit`: in bytes, where it is in those.
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

/// What a scenario file may give as a queue: text is a tail-drop queue's limit.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueModel {
    TailDrop(Queue),
    Of(Discipline),
}

impl QueueModel {
    /// Of a device for which nothing else is said.
    pub const USUAL: QueueModel = QueueModel::TailDrop(Queue { unit: Unit::Packets, amount: DEFAULT_FRAMES });
}

impl Field for QueueModel {
    fn read(given: &Value, rule: &Rule, at: At) -> Result<QueueModel, Wrong> {
        match given {
            Value::Table(table) => Discipline::read(table, at.files).map(QueueModel::Of),
            _ => Queue::read(given, rule, at).map(QueueModel::TailDrop),
        }
    }

    fn write(&self) -> Value {
        match self {
            QueueModel::TailDrop(limit) => limit.write(),
            QueueModel::Of(discipline) => discipline.write(),
        }
    }
}
