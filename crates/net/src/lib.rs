//! The network around TCP: links, queues, loss, hosts, flows and probes, and the events that move packets between them.

#![cfg_attr(
    not(test),
    warn(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::unwrap_used
    )
)]

mod agenda;
mod cells;
mod connection;
mod endpoints;
mod engine;
mod lifecycle;
mod link;
mod loss;
mod packet;
mod packets;
mod passage;
mod probe;
mod ring;
mod rng;
mod routes;
mod sampling;
pub mod scenario;
mod schedule;
pub mod tables;
mod tap;
mod transmitter;
mod wheel;

pub use engine::Simulation;
pub use tap::{Output, Taps};
