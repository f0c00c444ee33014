//! Simulations of compiled scenarios, advanced in steps.

use crate::columns::{self, Values};
use crate::handles::{self, Handles};
use crate::text;
use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_net::tables::Column;
use sawtooth_tcp::cc::Algorithm;
use sawtooth_units::Time;
use std::cell::RefCell;

thread_local! {
    static SIMULATIONS: RefCell<Handles<Simulation>> = const { RefCell::new(Handles::new()) };
}

/// Opens a scenario, given as compiled JSON. Returns 0 if it is refused; the answer then has the reason. `watched`:
/// also report events of senders and packets.
#[unsafe(no_mangle)]
extern "C" fn simulation_open(watched: bool) -> u32 {
    let begin = if watched { Simulation::watched } else { Simulation::new };
    match Scenario::parse(&text::given()) {
        Ok(scenario) => handles::add(&SIMULATIONS, begin(scenario)),
        Err(why) => {
            text::tell(why);
            0
        }
    }
}

/// Runs until `until_ns` or the scenario's end, at most `max_events` events. True at the end.
#[unsafe(no_mangle)]
extern "C" fn simulation_advance(handle: u32, until_ns: u64, max_events: u64) -> bool {
    handles::with(&SIMULATIONS, handle, |one| one.advance(Time::from_nanos(until_ns), max_events))
}

/// Switches on or off the recording of each packet's path, in a watched simulation.
#[unsafe(no_mangle)]
extern "C" fn simulation_record(handle: u32, on: bool) {
    handles::with(&SIMULATIONS, handle, |one| one.record(on));
}

/// Simulated nanoseconds since the start.
#[unsafe(no_mangle)]
extern "C" fn simulation_now_ns(handle: u32) -> u64 {
    handles::with(&SIMULATIONS, handle, |one| one.now().nanos())
}

/// Number of events handled.
#[unsafe(no_mangle)]
extern "C" fn simulation_events(handle: u32) -> u64 {
    handles::with(&SIMULATIONS, handle, |one| one.events())
}

/// Number of data packets that receiving applications have read.
#[unsafe(no_mangle)]
extern "C" fn simulation_delivered_packets(handle: u32) -> u64 {
    handles::with(&SIMULATIONS, handle, |one| one.delivered_packets())
}

/// Hands out the rows since the last call, and answers with their addresses.
#[unsafe(no_mangle)]
extern "C" fn simulation_take(handle: u32) {
    let tables = handles::with(&SIMULATIONS, handle, Simulation::take);
    let values = |column| match column {
        Column::Float(values) => Values::Float(values),
        Column::Integer(values) => Values::Integer(values),
    };
    let table =
        |(name, columns): (_, Vec<_>)| (name, columns.into_iter().map(|(name, one)| (name, values(one))).collect());
    text::tell(columns::hand_out(tables.into_iter().map(table).collect()));
}

/// Closes a simulation, finished or not.
#[unsafe(no_mangle)]
extern "C" fn simulation_close(handle: u32) {
    drop(handles::remove(&SIMULATIONS, handle));
}

/// Answers with the names of the simulator's congestion controls, as a JSON list.
#[unsafe(no_mangle)]
extern "C" fn congestion_controls() {
    text::tell(serde_json::Value::from_iter(Algorithm::names()).to_string());
}

/// Answers with the names of events, ordered by number, as a JSON list.
#[unsafe(no_mangle)]
extern "C" fn event_names() {
    text::tell(serde_json::Value::from_iter(sawtooth_net::event_names()).to_string());
}
