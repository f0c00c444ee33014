//! Links, transmitters, queues and routes, and the packets on them. What packets say is nothing to them.

pub mod link;
pub mod loss;
pub mod packet;
pub mod packets;
pub mod passage;
pub mod ring;
pub mod routes;
pub mod transmitter;
