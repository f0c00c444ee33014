//! A policer: drops traffic above a rate and burst size, as tc-police with `action drop`.

use crate::problem::Problem;
use crate::table::table;
use crate::units::{Rate, Size};
use sawtooth_net::scenario as net;

table! {
    /// Drops packets above a rate and a burst, without a queue (tc-police).
    Policer {
        rate: Rate, Any, Needed, "long-term rate";
        burst: Size, Between("1 byte", "1 GiB"), Needed,
            "bytes that pass at once after silence; at least one full frame";
    }
}

impl Policer {
    /// Converts to the core's form.
    pub fn compile(&self) -> net::Policer {
        net::Policer { rate_bps: self.rate.bps, burst_bytes: self.burst.bytes }
    }
}

/// Refuses a burst that is smaller than a full frame, because then no full frame would pass.
pub fn check_burst(burst: Size, frame: u64, field: &str) -> Result<(), Problem> {
    if burst.bytes >= frame {
        return Ok(());
    }
    let message = format!("a burst of \"{burst}\" lets no full frame of {frame} bytes pass");
    Err(Problem::new("out-of-range", message, format!("choose at least \"{frame} bytes\"")).of(field))
}
