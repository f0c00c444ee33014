//! What waits for a transmitter, and what is dropped: one file per discipline.

pub mod buckets;
pub mod cake;
pub mod cobalt;
pub mod codel;
pub mod delays;
pub mod drr;
pub mod dualpi2;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod pie;
pub mod red;
pub mod set_associative;
pub mod sfq;
pub mod taildrop;

use crate::network::link::Handle;
use crate::network::queue::cake::Cake;
use crate::network::queue::codel::{Codel, Store};
use crate::network::queue::dualpi2::DualPi2;
use crate::network::queue::fifo::Fifo;
use crate::network::queue::fq::Fq;
use crate::network::queue::fq_codel::FqCodel;
use crate::network::queue::fq_pie::FqPie;
use crate::network::queue::pie::Pie;
use crate::network::queue::red::Red;
use crate::network::queue::sfq::Sfq;
use crate::rng::Rng;
use crate::scenario;
use sawtooth_tcp::packet::Ecn;
use sawtooth_units::Time;
use std::sync::Arc;

/// A queue that holds its packets, because its discipline also decides on departure: it is asked for the next one
/// whenever the transmitter is free. One that decides only on arrival ([`taildrop::TailDrop`]) knows the departure at
/// once, so no event is needed. The next packet is chosen when the previous one begins to leave, as under Linux's
/// token bucket, which checks whether it has enough tokens for it; until then it still counts as waiting.
#[derive(Clone, Debug)]
pub struct Held {
    kind: Kind,
    chosen: Option<Waiting>,
    /// Packets and bytes that wait, including the chosen one.
    packets: u64,
    bytes: u64,
    /// The sum of the arrival times of waiting packets in nanoseconds; it wraps.
    since_ns: u64,
    limit_packets: u64,
    limit_bytes: u64,
}

/// Disciplines that hold packets.
#[derive(Clone, Debug)]
enum Kind {
    Fifo(Fifo),
    Codel(codel::Law, Codel, Fifo),
    FqCodel(FqCodel),
    Red(Red, Fifo),
    Pie(pie::Law, Pie, Rng, Fifo),
    FqPie(FqPie),
    Cake(Cake),
    Fq(Fq),
    Sfq(Sfq),
    DualPi2(DualPi2),
}

/// A held packet, and the link that it will take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub packet: Handle,
    pub link: u32,
    /// Bytes, including the link's overhead.
    pub size: u32,
    pub ecn: Ecn,
    pub since: Time,
    /// The key of its flow.
    pub flow: u64,
    /// Its place on its route.
    pub at: u32,
}

/// What a queueing discipline needs to know about its transmitter and host.
#[derive(Clone, Debug)]
pub struct Place {
    /// Bytes of the largest frame sent.
    pub frame: u32,
    /// The timer tick of its host.
    pub hz: u32,
    /// Its host sends flows over it.
    pub sends: bool,
    pub rng: Rng,
    /// For each place on a route, the hosts where the route begins and ends. Empty if no queue needs it.
    pub ends: Arc<[[u32; 2]]>,
}

/// Flows that began to wait since the start, and those waiting now: new ones, and those that continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flows {
    pub begun: u64,
    pub new: u64,
    pub old: u64,
}

/// Dropped packets, and the number marked instead.
#[derive(Debug, Default)]
pub struct Drops {
    pub packets: Vec<Waiting>,
    /// How many were dropped although there was room.
    pub early: u64,
    pub marks: u64,
    /// How often RED chose a packet, a shaper was asked too early, or DualPI2 had no room.
    pub overlimits: u64,
}

impl Drops {
    pub fn early(&mut self, waiting: Waiting) {
        self.early += 1;
        self.packets.push(waiting);
    }

    /// Marks a packet if its ends agreed on ECN; returns whether they did. An already marked packet counts again, as in
    /// Linux.
    pub fn marks(&mut self, waiting: &mut Waiting) -> bool {
        let may = waiting.ecn != Ecn::NotEct;
        if may {
            waiting.ecn = Ecn::Ce;
            self.marks += 1;
        }
        may
    }

    pub fn full(&mut self, waiting: Waiting) {
        self.packets.push(waiting);
    }

    /// Nothing was dropped, marked or counted.
    #[inline]
    pub fn none(&self) -> bool {
        self.packets.is_empty() && self.marks + self.overlimits == 0
    }
}

