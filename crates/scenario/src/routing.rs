//! Finds the route of a packet: the explicit one if there is one, otherwise that with the fewest hops.
//!
//! If several routes have the same number of hops, they are compared at the first link that differs: the link that
//! comes first in the file wins. So a scenario has only one meaning.

use crate::network::Network;
use crate::parts::Route;
use crate::problem::Problem;
use crate::words::suggestion;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// IP's TTL is an eight-bit number.
const MOST_HOPS: usize = 255;

/// Finds routes in one network and keeps them.
pub struct Router<'a> {
    network: &'a Network,
    found: BTreeMap<(usize, usize), Vec<usize>>,
    leaving: Vec<Vec<usize>>,
    tree: Option<Tree>,
}

impl<'a> Router<'a> {
    pub fn new(network: &'a Network) -> Router<'a> {
        let mut leaving = vec![Vec::new(); network.hosts.len()];
        for (index, wire) in network.wires.iter().enumerate() {
            leaving[wire.source].push(index);
        }
        Router { network, found: BTreeMap::new(), leaving, tree: None }
    }

    /// The wires from one host to another. Codes, at `field`: route-loop if both are the same host, no-route if there
    /// is no route of at most 255 hops.
    pub fn way(&mut self, source: usize, target: usize, field: &str) -> Result<Vec<usize>, Problem> {
        if source == target {
            let message = format!("\"{}\" cannot send to itself", self.network.hosts[source]);
            return Err(Problem::new("route-loop", message, "choose two different hosts").of(field));
        }
        if let Some(way) = self.network.routes.get(&(source, target)) {
            return Ok(way.clone());
        }
        if let Some(way) = self.found.get(&(source, target)) {
            return Ok(way.clone());
        }
        let way = self.fewest_hops(source, target, field)?;
        self.found.insert((source, target), way.clone());
        Ok(way)
    }

    fn fewest_hops(&mut self, source: usize, target: usize, field: &str) -> Result<Vec<usize>, Problem> {
        let mut way: Vec<usize> = Vec::new();
        let mut here = source;
        // A host with only one neighbour always sends to it. Skipping such hosts lets many flows share one search.
        while here != target && way.len() < MOST_HOPS {
            let Some(only) = self.only_way(here, way.last().copied()) else { break };
            way.push(only);
            here = self.network.wires[only].target;
        }
        if here != target {
            let tree = match self.tree.take() {
                Some(tree) if tree.root == here => tree,
                _ => Tree::new(here, self.network.hosts.len()),
            };
            let tree = self.tree.insert(tree);
            let Some(rest) = tree.way(target, self.network, &self.leaving) else {
                let hosts = &self.network.hosts;
                let message = format!("there is no route from \"{}\" to \"{}\"", hosts[source], hosts[target]);
                let fix = format!("add a link: from = \"{}\", to = \"{}\"", hosts[source], hosts[target]);
                return Err(Problem::new("no-route", message, fix).of(field));
            };
            way.extend(rest);
        }
        is_survived(&way, &self.network.hosts[source], &self.network.hosts[target], field)?;
        Ok(way)
    }

    /// The only wire by which a route can leave a host, apart from the one back to where it came from.
    fn only_way(&self, host: usize, back: Option<usize>) -> Option<usize> {
        let wires = &self.network.wires;
        let came_from = back.map(|wire| wires[wire].source);
        let mut first: Option<usize> = None;
        for &index in &self.leaving[host] {
            if Some(wires[index].target) == came_from {
                continue;
            }
            if first.is_some_and(|first| wires[index].target != wires[first].target) {
                return None;
            }
            first = first.or(Some(index));
        }
        first
    }
}

/// Shortest routes from one host, computed only as far as needed.
struct Tree {
    root: usize,
    /// For each host: whether it was reached, and by which wire.
    came_by: Vec<Option<Option<usize>>>,
    waiting: VecDeque<usize>,
}

impl Tree {
    fn new(root: usize, hosts: usize) -> Tree {
        let mut came_by = vec![None; hosts];
        came_by[root] = Some(None);
        Tree { root, came_by, waiting: VecDeque::from([root]) }
    }

