//! Links, transmitters, queues and routes, and the packets on them. The content of packets does not matter here.

pub mod bucket;
pub mod forwarding;
pub mod held;
pub mod link;
pub mod loss;
pub mod overlimits;
pub mod packets;
pub mod policer;
pub mod queue;
pub mod rate_schedule;
pub mod routes;
pub mod slice_queue;
pub mod transmitter;
pub mod variation;

use crate::network::held::Left;
use crate::network::link::{Link, WayIn};
use crate::network::packets::Packets;
use crate::network::queue::Place;
use crate::network::routes::Routes;
use crate::network::transmitter::Transmitter;
use crate::network::variation::Special;
use crate::observe::tap::Taps;
use crate::rng::{Purpose, Rng};
use crate::scenario::{self, Scenario};
use sawtooth_units::Span;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

pub struct Network {
    pub links: Vec<Link>,
    pub transmitters: Vec<Transmitter>,
    pub packets: Packets,
    pub routes: Routes,
    pub taps: Option<Box<Taps>>,
    /// Packets dropped by transmitters that hold packets, whose hosts have not learned of it yet.
    pub left: VecDeque<Left>,
}

impl Network {
    /// The scenario's links; packets take `routes` and are seen by `taps`.
    pub fn new(scenario: &Scenario, routes: Routes, taps: Option<Taps>) -> Self {
        let mut links: Vec<Link> =
            scenario.links.iter().enumerate().map(|(i, link)| Link::new(link, scenario.seed, i)).collect();
        for (link, next) in links.iter_mut().zip(routes.successors(scenario.links.len())) {
            link.next = next;
        }
        let (hosts, frame) = (transmitter_hosts(scenario), scenario.largest_frame());
        let ends = if scenario.isolates() { routes.ends(&scenario.links) } else { Arc::default() };
        let ways = scenario.flows.iter().flat_map(|flow| [&flow.forward, &flow.backward]);
        let firsts: BTreeSet<_> = ways.map(|way| scenario.links[way[0]].transmitter).collect();
        let transmitter = |(index, config): (usize, &scenario::Transmitter)| {
            // Without hosts nothing is sent.
            let hz = scenario.hosts.get(hosts[index]).map_or(1_000, |host| host.hz);
            let rng = Rng::new(scenario.seed, Purpose::Queue, index as u64);
            let sends = firsts.contains(&Some(index));
            let place = Place { frame, hz, sends, rng, ends: Arc::clone(&ends) };
            Transmitter::new(config, place, scenario.queue_delays)
        };
        let transmitters: Vec<_> = scenario.transmitters.iter().enumerate().map(transmitter).collect();
        for flow in &scenario.flows {
            if let Some(&link) = scenario.whole(flow).last() {
                links[link].special.get_or_insert_with(Box::<Special>::default).cuts = true;
            }
        }
        for link in &mut links {
            link.way_in = match link.transmitter {
                _ if link.special.is_some() => WayIn::Other,
                Some(index) if transmitters[index as usize].is_steady() => WayIn::Steady(index),
                Some(index) if transmitters[index as usize].holds() => WayIn::Held(index),
                None if link.delay > Span::ZERO => WayIn::Open,
                _ => WayIn::Other,
            };
        }
        Network {
            links,
            transmitters,
            packets: Packets::new(),
            routes,
            taps: taps.map(Box::new),
            left: VecDeque::new(),
        }
    }

    /// Packets on links, and held before them.
    pub fn in_transit(&self) -> usize {
        let held = self.transmitters.iter().map(Transmitter::holding);
        self.links.iter().map(Link::in_transit).chain(held).sum()
    }
}

/// The host of each transmitter; the first host for one that no link uses.
pub fn transmitter_hosts(scenario: &Scenario) -> Vec<usize> {
    let mut hosts = vec![0; scenario.transmitters.len()];
    for link in &scenario.links {
        link.transmitter.into_iter().for_each(|transmitter| hosts[transmitter] = link.from);
    }
    hosts
}
