//! When transmitters that hold packets may release the next one. Each packet changes such a time, and a cell has few of
//! them. So they are checked one by one, separately from the hosts' many timers.

use sawtooth_units::Time;

#[derive(Clone, Debug)]
pub struct Departures {
    /// For each transmitter: its cell, and its time.
    homes: Vec<u32>,
    due: Vec<Time>,
    cells: Vec<Cell>,
}

#[derive(Clone, Debug)]
struct Cell {
    /// Transmitters that hold packets, in order.
    transmitters: Vec<u32>,
    next: Time,
}

impl Departures {
    /// For transmitters in the cells `homes`, of `cells` in total; `holds` says which ones hold packets.
    pub fn new(cells: usize, homes: Vec<u32>, holds: impl Iterator<Item = bool>) -> Self {
        let mut found = vec![Cell { transmitters: Vec::new(), next: Time::NEVER }; cells];
        for ((transmitter, &home), _) in (0..).zip(&homes).zip(holds).filter(|(_, holds)| *holds) {
            found[home as usize].transmitters.push(transmitter);
        }
        Departures { due: vec![Time::NEVER; homes.len()], homes, cells: found }
    }

    /// Returns the transmitter's cell.
    #[inline]
    pub fn set(&mut self, transmitter: u32, due: Time) -> u32 {
        let before = std::mem::replace(&mut self.due[transmitter as usize], due);
        let home = self.homes[transmitter as usize];
        let cell = &mut self.cells[home as usize];
        if due <= cell.next {
            cell.next = due;
        } else if before == cell.next {
            cell.look(&self.due);
        }
        home
    }

    /// When the first departure in `cell` is.
    #[inline]
    pub fn next_due(&self, cell: u32) -> Time {
        self.cells[cell as usize].next
    }

    /// Takes the first in `cell`; among several at one time, the one with the lowest index.
    #[inline]
    pub fn pop(&mut self, cell: u32) -> Option<u32> {
        let cell = &mut self.cells[cell as usize];
        let first = cell.transmitters.iter().copied().find(|&one| self.due[one as usize] == cell.next)?;
        self.due[first as usize] = Time::NEVER;
        cell.look(&self.due);
        Some(first)
    }
}

impl Cell {
    fn look(&mut self, due: &[Time]) {
        self.next = self.transmitters.iter().map(|&one| due[one as usize]).min().unwrap_or(Time::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn departures_are_ordered_by_time_then_index() {
        let mut departures = Departures::new(2, vec![0, 1, 0, 0], [true, true, false, true].into_iter());
        for (transmitter, nanos) in [(3, 20), (0, 20), (1, 10)] {
            departures.set(transmitter, t(nanos));
        }
        assert_eq!([0, 1].map(|cell| departures.next_due(cell)), [t(20), t(10)]);
        assert_eq!([departures.pop(0), departures.pop(0)], [Some(0), Some(3)]);
        assert_eq!([0, 1].map(|cell| departures.next_due(cell)), [Time::NEVER, t(10)]);
    }

    #[test]
    fn rescheduled_departure_moves_either_way() {
        let mut departures = Departures::new(1, vec![0, 0], [true, true].into_iter());
        departures.set(0, t(10));
        departures.set(1, t(20));
        departures.set(0, t(30));
        assert_eq!(departures.next_due(0), t(20));
        departures.set(0, t(5));
        assert_eq!((departures.next_due(0), departures.pop(0)), (t(5), Some(0)));
    }
}
