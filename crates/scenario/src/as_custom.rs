//! Rewrites a scenario with a ready topology as `custom`: hosts, cards, links and routes.

use crate::compile::Compiled;
use crate::custom::custom;
use crate::files::Files;
use crate::loss::LossModel;
use crate::network::{Network, Transmitter, Wire};
use crate::placement::{self, Placed};
use crate::problem::Problem;
use crate::program;
use crate::routing::Router;
use crate::scenario::Scenario;
use crate::table::Field;
use crate::topology::build;
use crate::units::{Rate, Span};
use crate::value::{Table, Value};
use std::collections::BTreeMap;

const READY: &[&str] = &["path", "chain", "dumbbell", "parking-lot", "home"];

impl Scenario {
    /// The same network and flows as a `custom` scenario. Random numbers differ, because the links are in another
    /// order. A flow over several pairs becomes one flow per pair. Code unsupported for a path with a trace.
    pub fn as_custom(&self, files: &dyn Files) -> Result<(Scenario, Compiled), Problem> {
        if self.path.as_ref().is_some_and(|path| path.trace.is_some()) {
            let message = "path.trace describes three links at once, and a custom topology has one trace per link";
            let problem = Problem::new(
                "unsupported",
                message,
                "remove path.trace, draw the topology, then add the trace to a link",
            );
            return Err(problem.of("path.trace"));
        }
        if !self.programs.is_empty() && self.flows.is_empty() {
            let message = "a custom topology has no ends, which programs call server and client";
            return Err(
                Problem::new("unsupported", message, "leave the topology as it is, or add [[flows]]").of("programs")
            );
        }
        let network = build(self, files)?;
        let mut router = Router::new(&network);
        let flows = placement::flows(self, &network, &mut router)?;
        let probes = placement::probes(self, &network, &mut router)?;
        let Value::Table(given) = without_nulls(self.given()) else { unreachable!("a scenario is a table") };
        let kept = given.iter().filter(|(name, _)| !READY.contains(name));
        let mut tables: Table = kept.map(|(name, value)| (name.to_string(), value.clone())).collect();
        tables.set("topology", Value::text("custom"));
        let own = |host: &str| given.get("hosts")?.as_table()?.get(host).cloned();
        let host = |name: &String| (name.clone(), own(name).unwrap_or_else(|| Value::Table(Table::new())));
        tables.set("hosts", Value::Table(network.hosts.iter().map(host).collect()));
        let cards = cards(&network);
        let card = |(host, card): (&usize, &&Transmitter)| (network.hosts[*host].clone(), rate_and_queue(card));
        tables.set("cards", Value::Table(cards.iter().map(card).collect()));
        tables.set("links", Value::List(links(&network, &cards)));
        let with_ends = |one: &Placed, table: Value, is_counted: bool| {
            let Value::Table(mut table) = table else { unreachable!("a flow is a table") };
            let target = network.wires[*one.forward.last().expect("a way has a wire")].target;
            table.set("name", Value::Text(one.name.replace('@', "-")));
            table.set("from", Value::text(&network.hosts[one.source]));
            table.set("to", Value::text(&network.hosts[target]));
            if is_counted {
                table.set("count", Value::Whole(one.count.into()));
            }
            Value::Table(table)
        };
        let written = flows.iter().map(|one| with_ends(one, self.flows[one.index].to_value(), true));
        tables.set("flows", Value::List(written.collect()));
        let written = probes.iter().map(|one| with_ends(one, self.probes[one.index].write(), false));
        tables.set("probes", Value::List(written.collect()));
        let hosts = program::place_programs(self, &network, &mut router, &flows)?.hosts;
        let written = self.programs.iter().zip(hosts).map(|(program, host)| {
            let Value::Table(mut table) = program.given() else { unreachable!("a program is a table") };
            table.set("host", Value::Text(host));
            Value::Table(table)
        });
        tables.set("programs", Value::List(written.collect()));
        let has_value = |name: &str, value: &Value| match value {
            Value::Table(table) => !table.is_empty(),
            Value::List(list) => !list.is_empty() || name == "flows",
            Value::Text(text) => !text.is_empty(),
            Value::Bool(flag) => *flag,
            Value::Whole(number) => *number != 0,
            _ => true,
        };
        let fields = tables.iter().filter(|(name, value)| has_value(name, value));
        let tables: Table = fields.map(|(name, value)| (name.to_string(), value.clone())).collect();
        let (made, compiled) = Scenario::read(&Value::Table(tables), files)?;
        let routes = routes(&network, flows.iter().chain(&probes), &made, files)?;
        if routes.is_empty() {
            return Ok((made, compiled));
        }
        let mut tables = made.to_table();
        tables.set("routes", Value::List(routes));
        Scenario::read(&Value::Table(tables), files)
    }
}

