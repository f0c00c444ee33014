//! `sawtooth._core`: the simulator as a Python class. Scenarios come in as JSON, tables go out as numpy arrays.

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sawtooth_net::scenario::Scenario;
use sawtooth_net::tables::Column;
use sawtooth_tcp::cc::Algorithm;
use sawtooth_units::Time;

/// One run of a compiled scenario, advanced in steps.
#[pyclass(module = "sawtooth._core")]
struct Simulation {
    inner: sawtooth_net::Simulation,
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(scenario: &str) -> PyResult<Self> {
        let scenario = Scenario::parse(scenario).map_err(PyValueError::new_err)?;
        Ok(Simulation { inner: sawtooth_net::Simulation::new(scenario) })
    }

    /// Runs until `until_ns` or the scenario's end, at most `max_events` events. True at the end. Releases the GIL.
    fn advance(&mut self, py: Python<'_>, until_ns: u64, max_events: u64) -> bool {
        let inner = &mut self.inner;
        py.detach(|| inner.advance(Time::from_nanos(until_ns), max_events))
    }

    /// Simulated nanoseconds since the start.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.inner.now().nanos()
    }

    /// Events handled.
    #[getter]
    fn events(&self) -> u64 {
        self.inner.events()
    }

    /// Data packets that receiving applications have read.
    #[getter]
    fn delivered_packets(&self) -> u64 {
        self.inner.delivered_packets()
    }

    /// The rows since the last call: table name → column name → array.
    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for (name, columns) in self.inner.take() {
            let table = PyDict::new(py);
            for (column, values) in columns {
                match values {
                    Column::Float(values) => table.set_item(column, values.into_pyarray(py))?,
                    Column::Integer(values) => table.set_item(column, values.into_pyarray(py))?,
                }
            }
            tables.set_item(name, table)?;
        }
        Ok(tables)
    }
}

/// Names of the congestion controls that the simulator has.
#[pyfunction]
fn congestion_controls() -> Vec<&'static str> {
    Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Simulation>()?;
    module.add_function(wrap_pyfunction!(congestion_controls, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
