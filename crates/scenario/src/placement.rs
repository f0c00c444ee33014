//! Places flows and probes in the network: names, ends, and the paths in both directions.

use crate::flow::{Flow, Probe};
use crate::network::Network;
use crate::parts::{MAX_CONNECTIONS, MAX_SAMPLES};
use crate::problem::Problem;
use crate::routing::Router;
use crate::scenario::Scenario;
use crate::units::Span;
use crate::words::suggestion;
use std::collections::{BTreeMap, BTreeSet};

/// A flow or probe with known ends: the wires of the forward path and of the reverse path.
#[derive(Clone, Debug)]
pub struct Placed {
    pub name: String,
    pub source: usize,
    pub count: u64,
    pub forward: Vec<usize>,
    pub backward: Vec<usize>,
    /// Index of its [[flows]] or [[probes]] table.
    pub index: usize,
}

/// Places all flows. A flow between `s*` and `r*` becomes one flow for each pair that gets a connection.
pub(crate) fn flows(scenario: &Scenario, network: &Network, router: &mut Router) -> Result<Vec<Placed>, Problem> {
    let names = flow_names(&scenario.flows)?;
    let (mut placed, mut taken) = (Vec::new(), 0);
    for (index, (name, flow)) in names.into_iter().zip(&scenario.flows).enumerate() {
        let at = format!("flows.{index}");
        let (source, target) = ends(&flow.from_, &flow.to, &at, scenario, network)?;
        let mut place = |name: String, source: &str, target: &str, count: u64| -> Result<(), Problem> {
            let [source, target] = [source, target].map(|name| network.host(name).expect("it is known"));
            let (forward, backward) = (router.way(source, target, &at)?, router.way(target, source, &at)?);
            placed.push(Placed { name, source, count, forward, backward, index });
            Ok(())
        };
        if source != "s*" {
            place(name, &source, &target, flow.count)?;
            continue;
        }
        let pairs = scenario.dumbbell.as_ref().map_or(1, |dumbbell| dumbbell.number()) as u64;
        let used = pairs.min(flow.count);
        for turn in 0..used {
            // Flows are given to pairs in turn. The next flow continues after the last pair used.
            let pair = (taken + turn) % pairs + 1;
            let count = flow.count / used + u64::from(turn < flow.count % used);
            let pair_name = if used == 1 { name.clone() } else { format!("{name}@s{pair}") };
            place(pair_name, &format!("s{pair}"), &format!("r{pair}"), count)?;
        }
        taken += used;
    }
    if placed.iter().map(|one| one.count).sum::<u64>() > MAX_CONNECTIONS {
        let message = format!("more than {MAX_CONNECTIONS} connections in all");
        return Err(Problem::new("out-of-range", message, "lower the count of the flows").of("flows"));
    }
    Ok(placed)
}

/// Places all probes.
pub(crate) fn probes(scenario: &Scenario, network: &Network, router: &mut Router) -> Result<Vec<Placed>, Problem> {
    let names = probe_names(&scenario.probes)?;
    let mut placed = Vec::new();
    for (index, (name, probe)) in names.into_iter().zip(&scenario.probes).enumerate() {
        let at = format!("probes.{index}");
        let (mut source, mut target) = ends(&probe.from_, &probe.to, &at, scenario, network)?;
        if source == "s*" {
            (source, target) = ("s1".into(), "r1".into());
        }
        let [source, target] = [source, target].map(|name| network.host(&name).expect("it is known"));
        let (forward, backward) = (router.way(source, target, &at)?, router.way(target, source, &at)?);
        let count = probe_count(probe, scenario.duration, &at)?;
        placed.push(Placed { name, source, count, forward, backward, index });
    }
    Ok(placed)
}

fn probe_count(probe: &Probe, duration: Span, at: &str) -> Result<u64, Problem> {
    if let Some(count) = probe.count {
        return Ok(count);
    }
    let count = (duration.ns - probe.start.ns).div_ceil(probe.interval.ns);
    if count <= MAX_SAMPLES {
        return Ok(count);
    }
    let message = format!("{count} probes are more than {MAX_SAMPLES}");
    let fix = "choose a longer interval, or add count = 1000";
    Err(Problem::new("out-of-range", message, fix).of(format!("{at}.interval")))
}

