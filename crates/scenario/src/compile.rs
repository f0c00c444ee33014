//! Converts a scenario to the engines' form: names are resolved, routes found, queues and counts converted to numbers.
//! One file: a function for each part of the form, and each is used once.

use crate::arrivals::Arrivals;
use crate::control::{Control, Module};
use crate::files::{Files, Steps, Traced};
use crate::loss::LossModel;
use crate::network::{Network, Transmitter, Wire};
use crate::number::Natural;
use crate::parts::Host;
use crate::placement::{self, Placed};
use crate::policer::check_burst;
use crate::problem::Problem;
use crate::program::{self, Programs};
use crate::python;
use crate::queue::{Discipline, Limit};
use crate::queue_model::QueueModel;
use crate::routing::Router;
use crate::scenario::Scenario;
use crate::sources::Source;
use crate::topology::build;
use crate::units::{PPB, Queue, Size, Unit};
use crate::value::Value;
use crate::varying::steps_of;
use sawtooth_net::frames::{HEADERS, TIMESTAMP_OPTION};
use sawtooth_net::scenario as net;
use std::collections::BTreeMap;

/// Bytes by which an IPv6 header is longer.
const IPV6_MORE: u64 = 20;
const MOST_QUEUE_PACKETS: i128 = 1_000_000_000;
/// Bytes of kernel memory that a received segment uses in addition to its payload.
const SEGMENT_OVERHEAD: u64 = 936;

/// A scenario in the form that engines take.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What the core runs. Flows with a module have no congestion control here.
    pub scenario: net::Scenario,
    /// The name of the kernel that the engine `kernel` boots.
    pub kernel: Option<String>,
    /// For each flow, the sources of its module, if it has one.
    pub modules: Vec<Option<Sources>>,
    pub programs: Programs,
}

/// A congestion control given as C sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Sources {
    pub files: Vec<String>,
    /// Parameters by name, as text.
    pub parameters: Vec<(String, String)>,
    /// Which control to use if the sources register several.
    pub name: Option<String>,
}

/// Compiles a scenario. Reports the problems that only show in the whole scenario: names, routes, queues, totals.
pub(crate) fn compile(scenario: &Scenario, files: &dyn Files) -> Result<Compiled, Problem> {
    let network = build(scenario, files)?;
    let mut router = Router::new(&network);
    let flows = placement::flows(scenario, &network, &mut router)?;
    let probes = placement::probes(scenario, &network, &mut router)?;
    let programs = program::place_programs(scenario, &network, &mut router, &flows)?;
    let ways: Vec<Placed> = flows.iter().chain(&programs.ways).cloned().collect();
    let crossing = first_crossing(&network, &ways);
    let varying: Vec<Steps> = network.wires.iter().map(|wire| steps(wire, scenario)).collect::<Result<_, _>>()?;
    let mut paces = paces(&network, &varying)?;
    let settings: Vec<Host> = network.hosts.iter().map(|name| scenario.host_settings(name)).collect();
    let whole = Whole { scenario, network: &network, settings: &settings, files };
    let hosts = network.hosts.iter().zip(&settings).map(|(name, host)| compiled_host(name, host));
    let hosts = hosts.collect::<Result<_, _>>()?;
    let mut transmitters = Vec::with_capacity(network.transmitters.len());
    for (index, transmitter) in network.transmitters.iter().enumerate() {
        let crossing = crossing.get(&index).map(|way| &ways[*way]);
        transmitters.push(whole.transmitter(transmitter, crossing, paces.remove(&index))?);
    }
    let mut links = Vec::with_capacity(network.wires.len());
    for (index, (wire, steps)) in network.wires.iter().zip(varying).enumerate() {
        links.push(whole.link(index, wire, steps, &ways)?);
    }
    let kernel = kernel(&network, &settings)?;
    Ok(Compiled {
        modules: flows.iter().map(|placed| sources(&scenario.flows[placed.index].cc)).collect(),
        scenario: net::Scenario {
            duration_ns: scenario.duration.ns,
            interval_ns: scenario.interval.ns,
            seed: scenario.seed,
            hosts,
            transmitters,
            links,
            flows: flows.iter().map(|placed| whole.flow(placed)).collect::<Result<_, _>>()?,
            probes: probes.iter().map(|placed| whole.probe(placed)).chain(programs.ways.iter().map(way)).collect(),
            queue_delays: scenario.queue_delays,
        },
        kernel,
        programs,
    })
}

