//! Groups hosts into cells, and determines how far a cell may run ahead of the others.
//!
//! An event on one host reaches another only over a link, after that link's delay. So a cell's events can be processed,
//! one cell after the other, as long as nothing can still arrive before them. The result is the same as in global time
//! order (conservative simulation, as Chandy and Misra 1979), without a common event queue. Hosts joined by links much
//! shorter than the longest share a cell, so that cells can run far at a time.

use crate::scenario::{self, Scenario};
use sawtooth_units::Span;
use sawtooth_units::width::Fit;

/// Links shorter than this fraction of the longest do not separate cells.
const SHORT: u64 = 8;
/// More hosts than this share one cell: checking every cell would cost more than global order.
const CELLS_MAX: usize = 64;

/// Checking up to this many links in turn is faster than a heap.
const TRANSIT_LINKS_MAX: usize = 4;

/// Links into a cell that are checked individually, at most.
const INLETS_MAX: usize = 4;

#[derive(Clone, Debug)]
pub struct Cells {
    /// The cell of each host.
    pub of_host: Vec<u32>,
    pub count: usize,
    /// The inlets of each cell.
    pub inlets: Vec<Vec<Inlet>>,
    /// How packets pass through each cell.
    pub crossings: Vec<Crossing>,
}

/// How packets pass through a cell in which none begins or ends its way.
#[derive(Clone, Debug)]
pub struct Crossing {
    /// The links into it; empty for all other cells.
    pub inputs: Vec<u32>,
    /// Whether a link begins and ends in the cell.
    pub inner: bool,
}

/// A link by which packets come into a cell: what another cell has not done yet arrives at the earliest after its
/// delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlet {
    pub from: u32,
    pub delay: Span,
    /// A transmitter for which packets must also wait, if known.
    pub transmitter: Option<u32>,
}

impl Cells {
    pub fn new(scenario: &Scenario) -> Self {
        let longest = scenario.links.iter().map(scenario::Link::least_delay_ns).max().unwrap_or(0);
        let mut group: Vec<usize> = (0..scenario.hosts.len()).collect();
        let together = scenario.hosts.len() > CELLS_MAX || longest == 0;
        for link in &scenario.links {
            if together || link.least_delay_ns().saturating_mul(SHORT) < longest {
                let (a, b) = (group[link.from], group[link.to]);
                group.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
            }
        }
        let mut names: Vec<usize> = group.clone();
        names.sort_unstable();
        names.dedup();
        let of_host: Vec<u32> = group.iter().map(|g| names.partition_point(|name| name < g).fit_u32()).collect();
        let count = names.len();
        let inputs = transit_inputs(scenario, &of_host, count).into_iter();
        let crossings = inputs.map(|inputs| Crossing { inputs, inner: false }).collect();
        let mut cells = Cells { count, inlets: vec![Vec::new(); count], crossings, of_host };
        for link in &scenario.links {
            let (from, to) = (cells.of_host[link.from], cells.of_host[link.to]);
            if from != to {
                let transmitter = link.transmitter.map(|t| t.fit_u32());
                let inlet = Inlet { from, delay: Span::from_nanos(link.least_delay_ns()), transmitter };
                cells.inlets[to as usize].push(inlet);
            } else {
                cells.crossings[to as usize].inner = true;
            }
        }
        cells.inlets.iter_mut().filter(|inlets| inlets.len() > INLETS_MAX).for_each(one_a_cell);
        cells
    }

    /// Packets through the cell of `host` are processed in order with everything else.
    pub fn take_one_by_one(&mut self, host: usize) {
        self.crossings[self.of_host[host] as usize].inputs.clear();
    }
}

