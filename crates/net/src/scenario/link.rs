//! Links, and how links and transmitters change over time.

use super::{BURST_MAX, DURATION_MAX_NS, RATE_MAX_BPS, is_usual, within};
use serde::{Deserialize, Serialize};

/// One direction of a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub name: String,
    pub from: usize,
    pub to: usize,
    /// `None`: unlimited rate, no queue.
    pub transmitter: Option<usize>,
    pub delay_ns: u64,
    /// Long-term share of lost packets, in parts per billion.
    pub loss_ppb: u64,
    /// `None`: each packet is lost independently.
    #[serde(default)]
    pub loss_pattern: Option<LossPattern>,
    pub overhead_bytes: u64,
    /// Interval at which waiting packets leave together (aggregation), in ns.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub aggregation_ns: u64,
    /// Changes of the loss: time in ns and parts per billion, in order. Before the first, `loss_ppb` applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<(u64, u64)>,
    /// Changes of the delay: time and delay in ns, in order. Before the first, `delay_ns` applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// Share of duplicated packets (and of corrupted ones), with the correlation of the random numbers, in parts per
    /// billion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<(u64, u64)>,
    /// Placed after the transmitter and before jitter, loss and the other effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
}

/// Drops traffic above a rate and burst size.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    pub rate_bps: u64,
    pub burst_bytes: u64,
}

/// Random deviation of the delay.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    pub ns: u64,
    /// Equally probable deviations, in 1/8192 of `ns`. Empty: a uniform distribution up to `ns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<i16>,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub correlation_ppb: u64,
    /// Whether packets keep their order.
    #[serde(default)]
    pub ordered: bool,
}

/// Packets without delay, which overtake others; at most every `gap`-th packet.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    pub ppb: u64,
    pub gap: u64,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub correlation_ppb: u64,
}

impl Link {
    /// Whether anything but a constant delay happens to packets on this link.
    pub fn varies(&self) -> bool {
        self.jitter.is_some() || self.separates()
    }

    /// Whether the segments of a super-packet may meet different fates on this link. Jitter that keeps packets in order
    /// delays all of it.
    pub fn separates(&self) -> bool {
        self.aggregation_ns > 0
            || self.jitter.as_ref().is_some_and(|jitter| !jitter.ordered)
            || self.reorder.is_some()
            || self.duplicate.is_some()
            || self.corrupt.is_some()
            || self.policer.is_some()
            || !self.delays.is_empty()
    }

    /// Whether packets may be lost at random on this link, at any time.
    pub fn may_lose(&self) -> bool {
        self.loss_ppb > 0 || self.loss_pattern.is_some() || !self.losses.is_empty()
    }

    /// The shortest delay of a packet.
    pub fn least_delay_ns(&self) -> u64 {
        if self.reorder.is_some() {
            return 0;
        }
        let least = self.delays.iter().map(|&(_, ns)| ns).fold(self.delay_ns, u64::min);
        match &self.jitter {
            Some(jitter) => {
                let furthest = jitter.table.iter().map(|&one| one.min(0).unsigned_abs()).max().map_or(8_192, u64::from);
                let below = u128::from(jitter.ns) * u128::from(furthest) / 8_192 + 1;
                least.saturating_sub(u64::try_from(below).unwrap_or(u64::MAX))
            }
            None => least,
        }
    }

