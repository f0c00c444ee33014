//! A receiver whose application reads late: what is delivered, when the window closes and opens, what probes of it
//! receive.

use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::packet::Ack;
use sawtooth_tcp::receiver::{Data, Echo, Receiver};
use sawtooth_units::{Span, Time};

const MSS: u64 = 1448;
const RTT_MS: u32 = 20;

/// Drives a [`Receiver`] by hand, from 1 s on. Segments are full.
struct Driver {
    receiver: Receiver,
    now: Time,
}

/// An application that asks for nothing by itself, past the quick acknowledgements of the start, with all read so far:
/// 40 segments.
fn waiting(options: HostOptions) -> Driver {
    let now = Time::from_nanos(1_000_000_000);
    let clock = Clock::new(now, 250);
    let mut receiver = Receiver::new(options, options.sack, Echo::Nothing, clock);
    receiver.note_handshake(u64::from(RTT_MS) * 1_000, clock);
    receiver.wait_for_reads();
    let mut driver = Driver { receiver, now };
    driver.read(40 * MSS);
    for seq in 0..40 {
        driver.later(Span::from_millis(10)).data(seq);
    }
    driver
}

impl Driver {
    fn clock(&self) -> Clock {
        Clock::new(self.now, 250)
    }
    fn later(&mut self, span: Span) -> &mut Self {
        self.now += span;
        self
    }
    fn acks(&mut self, act: impl FnOnce(&mut Receiver, Clock, &mut dyn FnMut(&Ack))) -> Vec<Ack> {
        let mut acks = Vec::new();
        let clock = self.clock();
        act(&mut self.receiver, clock, &mut |ack| acks.push(*ack));
        acks
    }
    /// The segment with this number, of a sender that echoes what this end said a round trip ago.
    fn data(&mut self, segment: u64) -> Vec<Ack> {
        let tsval = self.clock().timestamp();
        let data = Data { seq: segment * MSS, length: MSS as u32, flags: 0, tsval, tsecr: tsval - RTT_MS };
        self.acks(|receiver, clock, mut emit| _ = receiver.on_data(data, clock, &mut emit))
    }
    /// The application asks for more bytes.
    fn read(&mut self, bytes: u64) -> Vec<Ack> {
        self.acks(|receiver, clock, mut emit| receiver.read(bytes, Time::NEVER, clock, &mut emit))
    }
    /// The application reads what has arrived, up to `bytes`, and sleeps for `pause` after it.
    fn read_some(&mut self, bytes: u64, pause: Span) -> Vec<Ack> {
        self.acks(|receiver, clock, mut emit| receiver.read_some(bytes, pause, clock, &mut emit))
    }
    fn window_probe(&mut self) -> Vec<Ack> {
        self.acks(|receiver, clock, mut emit| receiver.on_window_probe(clock, &mut emit))
    }
    /// The delayed acknowledgement.
    fn fire(&mut self) -> Ack {
        loop {
            self.now = self.receiver.timer();
            assert_ne!(self.now, Time::NEVER, "no timer is set");
            if let Some(ack) = self.acks(|receiver, clock, mut emit| receiver.on_timer(clock, &mut emit)).pop() {
                return ack;
            }
        }
    }
    /// Data comes until the window has no room for a segment, each as soon as it may be sent. How many segments in all.
    fn close(&mut self) -> u64 {
        let mut segment = 40;
        let mut edge = 41 * MSS;
        loop {
            while (segment + 1) * MSS <= edge {
                let acks = self.later(Span::from_millis(1)).data(segment);
                segment += 1;
                edge = acks.last().map_or(edge, |ack| ack.next + ack.window);
            }
            if self.receiver.timer() == Time::NEVER {
                return segment;
            }
            let ack = self.fire();
            edge = ack.next + ack.window;
        }
    }
}

#[test]
fn what_is_not_read_is_not_delivered_and_what_was_asked_for_is_when_it_comes() {
    let mut driver = waiting(HostOptions::default());
    driver.data(40);
    assert_eq!(driver.receiver.delivered(), 40 * MSS);
    driver.read(3 * MSS / 2);
    assert_eq!(driver.receiver.delivered(), 41 * MSS);
    driver.data(41);
    driver.data(42);
    assert_eq!(driver.receiver.delivered(), 40 * MSS + 3 * MSS / 2);
}

