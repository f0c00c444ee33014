//! Scenarios, as the package reads, changes and compiles them.

use crate::values::{python, value, view};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sawtooth_net::scenario::{self as net, Room, Trace};
use sawtooth_scenario::{
    Burst, Compiled, Field, Files, Listed, Loss, Problem, Programs, Quantity, Queue, Rate, Size, Span, Steps, Traced,
    Unit, Value, View, flow_names, read_table,
};
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex};

/// A module's files, parameters and name.
type Module = (Vec<String>, Vec<(String, String)>, Option<String>);

/// What programs call hosts, by the hosts' names; names of the programs, and their hosts.
type PlacedPrograms = (Vec<(String, String)>, Vec<String>, Vec<String>);
/// A compiled scenario as JSON, the kernel's name, modules of the flows, and programs.
type CompiledParts = (String, Option<String>, Vec<Option<Module>>, PlacedPrograms);

/// See the stub.
#[pyclass(frozen, module = "sawtooth._core")]
pub struct Scenario {
    inner: sawtooth_scenario::Scenario,
    /// The compiled scenario; none until it is requested, or after it was discarded.
    compiled: Mutex<Option<Arc<Compiled>>>,
}

/// The package's `InputError` for a problem.
fn refused(py: Python<'_>, wrong: Problem) -> PyErr {
    let error = || {
        let given = PyDict::new(py);
        given.set_item("file", wrong.file)?;
        given.set_item("field", wrong.field)?;
        given.set_item("fix", wrong.fix)?;
        py.import("sawtooth.errors")?.getattr("InputError")?.call((wrong.code.as_ref(), wrong.message), Some(&given))
    };
    error().map_or_else(|failed| failed, PyErr::from_value)
}

impl Scenario {
    fn of(py: Python<'_>, read: Result<(sawtooth_scenario::Scenario, Compiled), Problem>) -> PyResult<Scenario> {
        let (inner, compiled) = read.map_err(|wrong| refused(py, wrong))?;
        Ok(Scenario { inner, compiled: Mutex::new(Some(Arc::new(compiled))) })
    }

    /// The compiled scenario, kept until `forget`. Files are read without the lock: reading them calls Python.
    fn compiled(&self, files: &Bound<'_, PyAny>) -> Result<Arc<Compiled>, Problem> {
        let kept = || self.compiled.lock().expect("nobody panics with it");
        if let Some(compiled) = kept().clone() {
            return Ok(compiled);
        }
        let compiled = Arc::new(self.inner.compile(&PythonFiles(files))?);
        *kept() = Some(compiled.clone());
        Ok(compiled)
    }
}

#[pymethods]
impl Scenario {
    #[staticmethod]
    fn read(py: Python<'_>, tables: &Bound<'_, PyAny>, files: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        Scenario::of(py, sawtooth_scenario::Scenario::read(&value(tables)?, &PythonFiles(files)))
    }

    #[staticmethod]
    fn schema(py: Python<'_>) -> PyResult<Py<PyAny>> {
        python(py, &sawtooth_scenario::Scenario::schema())
    }

    fn set(&self, py: Python<'_>, changes: &Bound<'_, PyDict>, files: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        let pair = |(key, one): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((key.extract()?, value(&one)?));
        let changes = changes.iter().map(pair).collect::<PyResult<Vec<(String, Value)>>>()?;
        Scenario::of(py, self.inner.set(&changes, &PythonFiles(files)))
    }

    fn with_seed(&self, py: Python<'_>, seed: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        let inner = self.inner.with_seed(&value(seed)?).map_err(|wrong| refused(py, wrong))?;
        Ok(Scenario { inner, compiled: Mutex::new(None) })
    }

    fn as_custom(&self, py: Python<'_>, files: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        Scenario::of(py, self.inner.as_custom(&PythonFiles(files)))
    }

