//! The network by its clauses: nothing is lost without being counted, no rate or queue is exceeded, runs repeat.

mod agents;
mod arrivals;
mod capacity;
mod captures;
#[path = "../common/mod.rs"]
mod common;
mod conservation;
mod datagrams;
mod ecn;
mod flows;
mod held;
mod l4s;
mod offload;
mod queues;
mod readers;
mod repetition;
mod skipping;
mod watching;
