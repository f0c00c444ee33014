//! `sawtooth._core`: the simulator as a Python class, and the reading of captures. Scenarios come in as JSON, tables go
//! out as numpy arrays.

mod agents;
mod capture;
mod limits;
mod module;
mod packetdrill;
mod replay;
mod scenario;
mod values;

use module::Module;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sawtooth_net::scenario::Scenario;
use sawtooth_net::tables::Column;
use sawtooth_net::{Output, Taps, Transfers};
use sawtooth_tcp::cc::Algorithm;
use sawtooth_units::Time;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// One run of a compiled scenario, advanced in steps.
#[pyclass(module = "sawtooth._core")]
struct Simulation {
    inner: sawtooth_net::Simulation,
    captures: BTreeMap<usize, PathBuf>,
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (scenario, captures=None, modules=None, watched=false))]
    fn new(
        scenario: &str,
        captures: Option<BTreeMap<usize, PathBuf>>,
        modules: Option<BTreeMap<usize, Bound<'_, PyAny>>>,
        watched: bool,
    ) -> PyResult<Self> {
        let loaded = |one: &Bound<'_, PyAny>| match one.cast::<agents::Policy>() {
            Ok(policy) => Ok(policy.get().loaded()),
            Err(_) => Ok::<_, PyErr>(one.cast::<Module>()?.get().loaded()),
        };
        let modules = modules.unwrap_or_default();
        let modules = modules.iter().map(|(&flow, one)| Ok((flow, loaded(one)?))).collect::<PyResult<_>>()?;
        let scenario = Scenario::with_modules(scenario, &modules).map_err(PyValueError::new_err)?;
        let Some(captures) = captures else {
            let begin = if watched { sawtooth_net::Simulation::watched } else { sawtooth_net::Simulation::new };
            return Ok(Simulation { inner: begin(scenario), captures: BTreeMap::new() });
        };
        if watched {
            return Err(PyValueError::new_err("a run is captured or watched"));
        }
        let mut outputs = Vec::new();
        for (&host, path) in &captures {
            if host >= scenario.hosts.len() {
                return Err(PyValueError::new_err(format!("no host {host} to capture at")));
            }
            let file = File::create(path).map_err(|error| refused(path, &error))?;
            outputs.push((host, Box::new(BufWriter::new(file)) as Output));
        }
        let taps = Taps::new(&scenario, outputs)?;
        Ok(Simulation { inner: sawtooth_net::Simulation::tapped(scenario, Some(taps)), captures })
    }

    /// Runs until `until_ns` or the scenario's end, at most `max_events` events; with `ends`, `until_ns` is the end.
    /// True at the end. Releases the GIL.
    #[pyo3(signature = (until_ns, max_events, ends=false))]
    fn advance(&mut self, py: Python<'_>, until_ns: u64, max_events: u64, ends: bool) -> PyResult<bool> {
        let inner = &mut self.inner;
        if ends {
            inner.shorten(Time::from_nanos(until_ns));
        }
        let finished = py.detach(|| inner.advance(Time::from_nanos(until_ns), max_events));
        match self.inner.capture_fault() {
            Some((host, error)) => Err(refused(&self.captures[&host], &error)),
            None => Ok(finished),
        }
    }

    /// Switches on or off the recording of each packet's path, in a watched simulation.
    fn record(&mut self, on: bool) {
        self.inner.record(on);
    }

    /// Simulated nanoseconds since the start.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.inner.now().nanos()
    }

    /// Number of events handled.
    #[getter]
    fn events(&self) -> u64 {
        self.inner.events()
    }

    /// Number of data packets that receiving applications have read.
    #[getter]
    fn delivered_packets(&self) -> u64 {
        self.inner.delivered_packets()
    }

    /// From now on, packets that repeat others exactly are skipped.
    fn skip_repeated(&mut self) {
        self.inner.skip_repeated();
    }

    /// How many of the delivered packets were skipped.
    #[getter]
    fn skipped_packets(&self) -> u64 {
        self.inner.skipped_packets()
    }

    /// The rows since the last call: table name → column name → array.
    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tables(py, &mut self.inner)
    }
}

/// The rows since the last call.
fn tables<'py>(py: Python<'py>, simulation: &mut sawtooth_net::Simulation) -> PyResult<Bound<'py, PyDict>> {
    let tables = PyDict::new(py);
    for (name, columns) in simulation.take() {
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

/// The OSError that Python itself would raise, with its error number, so that a full disk can be distinguished.
fn refused(path: &Path, error: &io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), error.kind().to_string(), path.to_path_buf()))
}

/// The transfers of a flow with random arrivals: start in nanoseconds, and bytes.
type Columns<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

/// See the stub.
#[pyfunction]
fn transfers<'py>(py: Python<'py>, scenario: &str, flow: usize, stream: usize) -> PyResult<Columns<'py>> {
    let scenario: Scenario = scenario::form(scenario)?;
    let drawn = (flow < scenario.flows.len()).then(|| Transfers::of(&scenario, flow, stream)).flatten();
    let all = drawn.ok_or_else(|| PyValueError::new_err(format!("flow {flow} has no transfers")))?;
    let (times, bytes): (Vec<u64>, Vec<u64>) = all.map(|transfer| (transfer.at.nanos(), transfer.bytes)).unzip();
    Ok((times.into_pyarray(py), bytes.into_pyarray(py)))
}

/// Names of the simulator's congestion controls.
#[pyfunction]
fn congestion_controls() -> Vec<&'static str> {
    Algorithm::names().collect()
}

/// See the stub.
#[pyfunction]
fn event_names() -> Vec<&'static str> {
    sawtooth_net::event_names().collect()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Simulation>()?;
    module.add_class::<Module>()?;
    module.add_class::<agents::Policy>()?;
    module.add_class::<agents::Environments>()?;
    module.add_function(wrap_pyfunction!(agents::observed, module)?)?;
    module.add_function(wrap_pyfunction!(agents::action_bounds, module)?)?;
    module.add_class::<limits::FlowLimits>()?;
    module.add_function(wrap_pyfunction!(congestion_controls, module)?)?;
    module.add_function(wrap_pyfunction!(event_names, module)?)?;
    module.add_function(wrap_pyfunction!(transfers, module)?)?;
    module.add_function(wrap_pyfunction!(capture::read_capture, module)?)?;
    module.add_function(wrap_pyfunction!(capture::capture_path, module)?)?;
    module.add_function(wrap_pyfunction!(capture::host_limit, module)?)?;
    module.add_function(wrap_pyfunction!(capture::poisson_interval, module)?)?;
    module.add_function(wrap_pyfunction!(capture::refused_transfer, module)?)?;
    module.add_function(wrap_pyfunction!(limits::largest_shares, module)?)?;
    module.add_function(wrap_pyfunction!(packetdrill::packetdrill, module)?)?;
    module.add_function(wrap_pyfunction!(packetdrill::packetdrill_outside_data_path, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(module::share_watch, module)?)?;
    module.add_class::<scenario::Scenario>()?;
    module.add_function(wrap_pyfunction!(scenario::read_part, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::usual_fields, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::read_quantity, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::write_quantity, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::elsewhere, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::registry, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::queue_options, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::describe_compiled, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::whole_ways, module)?)?;
    module.add("MODULE_HOOKS", sawtooth_cc_module::watch::HOOKS.to_vec())?;
    module.add("OVERRUN", sawtooth_cc_module::OVERRUN)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
