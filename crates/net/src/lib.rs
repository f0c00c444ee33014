//! The network around TCP: links, queues, loss, hosts, flows and probes, and the events that move packets.

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

mod calendar;
mod engine;
pub mod frames;
mod hosts;
mod network;
mod observe;
mod packet;
mod rng;
pub mod scenario;

pub use engine::clock::Simulation;
pub use hosts::arrivals::{Transfer, Transfers};
pub use hosts::event_names;
pub use observe::tables;
pub use observe::tap::{Output, Taps};
pub use observe::trace::Fate;
