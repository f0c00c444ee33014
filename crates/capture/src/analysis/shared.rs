//! State shared by a capture's connections: its start, its details, its table of losses, and the memory bounds.

use crate::analysis::losses::Run;
use crate::analysis::series;
use crate::output::details::Details;
use sawtooth_units::width::Fit;

/// Most rows of the table of losses.
pub const MOST_LOSS_ROWS: usize = 1 << 19;

/// Most outstanding ranges of one direction: the segments of 180 MB in flight.
pub const MOST_OUTSTANDING: usize = 1 << 17;

/// Most outstanding ranges of all directions together (about 30 MB), but each may have [`FEW`].
pub const ALL_OUTSTANDING: usize = 1 << 18;

/// Outstanding ranges that each direction may always have.
pub const FEW: usize = 64;

#[derive(Debug, Default)]
pub struct Shared {
    /// Time of the first packet, in nanoseconds since 1970.
    pub start_ns: u64,
    pub losses: Vec<LossRow>,
    pub losses_left_out: u64,
    /// Rows of the connection being processed, if they are kept.
    pub details: Option<Box<Details>>,
    /// Outstanding ranges in all directions.
    pub outstanding: usize,
    /// Ranges that were dropped because there were too many.
    pub given_up: u64,
    /// Directions that carry data.
    pub directions: usize,
    /// Intervals that each direction may have.
    pub intervals: usize,
    /// Runs that one acknowledgement ended; kept to avoid allocations.
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

    /// Adds the runs that ended as rows of one direction.
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
