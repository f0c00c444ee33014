//! What is to happen when, as the network and the hosts tell whoever takes events in order of time.

use sawtooth_units::Time;

pub trait Calendar {
    /// The first packet on its way over `link`, which was empty, arrives at `time`.
    fn arrival(&mut self, link: u32, time: Time);
    /// `transmitter`, which holds packets, is free for the next at `time`.
    fn departure(&mut self, transmitter: u32, time: Time);
    /// Sets timer `index` of the hosts to `due`; `Time::NEVER` cancels it.
    fn timer(&mut self, index: u32, due: Time);
    /// A timer more, of the host that `link` leads to.
    fn add_timer(&mut self, link: u32);
}