/// A way between programs: as a probe that sends nothing.
fn way(placed: &Placed) -> net::Probe {
    let Placed { name, forward, backward, .. } = placed.clone();
    net::Probe { name, start_ns: 0, interval_ns: 1_000_000_000, count: 0, forward, backward }
}

/// The changes of a link over time, from its trace or its `changes`.
fn steps(wire: &Wire, scenario: &Scenario) -> Result<Steps, Problem> {
    let mut found = steps_of(&wire.changes, scenario.duration.ns, scenario.seed, &wire.name, &wire.field)?;
    let of_trace = match &wire.trace {
        Some(Traced::Steps(traced)) => traced.clone(),
        _ => Steps::default(),
    };
    let all = [
        (&mut found.rates, of_trace.rates),
        (&mut found.delays, of_trace.delays),
        (&mut found.losses, of_trace.losses),
    ];
    for ((ours, traced), is_mine) in all.into_iter().zip(wire.changing) {
        if ours.is_empty() {
            *ours = traced;
        }
        if !is_mine {
            ours.clear();
        }
    }
    if !found.losses.is_empty() && matches!(wire.loss, LossModel::Pattern(_)) {
        let message = format!("the losses of \"{}\" are a pattern, and change", wire.name);
        let field = format!("{}.loss", wire.field);
        return Err(Problem::new("conflict", message, "write it as a share, like \"1%\"").of(field));
    }
    Ok(found)
}

/// The value at the start, and the later changes.
fn first(mut steps: Vec<(u64, u64)>, otherwise: u64) -> (u64, Vec<(u64, u64)>) {
    match steps.first() {
        Some((0, value)) => {
            let value = *value;
            steps.remove(0);
            (value, steps)
        }
        _ => (otherwise, steps),
    }
}

/// Transmitters with a rate that is not constant.
fn paces(network: &Network, varying: &[Steps]) -> Result<BTreeMap<usize, net::RateSchedule>, Problem> {
    let mut found = BTreeMap::new();
    for (wire, steps) in network.wires.iter().zip(varying) {
        let traced = match &wire.trace {
            Some(Traced::Opportunities(trace)) if wire.changing[0] => Some(trace),
            _ => None,
        };
        let given = [!steps.rates.is_empty(), traced.is_some(), wire.opportunity_bytes > 0];
        let names = ["changes", "trace", "opportunity"];
        let Some(index) = given.iter().position(|one| *one) else { continue };
        let conflict = |message: String, fix: &str| {
            Err(Problem::new("conflict", message, fix).of(format!("{}.{}", wire.field, names[index])))
        };
        if given.iter().filter(|one| **one).count() > 1 {
            let message =
                format!("of \"{}\", changes of the rate, a trace and opportunities exclude each other", wire.name);
            return conflict(message, &format!("remove {}, or the others", names[index]));
        }
        let is_shared = |index: usize| {
            let users = network.wires.iter().filter(|other| other.transmitter == Some(index)).count();
            users > 1 || network.transmitters[index].name == network.hosts[wire.source]
        };
        let Some(index) = wire.transmitter.filter(|index| !is_shared(*index)) else {
            let message = format!("\"{}\" has no separate rate to change", wire.name);
            return conflict(message, "add a rate to the link, and remove its host's card");
        };
        let pace = match traced {
            Some(trace) => net::RateSchedule::Trace(trace.clone()),
            None if !steps.rates.is_empty() => net::RateSchedule::Steps(steps.rates.clone()),
            None => {
                let bits = (wire.opportunity_bytes * 8) as f64 * 1e9;
                let every = python::round(bits / network.transmitters[index].rate_bps as f64);
                net::RateSchedule::Slots { every_ns: (every as u64).max(1), bytes: wire.opportunity_bytes }
            }
        };
        found.insert(index, pace);
    }
    Ok(found)
}

