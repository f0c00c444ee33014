//! Readers: applications at the receiving host that request data, each over separate lines.

pub mod client_connection;
mod page;
mod playback;

use crate::calendar::Calendar;
use crate::hosts::arrivals::{size, unit};
use crate::hosts::reader::client_connection::ClientConnection;
use crate::hosts::reader::page::Visit;
use crate::hosts::reader::playback::Playback;
use crate::hosts::{Hosts, Outside};
use crate::observe::tables::{Page, Response, Segment};
use crate::rng::{Purpose, Rng};
use crate::scenario::{Application, Scenario, Think, Traffic};
use sawtooth_units::width::{Approx, Fit, Whole};
use sawtooth_units::{Span, Time};

/// All readers, and their lines.
#[derive(Debug, Default)]
pub struct Readers {
    all: Vec<Reader>,
    pub lines: Vec<ClientConnection>,
    /// The first line of each flow; None without readers.
    first: Vec<Option<u32>>,
}

#[derive(Debug)]
struct Reader {
    flow: u32,
    /// Its number among those of its flow.
    number: u32,
    /// Its first line, and the number of lines.
    first: u32,
    count: u32,
    start: Time,
    /// When it closes its connections, whatever has arrived.
    until: Time,
    sizes: Rng,
    thinks: Rng,
    doing: Activity,
}

/// Its current activity.
#[derive(Debug)]
enum Activity {
    Requests,
    Pages(Visit),
    Video(Playback),
}

impl Readers {
    /// The scenario's readers; each flow's connections begin at its entry in `connections`.
    pub fn new(scenario: &Scenario, connections: &[u32]) -> Self {
        let mut readers = Readers::default();
        for (flow, config) in scenario.flows.iter().enumerate() {
            let Some(asks) = config.traffic.requested() else {
                readers.first.push(None);
                continue;
            };
            readers.first.push(Some(readers.lines.len().fit_u32()));
            let start = Time::from_nanos(config.start_ns);
            let until = config.duration_ns.map_or(Time::NEVER, |ns| start + Span::from_nanos(ns));
            for number in 0..config.count / asks.connections() {
                let rng = |purpose| Rng::new(scenario.seed, purpose, (flow as u64) << 32 | number as u64);
                let reader = readers.all.len().fit_u32();
                let first = readers.lines.len().fit_u32();
                for line in 0..asks.connections() {
                    let connection = connections[flow] + (number * asks.connections() + line).fit_u32();
                    readers.lines.push(ClientConnection::new(connection, reader));
                }
                readers.all.push(Reader {
                    flow: flow.fit_u32(),
                    number: number.fit_u32(),
                    first,
                    count: asks.connections().fit_u32(),
                    start,
                    until,
                    sizes: rng(Purpose::Answer),
                    thinks: rng(Purpose::Think),
                    doing: match asks {
                        Application::Requests { .. } => Activity::Requests,
                        Application::Pages { .. } => Activity::Pages(Visit::default()),
                        Application::Video { .. } => Activity::Video(Playback::default()),
                    },
                });
            }
        }
        readers
    }

    /// The line of the `number`-th connection of a flow whose connections are opened by readers.
    pub fn line(&self, flow: u32, number: u32) -> Option<u32> {
        self.first[flow as usize].map(|first| first + number)
    }

    /// For a connection opened by a reader: requests sent, and requests taken.
    pub fn requests(&self, flow: u32, number: u32) -> Option<[u64; 2]> {
        self.line(flow, number).map(|line| self.lines[line as usize].requests())
    }

    /// The number of timers.
    pub fn timers(&self) -> usize {
        self.lines.len() + self.all.len()
    }

    /// The connection of each timer: one per line, then one per reader.
    pub fn timed(&self) -> impl Iterator<Item = u32> + '_ {
        let of_reader = |reader: &Reader| self.lines[reader.first as usize].connection;
        self.lines.iter().map(|line| line.connection).chain(self.all.iter().map(of_reader))
    }

    /// When each reader begins.
    pub fn starts(&self) -> impl Iterator<Item = Time> + '_ {
        self.all.iter().map(|reader| reader.start)
    }
}

/// Longest exponential time, in means; only one in 10^17 is longer.
const LONGEST_MEANS: f64 = 40.0;

/// How long a reader thinks.
fn wait(think: Think, rng: &mut Rng) -> Span {
    match think {
        Think::FixedNs(ns) => Span::from_nanos(ns),
        Think::ExponentialNs(mean) => {
            let means = (-libm::log(unit(rng))).min(LONGEST_MEANS);
            Span::from_nanos((mean.approx() * means).round().whole())
        }
    }
}

