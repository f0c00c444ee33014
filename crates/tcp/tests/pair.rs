//! Model fuzz: a sender and a receiver joined by a channel that loses, delays, reorders and duplicates. Whatever it
//! does, all data arrives in order exactly once, the counters stay consistent and nothing panics.

use sawtooth_tcp::cc::Algorithm;
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::packet::{Ack, Burst, CWR, PUSH};
use sawtooth_tcp::receiver::{Data, Echo, Receiver};
use sawtooth_tcp::sender::{Sender, Start};
use sawtooth_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// What the channel does, in percent of the packets, and its delay.
#[derive(Clone, Copy, Debug)]
struct Channel {
    delay_us: u64,
    jitter_us: u64,
    loss: u64,
    ack_loss: u64,
    ack_repeats: u64,
    data_repeats: u64,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    algorithm: Algorithm,
    options: HostOptions,
    channel: Channel,
    /// Bytes in all.
    total: u64,
}

impl Case {
    fn draw(random: &mut Random) -> Self {
        let options = HostOptions {
            hz: random.pick(&[100, 250, 1000]),
            mss: random.pick(&[536, 1448, 8948]),
            initial_window: random.pick(&[1, 2, 10, 40]),
            receive_buffer: random.pick(&[65_536, 262_144, 6 << 20]),
            send_buffer: random.pick(&[65_536, 4 << 20]),
            delayed_ack: random.chance(80),
            sack: random.chance(70),
            timestamps: random.chance(60),
            ..HostOptions::default()
        };
        let channel = Channel {
            delay_us: random.pick(&[10, 500, 20_000, 150_000]),
            jitter_us: random.pick(&[0, 0, 100, 30_000]),
            loss: random.pick(&[0, 1, 5, 20]),
            ack_loss: random.pick(&[0, 1, 20]),
            ack_repeats: random.pick(&[0, 5]),
            data_repeats: random.pick(&[0, 0, 5]),
        };
        let total = 1 + random.below(1_500 * u64::from(options.mss));
        Case { algorithm: random.pick(Algorithm::ALL), options, channel, total }
    }
}

#[derive(Clone, Copy, Debug)]
enum Arrival {
    Data(Data),
    Ack(Ack),
}

/// Bytes, as stretches that do not touch: where each begins and ends.
#[derive(Default)]
struct Arrived(BTreeMap<u64, u64>);

impl Arrived {
    fn add(&mut self, mut start: u64, mut end: u64) {
        while let Some((&from, &to)) = self.0.range(..=end).next_back()
            && to >= start
        {
            (start, end) = (start.min(from), end.max(to));
            self.0.remove(&from);
        }
        self.0.insert(start, end);
    }
    /// The first byte from `byte` on that has not arrived.
    fn end_of(&self, byte: u64) -> u64 {
        self.0.range(..=byte).next_back().map_or(byte, |(_, &end)| end.max(byte))
    }
}

struct Pair {
    case: Case,
    random: Random,
    now: Time,
    sender: Sender,
    receiver: Receiver,
    on_way: BinaryHeap<Reverse<(Time, u64)>>,
    arrivals: BTreeMap<u64, Arrival>,
    sent: u64,
    /// Which bytes have arrived at least once, and how many of them without a hole, discarded ones too.
    arrived: Arrived,
    in_order: u64,
    bursts: Vec<Burst>,
}

impl Pair {
    fn new(case: Case, random: Random) -> Self {
        let now = Time::from_nanos(1);
        let clock = Clock::new(now, case.options.hz);
        let receiver = Receiver::new(case.options, case.options.sack, Echo::Nothing, clock);
        let start = Start {
            host_queued: true,
            handshake_us: 2 * case.channel.delay_us,
            syn_repeats: 0,
            send_window: receiver.initial_window(),
            ts_recent: 1,
            ecn: false,
            stays_open: false,
            seed: 7,
        };
        let sender = Sender::new(case.algorithm, case.options, case.options.sack, case.total, start, clock);
        let (on_way, arrivals, arrived) = Default::default();
        Pair { case, random, now, sender, receiver, on_way, arrivals, sent: 0, arrived, in_order: 0, bursts: vec![] }
    }