/// The name of the kernel that all hosts run.
fn kernel(network: &Network, settings: &[Host]) -> Result<Option<String>, Problem> {
    let all: Vec<&Option<String>> = settings.iter().map(|host| &host.kernel).collect();
    let Some(index) = all.iter().position(|one| *one != all[0]) else { return Ok(all[0].clone()) };
    let kernel_name = |kernel: &Option<String>| {
        kernel.as_ref().map_or("Linux without additions".to_string(), |name| format!("\"{name}\""))
    };
    let (one, other) = (&network.hosts[0], &network.hosts[index]);
    let message = format!(
        "all hosts of a run share one kernel, but {one} asks for {}, and {other} for {}",
        kernel_name(all[0]),
        kernel_name(all[index])
    );
    let fix = "remove kernel from each [hosts.NAME], and set it once: [host] kernel = \"NAME\"";
    Err(Problem::new("conflict", message, fix).of(format!("hosts.{other}.kernel")))
}

/// For each transmitter, the first flow in the file whose data or acknowledgements pass it, or path between programs.
/// Queues in bdp use its base RTT.
fn first_crossing(network: &Network, flows: &[Placed]) -> BTreeMap<usize, usize> {
    let mut first = BTreeMap::new();
    for (index, placed) in flows.iter().enumerate() {
        for wire in placed.forward.iter().chain(&placed.backward) {
            if let Some(transmitter) = network.wires[*wire].transmitter {
                first.entry(transmitter).or_insert(index);
            }
        }
    }
    first
}

/// A host in the core's form.
fn compiled_host(name: &str, host: &Host) -> Result<net::Host, Problem> {
    // With a window below two segments the sender could wait forever: the simulator has no window probes.
    let least = 2 * (host.mss + SEGMENT_OVERHEAD);
    if host.receive_buffer.bytes < least {
        let message =
            format!("host {name}: \"{}\" does not hold two segments of {} bytes", host.receive_buffer, host.mss);
        let fix = format!("choose at least \"{least} bytes\"");
        return Err(Problem::new("out-of-range", message, fix).of("host.receive_buffer"));
    }
    Ok(net::Host {
        name: name.into(),
        hz: host.hz as u32,
        mss: host.mss as u32,
        initial_window: host.initial_window as u32,
        receive_buffer: host.receive_buffer.bytes,
        send_buffer: host.send_buffer.bytes,
        delayed_ack: host.delayed_ack,
        sack: host.sack,
        timestamps: host.timestamps,
        ecn: host.ecn.0,
        ecn_insists: !host.ecn_fallback,
        offload: host.offload,
        gro_ns: host.gro.0.map(|wait| wait.ns.max(1)),
        adv_win_scale: host.adv_win_scale.map(|scale| scale as u32),
        unpaced: !host.pacing,
    })
}

fn sources(cc: &Control) -> Option<Sources> {
    let Control::Module(Module { source, name, parameters, .. }) = cc else { return None };
    let text = |value: &Value| match value {
        Value::Bool(flag) => u8::from(*flag).to_string(),
        other => python::text(other),
    };
    Some(Sources {
        files: source.0.clone(),
        parameters: parameters.0.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        name: name.clone(),
    })
}

struct Whole<'a> {
    scenario: &'a Scenario,
    network: &'a Network,
    settings: &'a [Host],
    files: &'a dyn Files,
}