impl Held {
    /// `None`: the discipline knows departures on arrival.
    pub fn new(config: &scenario::Transmitter, place: Place) -> Option<Self> {
        let limits = [config.queue_packets, config.queue_bytes].map(|limit| limit.unwrap_or(u64::MAX));
        let Place { frame, hz, rng, .. } = place.clone();
        let kind = match config.discipline {
            scenario::Discipline::TailDrop | scenario::Discipline::Tbf(_) => return None,
            scenario::Discipline::Fifo {} => Kind::Fifo(Fifo::default()),
            scenario::Discipline::Codel(codel) => {
                Kind::Codel(codel::Law::new(codel, frame), Codel::default(), Fifo::default())
            }
            scenario::Discipline::FqCodel(given) => Kind::FqCodel(FqCodel::new(given, frame, rng)),
            scenario::Discipline::Red(given) => Kind::Red(Red::new(given, rng), Fifo::default()),
            scenario::Discipline::Pie(given) => {
                let law = pie::Law::new(given, frame, hz);
                Kind::Pie(law, Pie::new(&law), rng, Fifo::default())
            }
            scenario::Discipline::FqPie(given) => Kind::FqPie(FqPie::new(given, frame, hz, rng)),
            scenario::Discipline::Cake(given) => Kind::Cake(Cake::new(&given, place)),
            scenario::Discipline::Fq(given) => Kind::Fq(Fq::new(given, limits[0], place)),
            scenario::Discipline::Sfq(given) => Kind::Sfq(Sfq::new(given, limits[0], frame, rng)),
            scenario::Discipline::DualPi2(given) => Kind::DualPi2(DualPi2::new(given, frame, rng)),
        };
        let [limit_packets, limit_bytes] = limits;
        Some(Held { kind, chosen: None, packets: 0, bytes: 0, since_ns: 0, limit_packets, limit_bytes })
    }

    /// Takes a packet. What is dropped because of it (perhaps itself) goes to `drops`.
    #[inline(always)]
    pub fn put(&mut self, waiting: Waiting, drops: &mut Drops) {
        let before = drops.packets.len();
        let (packets, bytes) = (self.packets, self.bytes);
        self.packets += 1;
        self.bytes += u64::from(waiting.size);
        self.since_ns = self.since_ns.wrapping_add(waiting.since.nanos());
        let full = packets >= self.limit_packets || self.bytes > self.limit_bytes;
        self.kind.put(waiting, full, [packets, bytes], drops);
        self.forget(&drops.packets[before..]);
    }

    /// Removes dropped packets from the counts.
    #[inline(always)]
    fn forget(&mut self, dropped: &[Waiting]) {
        for waiting in dropped {
            self.packets -= 1;
            self.bytes -= u64::from(waiting.size);
            self.since_ns = self.since_ns.wrapping_sub(waiting.since.nanos());
        }
    }

    /// Chooses the packet that leaves next, at `now`. What is dropped before it goes to `drops`.
    #[inline(always)]
    pub fn choose(&mut self, now: Time, drops: &mut Drops) {
        if self.chosen.is_none() {
            self.look(now, drops);
        }
    }

    fn look(&mut self, now: Time, drops: &mut Drops) {
        let before = drops.packets.len();
        self.chosen = self.kind.next(now, drops);
        self.forget(&drops.packets[before..]);
    }

    /// The flows, if tc reports them.
    pub fn flows(&self) -> Option<Flows> {
        match &self.kind {
            Kind::FqCodel(queue) => Some(queue.flows()),
            Kind::FqPie(queue) => Some(queue.flows()),
            _ => None,
        }
    }

    /// Whether packets may have to wait although the transmitter is free.
    pub fn shapes(&self) -> bool {
        matches!(&self.kind, Kind::Cake(queue) if queue.ready().is_some())
    }

    /// When the next packet may leave a transmitter that is free from `free` on; `None`: none waits, or this is not a
    /// shaper.
    pub fn lets_go(&self, free: Time) -> Option<Time> {
        match &self.kind {
            Kind::Cake(queue) if self.chosen.is_none() && self.packets > 0 => queue.ready(),
            Kind::Cake(queue) if self.chosen.is_some() => queue.ready().map(|_| free),
            _ => None,
        }
    }

