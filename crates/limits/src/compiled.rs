//! What a compiled scenario says about flows and their paths.

use sawtooth_net::frames::{HEADERS, TIMESTAMP_OPTION};
use sawtooth_net::scenario::{Discipline, Flow, RateSchedule, Scenario, Traffic, Transmitter, Writes};
use sawtooth_tcp::cc::Record;

/// Parses the JSON of a compiled scenario. A congestion control may be a module's label.
pub fn parse(json: &str) -> Result<Scenario, String> {
    let found: Scenario = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let links = found.links.len();
    let whole =
        found.links.iter().all(|link| {
            link.from < found.hosts.len() && link.transmitter.is_none_or(|one| one < found.transmitters.len())
        }) && found.flows.iter().all(|flow| {
            !flow.forward.is_empty() && flow.forward.iter().chain(&flow.backward).all(|&link| link < links)
        });
    if whole { Ok(found) } else { Err("an index points to nothing".to_owned()) }
}

/// The average rate that the flow's applications offer, in bit/s.
pub fn offered_bps(flow: &Flow) -> f64 {
    let writes = match flow.traffic {
        Traffic::Written { writes: Writes::Paced(writes), .. } => Some(writes),
        Traffic::Read { writes, .. } => writes,
        _ => None,
    };
    writes.map_or(f64::INFINITY, |writes| {
        let share = writes.on_off_ns.map_or(1.0, |[on, off]| on as f64 / (on + off).max(1) as f64);
        writes.rate_bps as f64 * share * flow.count as f64
    })
}

/// Whether it takes every loss for congestion, whatever its cause.
pub fn treats_loss_as_congestion(flow: &Flow) -> bool {
    Record::of(&flow.cc).is_some_and(|record| record.takes_losses_for_congestion)
}

/// Whether applications send or request at times that no counter of the sender shows.
pub fn is_application_driven(flow: &Flow) -> bool {
    matches!(flow.traffic, Traffic::Arrivals(_) | Traffic::Datagrams(_) | Traffic::Read { .. })
}

/// The transmitters along a path.
pub fn transmitters(scenario: &Scenario, links: &[usize]) -> Vec<usize> {
    links.iter().filter_map(|&link| scenario.links[link].transmitter).collect()
}

/// The rate of a transmitter in bit/s of frames, averaged from `start_s` to `end_s`.
pub fn bps(transmitter: &Transmitter, start_s: f64, end_s: f64) -> f64 {
    let rate = transmitter.rate_bps as f64;
    let shaped = match transmitter.discipline {
        Discipline::Tbf(tbf) => tbf.rate_bps as f64,
        Discipline::Cake(cake) => cake.bandwidth_bps.map_or(rate, |bps| bps as f64),
        _ => rate,
    };
    let paced = match &transmitter.pace {
        None => rate,
        Some(RateSchedule::Slots { every_ns, bytes }) => *bytes as f64 * 8e9 / *every_ns as f64,
        Some(RateSchedule::Trace(trace)) => {
            trace.times_ms.len() as f64 * trace.bytes as f64 * 8e3 / trace.period_ms as f64
        }
        Some(RateSchedule::Steps(steps)) => {
            let from = |at: usize| if at == 0 { 0.0 } else { steps[at - 1].0 as f64 / 1e9 };
            let bits = (0..=steps.len()).map(|at| {
                let until = if at == steps.len() { f64::INFINITY } else { from(at + 1) };
                let bps = if at == 0 { rate } else { steps[at - 1].1 as f64 };
                bps * (until.min(end_s) - from(at).max(start_s)).max(0.0)
            });
            bits.sum::<f64>() / (end_s - start_s)
        }
    };
    shaped.min(paced)
}

/// Frame bytes per payload byte, in full segments of the flow.
pub fn headers(scenario: &Scenario, flow: &Flow) -> f64 {
    let host = &scenario.hosts[scenario.links[flow.forward[0]].from];
    let headers = HEADERS + if host.timestamps { TIMESTAMP_OPTION } else { 0 };
    f64::from(host.mss + headers) / f64::from(host.mss)
}
