//! What limits the flows of a run, from its tables.

use crate::handles::{self, Handles};
use crate::text;
use sawtooth_limits::{FlowLimits, TABLES};
use std::cell::RefCell;

thread_local! {
    static LIMITS: RefCell<Handles<FlowLimits>> = const { RefCell::new(Handles::new()) };
}

/// Answers with the tables to pass to `limits_add`, in this order, and their columns, as JSON.
#[unsafe(no_mangle)]
extern "C" fn limits_tables() {
    text::tell(serde_json::json!(TABLES).to_string());
}

/// Starts with a compiled scenario, given as JSON. Returns 0 if it is refused; the answer then has the reason.
#[unsafe(no_mangle)]
extern "C" fn limits_open() -> u32 {
    match FlowLimits::new(&text::given()) {
        Ok(limits) => handles::add(&LIMITS, limits),
        Err(why) => {
            text::tell(why);
            0
        }
    }
}

/// Adds rows of the table with this number: its columns one after the other, each number as eight bytes. False if they
/// are refused; the answer then has the reason.
#[unsafe(no_mangle)]
extern "C" fn limits_add(handle: u32, table: u32) -> bool {
    let bytes = text::bytes();
    let columns: Vec<f64> = bytes.as_chunks().0.iter().map(|&one| f64::from_le_bytes(one)).collect();
    let added = match TABLES.get(table as usize) {
        Some((name, _)) => handles::with(&LIMITS, handle, |one| one.add(name, &columns)),
        None => Err(format!("there is no table {table}")),
    };
    added.map_err(text::tell).is_ok()
}

/// Answers with what limits each flow of a run at time `now_s`, as JSON.
#[unsafe(no_mangle)]
extern "C" fn limits_report(handle: u32, now_s: f64) {
    let report = handles::with(&LIMITS, handle, |one| one.report(now_s));
    text::tell(serde_json::json!(report).to_string());
}

#[unsafe(no_mangle)]
extern "C" fn limits_close(handle: u32) {
    drop(handles::remove(&LIMITS, handle));
}
