//! What the engine `sim` cannot run, although the scenario is valid.

use crate::compile::{Compiled, HEADERS, TIMESTAMPS};
use crate::problem::Problem;
use crate::python;
use sawtooth_net::scenario as net;
use sawtooth_tcp::cc::Record;

/// Nanoseconds. TCP's clock would not advance in a shorter RTT.
const ROUND_TRIP_MIN_NS: f64 = 1000.0;

impl Compiled {
    /// Refuses a congestion control that is not in `controls`, and a flow whose RTT without queueing (a full segment
    /// and its acknowledgement) is shorter than a tick of TCP's clock. Code unsupported.
    pub fn check_simulated(&self, topology: &str, controls: &[&str]) -> Result<(), Problem> {
        if !self.programs.hosts.is_empty() {
            let fix = "use --engine kernel, or netns";
            return Err(Problem::new("unsupported", "a simulated TCP runs no programs", fix).of("programs"));
        }
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let cc = flow.cc.as_str();
            let is_ours = controls.contains(&cc) || flow.datagrams.is_some();
            if is_ours || self.modules[index].is_some() {
                continue;
            }
            let message = format!("the engine sim has no {cc}, only {}", controls.join(", "));
            let is_linux = Record::of(cc).is_some_and(|record| !record.patched);
            let fix = match is_linux {
                true => format!(
                    "use --engine kernel, or netns where this host's kernel has it; or give its source, cc = {{ source = \"…/net/ipv4/tcp_{cc}.c\" }}"
                ),
                false => "use --engine kernel with host.kernel, the name of a kernel that has it".into(),
            };
            return Err(Problem::new("unsupported", message, fix).of(format!("flows.{index}.cc")));
        }
        let Some((flow, ns)) = self
            .scenario
            .flows
            .iter()
            .map(|flow| (flow, self.round_trip_ns(flow)))
            .find(|(_, ns)| *ns < ROUND_TRIP_MIN_NS)
        else {
            return Ok(());
        };
        let message = format!(
            "flow \"{}\": a segment and its acknowledgement take {} ns at the least, and the engine sim needs 1 us for them",
            flow.name,
            python::general(ns, 3)
        );
        let field = match topology {
            "custom" => "links".into(),
            "chain-asymmetric" => "chain.rtt".into(),
            other => format!("{other}.rtt"),
        };
        let fix = "give the path a delay, e.g. 0.1 ms, or a lower rate";
        Err(Problem::new("unsupported", message, fix).of(field))
    }

    fn round_trip_ns(&self, flow: &net::Flow) -> f64 {
        let net::Scenario { hosts, links, transmitters, .. } = &self.scenario;
        let ends = [&flow.forward, &flow.backward].map(|way| &hosts[links[way[0]].from]);
        let acknowledgement = HEADERS + if ends.iter().all(|end| end.timestamps) { TIMESTAMPS } else { 0 };
        let segment = acknowledgement + u64::from(ends[0].mss.min(ends[1].mss));
        let takes = |way: &[usize], size: u64| -> f64 {
            let link_ns = |index: &usize| {
                let link = &links[*index];
                let bits = (8 * (size + link.overhead_bytes)) as f64;
                let sent = link.transmitter.map(|number| bits * 1e9 / transmitters[number].rate_bps as f64);
                link.least_delay_ns() as f64 + sent.unwrap_or(0.0)
            };
            way.iter().map(link_ns).sum()
        };
        takes(&flow.forward, segment) + takes(&flow.backward, acknowledgement)
    }
}