    pub(super) fn check(&self, at: &str) -> Result<(), String> {
        for (steps, most, what) in [(&self.losses, 1_000_000_000, "losses"), (&self.delays, DURATION_MAX_NS, "delays")]
        {
            in_order(steps, &format!("{at}.{what}"))?;
            for &(_, value) in steps {
                within(value, 0, most, &format!("{at}.{what}"))?;
            }
        }
        if !self.losses.is_empty() && self.loss_pattern.is_some() {
            return Err(format!("{at} has a pattern of losses that changes"));
        }
        within(self.aggregation_ns, 0, 1_000_000_000, &format!("{at}.aggregation_ns"))?;
        if let Some(jitter) = &self.jitter {
            within(jitter.ns, 0, DURATION_MAX_NS, &format!("{at}.jitter.ns"))?;
            within(jitter.table.len() as u64, 0, 1 << 16, &format!("{at}.jitter.table"))?;
            within(jitter.correlation_ppb, 0, 1_000_000_000, &format!("{at}.jitter.correlation_ppb"))?;
        }
        if let Some(reorder) = &self.reorder {
            within(reorder.ppb, 0, 1_000_000_000, &format!("{at}.reorder.ppb"))?;
            within(reorder.correlation_ppb, 0, 1_000_000_000, &format!("{at}.reorder.correlation_ppb"))?;
            within(reorder.gap, 1, 1_000_000_000, &format!("{at}.reorder.gap"))?;
        }
        if let Some(policer) = &self.policer {
            within(policer.rate_bps, 1, RATE_MAX_BPS, &format!("{at}.policer.rate_bps"))?;
            within(policer.burst_bytes, 1, BURST_MAX, &format!("{at}.policer.burst_bytes"))?;
        }
        for (ppb, correlation) in self.duplicate.iter().chain(&self.corrupt) {
            within(*ppb, 0, 1_000_000_000, &format!("{at}: share"))?;
            within(*correlation, 0, 1_000_000_000, &format!("{at}: correlation"))?;
        }
        Ok(())
    }
}

/// Which packets are lost, if losses are not independent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum LossPattern {
    /// The last packet of each group of this size.
    Every(u64),
    /// The packets with these numbers, in ascending order, counted from 1.
    Packets(Vec<u64>),
    /// Two states. Probabilities per packet, in parts per billion: of changing from good to bad (`p`) and from bad to
    /// good (`r`), and of loss in each state.
    GilbertElliott { p_ppb: u64, r_ppb: u64, bad_ppb: u64, good_ppb: u64 },
}

/// How a transmitter's rate changes over time.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum RateSchedule {
    /// Times in ns with the new rate in bit/s. Before the first, the transmitter's rate applies.
    Steps(Vec<(u64, u64)>),
    /// Opportunities at a constant interval to transmit a number of bytes.
    Slots {
        every_ns: u64,
        bytes: u64,
    },
    Trace(Trace),
}

/// Times of opportunities to transmit a number of bytes, in order. The last one is also the period with which they
/// repeat.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    pub times_ms: Vec<u32>,
    pub period_ms: u64,
    pub bytes: u64,
}

impl RateSchedule {
    pub(super) fn check(&self, at: &str) -> Result<(), String> {
        match self {
            RateSchedule::Steps(steps) => {
                in_order(steps, at)?;
                steps.iter().try_for_each(|&(_, bps)| within(bps, 0, RATE_MAX_BPS, at))
            }
            &RateSchedule::Slots { every_ns, bytes } => {
                within(every_ns, 1, DURATION_MAX_NS, &format!("{at}.every_ns"))?;
                within(bytes, 1, 1 << 30, &format!("{at}.bytes"))
            }
            RateSchedule::Trace(trace) => {
                within(trace.bytes, 1, 1 << 30, &format!("{at}.bytes"))?;
                within(trace.period_ms, 1, u64::from(u32::MAX), &format!("{at}.period_ms"))?;
                let is_ordered = trace.times_ms.is_sorted();
                if !is_ordered || trace.times_ms.last().map(|&last| u64::from(last)) != Some(trace.period_ms) {
                    return Err(format!("{at}.times_ms go backwards, or do not end with the period"));
                }
                Ok(())
            }
        }
    }
}

/// Checks that steps are in order of time, with no time twice.
fn in_order(steps: &[(u64, u64)], what: &str) -> Result<(), String> {
    if steps.windows(2).all(|pair| pair[0].0 < pair[1].0) { Ok(()) } else { Err(format!("{what}: times go backwards")) }
}
