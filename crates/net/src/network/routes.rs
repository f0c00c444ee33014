//! Routes as one flat list of links: a packet carries only its place in it.

use crate::scenario;
use sawtooth_units::width::Fit;
use std::sync::Arc;

/// No further link: the packet has arrived.
pub const END: u32 = u32::MAX;
/// Not all packets on the link continue alike: each one's route decides.
pub const MIXED: u32 = u32::MAX - 1;

#[derive(Clone, Debug, Default)]
pub struct Routes {
    links: Vec<u32>,
}

impl Routes {
    /// Adds a route; returns the place where it begins.
    pub fn add(&mut self, route: &[usize]) -> u32 {
        let start = self.links.len().fit_u32();
        self.links.extend(route.iter().map(|&link| link.fit_u32()));
        self.links.push(END);
        start
    }

    /// The link at a place, or [`END`].
    pub fn link(&self, at: u32) -> u32 {
        self.links[at as usize]
    }

    /// Where packets continue after each of `links` links: a link, [`END`] or [`MIXED`].
    pub fn successors(&self, links: usize) -> Vec<u32> {
        let mut successors = vec![None; links];
        for pair in self.links.windows(2).filter(|pair| pair[0] != END) {
            let known = &mut successors[pair[0] as usize];
            *known = Some(if known.is_none_or(|link| link == pair[1]) { pair[1] } else { MIXED });
        }
        successors.into_iter().map(|link| link.unwrap_or(END)).collect()
    }

    /// For each place, the hosts where its route begins and ends.
    pub fn ends(&self, links: &[scenario::Link]) -> Arc<[[u32; 2]]> {
        let hosts = |route: &[u32]| {
            let way = &route[..route.len() - 1];
            let ends =
                [way.first().map(|&link| links[link as usize].from), way.last().map(|&link| links[link as usize].to)];
            vec![ends.map(|host| host.map_or(0, Fit::fit_u32)); route.len()]
        };
        self.links.split_inclusive(|&link| link == END).flat_map(hosts).collect()
    }

    /// The place after `link` for a packet last known at place `at`, which is `link`'s or an earlier one. It must be
    /// known only where links are [`MIXED`], and there it always is: the two passes over a link that a route uses twice
    /// are not confused.
    #[expect(
        clippy::expect_used,
        reason = "a packet that comes over a link has it on its route, or the simulation is wrong"
    )]
    pub fn after(&self, at: u32, link: u32) -> u32 {
        let ahead = self.links[at as usize..].iter().position(|&l| l == link).expect("the packet is on its route");
        at + ahead.fit_u32() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_route_decides_at_branches_and_ends() {
        let mut routes = Routes::default();
        routes.add(&[0, 1, 2]);
        let other = routes.add(&[0, 1, 3]);
        routes.add(&[4, 0]);
        assert_eq!(routes.successors(6), [MIXED, MIXED, END, END, 0, END]);
        assert_eq!(routes.after(other, 1), other + 2);
        assert_eq!(routes.link(other + 2), 3);
    }

    #[test]
    fn route_positions_match_link_hosts() {
        let link = |from: usize, to: usize| {
            let json = format!(
                r#"{{"name": "", "from": {from}, "to": {to}, "transmitter": null, "delay_ns": 0, "loss_ppb": 0,
                "loss_pattern": null, "overhead_bytes": 0}}"#
            );
            serde_json::from_str(&json).unwrap()
        };
        let links: [scenario::Link; 3] = [link(4, 5), link(5, 6), link(6, 4)];
        let mut routes = Routes::default();
        routes.add(&[0, 1]);
        routes.add(&[2]);
        assert_eq!(*routes.ends(&links), [[4, 6], [4, 6], [4, 6], [6, 4], [6, 4]]);
    }

    #[test]
    fn a_link_taken_twice_is_followed_in_order() {
        let mut routes = Routes::default();
        let start = routes.add(&[0, 1, 2, 0, 3]);
        assert_eq!(routes.successors(4), [MIXED, 2, 0, END]);
        let once = routes.after(start, 0);
        assert_eq!(routes.link(once), 1);
        assert_eq!(routes.link(routes.after(once, 0)), 3);
    }
}
