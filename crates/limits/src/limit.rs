//! The names of limits, and the words for each on a page, in a terminal and in a notebook.

use serde::{Serialize, Serializer};

/// What limits a flow of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    NotBegun,
    /// Its application sends at times that no counter shows.
    Unknown,
    Application,
    ReceiveWindow,
    SendBuffer,
    /// This flow uses all of the bottleneck's rate.
    Rate,
    /// The rate is fully used, and others take a part.
    SharedRate,
    /// Acknowledgements fill the return path.
    ReturnPath,
    Marks,
    QueueDrops,
    PolicerDrops,
    PathLoss,
    /// It has no answer yet, or is in slow start.
    Start,
    /// Nothing was lost, and its window still grows.
    Growth,
    /// BBR sends at the rate that it measured.
    Pace,
}

impl Limit {
    pub fn name(self) -> &'static str {
        match self {
            Limit::NotBegun => "not begun",
            Limit::Unknown => "unknown",
            Limit::Application => "application",
            Limit::ReceiveWindow => "receive window",
            Limit::SendBuffer => "send buffer",
            Limit::Rate => "rate",
            Limit::SharedRate => "shared rate",
            Limit::ReturnPath => "return path",
            Limit::Marks => "marks",
            Limit::QueueDrops => "queue drops",
            Limit::PolicerDrops => "policer drops",
            Limit::PathLoss => "path loss",
            Limit::Start => "start",
            Limit::Growth => "growth",
            Limit::Pace => "own pace",
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What another flow takes of the rate at the same time: bit/s of payload, and its share of what the rate allows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Taker {
    pub flow: String,
    pub goodput_bps: f64,
    pub share: f64,
}

/// What limits a flow. `share` is the share of its time for which the limit holds it back, `shares` has that of every
/// other limit; `takers` are the other flows at a shared rate, largest first. `share_of_rate` is its goodput relative
/// to what the bottleneck's rate allows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowLimit {
    pub flow: String,
    pub limit: Limit,
    pub share: f64,
    pub shares: Vec<(Limit, f64)>,
    pub words: String,
    pub takers: Vec<Taker>,
    pub start_s: f64,
    pub end_s: f64,
    /// Time from its start until all its connections had sent their bytes; None: they have not, or send endlessly.
    pub completed_s: Option<f64>,
    pub goodput_bps: f64,
    pub share_of_rate: f64,
}

/// Takers listed one by one.
const MOST_TAKERS: usize = 3;

/// The rate, and how much of it each taker gets.
pub fn shared_rate_text(takers: &[Taker]) -> String {
    let part =
        |bps: f64, share: f64| format!("{} Mbit/s ({}%)", significant(bps / 1e6, 3), significant(100.0 * share, 2));
    let mut parts: Vec<String> = takers
        .iter()
        .take(if takers.len() > MOST_TAKERS + 1 { MOST_TAKERS } else { MOST_TAKERS + 1 })
        .map(|one| format!("{} takes {}", one.flow, part(one.goodput_bps, one.share)))
        .collect();
    let others = &takers[parts.len()..];
    if !others.is_empty() {
        let (bps, share) =
            others.iter().fold((0.0, 0.0), |(bps, share), one| (bps + one.goodput_bps, share + one.share));
        parts.push(format!("{} others take {}", others.len(), part(bps, share)));
    }
    format!("the rate, which it shares: {}", parts.join(", "))
}

/// A number with this many significant digits and no exponent.
fn significant(value: f64, digits: usize) -> String {
    let whole = 10f64.powi(i32::try_from(digits).unwrap_or(0));
    if value == 0.0 || value.abs() >= whole {
        return format!("{value:.0}");
    }
    // The exponent after rounding: 9.996 becomes 10.0.
    let scientific = format!("{value:.*e}", digits - 1);
    let exponent: i32 = scientific.split('e').nth(1).and_then(|exponent| exponent.parse().ok()).unwrap_or(0);
    let after = i32::try_from(digits).unwrap_or(0) - 1 - exponent;
    format!("{value:.*}", usize::try_from(after.clamp(0, 20)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_without_exponent() {
        let texts: Vec<String> =
            [0.0, 0.000_012_34, 9.996, 99.96, 947.2, 2363.4].iter().map(|&value| significant(value, 3)).collect();
        assert_eq!(texts, ["0", "0.0000123", "10.0", "100", "947", "2363"]);
    }

    #[test]
    fn shared_rate_text_lists_each_taker() {
        let taker =
            |flow: &str, mbps: f64| Taker { flow: flow.to_owned(), goodput_bps: mbps * 1e6, share: mbps / 100.0 };
        let two = [taker("bbr", 60.0), taker("reno", 10.04)];
        assert_eq!(
            shared_rate_text(&two),
            "the rate, which it shares: bbr takes 60.0 Mbit/s (60%), reno takes 10.0 Mbit/s (10%)"
        );
        let many: Vec<Taker> = (1..=6).rev().map(|one| taker(&format!("f{one}"), f64::from(one))).collect();
        assert!(shared_rate_text(&many).ends_with("f4 takes 4.00 Mbit/s (4.0%), 3 others take 6.00 Mbit/s (6.0%)"));
    }
}
