//! What is observed of a run: tables and captures, and the samples at the end of each interval.

pub mod sampling;
pub mod tables;
pub mod tap;
pub mod trace;
