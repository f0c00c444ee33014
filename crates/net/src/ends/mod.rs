//! What hosts do: connections from handshake to end, and probes.

pub mod connection;
pub mod endpoints;
pub mod lifecycle;
pub mod probe;
