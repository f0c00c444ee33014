//! Whose turn it is among flow queues: deficit round robin, where a flow that begins to wait comes before those that
//! continue (RFC 8290 section 4.2).

use crate::network::queue::{Flows, Waiting};
use crate::network::slice_queue::SliceQueue;
use sawtooth_units::width::Fit;

#[derive(Clone, Debug)]
pub struct Drr {
    /// Bytes per turn.
    quantum: i64,
    flows: Vec<Turn>,
    new: SliceQueue<u32>,
    old: SliceQueue<u32>,
    begun: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    credit: i64,
    listed: bool,
}

impl Drr {
    pub fn new(flows: u32, quantum: u32) -> Self {
        let flows = vec![Turn::default(); flows as usize];
        Drr { quantum: i64::from(quantum), flows, new: SliceQueue::new(), old: SliceQueue::new(), begun: 0 }
    }

    /// A packet of the flow waits.
    pub fn wait(&mut self, flow: usize) {
        let turn = &mut self.flows[flow];
        if !turn.listed {
            *turn = Turn { credit: self.quantum, listed: true };
            self.new.push(flow.fit_u32());
            self.begun += 1;
        }
    }

    pub fn flows(&self) -> Flows {
        Flows { begun: self.begun, new: self.new.len() as u64, old: self.old.len() as u64 }
    }

    /// The next packet; `take` takes one from a flow's queue, if it holds any.
    pub fn next(&mut self, mut take: impl FnMut(usize) -> Option<Waiting>) -> Option<Waiting> {
        loop {
            let (is_new, is_last) = (self.new.len() > 0, self.old.len() == 0);
            let list = if is_new { &mut self.new } else { &mut self.old };
            let flow = *list.front()?;
            let turn = &mut self.flows[flow as usize];
            if turn.credit <= 0 {
                turn.credit += self.quantum;
            } else if let Some(waiting) = take(flow as usize) {
                turn.credit -= i64::from(waiting.size);
                return Some(waiting);
            } else if !is_new || is_last {
                turn.listed = false;
                list.pop();
                continue;
            }
            // A new flow without more packets moves behind the old ones once, so that it is not new again at once.
            list.pop();
            self.old.push(flow);
        }
    }
}
