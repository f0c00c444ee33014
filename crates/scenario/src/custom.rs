//! Topology "custom": hosts, cards, links and routes as the file gives them.

use crate::files::{Files, Traced};
use crate::network::{Network, Wire};
use crate::parts::{Direction, Link};
use crate::problem::Problem;
use crate::queue_model::QueueModel;
use crate::routing::explicit;
use crate::scenario::Scenario;
use crate::units::Rate;
use crate::words::suggestion;
use std::collections::{BTreeMap, BTreeSet};

/// The network that the file describes. Codes: missing-field, unknown-name, duplicate-name, route-loop, conflict,
/// no-route.
pub(crate) fn custom(scenario: &Scenario, files: &dyn Files) -> Result<Network, Problem> {
    let Scenario { hosts, cards, links, .. } = scenario;
    if hosts.is_empty() || links.is_empty() {
        let missing = if hosts.is_empty() { "hosts" } else { "links" };
        let fix = "add [hosts.a], [hosts.b] and [[links]] with from = \"a\" and to = \"b\"";
        return Err(Problem::new("missing-field", format!("a custom topology needs {missing}"), fix).of(missing));
    }
    let mut network = Network::of(hosts.iter().map(|(name, _)| name.to_string()));
    let mut drawing = CustomNetwork { card_of: BTreeMap::new() };
    for (name, card) in cards.iter() {
        known(&network, name, || format!("cards.{name}"))?;
        let number = network.transmit(name, card.rate.bps, &card.queue, &format!("cards.{name}.queue"));
        drawing.card_of.insert(name.into(), number);
    }
    let pair = |link: &Link| {
        let (one, other) = (link.from_.clone(), link.to.clone());
        if one < other { (one, other) } else { (other, one) }
    };
    let mut joined: BTreeMap<(String, String), usize> = BTreeMap::new();
    for link in links {
        *joined.entry(pair(link)).or_default() += 1;
    }
    let mut names = BTreeSet::new();
    for (number, link) in links.iter().enumerate() {
        let at = format!("links.{number}");
        known(&network, &link.from_, || format!("{at}.from"))?;
        known(&network, &link.to, || format!("{at}.to"))?;
        if link.from_ == link.to {
            let message = format!("a link cannot join \"{}\" to itself", link.to);
            return Err(Problem::new("route-loop", message, "name another host").of(format!("{at}.to")));
        }
        let name = link.called();
        if !names.insert(name.clone()) {
            let message = format!("two links are named \"{name}\"");
            let fix = format!("name this one, like \"{name}-2\"");
            return Err(Problem::new("duplicate-name", message, fix).of(format!("{at}.name")));
        }
        drawing.queue_has_a_rate(link, &at)?;
        let twin = joined[&pair(link)] > 1;
        for way in [Way::Forward, Way::Backward] {
            drawing.draw(&mut network, link, &name, way, twin, &at, files)?;
        }
    }
    network.routes = explicit(&scenario.routes, &network)?;
    Ok(network)
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Backward,
}

struct CustomNetwork {
    card_of: BTreeMap<String, usize>,
}

impl CustomNetwork {
    /// Adds one direction of a link.
    #[allow(clippy::too_many_arguments)]
    fn draw(
        &self,
        network: &mut Network,
        link: &Link,
        name: &str,
        way: Way,
        twin: bool,
        at: &str,
        files: &dyn Files,
    ) -> Result<(), Problem> {
        let (source, target, own, below) = match way {
            Way::Forward => (&link.from_, &link.to, &link.forward, format!("{at}.forward")),
            Way::Backward => (&link.to, &link.from_, &link.backward, format!("{at}.backward")),
        };
        let wire_name = if twin { format!("{name}:{source}>{target}") } else { format!("{source}>{target}") };
        let (named, field) = if own.trace.is_none() { (&link.trace, at) } else { (&own.trace, below.as_str()) };
        let traced = trace(named.as_deref(), &format!("{field}.trace"), files)?;
        let traced_bps = traced_rate(traced.as_ref());
        let transmitter = self.transmitter(network, link, own, source, &wire_name, at, &below, traced_bps)?;
        let has_card = self.card_of.contains_key(source);
        let opportunity_bytes = opportunity(link, own, transmitter.filter(|_| !has_card), at, &below)?;
        fn laid<A: Clone>(own: &Option<A>, link: &Option<A>) -> Option<A> {
            own.clone().or_else(|| link.clone())
        }
        let number = network.join(source, target, transmitter);
        let wire = &mut network.wires[number];
        *wire = Wire {
            name: wire_name,
            link: name.into(),
            delay_ns: own.delay.unwrap_or(link.delay).ns,
            loss: own.loss.clone().unwrap_or_else(|| link.loss.clone()),
            overhead_bytes: own.overhead.unwrap_or(link.overhead).bytes,
            aggregation_ns: own.aggregation.unwrap_or(link.aggregation).ns,
            opportunity_bytes,
            changes: laid(&own.changes, &link.changes).unwrap_or_default(),
            trace: traced,
            jitter: laid(&own.jitter, &link.jitter).map(|one| one.0),
            reorder: laid(&own.reorder, &link.reorder).map(|one| one.0),
            duplicate: laid(&own.duplicate, &link.duplicate).map(|one| one.0),
            corrupt: laid(&own.corrupt, &link.corrupt).map(|one| one.0),
            policer: laid(&own.policer, &link.policer),
            field: at.into(),
            ..wire.clone()
        };
        Ok(())
    }

