//! `sawtooth._core.replay`: what a congestion control would have allowed the sender in a capture.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sawtooth_replay::{Sent, Start};
use sawtooth_tcp::cc::Algorithm;

/// Windows and pacing rates, one per segment.
type Columns<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

/// See the stub. Releases the GIL.
#[pyfunction]
#[pyo3(signature = (control, t_ns, end, known, known_ns, again, mss, initial_window=10, ssthresh=None, seed=1))]
#[expect(clippy::too_many_arguments, reason = "columns and names, as Python calls it")]
pub fn replay<'py>(
    py: Python<'py>,
    control: &str,
    t_ns: PyReadonlyArray1<'py, u64>,
    end: PyReadonlyArray1<'py, u64>,
    known: PyReadonlyArray1<'py, u64>,
    known_ns: PyReadonlyArray1<'py, u64>,
    again: PyReadonlyArray1<'py, bool>,
    mss: u32,
    initial_window: u32,
    ssthresh: Option<u32>,
    seed: u64,
) -> PyResult<Columns<'py>> {
    let algorithm = Algorithm::from_name(control)
        .ok_or_else(|| PyValueError::new_err(format!("the core has no congestion control {control:?}")))?;
    let (t_ns, end, known) = (t_ns.as_array(), end.as_array(), known.as_array());
    let (known_ns, again) = (known_ns.as_array(), again.as_array());
    if [end.len(), known.len(), known_ns.len(), again.len()].iter().any(|&length| length != t_ns.len()) {
        return Err(PyValueError::new_err("t_ns, end, known, known_ns and again are not of one length"));
    }
    let row =
        |row| Sent { t_ns: t_ns[row], end: end[row], known: known[row], known_ns: known_ns[row], again: again[row] };
    let sent: Vec<Sent> = (0..t_ns.len()).map(row).collect();
    let known_start = Start::of(initial_window);
    let start = ssthresh.map_or(known_start, |ssthresh| Start { ssthresh, ..known_start });
    let allowed = py.detach(|| sawtooth_replay::replay(algorithm, &sent, mss, start, seed));
    let cwnd: Vec<u32> = allowed.iter().map(|one| one.cwnd).collect();
    let unlimited = |rate: u64| if rate == u64::MAX { f64::INFINITY } else { rate as f64 };
    let pacing: Vec<f64> = allowed.iter().map(|one| unlimited(one.pacing_rate)).collect();
    Ok((cwnd.into_pyarray(py), pacing.into_pyarray(py)))
}
