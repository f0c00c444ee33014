//! The order of events: cells process their events in order of time, one cell after the other.

pub mod agenda;
pub mod cells;
pub mod clock;
pub mod departures;
pub mod schedule;
pub mod wheel;