    /// Refuses a queue of a link if no direction would use it.
    fn queue_has_a_rate(&self, link: &Link, at: &str) -> Result<(), Problem> {
        let is_used = |source: &str, own: &Direction| {
            let own_trace = own.trace.as_deref().is_some_and(|name| !name.is_empty());
            let has_rate = own.rate.is_some() || link.rate.is_some() || own_trace || link.trace.is_some();
            has_rate && !self.card_of.contains_key(source)
        };
        if link.queue.is_none() || is_used(&link.from_, &link.forward) || is_used(&link.to, &link.backward) {
            return Ok(());
        }
        let fix = match self.card_of.is_empty() {
            true => "add rate = \"50 Mbit/s\" to the link, or remove the queue",
            false => "add rate = \"50 Mbit/s\" to the link, or move the queue to the card",
        };
        let message = "a link without a rate sends at once: its queue would never fill";
        Err(Problem::new("conflict", message, fix).of(format!("{at}.queue")))
    }

    /// The transmitter of one direction: the host's card, a new one, or none.
    #[allow(clippy::too_many_arguments)]
    fn transmitter(
        &self,
        network: &mut Network,
        link: &Link,
        own: &Direction,
        source: &str,
        wire_name: &str,
        at: &str,
        below: &str,
        traced_bps: Option<u64>,
    ) -> Result<Option<usize>, Problem> {
        if let Some(card) = self.card_of.get(source) {
            let field = match () {
                () if own.queue.is_some() => format!("{below}.queue"),
                () if own.rate.is_some() => format!("{below}.rate"),
                () if link.rate.is_some() => format!("{at}.rate"),
                () => return Ok(Some(*card)),
            };
            let message =
                format!("\"{source}\" sends on its card, so this link has no separate transmitter in that direction");
            let fix = format!("set cards.{source}, or give the rate and queue to the other direction only");
            return Err(Problem::new("conflict", message, fix).of(field));
        }
        let Some(rate) = traced_bps.map(|bps| Rate { bps }).or(own.rate).or(link.rate) else {
            if own.queue.is_none() {
                return Ok(None);
            }
            let message = "a link without a rate sends at once: its queue would never fill";
            return Err(Problem::new("conflict", message, "add rate = \"50 Mbit/s\" to the link, or remove the queue")
                .of(format!("{below}.queue")));
        };
        let usual = QueueModel::USUAL;
        let queue = own.queue.as_ref().or(link.queue.as_ref()).unwrap_or(&usual);
        let field = if own.queue.is_some() { below } else { at };
        Ok(Some(network.transmit(wire_name, rate.bps, queue, &format!("{field}.queue"))))
    }
}

/// Bytes per transmit opportunity. Refuses the field if the direction has no transmitter of its `own`.
fn opportunity(
    link: &Link,
    own: &Direction,
    transmitter: Option<usize>,
    at: &str,
    below: &str,
) -> Result<u64, Problem> {
    let bytes = own.opportunity.unwrap_or(link.opportunity).bytes;
    if bytes == 0 || transmitter.is_some() {
        return Ok(bytes);
    }
    let is_links = own.opportunity.is_none() && own.rate.is_none() && link.rate.is_none();
    let field = if is_links { at } else { below };
    let message = "opportunity needs a rate, and this direction has none";
    let fix = "add rate = \"50 Mbit/s\" to the link, or remove opportunity";
    Err(Problem::new("conflict", message, fix).of(format!("{field}.opportunity")))
}

/// Reads the trace file of this name.
pub(crate) fn trace(name: Option<&str>, field: &str, files: &dyn Files) -> Result<Option<Traced>, Problem> {
    let Some(name) = name else { return Ok(None) };
    files.trace(name).map(Some).map_err(|problem| if problem.field.is_none() { problem.of(field) } else { problem })
}

/// The rate of a trace in bit/s: the mean for transmit opportunities, the first value for steps; `None` if the trace
/// has no rates.
pub(crate) fn traced_rate(traced: Option<&Traced>) -> Option<u64> {
    match traced? {
        Traced::Opportunities(trace) => {
            Some((trace.times_ms.len() as u64 * trace.bytes * 8 * 1000 / trace.period_ms).max(1))
        }
        Traced::Steps(steps) => steps.rates.first().map(|(_, bps)| (*bps).max(1)),
    }
}

fn known(network: &Network, host: &str, field: impl Fn() -> String) -> Result<(), Problem> {
    if network.host(host).is_some() {
        return Ok(());
    }
    let fix = suggestion(host, network.hosts.iter().map(String::as_str));
    Err(Problem::new("unknown-name", format!("no host is named \"{host}\""), fix).of(field()))
}
