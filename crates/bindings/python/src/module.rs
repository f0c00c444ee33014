//! Linux modules, opened for a simulation.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sawtooth_cc_module::{Fault, Loaded};
use std::path::PathBuf;
use std::sync::Arc;

/// A newly loaded copy of a compiled module, with its parameters set. The control that it registers under `name` can be
/// used.
#[pyclass(module = "sawtooth._core", frozen)]
pub struct Module {
    loaded: Arc<Loaded>,
}

impl Module {
    pub fn loaded(&self) -> Arc<dyn sawtooth_tcp::cc::module::Module> {
        self.loaded.clone()
    }
}

#[pymethods]
impl Module {
    #[new]
    fn new(library: PathBuf, parameters: Vec<(String, String)>, name: Option<&str>) -> PyResult<Self> {
        match Loaded::open(&library, &parameters, name) {
            Ok(loaded) => Ok(Module { loaded: Arc::new(loaded) }),
            Err(fault) => Err(refused(&fault)),
        }
    }

    /// The control's own name.
    #[getter]
    fn name(&self) -> String {
        self.loaded().name().to_owned()
    }
}

/// A `ValueError` with the kind of fault and its message.
fn refused(fault: &Fault) -> PyErr {
    let (kind, words): (&str, Vec<String>) = match fault {
        Fault::Unloadable(why) => ("unloadable", vec![why.clone()]),
        Fault::NoParameter { name, known } => ("no-parameter", std::iter::once(name).chain(known).cloned().collect()),
        Fault::BadValue { name, value, kind, refused } => {
            ("bad-value", vec![name.clone(), value.clone(), kind.clone(), refused.to_string()])
        }
        Fault::Refused(why) => ("refused", vec![why.clone()]),
        Fault::NoControl { wanted, known } => {
            let wanted = wanted.clone().unwrap_or_default();
            ("no-control", std::iter::once(&wanted).chain(known).cloned().collect())
        }
    };
    PyValueError::new_err((kind, words))
}

/// Starts recording in the file `descriptor` which module's hook runs, and which signal ends the process.
#[pyfunction]
pub fn share_watch(descriptor: i32) -> PyResult<()> {
    Ok(sawtooth_cc_module::watch::share(descriptor)?)
}
