//! What happens when: cells take their events in order of time, one after the other.

pub mod agenda;
pub mod cells;
pub mod clock;
pub mod departures;
pub mod schedule;
pub mod wheel;