#[test]
fn read_some_takes_what_arrived_and_sleeps() {
    let pause = Span::from_millis(10);
    let mut driver = waiting(HostOptions::default());
    // It waits for the first byte and takes it with what came along.
    driver.read_some(3 * MSS, pause);
    assert_eq!(driver.receiver.reads_at(), Time::NEVER);
    driver.later(Span::from_millis(50)).data(40);
    assert_eq!((driver.receiver.delivered(), driver.receiver.reads_at()), (41 * MSS, driver.now + pause));
    // What comes while it sleeps waits, also if it is less than was asked for.
    (41..46).for_each(|seq| drop(driver.later(Span::from_millis(1)).data(seq)));
    assert_eq!(driver.receiver.delivered(), 41 * MSS);
    for delivered in [44, 46] {
        driver.now = driver.receiver.reads_at();
        driver.read_some(3 * MSS, pause);
        assert_eq!((driver.receiver.delivered(), driver.receiver.reads_at()), (delivered * MSS, driver.now + pause));
    }
}

#[test]
fn an_application_that_does_not_read_closes_the_window_before_its_memory_is_full() {
    let options = HostOptions { receive_buffer: 1 << 20, ..HostOptions::default() };
    let mut driver = waiting(options);
    let come = driver.close();
    // It never grew: the application never read more in a round trip than was offered.
    let bytes = (come - 40) * MSS;
    assert!((100_000..131_072).contains(&bytes), "{bytes} bytes");
}

#[test]
fn a_window_is_announced_again_when_a_sixteenth_is_free_and_not_before() {
    let mut driver = waiting(HostOptions { receive_buffer: 1 << 20, ..HostOptions::default() });
    let come = driver.close();
    let mut read = 0;
    let ack = loop {
        driver.later(Span::from_millis(1));
        read += MSS;
        if let Some(&ack) = driver.read(MSS).first() {
            break ack;
        }
    };
    assert_eq!(ack.next, come * MSS);
    // A buffer of 17 segments is free only when all of it is read, and the window was not zero before but less than a
    // segment.
    assert_eq!(read, 17 * MSS);
    assert!((131_072 / 16 * 162 / 256..17 * MSS).contains(&ack.window), "{} bytes", ack.window);
}

#[test]
fn a_probe_of_the_window_is_answered_twice_a_second_at_most() {
    let mut driver = waiting(HostOptions { receive_buffer: 1 << 20, ..HostOptions::default() });
    let come = driver.close();
    let times_ms = [200, 600, 690, 704, 1_000, 1_190, 1_208];
    let start = driver.now;
    let answered = times_ms.map(|ms| {
        driver.now = start + Span::from_millis(ms);
        driver.window_probe().iter().map(|ack| ack.next).collect::<Vec<_>>()
    });
    let yes = vec![come * MSS];
    assert_eq!(answered, [yes.clone(), vec![], vec![], yes.clone(), vec![], vec![], yes]);
}

#[test]
fn data_that_waits_is_acknowledged_late_while_the_window_cannot_move_on() {
    let mut driver = waiting(HostOptions { receive_buffer: 1 << 20, ..HostOptions::default() });
    // The window is at its widest, so two more segments would shrink it: only the timer acknowledges them.
    let acks: Vec<usize> = (40..60).map(|seq| driver.later(Span::from_millis(1)).data(seq).len()).collect();
    assert!(acks.iter().sum::<usize>() <= 1, "{acks:?}");
    assert_ne!(driver.receiver.timer(), Time::NEVER);
}

#[test]
fn after_a_reset_the_application_reads_what_had_come_and_nothing_is_acknowledged() {
    let mut driver = waiting(HostOptions::default());
    (40..50).for_each(|seq| drop(driver.data(seq)));
    let receiver = Box::new(driver.receiver.clone()).closed();
    driver.receiver = *receiver.expect("ten segments wait");
    assert_eq!(driver.receiver.timer(), Time::NEVER);
    assert!(driver.read(10 * MSS).is_empty());
    assert_eq!(driver.receiver.delivered(), 50 * MSS);
    assert!(Box::new(driver.receiver).closed().is_none());
}

#[test]
fn what_comes_at_one_instant_is_read_when_the_application_runs_and_acknowledged_once() {
    let mut driver = waiting(HostOptions { receive_buffer: 1 << 20, ..HostOptions::default() });
    driver.read(u64::MAX);
    driver.data(40);
    let bundle: Vec<usize> = (41..51)
        .map(|seq| {
            driver.receiver.sleep(driver.now + Span::from_nanos(2));
            driver.data(seq).len()
        })
        .collect();
    assert_eq!((bundle, driver.receiver.delivered()), (vec![0; 10], 41 * MSS));
    assert_eq!(driver.receiver.timer(), driver.now + Span::from_nanos(2));
    driver.later(Span::from_nanos(2));
    let acks = driver.acks(|receiver, clock, mut emit| receiver.wake(clock, &mut emit));
    assert_eq!(acks.iter().map(|ack| ack.next).collect::<Vec<_>>(), [51 * MSS]);
    assert_eq!(driver.receiver.delivered(), 51 * MSS);
}