/// Removes fields without a value.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Table(table) => {
            let fields = table.iter().filter(|(_, one)| **one != Value::Null);
            Value::Table(fields.map(|(name, one)| (name.to_string(), without_nulls(one.clone()))).collect())
        }
        Value::List(list) => Value::List(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// The cards: transmitters with the name of a host, if all wires of that host leave through them.
fn cards(network: &Network) -> BTreeMap<usize, &Transmitter> {
    let mut used: BTreeMap<usize, Vec<Option<usize>>> = BTreeMap::new();
    for wire in &network.wires {
        used.entry(wire.source).or_default().push(wire.transmitter);
    }
    let card = |(host, all): (usize, Vec<Option<usize>>)| {
        let only = all[0].filter(|_| all.iter().all(|one| *one == all[0]))?;
        let transmitter = &network.transmitters[only];
        (transmitter.name == network.hosts[host]).then_some((host, transmitter))
    };
    used.into_iter().filter_map(card).collect()
}

fn rate_and_queue(transmitter: &Transmitter) -> Value {
    let mut table = Table::new();
    table.push("rate", Rate { bps: transmitter.rate_bps }.write());
    table.push("queue", transmitter.queue.write());
    Value::Table(table)
}

/// Wires in pairs. If a setting is the same in both directions, it is set on the link.
fn links(network: &Network, cards: &BTreeMap<usize, &Transmitter>) -> Vec<Value> {
    let mut indices: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut pairs: Vec<Vec<&Wire>> = Vec::new();
    for wire in &network.wires {
        let ends = (wire.source.min(wire.target), wire.source.max(wire.target));
        let index = *indices.entry(ends).or_insert(pairs.len());
        if index == pairs.len() {
            pairs.push(Vec::new());
        }
        pairs[index].push(wire);
    }
    let link = |pair: Vec<&Wire>| {
        let directions: Vec<Table> = pair.iter().map(|wire| wire_table(network, wire, cards)).collect();
        // If only one direction is used, its rate and queue stay with the direction, because the other has none.
        let is_common = |name: &str, value: &Value| {
            directions.iter().all(|other| other.get(name) == Some(value))
                && (pair.len() > 1 || !["rate", "queue"].contains(&name))
        };
        let mut table = Table::new();
        table.push("from", Value::text(&network.hosts[pair[0].source]));
        table.push("to", Value::text(&network.hosts[pair[0].target]));
        for (name, value) in directions[0].iter().filter(|(name, value)| is_common(name, value)) {
            table.push(name, value.clone());
        }
        for (way, own) in ["forward", "backward"].into_iter().zip(&directions) {
            let rest = own.iter().filter(|(name, _)| table.get(name).is_none());
            let rest: Table = rest.map(|(name, value)| (name.to_string(), value.clone())).collect();
            if !rest.is_empty() {
                table.push(way, Value::Table(rest));
            }
        }
        Value::Table(table)
    };
    pairs.into_iter().map(link).collect()
}

fn wire_table(network: &Network, wire: &Wire, cards: &BTreeMap<usize, &Transmitter>) -> Table {
    let mut table = Table::new();
    if let Some(transmitter) = wire.transmitter.filter(|_| !cards.contains_key(&wire.source)) {
        let Value::Table(own) = rate_and_queue(&network.transmitters[transmitter]) else { unreachable!() };
        table = own;
    }
    for (name, ns) in [("delay", wire.delay_ns), ("aggregation", wire.aggregation_ns)] {
        if ns > 0 {
            table.push(name, Span { ns }.write());
        }
    }
    let changes: Vec<Value> =
        wire.changes.iter().filter_map(|change| for_wire(change.write(), wire.changing)).collect();
    if !changes.is_empty() {
        table.push("changes", Value::List(changes));
    }
    let varying = [
        ("jitter", wire.jitter.as_ref().map(short)),
        ("reorder", wire.reorder.as_ref().map(short)),
        ("duplicate", wire.duplicate.as_ref().map(short)),
        ("corrupt", wire.corrupt.as_ref().map(short)),
        ("policer", wire.policer.as_ref().map(Field::write)),
    ];
    for (name, value) in varying {
        if let Some(value) = value {
            table.push(name, value);
        }
    }
    if wire.loss != LossModel::NONE {
        table.push("loss", wire.loss.write());
    }
    table
}

fn short<A: crate::varying::Short>(one: &A) -> Value {
    one.shortly(one.write())
}

/// The part of a change that applies to one wire; None if nothing does.
fn for_wire(change: Value, changing: [bool; 3]) -> Option<Value> {
    let Value::Table(change) = change else { return None };
    let applies = |name: &str| match ["rate", "delay", "loss"].iter().position(|what| *what == name) {
        Some(index) => changing[index],
        None => true,
    };
    let kept: Table = change
        .iter()
        .filter(|(name, _)| applies(name))
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect();
    let has_effect = kept.iter().any(|(name, _)| !["at", "every"].contains(&name));
    has_effect.then_some(Value::Table(kept))
}

/// Routes that differ from the one with the fewest hops, given by the hosts in between.
fn routes<'a>(
    network: &Network,
    placed: impl Iterator<Item = &'a Placed>,
    made: &Scenario,
    files: &dyn Files,
) -> Result<Vec<Value>, Problem> {
    let rewritten = custom(made, files)?;
    let mut router = Router::new(&rewritten);
    let mut found: Vec<((usize, usize), Vec<usize>)> = Vec::new();
    for one in placed {
        for way in [&one.forward, &one.backward] {
            let source = network.wires[way[0]].source;
            let hosts: Vec<usize> = way.iter().map(|wire| network.wires[*wire].target).collect();
            let target = *hosts.last().expect("a way has a wire");
            let usual = router.way(source, target, "flows")?;
            if usual.iter().map(|wire| rewritten.wires[*wire].target).ne(hosts.iter().copied()) {
                let between = hosts[..hosts.len() - 1].to_vec();
                match found.iter_mut().find(|(ends, _)| *ends == (source, target)) {
                    Some((_, known)) => *known = between,
                    None => found.push(((source, target), between)),
                }
            }
        }
    }
    let name = |host: usize| Value::text(&network.hosts[host]);
    let route = |((source, target), via): ((usize, usize), Vec<usize>)| {
        let via = Value::List(via.into_iter().map(name).collect());
        let pairs = [("from", name(source)), ("to", name(target)), ("via", via)];
        Value::Table(pairs.into_iter().map(|(field, value)| (field.to_string(), value)).collect())
    };
    Ok(found.into_iter().map(route).collect())
}
