//! The sender by its clauses: what it sends and when, what counts as lost, what is undone.

#[path = "../common/mod.rs"]
mod common;
mod ecn;
mod idle;
mod rate;
mod recovery;
mod sending;
mod timers;
mod undo;
mod window_probe;
