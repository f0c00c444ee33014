//! Loss of a link direction: text is a share of packets, each lost independently; a table gives a pattern of losses.

use crate::files::Files;
use crate::problem::{FieldProblems, Problem};
use crate::schema::{self, Definitions};
use crate::table::{Field, ReadContext, Rule, table};
use crate::units::{Burst, Loss, PPB};
use crate::value::Value;
use crate::view::View;
use sawtooth_net::scenario as net;
use std::collections::BTreeSet;

table! {
    /// Loss in bursts: a good and a bad state, with a probability per packet of changing state (tc-netem's `gemodel`).
    ///
    /// As in Linux (`loss_gilb_ell`), a packet may change the state, but is lost with the chance of the state that it
    /// finds; the first one finds the good state.
    GilbertElliott {
        p: Loss, Any, Needed, "probability that a packet moves the link from the good state to the bad one";
        r: Loss, Any, Needed, "probability that it moves the link from the bad state to the good one";
        bad: Loss, Any, Text("100%"), "loss in the bad state; tc calls it 1-h";
        good: Loss, Any, Text("0%"), "loss in the good state; tc calls it 1-k";
    }
}

table! {
    /// Losses in a pattern, instead of a share like `"1%"`.
    ///
    /// Give one of `every`, `packets`, `gilbert_elliott`, and the pair `mean` and `burst`.
    /// Packets of every kind count: data, retransmissions, acknowledgements, probes.
    LossPattern check is_one {
        every: Option<u64>, Within(1, 1_000_000_000), Nothing, "drop every n-th packet";
        packets: Option<Vec<u64>>, Within(1, 1_000_000_000), Nothing,
            "drop the packets with these numbers, counted from 1; at most 100";
        gilbert_elliott: Option<GilbertElliott>, Any, Nothing, "losses in bursts, from a chain of two states";
        mean: Option<Loss>, Any, Nothing, "losses in bursts: the share of packets lost; requires `burst`";
        burst: Option<Burst>, Any, Nothing, "mean number of packets lost in a row; requires `mean`";
    }
}

/// A chance below this many in a billion is too coarse: rounding it would change the mean by more than 0.5%.
const RAREST_PPB: u64 = 100;

/// The most packets that `packets` may list: a kernel compares each packet with each number.
const MOST_PACKETS: usize = 100;

fn is_one(pattern: &LossPattern, _: &dyn Files) -> Result<(), Problem> {
    let by_mean = pattern.mean.is_some() || pattern.burst.is_some();
    let ways = [
        (pattern.every.is_some(), "every"),
        (pattern.packets.is_some(), "packets"),
        (pattern.gilbert_elliott.is_some(), "gilbert_elliott"),
        (by_mean, "mean and burst"),
    ];
    let given: Vec<&str> = ways.iter().filter(|(is_given, _)| *is_given).map(|(_, name)| *name).collect();
    match given.as_slice() {
        [] => {
            let fix = "write { mean = \"1%\", burst = \"5 packets\" }, { every = 1000 }, { packets = [500, 510] } or { \
                       gilbert_elliott = { p = \"1%\", r = \"30%\" } }";
            Err(Problem::new("missing-field", "this table does not say which packets are lost", fix))
        }
        [one, other, ..] => {
            let message = format!("{one}, and {other}: each says which packets are lost");
            Err(Problem::new("conflict", message, format!("remove {one}, or {other}")))
        }
        _ => match (&pattern.packets, pattern.mean, pattern.burst) {
            (Some(numbers), ..) if numbers.is_empty() || numbers.len() > MOST_PACKETS => {
                let message = format!("{} packets are given", numbers.len());
                Err(Problem::new("out-of-range", message, format!("give 1 to {MOST_PACKETS} numbers")))
            }
            (_, Some(mean), Some(burst)) => are_possible(mean, burst),
            (_, Some(_), None) => {
                Err(Problem::new("missing-field", "\"mean\" needs \"burst\"", "add burst = \"5 packets\""))
            }
            (_, None, Some(_)) => Err(Problem::new("missing-field", "\"burst\" needs \"mean\"", "add mean = \"1%\"")),
            (_, None, None) => Ok(()),
        },
    }
}