impl Whole<'_> {
    fn ipv6_more(&self) -> u64 {
        if self.scenario.ip.is_some_and(|ip| ip.0 == 6) { IPV6_MORE } else { 0 }
    }

    /// Bytes of the largest frame that a host sends.
    fn frame(&self, host: &Host) -> u64 {
        let headers = HEADERS + if host.timestamps { TIMESTAMP_OPTION } else { 0 };
        host.mss + u64::from(headers) + self.ipv6_more()
    }

    fn link(&self, index: usize, wire: &Wire, steps: Steps, flows: &[Placed]) -> Result<net::Link, Problem> {
        if let Some(policer) = &wire.policer {
            let crossing = flows.iter().filter(|placed| placed.forward.contains(&index));
            let frames = crossing.map(|placed| self.frame(&self.settings[placed.source]));
            let least = frames.max().unwrap_or(0) + wire.overhead_bytes;
            check_burst(policer.burst, least, &format!("{}.policer.burst", wire.field))?;
        }
        // What the host takes for a packet that reaches it, on average in the delay and up to as much around that.
        let mut jitter = wire.jitter.as_ref().map(|one| one.compile(self.files)).transpose()?;
        let taken_ns = if jitter.is_some() { 0 } else { self.settings[wire.target].processing.ns / 2 };
        if taken_ns > 0 {
            jitter = Some(net::Jitter { ns: taken_ns, table: Vec::new(), correlation_ppb: 0, ordered: true });
        }
        let (delay_ns, delays) = first(steps.delays, wire.delay_ns);
        let delays = delays.into_iter().map(|(at, ns)| (at, ns + taken_ns)).collect();
        let (loss_ppb, losses) = first(steps.losses, wire.loss.ppb());
        Ok(net::Link {
            name: wire.name.clone(),
            from: wire.source,
            to: wire.target,
            transmitter: wire.transmitter,
            delay_ns: delay_ns + taken_ns,
            loss_ppb,
            loss_pattern: wire.loss.compile(),
            overhead_bytes: wire.overhead_bytes + self.ipv6_more(),
            losses,
            delays,
            aggregation_ns: wire.aggregation_ns,
            jitter,
            reorder: wire.reorder.as_ref().map(|one| one.compile()),
            duplicate: wire.duplicate.as_ref().map(|one| one.compile()),
            corrupt: wire.corrupt.as_ref().map(|one| one.compile()),
            policer: wire.policer.as_ref().map(|one| one.compile()),
        })
    }

    fn transmitter(
        &self,
        given: &Transmitter,
        crossing: Option<&Placed>,
        pace: Option<net::RateSchedule>,
    ) -> Result<net::Transmitter, Problem> {
        let sender = crossing.map_or(&self.scenario.host, |placed| &self.settings[placed.source]);
        let frame = self.frame(sender);
        let within = |problem: Problem| problem.within(&given.field);
        let discipline = match &given.queue {
            QueueModel::TailDrop(_) => None,
            QueueModel::Of(discipline) => Some(discipline),
        };
        let of = |bytes| match discipline {
            Some(discipline) => discipline.compile(frame, given.rate_bps, bytes).map_err(within),
            None => Ok(net::Discipline::TailDrop),
        };
        let limit = match &given.queue {
            QueueModel::TailDrop(limit) => Limit::Of(*limit),
            QueueModel::Of(discipline) => discipline.limit(frame),
        };
        let (queue_packets, queue_bytes) = match limit {
            Limit::Memory => (None, None),
            Limit::Bytes(bytes) => (None, Some(bytes)),
            Limit::Of(limit) => self.bounds(limit, given, crossing, frame)?,
        };
        let compiled = of(queue_bytes.unwrap_or(0))?;
        if matches!(discipline, Some(Discipline::Tbf(_))) && pace.is_some() {
            let message = format!("the rate of \"{}\" varies, and a token bucket needs a constant one", given.name);
            let fix = "split the link in two with a host between them, and give the token bucket to the other one";
            return Err(Problem::new("conflict", message, fix).of(&given.field));
        }
        Ok(net::Transmitter {
            name: given.name.clone(),
            rate_bps: given.rate_bps,
            queue_packets,
            queue_bytes,
            pace,
            discipline: compiled,
        })
    }

    /// A queue's limit in packets or in bytes.
    fn bounds(
        &self,
        limit: Queue,
        given: &Transmitter,
        crossing: Option<&Placed>,
        frame: u64,
    ) -> Result<(Option<u64>, Option<u64>), Problem> {
        let refused = |code, message: String, fix: String| Err(Problem::new(code, message, fix).of(&given.field));
        match limit.unit {
            Unit::Packets => Ok((Some(limit.amount), None)),
            Unit::Bdp => {
                let Some(crossing) = crossing else {
                    let message = format!(
                        "no flow crosses \"{}\", so the bandwidth-delay product of its queue is not known",
                        given.name
                    );
                    return refused("conflict", message, "write it in packets: \"1000 packets\"".into());
                };
                let rtt_ns = self.network.delay_ns(crossing.forward.iter().chain(&crossing.backward));
                let packets = frames(limit.amount, given.rate_bps, rtt_ns, frame);
                if packets > MOST_QUEUE_PACKETS {
                    let message = format!("\"{limit}\" is {packets} packets, more than {MOST_QUEUE_PACKETS}");
                    return refused(
                        "out-of-range",
                        message,
                        format!("choose at most \"{MOST_QUEUE_PACKETS} packets\""),
                    );
                }
                Ok((Some((packets as u64).max(1)), None))
            }
            Unit::Ns => {
                let bytes = u128::from(given.rate_bps) * u128::from(limit.amount) / 8 / u128::from(PPB);
                Ok((None, Some(u64::try_from(bytes).unwrap_or(u64::MAX).max(frame))))
            }
            Unit::Bytes if limit.amount < frame => {
                let size = Size { bytes: limit.amount };
                let message = format!("\"{size}\" does not hold one full frame of {frame} bytes");
                refused("zero-queue", message, format!("choose at least \"{frame} bytes\", or \"1 packet\""))
            }
            Unit::Bytes => Ok((None, Some(limit.amount))),
        }
    }

    fn flow(&self, placed: &Placed) -> Result<net::Flow, Problem> {
        let flow = &self.scenario.flows[placed.index];
        let (cc, variant) = match &flow.cc {
            Control::Variant(one) if !flow.is_datagrams() => (one.name.clone(), Some(one.variant.clone())),
            _ => (flow.control(), None),
        };
        let source = flow.source.as_ref();
        Ok(net::Flow {
            name: placed.name.clone(),
            cc,
            variant,
            count: (placed.count * source.map_or(1, Source::connections)) as usize,
            start_ns: flow.start.ns,
            duration_ns: flow.duration.map(|time| time.ns),
            traffic: self.traffic(placed)?,
            forward: placed.forward.clone(),
            backward: placed.backward.clone(),
            module: None,
        })
    }

    fn traffic(&self, placed: &Placed) -> Result<net::Traffic, Problem> {
        let flow = &self.scenario.flows[placed.index];
        let writes = match &flow.source {
            Some(Source::Udp(udp)) => return Ok(net::Traffic::Datagrams(udp.compile())),
            Some(Source::Arrivals(arrivals)) => return self.arrivals(placed, arrivals).map(net::Traffic::Arrivals),
            Some(Source::Requests(one)) => return one.compile(self.files).map(net::Traffic::Requested),
            Some(Source::Pages(one)) => return one.compile(self.files).map(net::Traffic::Requested),
            Some(Source::Video(one)) => return Ok(net::Traffic::Requested(one.compile())),
            Some(Source::Steady(one)) => Some(one.compile()),
            Some(Source::OnOff(one)) => Some(one.compile()),
            None => None,
        };
        if let Some(reader) = &flow.reader {
            return Ok(net::Traffic::Read { writes, reads: reader.compile() });
        }
        let bytes = flow.bytes.map(|size| net::Writes::Bytes(size.bytes));
        let writes = writes.map(net::Writes::Paced).or(bytes).unwrap_or(net::Writes::Endless);
        let lifetime_ns = flow.replace.as_ref().map(|one| [one.lifetime.0.ns, one.lifetime.1.ns]);
        Ok(net::Traffic::Written { writes, lifetime_ns })
    }

    fn arrivals(&self, placed: &Placed, arrivals: &Arrivals) -> Result<net::Arrivals, Problem> {
        let at = format!("flows.{}", placed.index);
        if placed.count > 1 {
            let message = "a source of arrivals opens its own connections, so count does not apply";
            let fix =
                "remove count, and set how many start with load or every; for s*, count is at most the number of pairs";
            return Err(Problem::new("conflict", message, fix).of(format!("{at}.count")));
        }
        let Network { wires, transmitters, .. } = self.network;
        let crossed = placed.forward.iter().filter_map(|wire| wires[*wire].transmitter);
        let slowest = crossed.map(|index| transmitters[index].rate_bps).min();
        arrivals.compile(slowest, self.files).map_err(|problem| problem.within(&format!("{at}.source")))
    }

    fn probe(&self, placed: &Placed) -> net::Probe {
        let probe = &self.scenario.probes[placed.index];
        net::Probe {
            name: placed.name.clone(),
            start_ns: probe.start.ns,
            interval_ns: probe.interval.ns,
            count: placed.count,
            forward: placed.forward.clone(),
            backward: placed.backward.clone(),
        }
    }
}

/// Converts billionths of a bandwidth-delay product to full frames, with halves rounded up.
fn frames(parts: u64, rate_bps: u64, rtt_ns: u64, frame: u64) -> i128 {
    let mut found = Natural::new(2 * u128::from(parts) * u128::from(rate_bps));
    found.multiply(rtt_ns);
    let mut half = Natural::new(u128::from(PPB) * u128::from(PPB));
    half.multiply(8 * frame);
    found.add(&half);
    for by in [2, PPB as u32, PPB as u32, (8 * frame) as u32] {
        found.divide(by);
    }
    found.amount().unwrap_or(i128::MAX)
}
