//! Hosts grouped into cells, and how far a cell may run ahead of the others.
//!
//! What happens on one host reaches another only over a link, after that link's delay. So within a window as long as the
//! shortest delay between cells, each cell's events can be taken one cell after the other: the result is the same as in
//! order of time over all (conservative simulation, as Chandy and Misra 1979), and there is no common queue of events. Hosts
//! joined by much shorter links than the longest share a cell, so that the window stays long.

use crate::scenario::Scenario;
use sawtooth_units::Span;

/// Links shorter than this part of the longest do not part cells.
const SHORT: u64 = 8;
/// More hosts than this share one cell: looking at every cell would cost more than the order of time.
const CELLS_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct Cells {
    /// Of each host.
    pub of_host: Vec<u32>,
    pub count: usize,
    /// The shortest delay between two cells; nothing of one is seen in another sooner.
    pub window: Span,
}

impl Cells {
    pub fn new(scenario: &Scenario) -> Self {
        let longest = scenario.links.iter().map(|link| link.delay_ns).max().unwrap_or(0);
        let mut group: Vec<usize> = (0..scenario.hosts.len()).collect();
        let together = scenario.hosts.len() > CELLS_MAX || longest == 0;
        for link in &scenario.links {
            if together || link.delay_ns * SHORT < longest {
                let (a, b) = (group[link.from], group[link.to]);
                group.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
            }
        }
        let mut names: Vec<usize> = group.clone();
        names.sort_unstable();
        names.dedup();
        let of_host: Vec<u32> = group.iter().map(|g| names.partition_point(|name| name < g) as u32).collect();
        let between = scenario.links.iter().filter(|link| of_host[link.from] != of_host[link.to]);
        let window = between.map(|link| link.delay_ns).min().unwrap_or(u64::MAX / 4);
        Cells { count: names.len(), window: Span::from_nanos(window), of_host }
    }
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

    #[test]
    fn equal_delays_part_all_hosts() {
        let cells = cells(&[50_000, 50_000]);
        assert_eq!((cells.of_host, cells.window), (vec![0, 1, 2], Span::from_nanos(50_000)));
    }

    #[test]
    fn hosts_without_delay_between_them_share_a_cell() {
        let cells = cells(&[0, 0, 10_000_000]);
        assert_eq!((cells.of_host, cells.window), (vec![0, 0, 0, 1], Span::from_nanos(10_000_000)));
    }

    #[test]
    fn a_much_shorter_link_does_not_shorten_the_window() {
        let cells = cells(&[1_000, 10_000_000, 8_000_000]);
        assert_eq!((cells.of_host, cells.window), (vec![0, 0, 1, 2], Span::from_nanos(8_000_000)));
    }

    #[test]
    fn without_any_delay_there_is_one_cell() {
        assert_eq!(cells(&[0, 0]).count, 1);
    }
}
