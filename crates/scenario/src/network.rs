//! Hosts, transmitters and directed links: every topology is built as such a network, and routes are found in it.

use crate::files::Traced;
use crate::jitter::Jitter;
use crate::loss::LossModel;
use crate::policer::Policer;
use crate::queue_model::QueueModel;
use crate::varying::{Change, Reorder, Share};
use std::collections::BTreeMap;

/// Sends one frame after another at a rate, and has a queue.
#[derive(Clone, Debug)]
pub struct Transmitter {
    pub name: String,
    pub rate_bps: u64,
    pub queue: QueueModel,
    /// The field of the scenario file that gives the queue, for messages.
    pub field: String,
}

/// One direction of a link. Hosts and transmitters are given by their numbers in the network.
#[derive(Clone, Debug)]
pub struct Wire {
    pub name: String,
    pub link: String,
    pub source: usize,
    pub target: usize,
    pub transmitter: Option<usize>,
    pub delay_ns: u64,
    pub loss: LossModel,
    pub overhead_bytes: u64,
    pub aggregation_ns: u64,
    pub opportunity_bytes: u64,
    pub changes: Vec<Change>,
    /// Which of `changes` and `trace` apply to this wire: rate, delay, loss.
    pub changing: [bool; 3],
    pub trace: Option<Traced>,
    pub jitter: Option<Jitter>,
    pub reorder: Option<Reorder>,
    pub duplicate: Option<Share>,
    pub corrupt: Option<Share>,
    pub policer: Option<Policer>,
    /// The field of the scenario file that describes this wire, for messages.
    pub field: String,
}

/// The network of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Network {
    pub hosts: Vec<String>,
    pub transmitters: Vec<Transmitter>,
    pub wires: Vec<Wire>,
    /// Default ends for flows that do not name theirs.
    pub ends: Option<(String, String)>,
    /// Explicit routes, as lists of wires, by source and target.
    pub routes: BTreeMap<(usize, usize), Vec<usize>>,
    host_index: BTreeMap<String, usize>,
}

impl Network {
    pub fn of(hosts: impl IntoIterator<Item = String>) -> Network {
        let hosts: Vec<String> = hosts.into_iter().collect();
        let host_index = hosts.iter().enumerate().map(|(index, name)| (name.clone(), index)).collect();
        Network { hosts, host_index, ..Network::default() }
    }

    /// A host's number.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.host_index.get(name).copied()
    }

    /// Adds a wire without delay and loss between two known hosts. Returns its number.
    pub fn join(&mut self, source: &str, target: &str, transmitter: Option<usize>) -> usize {
        let index = |name| self.host_index[name];
        self.wires.push(Wire {
            name: format!("{source}>{target}"),
            link: format!("{source}-{target}"),
            source: index(source),
            target: index(target),
            transmitter,
            delay_ns: 0,
            loss: LossModel::NONE,
            overhead_bytes: 0,
            aggregation_ns: 0,
            opportunity_bytes: 0,
            changes: Vec::new(),
            changing: [true; 3],
            trace: None,
            jitter: None,
            reorder: None,
            duplicate: None,
            corrupt: None,
            policer: None,
            field: "links".into(),
        });
        self.wires.len() - 1
    }

    /// The same with a delay and a loss.
    pub fn join_with(
        &mut self,
        source: &str,
        target: &str,
        transmitter: Option<usize>,
        delay_ns: u64,
        loss: LossModel,
    ) -> usize {
        let number = self.join(source, target, transmitter);
        let wire = &mut self.wires[number];
        (wire.delay_ns, wire.loss) = (delay_ns, loss);
        number
    }

    /// Adds a transmitter. Returns its number.
    pub fn transmit(&mut self, name: impl Into<String>, rate_bps: u64, queue: &QueueModel, field: &str) -> usize {
        let queue = queue.clone();
        self.transmitters.push(Transmitter { name: name.into(), rate_bps, queue, field: field.into() });
        self.transmitters.len() - 1
    }

    /// Propagation delay along wires, without transmission and queueing.
    pub fn delay_ns<'a>(&self, wires: impl IntoIterator<Item = &'a usize>) -> u64 {
        wires.into_iter().map(|wire| self.wires[*wire].delay_ns).sum()
    }
}
