//! `sawtooth._core.read_capture`: a capture's facts as JSON and its tables as numpy arrays.

use numpy::{Element, IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sawtooth_capture::path::{self, Estimated, Facts, Refused, Rows};
use sawtooth_capture::tables::{Column, Table};
use sawtooth_capture::{Analysis, RetentionPolicy};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Segments between two checks for signals in Python, some tens of milliseconds.
const STEP: u64 = 100_000;

/// Reads a capture; see the stub. Releases the GIL; Ctrl-C interrupts it.
#[pyfunction]
#[pyo3(signature = (path, details=None, progress=None))]
pub fn read_capture<'py>(
    py: Python<'py>,
    path: &str,
    details: Option<u32>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let raised = Raised::default();
    let policy = details.map_or(RetentionPolicy::None, RetentionPolicy::One);
    let opened = py.detach(|| match path {
        "-" => Analysis::new(Stdin { raised: raised.clone() }, policy),
        file => Analysis::open(file, policy),
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
        let (facts, mut tables, mut kept) = analysis.finish();
        tables.extend(kept.only().into_iter().flatten());
        (json(&facts), tables)
    });
    let facts = facts?;
    let all = PyDict::new(py);
    for (name, table) in tables {
        all.set_item(name, columns(py, table)?)?;
    }
    Ok((facts, all))
}

/// See the stub. Releases the GIL.
#[pyfunction]
pub fn capture_path<'py>(
    py: Python<'py>,
    facts: &str,
    segments: &Bound<'py, PyDict>,
    sacks: &Bound<'py, PyDict>,
) -> PyResult<String> {
    let facts: Facts = serde_json::from_str(facts).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let (t_s, direction, seq) = (column(segments, "t_s")?, column(segments, "direction")?, column(segments, "seq")?);
    let (length, ack, kind) = (column(segments, "length")?, column(segments, "ack")?, column(segments, "kind")?);
    let (tsval, tsecr) = (column(segments, "tsval")?, column(segments, "tsecr")?);
    let (segment, start) = (column(sacks, "segment")?, column(sacks, "start")?);
    let (end, dsack) = (column(sacks, "end")?, column(sacks, "dsack")?);
    let rows = Rows {
        t_s: t_s.as_slice()?,
        direction: direction.as_slice()?,
        seq: seq.as_slice()?,
        length: length.as_slice()?,
        ack: ack.as_slice()?,
        kind: kind.as_slice()?,
        tsval: Cow::Borrowed(tsval.as_slice()?),
        tsecr: Cow::Borrowed(tsecr.as_slice()?),
        sack_segment: segment.as_slice()?,
        sack_start: start.as_slice()?,
        sack_end: end.as_slice()?,
        sack_dsack: dsack.as_slice()?,
    };
    if !rows.is_consistent() {
        return Err(PyValueError::new_err("the columns are not those of the tables segments and sacks"));
    }
    json(&py.detach(|| path::estimate_path(&facts, &rows)))
}

/// See the stub.
#[pyfunction]
#[pyo3(signature = (duration_s, segments, rtt_min_s, rtt_mean_s, application))]
pub fn refused_transfer(
    duration_s: Option<f64>,
    segments: Option<u64>,
    rtt_min_s: Option<f64>,
    rtt_mean_s: Option<f64>,
    application: f64,
) -> Option<(&'static str, String, &'static str)> {
    let checked = path::check_transfer(duration_s, segments, rtt_min_s, rtt_mean_s, application);
    checked.err().map(|Refused { code, message, fix }| (code, message, fix))
}

/// See the stub.
#[pyfunction]
pub fn host_limit(bytes: f64, share: f64, limit: &str, host: &str, how: &str) -> PyResult<Option<(String, String)>> {
    let found = path::host_limit(bytes, share, how).zip(path::beyond_host(share, limit, host));
    found.map(|(estimated, open): (Estimated, String)| Ok((json(&estimated)?, open))).transpose()
}

/// See the stub.
#[pyfunction]
pub fn poisson_interval(count: u64) -> (f64, f64) {
    path::poisson_interval(count)
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(format!("core-failed: {error}")))
}

fn column<'py, T: Element>(table: &Bound<'py, PyDict>, name: &str) -> PyResult<PyReadonlyArray1<'py, T>> {
    let found = table.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("there is no column {name}")))?;
    found.extract().map_err(|_| PyValueError::new_err(format!("{name} is no column of its type")))
}

/// The exception of a signal handler that ran while the core waited for input.
#[derive(Clone, Default)]
struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn check(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Standard input. Its writer may stay silent forever, so a signal interrupts the wait and Python handles it. If the
/// handler raises, the input ends.
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
