//! What the connections of a capture share: its start, its details, its table of losses, and the bounds of memory.

use crate::details::Details;
use crate::losses::Run;
use crate::series;
use sawtooth_units::width::Fit;

/// Rows of the table of losses, at most.
pub const MOST_LOSS_ROWS: usize = 1 << 19;

/// Outstanding stretches of one direction, at most: the segments of 180 MB in flight.
pub const MOST_OUTSTANDING: usize = 1 << 17;

/// Outstanding stretches of all directions together, at most (some 30 MB), but each may have [`FEW`].
pub const ALL_OUTSTANDING: usize = 1 << 18;

/// Outstanding stretches that each direction may have.
pub const FEW: usize = 64;

#[derive(Debug, Default)]
pub struct Shared {
    /// Nanoseconds since 1970 of the first packet.
    pub start_ns: u64,
    pub losses: Vec<LossRow>,
    pub losses_left_out: u64,
    /// Rows of the connection that is being worked on, where they are wanted.
    pub details: Option<Box<Details>>,
    /// Stretches that are outstanding in all directions.
    pub outstanding: usize,
    /// Stretches that were given up because there were too many.
    pub given_up: u64,
    /// Directions that carry data.
    pub directions: usize,
    /// Intervals that each of them may have.
    pub intervals: usize,
    /// Runs that one acknowledgement ended; kept to save allocations.
    pub runs: Vec<Run>,
}

/// A row of the table `losses`.
#[derive(Clone, Copy, Debug)]
pub struct LossRow {
    pub connection: u32,
    pub direction: u8,
    pub run: Run,
}

impl Shared {
    pub fn new(start_ns: u64) -> Self {
        Shared { start_ns, intervals: series::MOST, ..Shared::default() }
    }

    /// Nanoseconds since the capture's start.
    pub fn since_start(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.start_ns)
    }

    /// The row that the current segment will have in the details.
    pub fn row(&self) -> u32 {
        self.details.as_ref().map_or(u32::MAX, |details| details.t_s.len().fit_u32())
    }

    /// Takes over the runs that ended, as rows of one direction.
    pub fn keep_runs(&mut self, connection: u32, direction: u8) {
        for run in self.runs.drain(..) {
            if self.losses.len() < MOST_LOSS_ROWS {
                self.losses.push(LossRow { connection, direction, run });
            } else {
                self.losses_left_out += 1;
            }
        }
    }
}
