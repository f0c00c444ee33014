//! What is seen of a run: tables and captures, and what is read at the end of each interval.

pub mod sampling;
pub mod tables;
pub mod tap;
pub mod trace;
