//! Loss of a link direction: text is a share of packets, each lost by itself; a table says which ones are lost.

use crate::files::Files;
use crate::problem::{Problem, Wrong};
use crate::table::{At, Field, Rule, table};
use crate::units::{Loss, PPB};
use crate::value::Value;
use sawtooth_net::scenario as net;

table! {
    /// Loss in bursts: a good and a bad state, and at each packet a chance of going to the other (tc-netem's `gemodel`).
    ///
    /// As in Linux (`loss_gilb_ell`), a packet may change the state, but is lost with the chance of the state that it
    /// finds; the first one finds the good state.
    GilbertElliott {
        p: Loss, Any, Needed, "chance that a packet takes the link from the good state to the bad one";
        r: Loss, Any, Needed, "chance that it takes it from the bad state to the good one";
        bad: Loss, Any, Text("100%"), "loss in the bad state; tc calls it 1-h";
        good: Loss, Any, Text("0%"), "loss in the good state; tc calls it 1-k";
    }
}

table! {
    /// Losses that depend on those before, instead of a share like `"1%"`. Exactly one of the fields is given.
    ///
    /// Packets of every kind count: data, retransmissions, acknowledgements, probes.
    LossPattern check is_one {
        every: Option<u64>, Within(1, 1_000_000_000), Nothing, "of so many packets the last one is lost, always";
        gilbert_elliott: Option<GilbertElliott>, Any, Nothing, "losses come in bursts";
    }
}

fn is_one(pattern: &LossPattern, _: &dyn Files) -> Result<(), Problem> {
    match (&pattern.every, &pattern.gilbert_elliott) {
        (None, None) => {
            let fix = "write loss = { every = 1000 } or loss = { gilbert_elliott = { p = \"1%\", r = \"30%\" } }";
            Err(Problem::new("missing-field", "this table does not say which packets are lost", fix))
        }
        (Some(_), Some(_)) => {
            let message = "packets are lost at even distances or in bursts, not both";
            Err(Problem::new("conflict", message, "remove \"every\" or \"gilbert_elliott\""))
        }
        _ => Ok(()),
    }
}

/// What a scenario file may give as a loss.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    Share(Loss),
    Pattern(LossPattern),
}

impl LossModel {
    pub const NONE: LossModel = LossModel::Share(Loss { ppb: 0 });

    /// The share of packets that is lost in the long run, in parts per billion; above 0 where any is lost.
    pub fn ppb(&self) -> u64 {
        match self {
            LossModel::Share(share) => share.ppb,
            LossModel::Pattern(LossPattern { every: Some(every), .. }) => nearest(PPB.into(), (*every).into()).max(1),
            LossModel::Pattern(LossPattern { gilbert_elliott: Some(model), .. }) => model.ppb(),
            LossModel::Pattern(_) => unreachable!("a pattern is one of the two"),
        }
    }

    /// As the core has it. None: each packet by itself.
    pub fn compile(&self) -> Option<net::LossPattern> {
        let LossModel::Pattern(pattern) = self else { return None };
        Some(match (&pattern.every, &pattern.gilbert_elliott) {
            (Some(every), _) => net::LossPattern::Every(*every),
            (_, Some(GilbertElliott { p, r, bad, good, .. })) => {
                net::LossPattern::GilbertElliott { p_ppb: p.ppb, r_ppb: r.ppb, bad_ppb: bad.ppb, good_ppb: good.ppb }
            }
            _ => unreachable!("a pattern is one of the two"),
        })
    }
}

impl GilbertElliott {
    /// The share that is lost in the long run, when p / (p + r) of the packets find the bad state.
    fn ppb(&self) -> u64 {
        let (p, r) = (u128::from(self.p.ppb), u128::from(self.r.ppb));
        if p == 0 {
            return self.good.ppb;
        }
        let lost = p * u128::from(self.bad.ppb) + r * u128::from(self.good.ppb);
        nearest(lost, p + r).max(u64::from(lost > 0))
    }
}

/// `over / under` to the nearest whole number, halves to the even one.
pub(crate) fn nearest(over: u128, under: u128) -> u64 {
    let (whole, rest) = (over / under, over % under);
    let up = 2 * rest > under || (2 * rest == under && whole % 2 == 1);
    u64::try_from(whole + u128::from(up)).unwrap_or(u64::MAX)
}

impl Field for LossModel {
    fn read(given: &Value, rule: &Rule, at: At) -> Result<LossModel, Wrong> {
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
}
