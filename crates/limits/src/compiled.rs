//! The parts of a compiled scenario that concern flows and their paths. Other keys are ignored.

use sawtooth_tcp::cc::Record;
use serde::Deserialize;

/// Frame headers as Linux counts them: Ethernet, IPv4, TCP; and TCP's timestamp option.
const HEADERS: f64 = 54.0;
const TIMESTAMPS: f64 = 12.0;

#[derive(Deserialize)]
pub struct Compiled {
    pub duration_ns: u64,
    pub interval_ns: u64,
    pub hosts: Vec<Host>,
    pub transmitters: Vec<Transmitter>,
    pub links: Vec<Link>,
    pub flows: Vec<Flow>,
}

#[derive(Deserialize)]
pub struct Host {
    mss: u32,
    timestamps: bool,
}

#[derive(Deserialize)]
pub struct Transmitter {
    rate_bps: u64,
    #[serde(default)]
    pace: Option<Pace>,
    #[serde(default)]
    discipline: Option<Discipline>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Pace {
    Steps(Vec<(u64, u64)>),
    Slots { every_ns: u64, bytes: u64 },
    Trace { times_ms: Vec<u32>, period_ms: u64, bytes: u64 },
}

/// Queues that shape.
#[derive(Deserialize)]
#[serde(untagged)]
enum Discipline {
    Shaped(Shaped),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shaped {
    Tbf(Tbf),
    Cake(Cake),
}

#[derive(Deserialize)]
struct Tbf {
    rate_bps: u64,
}

#[derive(Deserialize)]
struct Cake {
    #[serde(default)]
    bandwidth_bps: Option<u64>,
}

#[derive(Deserialize)]
pub struct Link {
    from: usize,
    pub transmitter: Option<usize>,
}

#[derive(Deserialize)]
pub struct Flow {
    pub name: String,
    pub cc: String,
    pub count: usize,
    pub start_ns: u64,
    pub duration_ns: Option<u64>,
    pub bytes: Option<u64>,
    pub forward: Vec<usize>,
    pub backward: Vec<usize>,
    #[serde(default)]
    pub writes: Option<Writes>,
    #[serde(default)]
    arrivals: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    datagrams: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    reads: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
pub struct Writes {
    rate_bps: u64,
    #[serde(default)]
    on_off_ns: Option<[u64; 2]>,
}

impl Writes {
    /// The average rate that one application offers, in bit/s.
    pub fn bps(&self) -> f64 {
        let share = self.on_off_ns.map_or(1.0, |[on, off]| on as f64 / (on + off).max(1) as f64);
        self.rate_bps as f64 * share
    }
}

impl Flow {
    /// Whether it takes every loss for congestion, whatever its cause.
    pub fn treats_loss_as_congestion(&self) -> bool {
        Record::of(&self.cc).is_some_and(|record| record.takes_losses_for_congestion)
    }

    /// Whether applications send or request at times that no counter of the sender shows.
    pub fn is_application_driven(&self) -> bool {
        self.arrivals.is_some() || self.datagrams.is_some() || self.reads.is_some()
    }
}

impl Transmitter {
    /// The average rate in bit/s from `start_s` to `end_s`.
    fn bps(&self, start_s: f64, end_s: f64) -> f64 {
        let rate = self.rate_bps as f64;
        let shaped = match &self.discipline {
            Some(Discipline::Shaped(Shaped::Tbf(tbf))) => tbf.rate_bps as f64,
            Some(Discipline::Shaped(Shaped::Cake(Cake { bandwidth_bps: Some(bps) }))) => *bps as f64,
            _ => rate,
        };
        let paced = match &self.pace {
            None => rate,
            Some(Pace::Slots { every_ns, bytes }) => *bytes as f64 * 8e9 / *every_ns as f64,
            Some(Pace::Trace { times_ms, period_ms, bytes }) => {
                (times_ms.len() as f64) * *bytes as f64 * 8e3 / *period_ms as f64
            }
            Some(Pace::Steps(steps)) => {
                let from = |at: usize| if at == 0 { 0.0 } else { steps[at - 1].0 as f64 / 1e9 };
                let bits = (0..=steps.len()).map(|at| {
                    let until = if at == steps.len() { f64::INFINITY } else { from(at + 1) };
                    let bps = if at == 0 { rate } else { steps[at - 1].1 as f64 };
                    bps * (until.min(end_s) - from(at).max(start_s)).max(0.0)
                });
                bits.sum::<f64>() / (end_s - start_s)
            }
        };
        shaped.min(paced)
    }
}

impl Compiled {
    /// Parses the JSON of a compiled scenario.
    pub fn parse(json: &str) -> Result<Compiled, String> {
        let found: Compiled = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let links = found.links.len();
        let whole = found.links.iter().all(|link| {
            link.from < found.hosts.len() && link.transmitter.is_none_or(|one| one < found.transmitters.len())
        }) && found.flows.iter().all(|flow| {
            !flow.forward.is_empty() && flow.forward.iter().chain(&flow.backward).all(|&link| link < links)
        });
        if whole { Ok(found) } else { Err("an index points to nothing".to_owned()) }
    }

    /// The transmitters along a path.
    pub fn transmitters(&self, links: &[usize]) -> Vec<usize> {
        links.iter().filter_map(|&link| self.links[link].transmitter).collect()
    }

    /// The rate of a transmitter in bit/s of frames, averaged from `start_s` to `end_s`.
    pub fn bps(&self, transmitter: usize, start_s: f64, end_s: f64) -> f64 {
        self.transmitters[transmitter].bps(start_s, end_s)
    }

    /// Frame bytes per payload byte, in full segments of the flow.
    pub fn headers(&self, flow: &Flow) -> f64 {
        let host = &self.hosts[self.links[flow.forward[0]].from];
        let mss = f64::from(host.mss);
        (mss + HEADERS + if host.timestamps { TIMESTAMPS } else { 0.0 }) / mss
    }

    pub fn interval_s(&self) -> f64 {
        self.interval_ns as f64 / 1e9
    }
}
