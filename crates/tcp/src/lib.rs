//! A Linux-like TCP endpoint without I/O: time and randomness come in as arguments, packets go out through a sink.

pub mod cc;
pub mod clock;
pub mod minmax;
pub mod options;
pub mod packet;
pub mod receiver;
pub mod sender;
pub mod window;
