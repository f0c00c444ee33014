//! Links, and how they and the transmitters before them vary.

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
    /// Share of packets that is lost in the long run, in parts per billion.
    pub loss_ppb: u64,
    /// `None`: each packet by itself.
    #[serde(default)]
    pub loss_pattern: Option<LossPattern>,
    pub overhead_bytes: u64,
    /// What is due leaves together, so far apart.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub aggregation_ns: u64,
    /// From when (ns), and parts per billion, in order; before the first it is `loss_ppb`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<(u64, u64)>,
    /// From when, and the delay, in order; before the first it is `delay_ns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// Shares of packets that come twice, and broken, each with the correlation of its draws, in parts per billion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<(u64, u64)>,
    /// After the transmitter, before all that varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
}

/// What comes faster than a rate, beyond a burst, is dropped.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    pub rate_bps: u64,
    pub burst_bytes: u64,
}

/// How the delay deviates.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    pub ns: u64,
    /// Deviations, of which each is as likely, in 1/8192 of `ns`; none: evenly up to `ns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<i16>,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub correlation_ppb: u64,
    /// Packets keep their order.
    #[serde(default)]
    pub ordered: bool,
}

/// Which packets have no delay at all, and so overtake: at the earliest each `gap`-th.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    pub ppb: u64,
    pub gap: u64,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub correlation_ppb: u64,
}

impl Link {
    /// Whether there is more to its packets' way than a constant delay.
    pub fn varies(&self) -> bool {
        self.aggregation_ns > 0
            || self.jitter.is_some()
            || self.reorder.is_some()
            || self.duplicate.is_some()
            || self.corrupt.is_some()
            || self.policer.is_some()
            || !self.delays.is_empty()
    }

    /// Whether packets may be lost on it by chance, at any time.
    pub fn may_lose(&self) -> bool {
        self.loss_ppb > 0 || self.loss_pattern.is_some() || !self.losses.is_empty()
    }

    /// No packet takes less.
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

/// Which packets are lost, where that is not independent of those before.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum LossPattern {
    /// The last of so many.
    Every(u64),
    /// Two states; probabilities, in parts per billion, that a packet moves it from good to bad (`p`) and back (`r`), and
    /// of its loss in each state.
    GilbertElliott { p_ppb: u64, r_ppb: u64, bad_ppb: u64, good_ppb: u64 },
}

/// How a transmitter's rate varies.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Pace {
    /// From when (ns), and bit/s; before the first the transmitter's rate.
    Steps(Vec<(u64, u64)>),
    /// So many bytes at a time, so far apart.
    Slots {
        every_ns: u64,
        bytes: u64,
    },
    Trace(Trace),
}

/// Opportunities of so many bytes, in order; the last one is as late as the period that they repeat with.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    pub times_ms: Vec<u32>,
    pub period_ms: u64,
    pub bytes: u64,
}

impl Pace {
    pub(super) fn check(&self, at: &str) -> Result<(), String> {
        match self {
            Pace::Steps(steps) => {
                in_order(steps, at)?;
                steps.iter().try_for_each(|&(_, bps)| within(bps, 0, RATE_MAX_BPS, at))
            }
            &Pace::Slots { every_ns, bytes } => {
                within(every_ns, 1, DURATION_MAX_NS, &format!("{at}.every_ns"))?;
                within(bytes, 1, 1 << 30, &format!("{at}.bytes"))
            }
            Pace::Trace(trace) => {
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

/// Steps by their times, none of which comes twice.
fn in_order(steps: &[(u64, u64)], what: &str) -> Result<(), String> {
    if steps.windows(2).all(|pair| pair[0].0 < pair[1].0) { Ok(()) } else { Err(format!("{what}: times go backwards")) }
}
