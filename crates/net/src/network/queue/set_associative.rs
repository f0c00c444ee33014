//! Set-associative choice of a flow's queue: the one it hashes to among the eight of its set, or another free one, so
//! that two flows share one only if all eight are taken.

use sawtooth_units::width::Fit;

const WAYS: usize = 8;

#[derive(Clone, Debug)]
pub struct SetAssociative {
    secret: u64,
    /// For each queue, the flow that used it last.
    flows: Vec<Option<u64>>,
}

impl SetAssociative {
    pub const QUEUES: usize = 1024;

    pub fn new(secret: u64) -> Self {
        SetAssociative { secret, flows: vec![None; Self::QUEUES] }
    }

    /// The queue of the flow with this key, and whether it is newly assigned.
    #[inline]
    pub fn find(&mut self, flow: u64, in_use: impl Fn(usize) -> bool) -> (usize, bool) {
        let mixed = (flow ^ self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let home = (mixed >> 54).fit_usize();
        if self.flows[home] == Some(flow) && in_use(home) {
            return (home, false);
        }
        let set = home - home % WAYS;
        let ways = || (0..WAYS).map(|way| set + (home + way) % WAYS);
        let own = ways().find(|&queue| self.flows[queue] == Some(flow));
        if let Some(queue) = own {
            return (queue, !in_use(queue));
        }
        let queue = ways().find(|&queue| !in_use(queue)).unwrap_or(home);
        self.flows[queue] = Some(flow);
        (queue, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_collide_only_in_a_full_set() {
        let mut ways = SetAssociative::new(7);
        let mut taken = vec![0; SetAssociative::QUEUES];
        for flow in 0..1_000 {
            let (queue, is_new) = ways.find(flow, |queue| taken[queue] > 0);
            assert!(is_new);
            taken[queue] += 1;
        }
        for set in taken.chunks(WAYS) {
            let flows: u32 = set.iter().sum();
            assert!(set.iter().all(|&shared| shared <= 1) || flows > 8, "{set:?}");
        }
        // A plain hash would leave 1024 / e of them empty.
        assert!(taken.iter().filter(|&&flows| flows == 0).count() < 200);
    }

    #[test]
    fn flow_keeps_its_queue_while_unclaimed() {
        let mut ways = SetAssociative::new(7);
        let (queue, _) = ways.find(1, |_| false);
        assert_eq!(ways.find(1, |_| true), (queue, false));
        // It has been empty since.
        assert_eq!(ways.find(1, |_| false), (queue, true));
    }
}