/// The name of each [[flows]] table: the given one, or a generated one.
pub fn flow_names(flows: &[Flow]) -> Result<Vec<String>, Problem> {
    names("flows", flows.iter().map(|flow| (flow.name.as_deref(), flow.control())).collect())
}

/// The name of each [[probes]] table: the given one, or a generated one.
pub fn probe_names(probes: &[Probe]) -> Result<Vec<String>, Problem> {
    names("probes", probes.iter().map(|probe| (probe.name.as_deref(), "probe".into())).collect())
}

/// Given names, and for the others their base, numbered from 2 when it is taken.
pub(crate) fn names(table: &str, items: Vec<(Option<&str>, String)>) -> Result<Vec<String>, Problem> {
    let given: Vec<&str> = items.iter().filter_map(|(name, _)| *name).collect();
    let mut used: BTreeSet<String> = given.iter().map(|name| name.to_string()).collect();
    if used.len() < given.len() {
        let is_twice = |name: &&str| given.iter().filter(|one| *one == name).count() > 1;
        let index = items.iter().position(|(name, _)| name.as_ref().is_some_and(is_twice)).expect("one is there twice");
        let name = items[index].0.unwrap_or_default();
        let message = format!("two {table} are named \"{name}\"");
        let field = format!("{table}.{index}.name");
        return Err(Problem::new("duplicate-name", message, format!("name this one, like \"{name}-2\"")).of(field));
    }
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let name = |(own, base): (Option<&str>, String)| {
        let mut name = own.map_or(base.clone(), str::to_string);
        while own.is_none() && used.contains(&name) {
            let number = numbers.entry(base.clone()).or_insert(1);
            *number += 1;
            name = format!("{base}-{number}");
        }
        used.insert(name.clone());
        name
    };
    Ok(items.into_iter().map(name).collect())
}

/// The ends of a flow or probe: as given, otherwise the topology's ends. `sK` belongs to `rK`.
fn ends(
    from: &Option<String>,
    to: &Option<String>,
    at: &str,
    scenario: &Scenario,
    network: &Network,
) -> Result<(String, String), Problem> {
    let is_dumbbell = scenario.topology == "dumbbell";
    let (source, target) = match (&network.ends, from, to) {
        (None, Some(source), Some(target)) => (source.clone(), target.clone()),
        (None, from, _) => {
            let field = if from.is_none() { "from" } else { "to" };
            let message = "a custom topology has no default sender and receiver";
            let hosts: Vec<&str> = network.hosts.iter().take(20).map(String::as_str).collect();
            let fix = format!("add {field} = \"{}\", or another of: {}", hosts[0], hosts.join(", "));
            return Err(Problem::new("missing-field", message, fix).of(format!("{at}.{field}")));
        }
        (Some(ends), None, None) => ends.clone(),
        (Some(ends), from, to) if is_dumbbell => {
            let source = from.clone().unwrap_or_else(|| other_end(to.as_deref().unwrap_or(""), "r", "s", &ends.0));
            let target = to.clone().unwrap_or_else(|| other_end(&source, "s", "r", &ends.1));
            (source, target)
        }
        (Some(ends), from, to) => {
            (from.clone().unwrap_or_else(|| ends.0.clone()), to.clone().unwrap_or_else(|| ends.1.clone()))
        }
    };
    let chosen = (source, target);
    if network.ends.as_ref() == Some(&chosen) {
        return Ok(chosen);
    }
    for (end, field) in [(&chosen.0, "from"), (&chosen.1, "to")] {
        let field = format!("{at}.{field}");
        if is_dumbbell && (end == "s*" || end == "r*") {
            let message = format!(
                "\"{end}\" means every host of one side, so the other end must be every host of the other side"
            );
            return Err(Problem::new("conflict", message, "write from = \"s*\" and to = \"r*\"").of(field));
        }
        if network.host(end).is_none() {
            let fix = suggestion(end, network.hosts.iter().map(String::as_str));
            return Err(Problem::new("unknown-name", format!("no host is named \"{end}\""), fix).of(field));
        }
    }
    Ok(chosen)
}

/// `r3` for `s3`, `r*` for `s*`; the topology's own end for anything else.
fn other_end(end: &str, side: &str, other: &str, otherwise: &str) -> String {
    match end.strip_prefix(side) {
        Some(rest) if rest == "*" || (!rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())) => {
            format!("{other}{rest}")
        }
        _ => otherwise.into(),
    }
}
