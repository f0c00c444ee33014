//! Values of scenario files between Python and Rust.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use sawtooth_scenario::{Table, Value, View, Viewed};

/// Converts a Python value to a scenario file's value.
pub fn value(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if given.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(match text.to_str() {
            Ok(text) => Value::Text(text.into()),
            // Half a surrogate pair is no text, and no file can contain it.
            Err(_) => Value::Other("str".into(), text.to_string_lossy().into_owned()),
        });
    }
    if let Ok(flag) = given.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if given.is_instance_of::<PyInt>() {
        let huge = || Ok(Value::Huge(shown(given)));
        return given.extract::<i128>().map_or_else(|_| huge(), |number| Ok(Value::Whole(number)));
    }
    if given.is_instance_of::<PyFloat>() {
        return Ok(Value::Real(given.extract()?));
    }
    if let Ok(list) = given.cast::<PyList>() {
        return list.iter().map(|one| value(&one)).collect::<PyResult<_>>().map(Value::List);
    }
    if let Ok(tuple) = given.cast::<PyTuple>() {
        return tuple.iter().map(|one| value(&one)).collect::<PyResult<_>>().map(Value::List);
    }
    if let Ok(dict) = given.cast::<PyDict>() {
        let pair = |(name, one): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name = match name.cast::<PyString>() {
                Ok(name) => name.to_string_lossy().into_owned(),
                Err(_) => shown(&name),
            };
            Ok((name, value(&one)?))
        };
        return dict.iter().map(pair).collect::<PyResult<Table>>().map(Value::Table);
    }
    // The package's quantities and tables convert themselves to a file's value.
    if let Ok(converted) = given.call_method0("_given") {
        return value(&converted);
    }
    if given.is_instance(&given.py().import("collections.abc")?.getattr("Mapping")?)? {
        return value(&given.py().get_type::<PyDict>().call1((given,))?);
    }
    Ok(Value::Other(given.get_type().name()?.to_string(), shown(given)))
}

/// Python's text for the value.
fn shown(given: &Bound<'_, PyAny>) -> String {
    // Python refuses to print numbers of thousands of digits. Any text of many digits does.
    given.str().map_or_else(|_| "9".repeat(5000), |text| text.to_string_lossy().into_owned())
}

/// Converts a scenario file's value to a Python value.
pub fn python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Null => py.None(),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any().unbind(),
        Value::Whole(number) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Huge(number) => py.get_type::<PyInt>().call1((number,))?.unbind(),
        Value::Real(number) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Text(text) | Value::Other(_, text) => text.into_pyobject(py)?.into_any().unbind(),
        Value::List(list) => {
            let items = list.iter().map(|one| python(py, one)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any().unbind()
        }
        Value::Table(table) => {
            let dict = PyDict::new(py);
            for (name, one) in table.iter() {
                dict.set_item(name, python(py, one)?)?;
            }
            dict.into_any().unbind()
        }
    })
}

/// Converts to the package's types: quantities and tables to its classes, lists to tuples.
pub fn view(py: Python<'_>, seen: &View) -> PyResult<Py<PyAny>> {
    let quantity = |name: &str| py.import("sawtooth.scenario.units")?.getattr(name);
    Ok(match seen {
        View::Plain(value) => python(py, value)?,
        View::Quantity(name, amount) => quantity(name)?.call1((amount,))?.unbind(),
        View::Queue(unit, amount) => quantity("Queue")?.call_method1("_counted", (amount, unit.name()))?.unbind(),
        View::List(list) => {
            let items = list.iter().map(|one| view(py, one)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, items)?.into_any().unbind()
        }
        View::Named(named) => {
            let dict = PyDict::new(py);
            for (name, one) in named {
                dict.set_item(name, view(py, one)?)?;
            }
            dict.into_any().unbind()
        }
        View::Table(viewed) => {
            let class = py.import("sawtooth.scenario.tables")?.getattr(viewed.name)?;
            class.call_method1("_made", table(py, viewed)?)?.unbind()
        }
    })
}

/// A table's fields, and which of them the file gave.
pub fn table(py: Python<'_>, viewed: &Viewed) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let fields = PyDict::new(py);
    for (name, one) in &viewed.fields {
        fields.set_item(name, view(py, one)?)?;
    }
    Ok((fields.into_any().unbind(), python(py, &viewed.given)?))
}