    fn field(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        match self.inner.field(name) {
            Some(found) => view(py, &found),
            None => Err(PyAttributeError::new_err(format!("a scenario has no {name}"))),
        }
    }

    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        python(py, &Value::Table(self.inner.to_table()))
    }

    fn given(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        python(py, &self.inner.given())
    }

    fn digest(&self, files: &Bound<'_, PyAny>) -> String {
        self.inner.digest(&PythonFiles(files))
    }

    fn flow_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        flow_names(&self.inner.flows).map_err(|wrong| refused(py, wrong))
    }

    fn compile(&self, py: Python<'_>, files: &Bound<'_, PyAny>) -> PyResult<CompiledParts> {
        let compiled = self.compiled(files).map_err(|wrong| refused(py, wrong))?;
        let text = compiled.to_json();
        let modules = compiled.modules.iter().cloned().map(|one| one.map(|one| (one.files, one.parameters, one.name)));
        let Programs { called, names, hosts, .. } = compiled.programs.clone();
        Ok((text, compiled.kernel.clone(), modules.collect(), (called, names, hosts)))
    }

    fn check_simulated(&self, py: Python<'_>, files: &Bound<'_, PyAny>) -> PyResult<()> {
        let checked = self.compiled(files).and_then(|compiled| compiled.check_simulated(&self.inner.topology));
        checked.map_err(|wrong| refused(py, wrong))
    }

    fn forget(&self) {
        self.compiled.lock().expect("nobody panics with it").take();
    }
}

/// See the stub.
#[pyfunction]
pub fn read_part(
    py: Python<'_>,
    name: &str,
    given: &Bound<'_, PyAny>,
    files: &Bound<'_, PyAny>,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let read = read_table(name, &value(given)?, &PythonFiles(files));
    let Some(read) = read else { return Err(PyAttributeError::new_err(format!("no table is a {name}"))) };
    match read.map_err(|wrong| refused(py, wrong))? {
        View::Table(viewed) => crate::values::table(py, &viewed),
        _ => unreachable!("a table is seen as one"),
    }
}

/// See the stub.
#[pyfunction]
pub fn usual_fields(py: Python<'_>, name: &str) -> PyResult<Py<PyDict>> {
    let found = PyDict::new(py);
    for (field, seen) in sawtooth_scenario::usual_fields(name).unwrap_or_default() {
        found.set_item(field, view(py, &seen)?)?;
    }
    Ok(found.unbind())
}

/// See the stub.
#[pyfunction]
pub fn read_quantity(py: Python<'_>, kind: &str, given: &Bound<'_, PyAny>) -> PyResult<(u64, Option<&'static str>)> {
    let given = value(given)?;
    let read = match kind {
        "Rate" => Rate::parse(&given).map(|read| (read.bps, None)),
        "Span" => Span::parse(&given).map(|read| (read.ns, None)),
        "Size" => Size::parse(&given).map(|read| (read.bytes, None)),
        "Loss" => Loss::parse(&given).map(|read| (read.ppb, None)),
        "Burst" => Burst::parse(&given).map(|read| (read.milli, None)),
        _ => Queue::parse(&given).map(|read| (read.amount, Some(read.unit.name()))),
    };
    read.map_err(|wrong| refused(py, wrong))
}

/// See the stub.
#[pyfunction]
#[pyo3(signature = (kind, amount, unit=None))]
pub fn write_quantity(kind: &str, amount: u64, unit: Option<&str>) -> String {
    match kind {
        "Rate" => Rate { bps: amount }.to_string(),
        "Span" => Span { ns: amount }.to_string(),
        "Size" => Size { bytes: amount }.to_string(),
        "Loss" => Loss { ppb: amount }.to_string(),
        "Burst" => Burst { milli: amount }.to_string(),
        _ => Queue { unit: unit.and_then(Unit::named).unwrap_or(Unit::Packets), amount }.to_string(),
    }
}

/// See the stub.
#[pyfunction]
pub fn elsewhere(steps: Vec<String>, fields: Vec<String>) -> Option<String> {
    sawtooth_scenario::elsewhere(&steps, &fields.iter().map(String::as_str).collect::<Vec<_>>())
}

