//! The interface through which network and hosts schedule events.

use sawtooth_tcp::clock::Clock;
use sawtooth_units::Time;

pub trait Calendar {
    /// The first packet on `link`, which was empty, arrives at `time`.
    fn arrival(&mut self, link: u32, time: Time);
    /// `transmitter`, which holds packets, is free for the next one at `time`.
    fn departure(&mut self, transmitter: u32, time: Time);
    /// Sets timer `index` of the hosts to `due`; `Time::NEVER` cancels it.
    fn timer(&mut self, index: u32, due: Time);
    /// As [`Self::timer`], where Linux has one for this on its timer wheel that fires at `tick`. The order of timers at
    /// one tick depends on when they were set.
    fn tick(&mut self, index: u32, due: Time, tick: Time, clock: Clock);
    /// Adds a timer, on the host to which `link` leads.
    fn add_timer(&mut self, link: u32);
}
