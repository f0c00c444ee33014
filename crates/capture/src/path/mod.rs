//! The path behind a captured transfer: rate from trains of deliveries, queue from delays at losses, random loss
//! separated from congestion. `sawtooth whatif` and the laboratory's page use this one estimate.

mod aggregation;
mod causes;
mod directions;
mod estimate;
mod loss_runs;
mod poisson;
mod quantities;
mod rate;
mod rtt_samples;
mod statistics;
#[cfg(test)]
mod tests;
mod trace;
mod transfer;

use serde::Serialize;

pub use directions::Rows;
pub use estimate::{Bound, Estimated};
pub use poisson::poisson_interval;
pub use quantities::{beyond_host, host_limit};
pub use transfer::{Facts, Transfer, check_transfer};

use causes::Causes;
use trace::Trace;

/// Why there is no estimate: an error code, what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    pub code: &'static str,
    pub message: String,
    pub fix: &'static str,
}

impl Refused {
    fn new(code: &'static str, message: impl Into<String>, fix: &'static str) -> Self {
        Refused { code, message: message.into(), fix }
    }
}

/// The estimated path and the limits of the hosts.
///
/// `rate` is in bit/s of Ethernet frames as Linux counts them, `rtt` (propagation only) in s, `queue` in packets,
/// `loss` and `ack_loss` are shares. `burst` is the mean length of a loss burst in packets, `burst_loss` the share of
/// its packets that is lost. `window` is the data in bytes that the receiver allows in flight, if that was a limit.
/// `open_loss`: it is unknown which part of the losses is random.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    pub rate: Estimated,
    pub rtt: Estimated,
    pub queue: Estimated,
    pub loss: Estimated,
    pub burst: Estimated,
    pub ack_loss: Estimated,
    pub burst_loss: f64,
    pub delayed_ack: bool,
    pub delayed_ack_how: String,
    pub window: Option<Estimated>,
    pub open_loss: bool,
    pub cannot_tell: Vec<String>,
}

/// One captured transfer, and the path behind it or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathEstimate {
    #[serde(rename = "seen")]
    pub transfer: Transfer,
    pub path: Result<Path, Refused>,
}

const BULK: &str = "capture a bulk transfer over TCP, at either end or between them";

/// The transfer in the direction with more data of a connection whose every segment is in `rows`.
pub fn estimate_path(facts: &Facts, rows: &Rows<'_>) -> Result<PathEstimate, Refused> {
    let nothing = |message: &str| Refused::new("not-a-measurement", message, BULK);
    let (direction, flow) =
        facts.main_direction().ok_or_else(|| nothing("no TCP connection in this capture carries data"))?;
    let (data, acks) = directions::split(rows, direction);
    transfer::check_acknowledgements(&acks)?;
    let first = rtt_samples::FirstCopies::of(&data);
    let trips = rtt_samples::round_trips(&first, &acks).1;
    let back = rtt_samples::echoes(&data, &acks);
    let shortest = rtt_samples::shortest_of_full(&first, &acks, flow.mss);
    let transfer = Transfer::of(facts, (direction, flow), &data, [&trips, &back], shortest);
    if transfer.min_rtt_s().is_none() {
        return Err(nothing("this capture shows no round trip: neither the handshake nor data that is acknowledged"));
    }
    let trace = if facts.sender_side(direction, &trips, &back) {
        Trace::at_sender(&data, &acks, transfer.mss, facts.beyond_s(direction).unwrap_or(f64::INFINITY))
    } else {
        Trace::at_receiver(&data, &acks, transfer.mss)
    };
    let lasted = (Some(transfer.duration_s), Some(transfer.segments));
    let path = check_transfer(lasted.0, lasted.1, transfer.rtt_min_s, transfer.rtt_mean_s, transfer.application)
        .and_then(|()| {
            estimate_quantities(&transfer, trace).ok_or_else(|| nothing("this capture shows no round trip"))
        });
    Ok(PathEstimate { transfer, path })
}

/// Estimates each quantity from the segments; None without a round trip.
fn estimate_quantities(transfer: &Transfer, mut trace: Trace) -> Option<Path> {
    let least_s = transfer.min_rtt_s()?;
    let groups = aggregation::group_deliveries(&trace);
    let gathers = groups.is_some();
    trace.delivered = groups.unwrap_or(trace.delivered);
    let rate = rate::bottleneck(&trace, transfer, least_s, gathers)
        .above(transfer.frame_goodput_bps() * transfer.until_acknowledged());
    let rtt = quantities::base_rtt(transfer, &rate)?;
    // The round trip of a SYN lacks the time to send the rest of a full frame.
    trace.floor_s += (transfer.frame_bytes() - quantities::SYN_BYTES) * 8.0 / rate.value;
    let frame_s = transfer.frame_bytes() * 8.0 / rate.value;
    let trip_s = transfer.rtt_mean_s.unwrap_or(least_s);
    let mut causes = Causes::of(&trace, frame_s, trip_s, transfer.frame_goodput_bps() / rate.value);
    if gathers {
        causes = causes.by_load(&trace, frame_s, least_s);
    }
    let causes = causes.by_time(&trace, trip_s);
    let (delayed_ack, delayed_ack_how) = quantities::delayed_acks(&trace);
    let mut cannot_tell: Vec<String> =
        beyond_host(transfer.receive_window, "receive window", "receiver").into_iter().collect();
    if rate.bound != Bound::None {
        let open = "the bottleneck's rate: it was never full, so its rate and BBR's goodput are lower bounds";
        cannot_tell.push(open.to_owned());
    }
    if !causes.known {
        let open = "which losses are random and which are drops of a full queue: this capture point shows no delays";
        cannot_tell.push(open.to_owned());
    }
    Some(Path {
        queue: quantities::queue_limit(&causes, &rate, &rtt, transfer),
        loss: quantities::random_loss(&causes),
        burst: quantities::runs(&causes, &trace),
        ack_loss: quantities::ack_loss(&trace),
        burst_loss: quantities::burst_loss(&causes),
        delayed_ack,
        delayed_ack_how,
        window: transfer
            .window()
            .and_then(|bytes| quantities::host_limit(bytes, transfer.receive_window, "the largest receive window; it")),
        open_loss: !causes.known && !trace.lost.t_s.is_empty(),
        cannot_tell,
        rate,
        rtt,
    })
}