    /// Takes the chosen packet.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Waiting> {
        let chosen = self.chosen.take();
        self.forget(chosen.as_slice());
        chosen
    }

    /// Packets and bytes that wait.
    pub fn waiting(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    /// How long the waiting packets have waited by `now`, in nanoseconds in total.
    pub fn waited_ns(&self, now: Time) -> u64 {
        self.packets.wrapping_mul(now.nanos()).wrapping_sub(self.since_ns)
    }
}

impl Kind {
    /// Takes a packet while this many packets and bytes wait; `full`: they leave no room for it.
    fn put(&mut self, mut waiting: Waiting, full: bool, [packets, bytes]: [u64; 2], drops: &mut Drops) {
        let (early, queue) = match self {
            Kind::FqCodel(queue) => return queue.put(waiting, full, drops),
            Kind::FqPie(queue) => return queue.put(waiting, full, drops),
            Kind::Cake(queue) => return queue.put(waiting, packets == 0, drops),
            Kind::Fq(queue) => return queue.put(waiting, drops),
            Kind::Sfq(queue) => return queue.put(waiting, packets, drops),
            Kind::DualPi2(queue) => return queue.put(waiting, full, bytes, drops),
            Kind::Fifo(queue) | Kind::Codel(_, _, queue) => (false, queue),
            Kind::Red(red, queue) => (red.drops(&mut waiting, bytes, drops), queue),
            Kind::Pie(_, pie, _, queue) if full => {
                pie.dropped();
                (false, queue)
            }
            Kind::Pie(law, pie, rng, queue) => (pie.drops(law, &mut waiting, bytes, rng, drops), queue),
        };
        if early {
            drops.early(waiting);
        } else if full {
            drops.full(waiting);
        } else {
            queue.push(waiting);
        }
    }

    /// The packet that leaves next, at `now`.
    fn next(&mut self, now: Time, drops: &mut Drops) -> Option<Waiting> {
        match self {
            Kind::Fifo(queue) | Kind::Red(_, queue) => queue.pop(),
            Kind::FqCodel(queue) => queue.next(now, drops),
            Kind::FqPie(queue) => queue.next(now),
            Kind::Cake(queue) => queue.next(now, drops),
            Kind::Fq(queue) => queue.next(now),
            Kind::Sfq(queue) => queue.next(now, drops),
            Kind::DualPi2(queue) => queue.next(now, drops),
            Kind::Pie(law, pie, _, queue) => queue.pop().inspect(|first| {
                pie.leaves(law, now, first, queue.waiting().1);
            }),
            Kind::Codel(law, codel, queue) => codel.next(law, now, queue, drops),
        }
    }
}

