//! Probes: echo requests at a fixed interval, through the same queues as all other traffic.

use crate::observe::tables;
use crate::scenario;
use sawtooth_units::width::Approx;
use sawtooth_units::{Span, Time};
use std::collections::VecDeque;

/// Most unanswered probes to wait for; older ones count as lost.
const OUTSTANDING_MAX: usize = 4_096;

#[derive(Clone, Debug)]
pub struct Prober {
    interval: Span,
    left: u64,
    sent: u64,
    pub forward_at: u32,
    pub backward_at: u32,
    /// Number and time of unanswered probes, oldest first.
    outstanding: VecDeque<(u64, Time)>,
}

impl Prober {
    pub fn new(config: &scenario::Probe, forward_at: u32, backward_at: u32) -> Self {
        Prober {
            interval: Span::from_nanos(config.interval_ns),
            left: config.count,
            sent: 0,
            forward_at,
            backward_at,
            outstanding: VecDeque::new(),
        }
    }

    fn row(index: u32, sent: Time, rtt_s: f64) -> tables::Probe {
        tables::Probe { t_s: sent.nanos().approx() / 1e9, probe: i64::from(index), rtt_s }
    }

    /// The number of the probe to send now, if one is left.
    pub fn next(&mut self, index: u32, now: Time, table: &mut Vec<(Time, tables::Probe)>) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        if self.outstanding.len() == OUTSTANDING_MAX
            && let Some((_, sent)) = self.outstanding.pop_front()
        {
            table.push((now, Self::row(index, sent, f64::NAN)));
        }
        self.left -= 1;
        self.outstanding.push_back((self.sent, now));
        self.sent += 1;
        Some(self.sent - 1)
    }

    pub fn next_due(&self, now: Time) -> Time {
        if self.left == 0 { Time::NEVER } else { now + self.interval }
    }

    /// Unanswered probes before `seq` are lost: paths do not reorder.
    pub fn answer(&mut self, index: u32, seq: u64, now: Time, table: &mut Vec<(Time, tables::Probe)>) {
        while let Some(&(number, sent)) = self.outstanding.front()
            && number <= seq
        {
            self.outstanding.pop_front();
            let rtt_s = if number == seq { now.since(sent).secs_f64() } else { f64::NAN };
            table.push((now, Self::row(index, sent, rtt_s)));
        }
    }

    /// The run is over: unanswered probes count as lost.
    pub fn give_up(&mut self, index: u32, table: &mut Vec<(Time, tables::Probe)>) {
        for (_, sent) in self.outstanding.drain(..) {
            table.push((Time::NEVER, Self::row(index, sent, f64::NAN)));
        }
    }
}