/// For each cell without an end of a flow or probe and with few incoming links: those links in order.
fn transit_inputs(scenario: &Scenario, of_host: &[u32], cells: usize) -> Vec<Vec<u32>> {
    let mut inputs = vec![Vec::new(); cells];
    for (index, link) in scenario.links.iter().enumerate() {
        inputs[of_host[link.to] as usize].push(index.fit_u32());
    }
    let routes = scenario.flows.iter().map(|f| (&f.forward, &f.backward));
    let routes = routes.chain(scenario.probes.iter().map(|p| (&p.forward, &p.backward)));
    for (forward, backward) in routes {
        for route in [forward, backward] {
            inputs[of_host[scenario.links[route[0]].from] as usize].clear();
        }
    }
    inputs.into_iter().map(|links| if links.len() > TRANSIT_LINKS_MAX { Vec::new() } else { links }).collect()
}

/// Keeps only the shortest inlet from each other cell.
fn one_a_cell(inlets: &mut Vec<Inlet>) {
    inlets.sort_by_key(|inlet| (inlet.from, inlet.delay));
    inlets.dedup_by_key(|inlet| inlet.from);
    inlets.iter_mut().for_each(|inlet| inlet.transmitter = None);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(delays: &[u64]) -> Cells {
        let host = r#"{"name": "h", "hz": 250, "mss": 1448, "initial_window": 10, "receive_buffer": 65536,
            "send_buffer": 65536, "delayed_ack": true, "sack": true, "timestamps": true, "offload": false}"#;
        let hosts = vec![host; delays.len() + 1].join(",");
        let links: Vec<String> = delays
            .iter()
            .enumerate()
            .map(|(i, delay)| {
                format!(
                    r#"{{"name": "l", "from": {i}, "to": {}, "transmitter": null, "delay_ns": {delay}, "loss_ppb": 0,
                    "overhead_bytes": 0}}"#,
                    i + 1
                )
            })
            .collect();
        let json = format!(
            r#"{{"duration_ns": 1, "interval_ns": 1000000, "seed": 1, "hosts": [{hosts}], "transmitters": [],
            "links": [{}], "flows": []}}"#,
            links.join(",")
        );
        Cells::new(&Scenario::parse(&json).unwrap())
    }

    fn delays(cells: &Cells) -> Vec<Vec<(u32, u64)>> {
        let inlets = cells.inlets.iter().map(|inlets| inlets.iter().map(|i| (i.from, i.delay.nanos())).collect());
        inlets.collect()
    }

    #[test]
    fn equal_delays_separate_all_hosts() {
        let cells = cells(&[50_000, 50_000]);
        assert_eq!(delays(&cells), [vec![], vec![(0, 50_000)], vec![(1, 50_000)]]);
        assert_eq!(cells.of_host, [0, 1, 2]);
    }

    #[test]
    fn hosts_without_delay_between_them_share_a_cell() {
        let cells = cells(&[0, 0, 10_000_000]);
        assert_eq!(delays(&cells), [vec![], vec![(0, 10_000_000)]]);
        assert_eq!(cells.of_host, [0, 0, 0, 1]);
    }

    #[test]
    fn much_shorter_link_does_not_split_cells() {
        let cells = cells(&[1_000, 10_000_000, 8_000_000]);
        assert_eq!(delays(&cells), [vec![], vec![(0, 10_000_000)], vec![(1, 8_000_000)]]);
        assert_eq!(cells.of_host, [0, 0, 1, 2]);
    }

    #[test]
    fn without_any_delay_there_is_one_cell() {
        assert_eq!(cells(&[0, 0]).count, 1);
    }

    #[test]
    fn shortest_link_between_cells_counts() {
        let inlet = |from, nanos, transmitter| Inlet { from, delay: Span::from_nanos(nanos), transmitter };
        let mut inlets = vec![inlet(1, 9, Some(0)), inlet(0, 7, Some(1)), inlet(1, 8, None), inlet(0, 9, None)];
        one_a_cell(&mut inlets);
        assert_eq!(inlets, [inlet(0, 7, None), inlet(1, 8, None)]);
    }
}