impl Hosts {
    /// A reader begins, has finished thinking, has room again, or reaches its end.
    #[cold]
    pub(super) fn reader_wakes<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let reader = &mut self.readers.all[index as usize];
        let lines = reader.first..reader.first + reader.count;
        if outside.now >= reader.until {
            lines.for_each(|line| self.hang_up(line, outside));
            return;
        }
        outside.calendar.timer(self.reader_timer(index), self.readers.all[index as usize].until);
        match self.scenario.flows[self.readers.all[index as usize].flow as usize].traffic {
            Traffic::Requested(Application::Pages { objects, .. }) => {
                if let Activity::Pages(visit) = &mut self.readers.all[index as usize].doing {
                    visit.begin(objects, outside.now);
                }
                lines.for_each(|line| self.ask_next(index, line, outside));
            }
            _ => self.ask_next(index, lines.start, outside),
        }
    }

    /// A reader sends its next request over one of its lines, if there is one.
    fn ask_next<C: Calendar>(&mut self, index: u32, line: u32, outside: &mut Outside<C>) {
        let reader = &mut self.readers.all[index as usize];
        let Some(asks) = self.scenario.flows[reader.flow as usize].traffic.requested() else { return };
        let bytes = match (asks, &mut reader.doing) {
            (Application::Pages { sizes, .. }, Activity::Pages(visit)) => {
                if !visit.takes_one() {
                    return;
                }
                size(sizes, 0, &mut reader.sizes)
            }
            (Application::Requests { sizes, .. }, _) => size(sizes, 0, &mut reader.sizes),
            (Application::Video { rates_bps, segment_ns, buffer_ns, rule }, Activity::Video(playback)) => {
                playback.chooses(rates_bps, [*segment_ns, *buffer_ns], *rule, outside.now)
            }
            _ => return,
        };
        self.ask(line, bytes, outside);
    }

    /// Everything requested over a line has arrived.
    #[cold]
    pub(super) fn answered<C: Calendar>(&mut self, line: u32, outside: &mut Outside<C>) {
        let now = outside.now;
        let answer = self.readers.lines[line as usize].take_answer(now);
        let index = self.readers.lines[line as usize].reader;
        let connection = &self.connections[self.readers.lines[line as usize].connection as usize];
        let (flow, number) = (i64::from(connection.flow), i64::from(connection.number));
        let row = Response {
            t_s: now.nanos().approx() / 1e9,
            flow,
            connection: number,
            generation: i64::from(connection.receiver_generation),
            number: answer.number.cast_signed(),
            bytes: answer.bytes.cast_signed(),
            response_s: answer.took.secs_f64(),
        };
        self.reports.responses.get_or_insert_default().push((now, row));
        let reader = &mut self.readers.all[index as usize];
        let Some(asks) = self.scenario.flows[reader.flow as usize].traffic.requested() else { return };
        let wait = match (asks, &mut reader.doing) {
            (Application::Requests { think, .. }, _) => wait(*think, &mut reader.thinks),
            (Application::Pages { think, keep, .. }, Activity::Pages(visit)) => {
                if !visit.has_come(answer.bytes) {
                    return self.ask_next(index, line, outside);
                }
                let (began, nth) = (visit.began, visit.number);
                let row = Page {
                    t_s: now.nanos().approx() / 1e9,
                    flow,
                    reader: i64::from(reader.number),
                    number: nth.cast_signed() - 1,
                    objects: visit.objects.cast_signed(),
                    bytes: visit.bytes.cast_signed(),
                    load_s: now.since(began).secs_f64(),
                };
                self.reports.pages.get_or_insert_default().push((now, row));
                let (keep, wait) = (*keep, wait(*think, &mut reader.thinks));
                let lines = reader.first..reader.first + reader.count;
                if !keep {
                    lines.for_each(|line| self.hang_up(line, outside));
                }
                wait
            }
            (Application::Video { segment_ns, buffer_ns, .. }, Activity::Video(playback)) => {
                let had = playback.takes(*segment_ns, answer.bytes, answer.took, now);
                let row = Segment {
                    t_s: now.nanos().approx() / 1e9,
                    flow,
                    connection: number,
                    number: answer.number.cast_signed(),
                    rate_bps: had.rate_bps.cast_signed(),
                    bytes: answer.bytes.cast_signed(),
                    download_s: answer.took.secs_f64(),
                    buffer_s: had.buffer.secs_f64(),
                    stalled_s: had.stalled.secs_f64(),
                };
                self.reports.segments.get_or_insert_default().push((now, row));
                playback.until_room(*segment_ns, *buffer_ns)
            }
            _ => return,
        };
        if wait == Span::ZERO {
            return self.reader_wakes(index, outside);
        }
        let due = now + wait;
        let until = self.readers.all[index as usize].until;
        outside.calendar.timer(self.reader_timer(index), due.min(until));
    }
}
