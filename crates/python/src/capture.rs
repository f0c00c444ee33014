//! `sawtooth._core.read_capture`: a capture's facts as JSON and its tables as numpy arrays.

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sawtooth_capture::tables::{Column, Table};
use sawtooth_capture::{Analysis, Wanted};
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Segments between two looks at Python: some tens of milliseconds.
const STEP: u64 = 100_000;

/// Reads a capture; see the stub. The GIL is released while it works, and Ctrl-C ends it.
#[pyfunction]
#[pyo3(signature = (path, details=None, progress=None))]
pub fn read_capture<'py>(
    py: Python<'py>,
    path: &str,
    details: Option<u32>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let raised = Raised::default();
    let wanted = details.map_or(Wanted::None, Wanted::One);
    let opened = py.detach(|| match path {
        "-" => Analysis::new(Stdin { raised: raised.clone() }, wanted),
        file => Analysis::open(file, wanted),
    });
    raised.check()?;
    let mut analysis = opened.map_err(|error| PyValueError::new_err(error.to_string()))?;
    while !py.detach(|| analysis.advance(STEP)) {
        py.check_signals()?;
        if let Some(progress) = &progress {
            progress.call1((analysis.bytes_read(), analysis.size().unwrap_or(0)))?;
        }
    }
    raised.check()?;
    let (facts, tables) = py.detach(|| {
        let (facts, tables, _) = analysis.finish();
        (serde_json::to_string(&facts), tables)
    });
    let facts = facts.map_err(|error| PyValueError::new_err(format!("core-failed: {error}")))?;
    let all = PyDict::new(py);
    for (name, table) in tables {
        all.set_item(name, columns(py, table)?)?;
    }
    Ok((facts, all))
}

/// What a signal's handler raised while the core waited for bytes.
#[derive(Clone, Default)]
struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn check(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Standard input, whose writer may be silent for ever: a signal that interrupts the wait is Python's to handle, and
/// where that raises, the input ends.
struct Stdin {
    raised: Raised,
}

impl Read for Stdin {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match io::stdin().lock().read(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
            if let Err(error) = Python::attach(|py| py.check_signals()) {
                *self.raised.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return Err(io::Error::other("interrupted"));
            }
        }
    }
}

fn columns(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for (name, column) in table {
        match column {
            Column::Float(values) => columns.set_item(name, values.into_pyarray(py))?,
            Column::Integer(values) => columns.set_item(name, values.into_pyarray(py))?,
            Column::Unsigned(values) => columns.set_item(name, values.into_pyarray(py))?,
            Column::Medium(values) => columns.set_item(name, values.into_pyarray(py))?,
            Column::Small(values) => columns.set_item(name, values.into_pyarray(py))?,
            Column::Flag(values) => columns.set_item(name, values.into_pyarray(py))?,
        }
    }
    Ok(columns)
}