    /// The route to `target`; `None` if there is none.
    fn way(&mut self, target: usize, network: &Network, leaving: &[Vec<usize>]) -> Option<Vec<usize>> {
        while self.came_by[target].is_none() {
            let here = self.waiting.pop_front()?;
            for &index in &leaving[here] {
                let reached = network.wires[index].target;
                if self.came_by[reached].is_none() {
                    self.came_by[reached] = Some(Some(index));
                    self.waiting.push_back(reached);
                }
            }
        }
        let mut way = Vec::new();
        let mut step = self.came_by[target]?;
        while let Some(index) = step {
            way.push(index);
            step = self.came_by[network.wires[index].source]?;
        }
        way.reverse();
        Some(way)
    }
}

fn is_survived(way: &[usize], source: &str, target: &str, field: &str) -> Result<(), Problem> {
    if way.len() <= MOST_HOPS {
        return Ok(());
    }
    let message = format!(
        "the way from \"{source}\" to \"{target}\" has more than {MOST_HOPS} hops, and no packet survives that many"
    );
    Err(Problem::new("no-route", message, "join them by fewer links").of(field))
}

/// Wires of each [[routes]] table, by its ends. Codes: unknown-name (host or link), no-route (a step without a link),
/// route-loop (a host passed twice), conflict (two routes for the same ends).
pub(crate) fn explicit(routes: &[Route], network: &Network) -> Result<BTreeMap<(usize, usize), Vec<usize>>, Problem> {
    let mut found = BTreeMap::new();
    let steps = Steps::new(network);
    for (number, route) in routes.iter().enumerate() {
        let at = format!("routes.{number}");
        let source = steps.host(&route.from_, &format!("{at}.from"))?;
        let target = steps.host(&route.to, &format!("{at}.to"))?;
        if source == target {
            let message = format!("a route from \"{0}\" to itself", route.to);
            return Err(Problem::new("route-loop", message, "choose two different hosts").of(format!("{at}.to")));
        }
        if found.contains_key(&(source, target)) {
            let message = format!("there is already a route from \"{}\" to \"{}\"", route.from_, route.to);
            return Err(Problem::new("conflict", message, "remove this route or the other").of(at));
        }
        found.insert((source, target), steps.follow(route, source, &at)?);
    }
    Ok(found)
}

/// Wires by the name of the host or link that a step gives. If several match, the first in the file.
struct Steps<'a> {
    network: &'a Network,
    by_link: BTreeMap<(usize, &'a str), usize>,
    by_target: BTreeMap<(usize, usize), usize>,
    reached: BTreeSet<(&'a str, usize)>,
}

impl<'a> Steps<'a> {
    fn new(network: &'a Network) -> Steps<'a> {
        let (mut by_link, mut by_target) = (BTreeMap::new(), BTreeMap::new());
        let mut reached = BTreeSet::new();
        for (index, wire) in network.wires.iter().enumerate() {
            by_link.entry((wire.source, wire.link.as_str())).or_insert(index);
            by_target.entry((wire.source, wire.target)).or_insert(index);
            reached.insert((wire.link.as_str(), wire.target));
        }
        Steps { network, by_link, by_target, reached }
    }

    fn follow(&self, route: &Route, source: usize, at: &str) -> Result<Vec<usize>, Problem> {
        let hosts = &self.network.hosts;
        let target = self.network.host(&route.to).expect("it is known");
        let (mut here, mut passed, mut way) = (source, vec![source], Vec::new());
        let mut steps: Vec<&str> = route.via.iter().map(String::as_str).collect();
        let last_link = steps.last().and_then(|step| step.strip_prefix("link:"));
        if last_link.is_none_or(|link| !self.reached.contains(&(link, target))) {
            steps.push(&route.to);
        }
        for step in steps {
            let index = self.step(here, step, at)?;
            here = self.network.wires[index].target;
            if passed.contains(&here) {
                let all: Vec<&str> = passed.iter().chain([&here]).map(|host| hosts[*host].as_str()).collect();
                let message = format!("the route passes \"{}\" twice: {}", hosts[here], all.join(" → "));
                let fix = format!("name \"{}\" once", hosts[here]);
                return Err(Problem::new("route-loop", message, fix).of(format!("{at}.via")));
            }
            passed.push(here);
            way.push(index);
        }
        is_survived(&way, &route.from_, &route.to, &format!("{at}.via"))?;
        Ok(way)
    }

    fn host(&self, host: &str, field: &str) -> Result<usize, Problem> {
        self.network.host(host).ok_or_else(|| {
            let fix = suggestion(host, self.network.hosts.iter().map(String::as_str));
            Problem::new("unknown-name", format!("no host is named \"{host}\""), fix).of(field)
        })
    }

    /// The wire from `here` that `step` names: a host, or `link:NAME`.
    fn step(&self, here: usize, step: &str, at: &str) -> Result<usize, Problem> {
        let field = format!("{at}.via");
        let (wires, name) = (&self.network.wires, &self.network.hosts[here]);
        let leaving = || wires.iter().filter(|wire| wire.source == here);
        let listed = |names: Vec<&str>| if names.is_empty() { "none".into() } else { names.join(", ") };
        if let Some(link) = step.strip_prefix("link:") {
            let mut links: Vec<&str> = Vec::new();
            wires.iter().for_each(|wire| {
                if links.last() != Some(&wire.link.as_str()) {
                    links.push(&wire.link);
                }
            });
            if !links.contains(&link) {
                let fix = suggestion(link, links);
                return Err(Problem::new("unknown-name", format!("no link is named \"{link}\""), fix).of(field));
            }
            return self.by_link.get(&(here, link)).copied().ok_or_else(|| {
                let fix = format!(
                    "choose a link that leaves it, as link:NAME: {}",
                    listed(leaving().map(|wire| wire.link.as_str()).collect())
                );
                Problem::new("no-route", format!("link \"{link}\" does not leave \"{name}\""), fix).of(field)
            });
        }
        let target = self.host(step, &field)?;
        self.by_target.get(&(here, target)).copied().ok_or_else(|| {
            let joined = leaving().map(|wire| self.network.hosts[wire.target].as_str()).collect();
            let fix = format!("name every host on the way; \"{name}\" is joined to: {}", listed(joined));
            Problem::new("no-route", format!("no link joins \"{name}\" and \"{step}\""), fix).of(field)
        })
    }
}
