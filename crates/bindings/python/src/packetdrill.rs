//! `sawtooth._core.packetdrill`: a script in packetdrill's language, played to the simulated TCP.

use pyo3::prelude::*;
use sawtooth_packetdrill::verdict::Verdict;

/// Verdict, line of the first difference, reason, packets as expected, true assertions, remarks.
type Played = (&'static str, Option<usize>, String, usize, usize, Vec<String>);

/// See the stub. Releases the GIL.
#[pyfunction]
#[pyo3(signature = (text, hz, tolerance_us=None))]
pub fn packetdrill(py: Python<'_>, text: &str, hz: u32, tolerance_us: Option<u32>) -> Played {
    let outcome = py.detach(|| sawtooth_packetdrill::run(text, hz, tolerance_us.map(i64::from)));
    let (verdict, line, reason) = match outcome.verdict {
        Verdict::Passed => ("passed", None, String::new()),
        Verdict::Failed { line, expected, got } => ("failed", Some(line), format!("{expected} expected, {got}")),
        Verdict::NotApplicable(reason) => ("not applicable", None, reason),
    };
    (verdict, line, reason, outcome.packets, outcome.assertions, outcome.notes)
}

/// See the stub.
#[pyfunction]
pub fn packetdrill_outside_data_path(text: &str) -> Option<String> {
    sawtooth_packetdrill::outside_data_path(text)
}
