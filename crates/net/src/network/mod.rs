//! Links, transmitters, queues and routes, and the packets on them. What packets say is nothing to them.

pub mod link;
pub mod loss;
pub mod packet;
pub mod packets;
mod passage;
pub mod ring;
pub mod routes;
pub mod transmitter;

use crate::network::link::Link;
use crate::network::packets::Packets;
use crate::network::routes::Routes;
use crate::network::transmitter::Transmitter;
use crate::observe::tap::Taps;
use crate::scenario::Scenario;

pub struct Network {
    pub links: Vec<Link>,
    pub transmitters: Vec<Transmitter>,
    pub packets: Packets,
    pub routes: Routes,
    pub taps: Option<Box<Taps>>,
}

impl Network {
    /// The scenario's links; packets take `routes`, and are seen by `taps`.
    pub fn new(scenario: &Scenario, routes: Routes, taps: Option<Taps>) -> Self {
        let mut links: Vec<Link> =
            scenario.links.iter().enumerate().map(|(i, link)| Link::new(link, scenario.seed, i)).collect();
        for (link, next) in links.iter_mut().zip(routes.successors(scenario.links.len())) {
            link.next = next;
        }
        Network {
            links,
            transmitters: scenario.transmitters.iter().map(Transmitter::new).collect(),
            packets: Packets::new(),
            routes,
            taps: taps.map(Box::new),
        }
    }

    /// Packets on links.
    pub fn in_transit(&self) -> usize {
        self.links.iter().map(Link::in_transit).sum()
    }
}
