//! What limits flows, by the same code that the web pages use.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sawtooth_limits::{self as limits, TABLES, largest};

/// See the stub.
#[pyclass(module = "sawtooth._core")]
pub struct FlowLimits(limits::FlowLimits);

#[pymethods]
impl FlowLimits {
    #[new]
    fn new(scenario: &str) -> PyResult<Self> {
        limits::FlowLimits::new(scenario).map(FlowLimits).map_err(PyValueError::new_err)
    }

    /// The tables to pass to `add`, in this order, and their columns.
    #[staticmethod]
    fn tables() -> Vec<(&'static str, Vec<&'static str>)> {
        TABLES.iter().map(|&(table, columns)| (table, columns.to_vec())).collect()
    }

    /// Adds rows of a table: its columns, one after the other.
    fn add(&mut self, table: &str, columns: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        self.0.add(table, columns.as_slice()?).map_err(PyValueError::new_err)
    }

    /// What limits each flow of a run at time `now_s`, as JSON.
    fn report(&self, now_s: f64) -> PyResult<String> {
        serde_json::to_string(&self.0.report(now_s)).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

/// See the stub.
#[pyfunction]
pub fn largest_shares<'py>(py: Python<'py>, shares: PyReadonlyArray2<'_, f64>) -> Bound<'py, PyArray1<i64>> {
    let shares = shares.as_array();
    let found = shares.rows().into_iter().map(|row| {
        let at = row.as_slice().map_or_else(|| largest(&row.to_vec()), largest);
        at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
    });
    PyArray1::from_iter(py, found)
}