/// See the stub.
#[pyfunction]
pub fn registry(py: Python<'_>) -> PyResult<Py<PyAny>> {
    python(py, &sawtooth_scenario::registry())
}

/// A part of the compiled form, or all of it, from its JSON.
pub fn form<A: DeserializeOwned>(json: &str) -> PyResult<A> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// See the stub.
#[pyfunction]
pub fn describe_compiled(json: &str) -> PyResult<String> {
    Ok(format!("{:#?}", form::<net::Scenario>(json)?))
}

/// See the stub.
#[pyfunction]
pub fn whole_ways(json: &str) -> PyResult<Vec<Vec<usize>>> {
    let compiled: net::Scenario = form(json)?;
    Ok(compiled.flows.iter().map(|flow| compiled.whole(flow).to_vec()).collect())
}

/// See the stub.
#[pyfunction]
pub fn queue_options(
    py: Python<'_>,
    discipline: &str,
    packets: Option<u64>,
    bytes: Option<u64>,
    overhead: u16,
) -> PyResult<(&'static str, Py<PyBytes>)> {
    let (kind, options) = form::<net::Discipline>(discipline)?.options(Room { packets, bytes, overhead });
    Ok((kind, PyBytes::new(py, &options).unbind()))
}

/// Files that Python reads. Each method returns a value or raises an error with a code.
struct PythonFiles<'a, 'py>(&'a Bound<'py, PyAny>);

impl PythonFiles<'_, '_> {
    fn call<A>(
        &self,
        what: &str,
        name: &str,
        read: impl FnOnce(Bound<'_, PyAny>) -> PyResult<A>,
    ) -> Result<A, Problem> {
        self.0.call_method1(what, (name,)).and_then(read).map_err(|error| {
            let exception = error.value(self.0.py());
            let attribute = |name: &str| exception.getattr(name).ok()?.extract::<Option<String>>().ok()?;
            Problem {
                code: attribute("code").unwrap_or_else(|| "internal".into()).into(),
                message: attribute("message").unwrap_or_else(|| error.to_string()),
                fix: attribute("fix").unwrap_or_default(),
                field: attribute("field"),
                file: attribute("file"),
            }
        })
    }
}

impl Files for PythonFiles<'_, '_> {
    fn trace(&self, name: &str) -> Result<Traced, Problem> {
        self.call("trace", name, |value| {
            if let Ok(times_ms) = value.getattr("times_ms") {
                let (period_ms, bytes) = (value.getattr("period_ms")?.extract()?, value.getattr("bytes")?.extract()?);
                return Ok(Traced::Opportunities(Trace { times_ms: times_ms.extract()?, period_ms, bytes }));
            }
            let steps = |name: &str| value.getattr(name)?.extract();
            Ok(Traced::Steps(Steps { rates: steps("rates")?, delays: steps("delays")?, losses: steps("losses")? }))
        })
    }

    fn deviations(&self, name: &str) -> Result<Vec<i16>, Problem> {
        self.call("deviations", name, |values| values.extract())
    }

    fn distribution(&self, name: &str) -> Result<Vec<[u64; 2]>, Problem> {
        self.call("distribution", name, |values| {
            let points: Vec<(u64, u64)> = values.extract()?;
            Ok(points.into_iter().map(|(bytes, share)| [bytes, share]).collect())
        })
    }

    fn transfers(&self, name: &str) -> Result<Listed, Problem> {
        self.call("transfers", name, |listed| {
            Ok(Listed { times_ns: listed.getattr("times_ns")?.extract()?, bytes: listed.getattr("bytes")?.extract()? })
        })
    }

    fn digest_of(&self, name: &str) -> String {
        self.call("digest_of", name, |digest| digest.extract()).unwrap_or_default()
    }

    fn digest_of_sources(&self, names: &[String]) -> String {
        let digest = self.0.call_method1("digest_of_sources", (names.to_vec(),));
        digest.and_then(|digest| digest.extract()).unwrap_or_default()
    }
}