    fn clock(&self) -> Clock {
        Clock::new(self.now, self.case.options.hz)
    }

    fn carry(&mut self, arrival: Arrival, loss: u64, repeats: u64) {
        let copies = if self.random.chance(loss) { 0 } else { 1 + u64::from(self.random.chance(repeats)) };
        for _ in 0..copies {
            let jitter = self.random.below(self.case.channel.jitter_us + 1);
            let due = self.now + Span::from_micros(self.case.channel.delay_us + jitter);
            self.on_way.push(Reverse((due, self.sent)));
            self.arrivals.insert(self.sent, arrival);
            self.sent += 1;
        }
    }

    fn with_sender(&mut self, act: impl FnOnce(&mut Sender, Clock, &mut Vec<Burst>)) {
        let clock = self.clock();
        let mut bursts = std::mem::take(&mut self.bursts);
        act(&mut self.sender, clock, &mut bursts);
        loop {
            // The host's queue drains at once.
            self.sender.host_queue = 0;
            if !self.sender.throttled {
                break;
            }
            self.sender.on_room(clock, &mut bursts);
        }
        let Channel { loss, data_repeats, .. } = self.case.channel;
        for burst in bursts.drain(..) {
            let mss = self.case.options.mss;
            assert!(burst.bytes > 0 && burst.count == burst.bytes.div_ceil(mss), "{burst:?}");
            let end = burst.end();
            assert!(end <= self.case.total, "{burst:?} goes beyond the flow");
            for seq in (burst.start..end).step_by(mss as usize) {
                let length = (end - seq).min(u64::from(mss)) as u32;
                let push = if burst.push && seq + u64::from(length) == end { PUSH } else { 0 };
                let cwr = if burst.cwr && seq == burst.start { CWR } else { 0 };
                let Burst { ecn, tsval, tsecr, .. } = burst;
                let data = Data { seq, length, flags: ecn as u8 | push | cwr, tsval, tsecr };
                self.carry(Arrival::Data(data), loss, data_repeats);
            }
        }
        self.bursts = bursts;
        self.check_sender();
    }

    fn check_sender(&self) {
        let (f, w) = (&self.sender.flight, &self.sender.window);
        let context = || format!("{:?} {w:?} {:?}", self.case, self.sender.stats);
        assert!(f.sacked_out + f.lost_out <= f.packets_out, "{}", context());
        assert!(f.packets_out + f.retrans_out >= f.sacked_out + f.lost_out, "{}", context());
        let mss = u64::from(self.case.options.mss);
        assert!(u64::from(f.packets_out) >= (f.snd_nxt - f.snd_una).div_ceil(mss), "{}", context());
        assert_eq!(f.packets_out == 0, f.snd_nxt == f.snd_una, "{}", context());
        assert!(f.snd_nxt <= self.case.total && w.cwnd >= 1, "{}", context());
        assert!(f.snd_una <= self.receiver.delivered(), "{}", context());
        let stats = self.sender.stats;
        assert!(stats.segments_out - stats.retransmits >= f.snd_nxt.div_ceil(mss), "{}", context());
    }

    fn with_receiver(&mut self, act: impl FnOnce(&mut Receiver, Clock, &mut Vec<Ack>)) {
        let clock = self.clock();
        let mut acks = Vec::new();
        act(&mut self.receiver, clock, &mut acks);
        // With timestamps, data that is older than what has filled a gap is discarded (PAWS), and comes again.
        let delivered = self.receiver.delivered();
        let taken = delivered == self.in_order || self.case.options.timestamps && delivered < self.in_order;
        assert!(taken, "{delivered} of {} {:?}", self.in_order, self.case);
        let Channel { ack_loss, ack_repeats, .. } = self.case.channel;
        for ack in acks {
            assert_eq!(ack.next, delivered, "{:?}", self.case);
            for block in ack.sack.blocks() {
                assert!(!block.is_empty(), "{:?} {ack:?}", self.case);
                let held = self.arrived.end_of(block.start) >= block.end;
                assert!(held, "{:?} {ack:?} tells of what never came", self.case);
            }
            self.carry(Arrival::Ack(ack), ack_loss, ack_repeats);
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Ack(ack) => self.with_sender(|sender, clock, out| sender.on_ack(&ack, clock, out)),
            Arrival::Data(data) => {
                self.arrived.add(data.seq, data.seq + u64::from(data.length));
                self.in_order = self.arrived.end_of(0);
                self.with_receiver(|receiver, clock, acks| {
                    receiver.note_handshake(500, clock);
                    receiver.on_data(data, clock, &mut |ack| acks.push(*ack));
                });
            }
        }
    }

