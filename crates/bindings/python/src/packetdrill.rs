//! `sawtooth._core.packetdrill`: a script in packetdrill's language, played to the simulated sender.

use pyo3::prelude::*;
use sawtooth_packetdrill::verdict::Verdict;

/// Verdict, line of the first difference, reason, packets as expected, true assertions, remarks.
type Played = (&'static str, Option<usize>, String, usize, usize, Vec<String>);

/// See the stub. Releases the GIL.
#[pyfunction]
pub fn packetdrill(py: Python<'_>, text: &str, hz: u32) -> Played {
    let outcome = py.detach(|| sawtooth_packetdrill::run(text, hz));
    let (verdict, line, reason) = match outcome.verdict {
        Verdict::Passed => ("passed", None, String::new()),
        Verdict::Failed { line, expected, got } => ("failed", Some(line), format!("{expected} expected, {got}")),
        Verdict::NotApplicable(reason) => ("not applicable", None, reason),
    };
    (verdict, line, reason, outcome.packets, outcome.assertions, outcome.notes)
}