impl Store for Fifo {
    fn pop(&mut self) -> Option<Waiting> {
        Fifo::pop(self)
    }
    fn bytes(&self) -> u64 {
        self.waiting().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;
    use sawtooth_units::Span;

    const CODEL: scenario::Codel =
        scenario::Codel { target_ns: 5_000_000, interval_ns: 100_000_000, ecn: true, ce_threshold_ns: None };
    const RED: scenario::Red = scenario::Red {
        min_bytes: 20_000,
        max_bytes: 60_000,
        weight_log: 4,
        probability_ppb: 20_000_000,
        adaptive: false,
        ecn: true,
        harddrop: false,
    };
    const PIE: scenario::Pie =
        scenario::Pie { target_ns: 15_000_000, tupdate_ns: 15_000_000, alpha: 2, beta: 20, bytemode: false, ecn: true };

    const CAKE: scenario::Cake = scenario::Cake {
        bandwidth_bps: None,
        interval_ns: 100_000_000,
        target_ns: 5_000_000,
        isolation: scenario::Isolation::TripleIsolate,
        memory_bytes: 15 << 20,
    };

    /// The fate of packets of 1000 bytes, if `loads[n]` of them arrive in the n-th 500 ms and one leaves each
    /// millisecond.
    fn overload(discipline: scenario::Discipline, ecn: Ecn, loads: &[u64]) -> (Drops, Vec<Waiting>) {
        let config = scenario::Transmitter {
            name: "t".into(),
            rate_bps: 8_000_000,
            queue_packets: Some(10_000),
            queue_bytes: None,
            pace: None,
            discipline,
        };
        let rng = Rng::new(1, Purpose::Queue, 0);
        let place = Place { frame: 1000, hz: 1000, sends: false, rng, ends: [[0, 1]].into() };
        let Some(mut queue) = Held::new(&config, place) else { panic!("it holds packets") };
        let (mut drops, mut left, mut number) = (Drops::default(), Vec::new(), 0);
        for ms in 0..500 * loads.len() as u64 {
            let since = Time::ZERO + Span::from_millis(ms);
            let load = loads[(ms / 500) as usize];
            for _ in 0..load * (ms + 1) / 500 - load * ms / 500 {
                let packet = Handle::new(number, 1000);
                queue.put(Waiting { packet, link: 0, size: 1000, ecn, since, flow: 1, at: 0 }, &mut drops);
                number += 1;
            }
            queue.choose(since, &mut drops);
            left.extend(queue.take());
        }
        (drops, left)
    }

    #[test]
    fn ect_packets_are_marked_instead_of_dropped() {
        let kinds = [
            scenario::Discipline::Codel(CODEL),
            scenario::Discipline::Red(RED),
            scenario::Discipline::Pie(PIE),
            scenario::Discipline::Cake(CAKE),
        ];
        for kind in kinds {
            let (drops, left) = overload(kind, Ecn::Ect0, &[510; 4]);
            let marked = left.iter().filter(|waiting| waiting.ecn == Ecn::Ce).count() as u64;
            assert_eq!((drops.packets.len(), drops.early), (0, 0), "{kind:?}");
            assert!(marked > 0 && drops.marks >= marked, "{kind:?}: {marked} {}", drops.marks);
            let (drops, left) = overload(kind, Ecn::NotEct, &[510; 4]);
            assert!(drops.early > 0 && drops.marks == 0, "{kind:?}");
            assert!(left.iter().all(|waiting| waiting.ecn == Ecn::NotEct), "{kind:?}");
        }
    }

    #[test]
    fn codel_marks_by_its_drop_law() {
        // The queue grows to 50 ms: it is above the target after 50 ms, the first mark follows an interval later, and
        // for the rest of the second the distance between marks is the interval divided by the root of their number.
        let (drops, _) = overload(scenario::Discipline::Codel(CODEL), Ecn::Ect0, &[550, 500]);
        let intervals = |marks: u64| (1..marks).map(|n| 0.1 / (n as f64).sqrt()).sum::<f64>();
        let expected = (1..).find(|&marks| intervals(marks + 1) > 0.85).unwrap_or(0);
        assert!(drops.marks.abs_diff(expected) <= 2, "{} {expected}", drops.marks);
    }

    #[test]
    fn ce_threshold_marks_all_longer_delays() {
        let step = scenario::Codel { ecn: false, ce_threshold_ns: Some(20_000_000), target_ns: 1 << 40, ..CODEL };
        let (drops, left) = overload(scenario::Discipline::Codel(step), Ecn::Ect1, &[550, 500]);
        let late = left
            .iter()
            .enumerate()
            .filter(|(ms, waiting)| Time::ZERO + Span::from_millis(*ms as u64) > waiting.since + Span::from_millis(20));
        assert!(late.clone().count() > 100);
        assert_eq!(drops.marks, left.iter().filter(|waiting| waiting.ecn == Ecn::Ce).count() as u64);
        assert!(late.clone().all(|(_, waiting)| waiting.ecn == Ecn::Ce));
        assert_eq!(drops.marks, late.count() as u64);
    }

    #[test]
    fn red_harddrop_drops_above_maximum() {
        let hard = scenario::Red { harddrop: true, ..RED };
        let [soft, hard] = [RED, hard].map(|red| overload(scenario::Discipline::Red(red), Ecn::Ect0, &[700]).0);
        assert_eq!((soft.early, hard.early > 0), (0, true));
        assert!(soft.marks > hard.marks && hard.marks > 0);
    }

    #[test]
    fn pie_marks_up_to_a_tenth_and_drops_above() {
        let (drops, _) = overload(scenario::Discipline::Pie(PIE), Ecn::Ect0, &[800; 10]);
        assert!(drops.marks > 0 && drops.early > drops.marks, "{} {}", drops.marks, drops.early);
    }
}
