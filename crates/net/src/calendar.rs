//! The interface through which network and hosts schedule events.

use sawtooth_units::Time;

pub trait Calendar {
    /// The first packet on `link`, which was empty, arrives at `time`.
    fn arrival(&mut self, link: u32, time: Time);
    /// `transmitter`, which holds packets, is free for the next one at `time`.
    fn departure(&mut self, transmitter: u32, time: Time);
    /// Sets timer `index` of the hosts to `due`; `Time::NEVER` cancels it.
    fn timer(&mut self, index: u32, due: Time);
    /// Adds a timer, on the host to which `link` leads.
    fn add_timer(&mut self, link: u32);
}
