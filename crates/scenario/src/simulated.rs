//! What the engine `sim` cannot run, although the scenario is valid.

use crate::compile::Compiled;
use crate::problem::Problem;
use crate::python;
use sawtooth_tcp::cc::{Algorithm, Record};

impl Compiled {
    /// Refuses programs, a congestion control that the simulator lacks, and a flow whose RTT without queueing (a full
    /// segment and its acknowledgement) is shorter than a tick of TCP's clock. Code unsupported.
    pub fn check_simulated(&self, topology: &str) -> Result<(), Problem> {
        let controls: Vec<&str> = Algorithm::names().collect();
        if !self.programs.hosts.is_empty() {
            let fix = "use --engine kernel, or netns";
            return Err(Problem::new("unsupported", "the engine sim runs no programs", fix).of("programs"));
        }
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let cc = flow.cc.as_str();
            let is_ours = controls.contains(&cc) || flow.traffic.datagrams().is_some();
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
        let Some((flow, ps)) = self.scenario.too_short() else { return Ok(()) };
        let message = format!(
            "flow \"{}\": a segment and its acknowledgement take at least {} ns, and the engine sim needs 1 us for them",
            flow.name,
            python::general(ps as f64 / 1e3, 3)
        );
        let field = match topology {
            "custom" => "links".into(),
            "chain-asymmetric" => "chain.rtt".into(),
            other => format!("{other}.rtt"),
        };
        let fix = "give the path a delay, e.g. 0.1 ms, or a lower rate";
        Err(Problem::new("unsupported", message, fix).of(field))
    }
}