/// Whether a two-state chain can lose this share in bursts of this length.
fn are_possible(mean: Loss, burst: Burst) -> Result<(), Problem> {
    let (p, r) = chances(mean, burst);
    if p > PPB {
        // At least one packet gets through between two bursts.
        let most = Loss { ppb: PPB * PPB / (r + PPB) };
        let message = format!(
            "a mean of {mean} with bursts of {burst} is impossible: one packet at least gets through after each"
        );
        return Err(Problem::new("out-of-range", message, format!("write mean = \"{most}\" or less")));
    }
    if 0 < mean.ppb && p < RAREST_PPB {
        let least = Loss { ppb: RAREST_PPB * PPB / (r + RAREST_PPB) + 1 };
        let message = format!("bursts of {burst} at a mean of {mean} are rarer than one in ten million packets");
        return Err(Problem::new("out-of-range", message, format!("write mean = \"{least}\" or more, or \"0%\"")));
    }
    Ok(())
}

/// Probabilities of starting (`p`) and of ending (`r`) a burst, in parts per billion, so that `p / (p + r)` is the
/// mean.
fn chances(mean: Loss, burst: Burst) -> (u64, u64) {
    let r = nearest(u128::from(PPB) * 1_000, burst.milli.into());
    match PPB - mean.ppb {
        0 => (u64::MAX, r),
        others => (nearest(u128::from(mean.ppb) * u128::from(r), others.into()), r),
    }
}

/// The values that a scenario file may give as a loss.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    Share(Loss),
    Pattern(LossPattern),
}

impl LossModel {
    pub const NONE: LossModel = LossModel::Share(Loss { ppb: 0 });

    /// The long-term share of lost packets in parts per billion; above 0 if any packet can be lost.
    pub fn ppb(&self) -> u64 {
        match self {
            LossModel::Share(share) => share.ppb,
            LossModel::Pattern(LossPattern { every: Some(every), .. }) => nearest(PPB.into(), (*every).into()).max(1),
            LossModel::Pattern(LossPattern { packets: Some(_), .. }) => 1,
            LossModel::Pattern(LossPattern { gilbert_elliott: Some(model), .. }) => model.ppb(),
            LossModel::Pattern(LossPattern { mean: Some(mean), .. }) => mean.ppb,
            LossModel::Pattern(_) => unreachable!("a pattern is one of the four"),
        }
    }

    /// Converts to the core's form. None: each packet is lost independently.
    pub fn compile(&self) -> Option<net::LossPattern> {
        let LossModel::Pattern(pattern) = self else { return None };
        Some(match pattern {
            &LossPattern { every: Some(every), .. } => net::LossPattern::Every(every),
            LossPattern { packets: Some(numbers), .. } => {
                net::LossPattern::Packets(BTreeSet::from_iter(numbers).into_iter().copied().collect())
            }
            &LossPattern { gilbert_elliott: Some(GilbertElliott { p, r, bad, good, .. }), .. } => {
                net::LossPattern::GilbertElliott { p_ppb: p.ppb, r_ppb: r.ppb, bad_ppb: bad.ppb, good_ppb: good.ppb }
            }
            &LossPattern { mean: Some(mean), burst: Some(burst), .. } => {
                let (p_ppb, r_ppb) = chances(mean, burst);
                net::LossPattern::GilbertElliott { p_ppb, r_ppb, bad_ppb: PPB, good_ppb: 0 }
            }
            _ => unreachable!("a pattern is one of the four"),
        })
    }
}

impl GilbertElliott {
    /// The long-term loss share, given that p / (p + r) of the packets find the bad state.
    fn ppb(&self) -> u64 {
        let (p, r) = (u128::from(self.p.ppb), u128::from(self.r.ppb));
        if p == 0 {
            return self.good.ppb;
        }
        let lost = p * u128::from(self.bad.ppb) + r * u128::from(self.good.ppb);
        nearest(lost, p + r).max(u64::from(lost > 0))
    }
}

/// `over / under` rounded to the nearest integer, halves to even.
pub(crate) fn nearest(over: u128, under: u128) -> u64 {
    let (whole, rest) = (over / under, over % under);
    let up = 2 * rest > under || (2 * rest == under && whole % 2 == 1);
    u64::try_from(whole + u128::from(up)).unwrap_or(u64::MAX)
}

impl Field for LossModel {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<LossModel, FieldProblems> {
        match given {
            Value::Table(_) => LossPattern::read(given, rule, at).map(LossModel::Pattern),
            _ => Loss::read(given, rule, at).map(LossModel::Share),
        }
    }

    fn write(&self) -> Value {
        match self {
            LossModel::Share(share) => share.write(),
            LossModel::Pattern(pattern) => pattern.write(),
        }
    }

    fn view(&self) -> View {
        match self {
            LossModel::Share(share) => share.view(),
            LossModel::Pattern(pattern) => pattern.view(),
        }
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        schema::any([Loss::schema(rule, definitions), LossPattern::schema(rule, definitions)])
    }
}
