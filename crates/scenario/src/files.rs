//! Values that a scenario takes from files. This crate opens no file: the caller reads them and passes on their
//! contents.

use crate::problem::Problem;
use sawtooth_net::scenario::Trace;

/// Changes: time in ns and the new value (bit/s, ns, or parts per billion), in order, with no time twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    pub rates: Vec<(u64, u64)>,
    pub delays: Vec<(u64, u64)>,
    pub losses: Vec<(u64, u64)>,
}

/// The content of a link's trace.
#[derive(Clone, Debug)]
pub enum Traced {
    Opportunities(Trace),
    Steps(Steps),
}

/// A list of transfers: times in ns (in order) and bytes; None for a missing column.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    pub times_ns: Vec<u64>,
    pub bytes: Vec<u64>,
}

/// Reads the files that a scenario names, with strict checks. Repeated calls with the same name return the same
/// content.
pub trait Files {
    /// Codes: file-not-found, file-unreadable, bad-trace.
    fn trace(&self, name: &str) -> Result<Traced, Problem>;
    /// Equally probable deviations, in 1/8192 of the standard deviation. Codes: file-not-found, file-unreadable,
    /// bad-table.
    fn deviations(&self, name: &str) -> Result<Vec<i16>, Problem>;
    /// Points of a cumulative distribution: bytes, and the share of sizes up to that in parts per billion. Codes:
    /// file-not-found, file-unreadable, bad-cdf.
    fn distribution(&self, name: &str) -> Result<Vec<[u64; 2]>, Problem>;
    /// Codes: file-not-found, file-unreadable, bad-transfers.
    fn transfers(&self, name: &str) -> Result<Listed, Problem>;
    /// SHA-256 of a file's content, in hexadecimal; the file's name if it cannot be read.
    fn digest_of(&self, name: &str) -> String {
        name.into()
    }
    /// The digest of a module's C sources and the headers beside them.
    fn digest_of_sources(&self, names: &[String]) -> String {
        names.join(" ")
    }
}

/// For use without files, as in a page.
pub struct NoFiles;

impl NoFiles {
    fn refused<A>(name: &str) -> Result<A, Problem> {
        let fix = "run it with the command line";
        Err(Problem { file: Some(name.into()), ..Problem::new("unsupported", "a page has no files", fix) })
    }
}

impl Files for NoFiles {
    fn trace(&self, name: &str) -> Result<Traced, Problem> {
        NoFiles::refused(name)
    }

    fn deviations(&self, name: &str) -> Result<Vec<i16>, Problem> {
        NoFiles::refused(name)
    }

    fn distribution(&self, name: &str) -> Result<Vec<[u64; 2]>, Problem> {
        NoFiles::refused(name)
    }

    fn transfers(&self, name: &str) -> Result<Listed, Problem> {
        NoFiles::refused(name)
    }
}