    /// Runs until everything is acknowledged.
    fn run(&mut self) {
        self.with_sender(|sender, clock, out| sender.start(clock, out));
        let mut events = 0;
        while !self.sender.is_done() {
            events += 1;
            assert!(events < 2_000_000, "no end: {:?} {:?}", self.case, self.sender.window);
            let packet = self.on_way.peek().map_or(Time::NEVER, |&Reverse((due, _))| due);
            let (timer, pace) = (self.sender.timer(), self.sender.next_room(|_| Time::NEVER));
            let receiver = self.receiver.timer();
            let due = packet.min(timer).min(pace).min(receiver);
            assert_ne!(due, Time::NEVER, "nothing will ever happen: {:?} {:?}", self.case, self.sender.window);
            self.now = self.now.max(due);
            if due == packet {
                let Some(Reverse((_, number))) = self.on_way.pop() else { unreachable!("it was peeked at") };
                let arrival = self.arrivals.remove(&number).expect("each packet arrives once");
                self.arrive(arrival);
            } else if due == timer {
                self.with_sender(|sender, clock, out| sender.on_timer(clock, out));
            } else if due == pace {
                self.with_sender(|sender, clock, out| sender.on_room(clock, out));
            } else {
                self.with_receiver(|receiver, clock, acks| receiver.on_timer(clock, &mut |ack| acks.push(*ack)));
            }
        }
        assert_eq!(self.receiver.delivered(), self.case.total);
        assert_eq!(self.sender.timer(), Time::NEVER);
        let f = &self.sender.flight;
        assert_eq!((f.packets_out, f.sacked_out, f.lost_out, f.retrans_out), (0, 0, 0, 0), "{:?}", self.case);
    }
}

fn run_cases(seed: u64, count: usize, bend: impl Fn(&mut Case)) {
    let mut random = Random(seed);
    for _ in 0..count {
        let mut case = Case::draw(&mut random);
        bend(&mut case);
        Pair::new(case, Random(random.next())).run();
    }
}

#[test]
fn all_data_arrives_in_order_exactly_once_whatever_the_channel_does() {
    run_cases(1, 2_000, |_| {});
}

#[test]
fn all_data_arrives_with_every_algorithm_tick_and_option() {
    for &algorithm in Algorithm::ALL {
        for hz in [100, 250, 1000] {
            for (sack, timestamps) in [(false, false), (false, true), (true, false), (true, true)] {
                run_cases(2, 6, |case| {
                    case.algorithm = algorithm;
                    case.options = HostOptions { hz, sack, timestamps, ..case.options };
                });
            }
        }
    }
}

#[test]
fn all_data_arrives_when_half_of_everything_is_lost() {
    run_cases(3, 20, |case| {
        (case.channel.loss, case.channel.ack_loss) = (50, 50);
        case.total = case.total.min(40 * u64::from(case.options.mss));
    });
}

#[test]
fn a_perfect_channel_never_makes_the_sender_retransmit() {
    let mut random = Random(4);
    for _ in 0..200 {
        let mut case = Case::draw(&mut random);
        case.channel = Channel { loss: 0, ack_loss: 0, ack_repeats: 0, data_repeats: 0, jitter_us: 0, ..case.channel };
        let mut pair = Pair::new(case, Random(random.next()));
        pair.run();
        // A probe that repeats the tail is no loss; everything else would be a mistake.
        assert_eq!(pair.sender.stats.timeouts, 0, "{case:?}");
        assert!(pair.sender.stats.retransmits <= pair.sender.stats.tail_probes, "{case:?} {:?}", pair.sender.stats);
    }
}
