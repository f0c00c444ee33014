//! A captured transfer as a whole, and when it says too little to estimate its path.

use serde::{Deserialize, Serialize};

use super::Refused;
use super::directions::{Acks, Data};
use super::statistics::{least, percent, three};
use sawtooth_units::width::Approx;

const MIN_DURATION_S: f64 = 2.0;
const MIN_SEGMENTS: u64 = 100;
/// If the application had nothing to send for a larger share of the time, the transfer says little about the path.
const MAX_IDLE: f64 = 0.25;
/// A capture point this far from both ends, as a share of the round trip, is between them.
const BETWEEN: f64 = 0.1;
/// Header bytes of a frame: Ethernet, IPv4 and TCP; and the timestamp option with its padding.
const HEADERS: u32 = 14 + 20 + 20;
const TIMESTAMPS: u32 = 12;

/// The facts of a connection that are needed here; the reference of captures defines them.
#[derive(Clone, Debug, Deserialize)]
pub struct Facts {
    handshake: Handshake,
    capture_point: Point,
    directions: Vec<Direction>,
}

/// From the capture point to each end and back, at the shortest.
#[derive(Clone, Debug, Deserialize)]
struct Point {
    to_client_s: Option<f64>,
    to_server_s: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Handshake {
    seen: bool,
    rtt_client_s: Option<f64>,
    rtt_server_s: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Direction {
    #[serde(flatten)]
    data: Option<Flow>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Flow {
    pub mss: u32,
    payload_bytes: u64,
    data_packets: u64,
    retransmits: u64,
    duration_s: f64,
    goodput_bps: Option<f64>,
    window_max_bytes: u64,
    rtt: RttFacts,
    limits: Limits,
}

#[derive(Clone, Debug, Deserialize)]
struct RttFacts {
    base_s: Option<f64>,
    whole: Option<WholeRtt>,
}

#[derive(Clone, Debug, Deserialize)]
struct WholeRtt {
    min_s: f64,
    mean_s: f64,
    max_s: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Limits {
    unknown_s: f64,
    sender_s: f64,
    receiver_window_s: f64,
    congestion_window_s: f64,
    path_s: f64,
    idle_s: f64,
}

impl Facts {
    /// The direction with more data, and its facts.
    pub fn main_direction(&self) -> Option<(u8, &Flow)> {
        let flows = self.directions.iter().map(|one| one.data.as_ref().filter(|flow| flow.payload_bytes > 0));
        let of = (0..).zip(flows).filter_map(|(side, flow)| Some((side, flow?)));
        of.reduce(|one, other| if other.1.payload_bytes > one.1.payload_bytes { other } else { one })
    }

    /// The handshake's round trip from the capture point to each end, client first, in s.
    fn halves(&self) -> [Option<f64>; 2] {
        [self.handshake.rtt_client_s, self.handshake.rtt_server_s]
    }

    /// The handshake's round trip from the capture point to the receiver of `direction`.
    pub fn beyond_s(&self, direction: u8) -> Option<f64> {
        self.halves()[usize::from(1 - direction)].filter(|_| self.handshake.seen)
    }

    /// Whether the capture point is nearer to the sender of `direction` than to the receiver; then the longer half is
    /// between data and its acknowledgement. Timestamps show it, else anything that shows both halves of the round
    /// trip.
    pub fn sender_side(&self, direction: u8, trips: &[f64], back: &[f64]) -> bool {
        let Point { to_client_s, to_server_s } = self.capture_point;
        match (least(back).zip(least(trips)), to_client_s.zip(to_server_s)) {
            (Some((back, trip)), _) => back < trip,
            (None, Some((client, server))) => (direction == 0) == (client <= server),
            (None, None) => true,
        }
    }
}

/// One bulk transfer as captured. Times are in s, rates in bit/s of payload over `duration_s`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transfer {
    /// 0: the client sends.
    pub direction: u8,
    /// "at the sender", "at the receiver" or between them.
    pub place: String,
    pub goodput_bps: Option<f64>,
    pub duration_s: f64,
    /// The capture includes slow start.
    pub from_start: bool,
    pub mss: u32,
    pub timestamps: bool,
    pub segments: u64,
    pub retransmits: u64,
    pub rtt_handshake_s: Option<f64>,
    pub rtt_min_s: Option<f64>,
    pub rtt_full_s: Option<f64>,
    pub rtt_mean_s: Option<f64>,
    pub rtt_max_s: Option<f64>,
    /// The shortest time that the near end took to answer; 0 if the capture point is not at an end.
    pub host_s: f64,
    pub window_bytes: Option<u64>,
    /// Shares of the time.
    pub application: f64,
    pub receive_window: f64,
}

impl Transfer {
    /// `trips` are from data to its acknowledgement, `shortest` is the least of a full segment, `back` from there to data.
    pub fn of(
        facts: &Facts,
        (direction, flow): (u8, &Flow),
        data: &Data,
        [trips, back]: [&[f64]; 2],
        shortest: Option<f64>,
    ) -> Self {
        let halves = facts.halves();
        let both = halves[0].zip(halves[1]).map(|(client, server)| client + server);
        let rtt_handshake_s = both.filter(|_| facts.handshake.seen);
        let nearer = least(back).unwrap_or(0.0);
        let full = least(trips).map(|trip| shortest.map_or(trip, |one| one.min(trip)));
        let rtt_full_s = full.map_or(flow.rtt.base_s, |trip| Some(trip + nearer));
        let mut place =
            if facts.sender_side(direction, trips, back) { "at the sender" } else { "at the receiver" }.to_owned();
        let mut host_s = least(trips).map_or(0.0, |trip| nearer.min(trip));
        if let (Some(trip), Some(whole)) = (least(trips), rtt_full_s)
            && nearer.min(trip) > BETWEEN * whole
        {
            host_s = 0.0;
            place = format!("between the ends, nearer {}; losses beyond that point may be missing", &place[3..]);
        }
        let limits = &flow.limits;
        let whole: f64 = [
            limits.unknown_s,
            limits.sender_s,
            limits.receiver_window_s,
            limits.congestion_window_s,
            limits.path_s,
            limits.idle_s,
        ]
        .iter()
        .sum();
        let share = |seconds: f64| if whole > 0.0 { seconds / whole } else { 0.0 };
        Transfer {
            direction,
            place,
            goodput_bps: flow.goodput_bps,
            duration_s: flow.duration_s,
            from_start: facts.handshake.seen,
            mss: flow.mss.clamp(48, 65_400),
            timestamps: data.tsval.iter().any(|&one| one > 0),
            segments: flow.data_packets,
            retransmits: flow.retransmits,
            rtt_handshake_s,
            rtt_min_s: flow.rtt.whole.as_ref().map_or(rtt_full_s, |trips| Some(trips.min_s)),
            rtt_full_s,
            rtt_mean_s: flow.rtt.whole.as_ref().map(|trips| trips.mean_s),
            rtt_max_s: flow.rtt.whole.as_ref().map(|trips| trips.max_s),
            host_s,
            window_bytes: Some(flow.window_max_bytes).filter(|&bytes| bytes > 0),
            application: share(limits.sender_s) + share(limits.idle_s),
            receive_window: share(limits.receiver_window_s),
        }
    }

    /// The Ethernet frame of a full segment as Linux counts it; a scenario's rate counts these.
    pub fn frame_bytes(&self) -> f64 {
        f64::from(self.mss + HEADERS + if self.timestamps { TIMESTAMPS } else { 0 })
    }

    /// Frame bytes per payload byte.
    pub fn wire_ratio(&self) -> f64 {
        self.frame_bytes() / f64::from(self.mss)
    }

    /// The shortest round trip of any kind.
    pub fn min_rtt_s(&self) -> Option<f64> {
        let full = self.rtt_full_s.filter(|&one| one > 0.0).or(self.rtt_min_s);
        [self.rtt_handshake_s, full].into_iter().flatten().reduce(f64::min)
    }
}

/// Refuses transfers from which nothing can be estimated, whatever program measured them. Times are in s; `application`
/// is the share of the time without data to send.
pub fn check_transfer(
    duration_s: Option<f64>,
    segments: Option<u64>,
    rtt_min_s: Option<f64>,
    rtt_mean_s: Option<f64>,
    application: f64,
) -> Result<(), Refused> {
    const LONGER: &str = "measure a bulk transfer of ten seconds or more";
    if let Some(lasted) = duration_s.filter(|&one| one < MIN_DURATION_S) {
        let message =
            format!("the transfer lasted {} s; less than {MIN_DURATION_S} s is mostly slow start", three(lasted));
        return Err(Refused::new("too-short", message, LONGER));
    }
    if let Some(few) = segments.filter(|&one| one < MIN_SEGMENTS) {
        let message = format!("the transfer had {few} segments of data; at least {MIN_SEGMENTS} are needed");
        return Err(Refused::new("too-short", message, LONGER));
    }
    if let Some((least, mean)) = rtt_min_s.zip(rtt_mean_s).filter(|(least, mean)| *mean < 0.99 * least) {
        let (least, mean) = (three(1e3 * least), three(1e3 * mean));
        let trips = format!("at least {least} ms, but {mean} ms in the mean");
        let message = format!("the round trips contradict each other: {trips}; data was sent again too early");
        return Err(Refused::new(
            "not-a-measurement",
            message,
            "capture a bulk transfer with the headers of both directions",
        ));
    }
    if application > MAX_IDLE {
        let share = percent(application, 0);
        let message = format!("the application, not the path, limited the transfer {share} of the time");
        return Err(Refused::new("application-limited", message, "measure a transfer that always has data to send"));
    }
    Ok(())
}

/// Checks that data and acknowledgements were both captured.
pub fn check_acknowledgements(acks: &Acks) -> Result<(), Refused> {
    if acks.ack.iter().all(|&one| one == 0) {
        let message = "the acknowledgements of this connection are not in the capture";
        return Err(Refused::new("not-a-measurement", message, "capture both directions"));
    }
    Ok(())
}

impl Transfer {
    /// How much longer the delivery took than the sending, at most: until the last acknowledgement.
    pub fn until_acknowledged(&self) -> f64 {
        self.duration_s / (self.duration_s + self.rtt_max_s.unwrap_or(0.0))
    }

    /// Its share of `bps`, by frames.
    pub fn frame_goodput_bps(&self) -> f64 {
        self.goodput_bps.unwrap_or(0.0) * self.wire_ratio()
    }

    pub fn bdp(&self, bps: f64, rtt_s: f64) -> f64 {
        (bps * rtt_s / 8.0 / self.frame_bytes()).max(1.0)
    }

    pub fn window(&self) -> Option<f64> {
        self.window_bytes.map(Approx::approx)
    }
}
