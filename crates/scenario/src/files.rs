//! What a scenario says by naming a file. Nothing here opens one: who calls reads them, and says what is in them.

use crate::problem::Problem;
use sawtooth_net::scenario::Trace;

/// From when (ns), and the new value: bit/s, ns, parts per billion; each in order, no time twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    pub rates: Vec<(u64, u64)>,
    pub delays: Vec<(u64, u64)>,
    pub losses: Vec<(u64, u64)>,
}

/// What a trace of a link says.
#[derive(Clone, Debug)]
pub enum Traced {
    Opportunities(Trace),
    Steps(Steps),
}

/// Transfers of a list: times in ns, in order, and bytes; none where the file has no such column.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    pub times_ns: Vec<u64>,
    pub bytes: Vec<u64>,
}

/// Reads files that a scenario names, strictly. Asked again for the same name it answers the same.
pub trait Files {
    /// Codes: file-not-found, file-unreadable, bad-trace.
    fn trace(&self, name: &str) -> Result<Traced, Problem>;
    /// Deviations of equal chances, in 1/8192 of the standard deviation. Codes: the same, bad-table.
    fn deviations(&self, name: &str) -> Result<Vec<i16>, Problem>;
    /// Points of a distribution: bytes, and the share that is no larger in parts per billion. Codes: the same, bad-cdf.
    fn distribution(&self, name: &str) -> Result<Vec<[u64; 2]>, Problem>;
    /// Codes: the same, bad-transfers.
    fn transfers(&self, name: &str) -> Result<Listed, Problem>;
    /// SHA-256 of what a file says, in hexadecimal; its name where it cannot be read.
    fn digest_of(&self, name: &str) -> String {
        name.into()
    }
    /// The same of a module's C sources, and the headers beside them.
    fn digest_of_sources(&self, names: &[String]) -> String {
        names.join(" ")
    }
}

/// Where there are none, as in a page.
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
