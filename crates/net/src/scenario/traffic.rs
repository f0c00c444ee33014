//! What a flow sends, and when: one kind with its own fields, so that no flow contradicts itself; and the JSON of a
//! flow, which has the fields of all kinds side by side.

use crate::scenario::{Application, Arrivals, DURATION_MAX_NS, Datagrams, Flow, Paced, within};
use serde::{Deserialize, Serialize};

/// The traffic of a flow.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Each of `count` connections carries what an application writes. With a range of lifetimes, a connection that
    /// ends is replaced at once.
    Written { writes: Writes, lifetime_ns: Option<[u64; 2]> },
    /// The same, but applications read the data at given times.
    Read { writes: Option<Paced>, reads: Paced },
    /// Transfers that start over time, each over its own connection.
    Arrivals(Arrivals),
    /// `count` senders of datagrams instead of connections; the congestion control is only a label.
    Datagrams(Datagrams),
    /// Applications at the receiving host open the connections and request the data.
    Requested(Application),
}

/// What an application writes.
#[derive(Clone, Copy, Debug)]
pub enum Writes {
    /// Whenever the send buffer has room.
    Endless,
    /// This many bytes, as soon as the send buffer takes them.
    Bytes(u64),
    Paced(Paced),
}

impl Traffic {
    /// Number of bytes after which each connection ends; `u64::MAX`: never for that reason.
    pub fn bytes(&self) -> u64 {
        if let Traffic::Written { writes: Writes::Bytes(bytes), .. } = self { *bytes } else { u64::MAX }
    }

    /// When applications read; `None`: they read all data at once.
    pub fn reads(&self) -> Option<Paced> {
        if let Traffic::Read { reads, .. } = self { Some(*reads) } else { None }
    }

    /// What applications at the receiving host request; `None`: the sending host sends without requests.
    pub fn requested(&self) -> Option<&Application> {
        if let Traffic::Requested(application) = self { Some(application) } else { None }
    }

    pub fn datagrams(&self) -> Option<Datagrams> {
        if let Traffic::Datagrams(datagrams) = self { Some(*datagrams) } else { None }
    }

    /// Whether connections open when transfers arrive, not at the start.
    pub fn arrives(&self) -> bool {
        matches!(self, Traffic::Arrivals(_))
    }

    /// Refuses values out of range; `count` is the flow's, which is at `at`.
    pub(super) fn check(&self, count: usize, at: &str) -> Result<(), String> {
        let paced = |paced: &Paced, field: &str| paced.check(&format!("{at}.{field}"));
        match self {
            Traffic::Written { writes, lifetime_ns } => {
                if let Some([low, high]) = *lifetime_ns {
                    within(high, 1, DURATION_MAX_NS, &format!("{at}.lifetime_ns[1]"))?;
                    within(low, 1, high, &format!("{at}.lifetime_ns[0]"))?;
                }
                match writes {
                    Writes::Endless => Ok(()),
                    Writes::Bytes(0) => Err(format!("{at}.bytes is zero")),
                    Writes::Bytes(_) => Ok(()),
                    Writes::Paced(writes) => paced(writes, "writes"),
                }
            }
            Traffic::Read { writes, reads } => {
                writes.iter().try_for_each(|writes| paced(writes, "writes"))?;
                paced(reads, "reads")
            }
            Traffic::Arrivals(_) if count != 1 => {
                Err(format!("{at}.arrivals say by how many connections they are sent"))
            }
            Traffic::Arrivals(arrivals) => arrivals.check(&format!("{at}.arrivals")),
            Traffic::Datagrams(datagrams) => datagrams.check(&format!("{at}.datagrams")),
            Traffic::Requested(application) => application.check(count, &format!("{at}.asks")),
        }
    }
}

/// A flow in JSON.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    name: String,
    cc: String,
    count: usize,
    start_ns: u64,
    duration_ns: Option<u64>,
    bytes: Option<u64>,
    lifetime_ns: Option<[u64; 2]>,
    forward: Vec<usize>,
    backward: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    writes: Option<Paced>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<Arrivals>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    datagrams: Option<Datagrams>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reads: Option<Paced>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asks: Option<Application>,
}

impl TryFrom<Fields> for Flow {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Flow, String> {
        let Fields { name, cc, count, start_ns, duration_ns, forward, backward, variant, .. } = fields;
        let Fields { bytes, lifetime_ns, writes, arrivals, datagrams, reads, asks, .. } = fields;
        let traffic = match (bytes, lifetime_ns, writes, arrivals, datagrams, reads, asks) {
            (None, lifetime_ns, None, None, None, None, None) => {
                Traffic::Written { writes: Writes::Endless, lifetime_ns }
            }
            (Some(bytes), lifetime_ns, None, None, None, None, None) => {
                Traffic::Written { writes: Writes::Bytes(bytes), lifetime_ns }
            }
            (None, lifetime_ns, Some(writes), None, None, None, None) => {
                Traffic::Written { writes: Writes::Paced(writes), lifetime_ns }
            }
            (None, None, writes, None, None, Some(reads), None) => Traffic::Read { writes, reads },
            (None, None, None, Some(arrivals), None, None, None) => Traffic::Arrivals(arrivals),
            (None, None, None, None, Some(datagrams), None, None) => Traffic::Datagrams(datagrams),
            (None, None, None, None, None, None, Some(application)) => Traffic::Requested(application),
            _ => return Err(format!("flow {name:?} has fields of more than one kind of traffic")),
        };
        Ok(Flow { name, cc, count, start_ns, duration_ns, traffic, forward, backward, variant, module: None })
    }
}

impl From<Flow> for Fields {
    fn from(flow: Flow) -> Fields {
        let Flow { name, cc, count, start_ns, duration_ns, traffic, forward, backward, variant, module: _ } = flow;
        let ways = Fields { forward, backward, ..Fields::default() };
        let mut fields = Fields { name, cc, count, start_ns, duration_ns, variant, ..ways };
        match traffic {
            Traffic::Written { writes, lifetime_ns } => {
                fields.lifetime_ns = lifetime_ns;
                match writes {
                    Writes::Endless => {}
                    Writes::Bytes(bytes) => fields.bytes = Some(bytes),
                    Writes::Paced(writes) => fields.writes = Some(writes),
                }
            }
            Traffic::Read { writes, reads } => (fields.writes, fields.reads) = (writes, Some(reads)),
            Traffic::Arrivals(arrivals) => fields.arrivals = Some(arrivals),
            Traffic::Datagrams(datagrams) => fields.datagrams = Some(datagrams),
            Traffic::Requested(application) => fields.asks = Some(application),
        }
        fields
    }
}
