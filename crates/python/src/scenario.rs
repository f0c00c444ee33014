//! Scenarios read by `crates/scenario`, for the tests that hold it to what the package reads.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use sawtooth_net::scenario::Trace;
use sawtooth_scenario::{Files, Listed, Problem, Scenario, Steps, Table, Traced, Value};

/// A problem's code, message, fix, field and file.
type Told = (String, String, String, Option<String>, Option<String>);
/// A module's files, parameters and name.
type Module = (Vec<String>, Vec<(String, String)>, Option<String>);
/// What the core would run, as text, the kernel's name and each flow's module.
type Compiled = (String, Option<String>, Vec<Option<Module>>);

/// Reads and compiles a scenario's tables. `files`: answers for the files that it names. What the core would run, as text, its kernel and
/// its modules; or what is wrong.
#[pyfunction]
pub fn compile_scenario(
    tables: &Bound<'_, PyAny>,
    files: &Bound<'_, PyAny>,
) -> PyResult<(Option<Compiled>, Option<Told>)> {
    match Scenario::read(&value(tables)?, &Asked(files)) {
        Ok((_, compiled)) => {
            let modules = compiled.modules.into_iter().map(|one| one.map(|one| (one.files, one.parameters, one.name)));
            Ok((Some((format!("{:#?}", compiled.scenario), compiled.kernel, modules.collect())), None))
        }
        Err(wrong) => Ok((None, Some((wrong.code.into(), wrong.message, wrong.fix, wrong.field, wrong.file)))),
    }
}

/// The same text of a compiled scenario that is given as JSON.
#[pyfunction]
pub fn describe_compiled(json: &str) -> PyResult<String> {
    let compiled: sawtooth_net::scenario::Scenario =
        serde_json::from_str(json).map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    Ok(format!("{compiled:#?}"))
}

/// Python's value as a file's.
fn value(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if given.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = given.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if given.is_instance_of::<PyInt>() {
        let huge = || Ok(Value::Huge(given.str()?.to_string()));
        return given.extract::<i128>().map_or_else(|_| huge(), |number| Ok(Value::Whole(number)));
    }
    if given.is_instance_of::<PyFloat>() {
        return Ok(Value::Real(given.extract()?));
    }
    if let Ok(text) = given.cast::<PyString>() {
        // Halves of letters, which no file has, are what they look like.
        return Ok(Value::Text(text.to_string_lossy().into_owned()));
    }
    if let Ok(list) = given.cast::<PyList>() {
        return list.iter().map(|one| value(&one)).collect::<PyResult<_>>().map(Value::List);
    }
    if let Ok(tuple) = given.cast::<PyTuple>() {
        return tuple.iter().map(|one| value(&one)).collect::<PyResult<_>>().map(Value::List);
    }
    if let Ok(dict) = given.cast::<PyDict>() {
        let pair = |(name, one): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((name.extract()?, value(&one)?));
        return dict.iter().map(pair).collect::<PyResult<Table>>().map(Value::Table);
    }
    let kind = match given.get_type().name()?.to_string().as_str() {
        "datetime" => "datetime",
        "date" => "date",
        "time" => "time",
        other => return Err(PyTypeError::new_err(format!("a {other} is no value of a scenario file"))),
    };
    Ok(Value::Date(kind, given.str()?.to_string()))
}

/// Files that Python reads: each method answers with a value, or raises an error that has a code.
struct Asked<'a, 'py>(&'a Bound<'py, PyAny>);

impl Asked<'_, '_> {
    fn ask<A>(&self, what: &str, name: &str, read: impl FnOnce(Bound<'_, PyAny>) -> PyResult<A>) -> Result<A, Problem> {
        self.0.call_method1(what, (name,)).and_then(read).map_err(|error| {
            let told = error.value(self.0.py());
            let attribute = |name: &str| told.getattr(name).ok()?.extract::<Option<String>>().ok()?;
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

impl Files for Asked<'_, '_> {
    fn trace(&self, name: &str) -> Result<Traced, Problem> {
        self.ask("trace", name, |told| {
            if let Ok(times_ms) = told.getattr("times_ms") {
                let (period_ms, bytes) = (told.getattr("period_ms")?.extract()?, told.getattr("bytes")?.extract()?);
                return Ok(Traced::Opportunities(Trace { times_ms: times_ms.extract()?, period_ms, bytes }));
            }
            let steps = |name: &str| told.getattr(name)?.extract();
            Ok(Traced::Steps(Steps { rates: steps("rates")?, delays: steps("delays")?, losses: steps("losses")? }))
        })
    }

    fn deviations(&self, name: &str) -> Result<Vec<i16>, Problem> {
        self.ask("deviations", name, |told| told.extract())
    }

    fn distribution(&self, name: &str) -> Result<Vec<[u64; 2]>, Problem> {
        self.ask("distribution", name, |told| {
            let points: Vec<(u64, u64)> = told.extract()?;
            Ok(points.into_iter().map(|(bytes, share)| [bytes, share]).collect())
        })
    }

    fn transfers(&self, name: &str) -> Result<Listed, Problem> {
        self.ask("transfers", name, |told| {
            Ok(Listed { times_ns: told.getattr("times_ns")?.extract()?, bytes: told.getattr("bytes")?.extract()? })
        })
    }
}
