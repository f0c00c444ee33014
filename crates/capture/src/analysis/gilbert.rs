//! Fits a loss model to runs of losses: independent losses, or bursts (Gilbert 1960, Elliott 1963).

use serde::Serialize;

use crate::analysis::bursts::Burst;
use crate::analysis::losses::LossRun;
use sawtooth_units::width::{Approx, Fit, Whole};

/// With fewer runs, bursts cannot be distinguished from chance.
const ENOUGH_RUNS: usize = 20;

/// With fewer runs, the loss of the good state cannot be estimated.
const ENOUGH_FOR_ALL: usize = 50;

/// Two states, good and bad, with a probability per packet of changing to the other, and a loss probability in each. As
/// in a scenario and in netem's `gemodel`, the state before the change decides whether a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GilbertElliott {
    pub p: f64,
    pub r: f64,
    pub bad: f64,
    pub good: f64,
}

/// Runs of losses in order, with their times: how long the bad state may last.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    pub runs: &'a [LossRun],
    pub bursts: &'a [Burst],
    /// Segments that arrived after the last run.
    pub last_gap: u64,
}

impl Sequence<'_> {
    fn lost(&self) -> f64 {
        self.runs.iter().map(|lost| f64::from(lost.run)).sum()
    }

    fn arrived(&self) -> f64 {
        self.runs.iter().map(|lost| f64::from(lost.gap)).sum::<f64>() + self.last_gap.approx()
    }

    /// The burst model, if it explains the sequence better than independent losses do by the Bayesian information
    /// criterion; None otherwise, or with too few runs.
    pub fn fit(&self) -> Option<GilbertElliott> {
        let (lost, arrived) = (self.lost(), self.arrived());
        let packets = lost + arrived;
        if self.runs.len() < ENOUGH_RUNS || arrived == 0.0 {
            return None;
        }
        let share = lost / packets;
        let criterion = |parameters: f64, likelihood: f64| parameters * libm::log(packets) - 2.0 * likelihood;
        let independent = criterion(1.0, lost * libm::log(share) + arrived * libm::log(1.0 - share));
        let runs = self.runs.len().approx();
        // All packets of the bad state are lost, so run lengths and gaps determine the model.
        let simple = GilbertElliott { p: (runs / arrived).min(1.0), r: runs / lost, bad: 1.0, good: 0.0 };
        let from_simple = criterion(2.0, self.likelihood(simple));
        let mut models = vec![(from_simple, simple)];
        // A bad state that lets some packets through, as long as a run, or as a burst in time.
        let starts = [Some(GilbertElliott { r: simple.r / 2.0, bad: 0.7, ..simple }), self.by_time(lost, arrived)];
        let climbed = starts.into_iter().flatten().map(|start| self.best(start, 3));
        let (partial, likelihood) = climbed.max_by(|one, other| one.1.total_cmp(&other.1))?;
        models.push((criterion(3.0, likelihood), partial));
        if self.runs.len() >= ENOUGH_FOR_ALL {
            let (full, likelihood) = self.best(GilbertElliott { good: share / 10.0, ..partial }, 4);
            models.push((criterion(4.0, likelihood), full));
        }
        models
            .into_iter()
            .filter(|&(criterion, _)| criterion < independent)
            .min_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, model)| model)
    }

    /// The model whose bad state lasts as long as the bursts.
    fn by_time(&self, lost: f64, arrived: f64) -> Option<GilbertElliott> {
        let span = self.bursts.iter().map(|burst| burst.span.approx()).sum::<f64>();
        let bursts = self.bursts.len().approx();
        (span > lost && bursts > 0.0).then(|| GilbertElliott {
            p: (bursts / arrived).min(1.0),
            r: (bursts / span).min(1.0),
            bad: lost / span,
            good: 0.0,
        })
    }

    /// Logarithm of the probability of exactly this sequence, with the first packet in the stationary state.
    fn likelihood(&self, model: GilbertElliott) -> f64 {
        let GilbertElliott { p, r, bad, good } = model;
        let last_gap = u32::try_from(self.last_gap).unwrap_or(u32::MAX);
        let longest = self.runs.iter().fold((last_gap, 0), |most, one| (most.0.max(one.gap), most.1.max(one.run)));
        let arrives = [[(1.0 - good) * (1.0 - p), (1.0 - good) * p], [(1.0 - bad) * r, (1.0 - bad) * (1.0 - r)]];
        let is_lost = [[good * (1.0 - p), good * p], [bad * r, bad * (1.0 - r)]];
        let (arrives, is_lost) = (Powers::of(arrives, longest.0), Powers::of(is_lost, longest.1));
        let mut state = [r / (p + r), p / (p + r)];
        let mut chance = Chance::one();
        for &LossRun { gap, run, .. } in self.runs {
            arrives.apply(&mut state, gap, &mut chance);
            is_lost.apply(&mut state, run, &mut chance);
        }
        arrives.apply(&mut state, last_gap, &mut chance);
        chance.logarithm()
    }

    /// Climbs to the most likely model, varying one of the first `free` parameters (p, r, bad, good) at a time.
    fn best(&self, start: GilbertElliott, free: usize) -> (GilbertElliott, f64) {
        let odds = |share: f64| share.clamp(1e-9, 1.0 - 1e-9) / (1.0 - share.clamp(1e-9, 1.0 - 1e-9));
        let logit = |share: f64| libm::log(odds(share));
        let share = |logit: f64| 1.0 / (1.0 + libm::exp(-logit));
        let model = |at: [f64; 4]| GilbertElliott {
            p: share(at[0]),
            r: share(at[1]),
            bad: share(at[2]),
            good: if free > 3 { share(at[3]) } else { 0.0 },
        };
        let mut at = [logit(start.p), logit(start.r), logit(start.bad), logit(start.good)];
        let mut steps = [0.5; 4];
        let mut highest = self.likelihood(model(at));
        for _ in 0..60 {
            for parameter in 0..free {
                let mut moved = at;
                moved[parameter] += steps[parameter];
                let likelihood = self.likelihood(model(moved));
                if likelihood > highest {
                    (at, highest) = (moved, likelihood);
                    steps[parameter] *= 1.5;
                } else {
                    steps[parameter] *= -0.5;
                }
            }
            if steps[..free].iter().all(|step| step.abs() < 1e-3) {
                break;
            }
        }
        (model(at), highest)
    }
}

/// How 1, 2, 4, 8 … packets with the same outcome change the probabilities of the two states.
struct Powers(Vec<Power>);

/// A matrix scaled so that its largest entry is near 1, which keeps the probability of a long gap from vanishing, and
/// the logarithm of the scale.
#[derive(Clone, Copy)]
struct Power {
    matrix: [[f64; 2]; 2],
    scale: f64,
}

impl Powers {
    /// As many powers as `most` consecutive packets need.
    fn of(matrix: [[f64; 2]; 2], most: u32) -> Self {
        let first = Power { matrix, scale: 0.0 };
        let count = most.checked_ilog2().map_or(1, |bits| bits + 1);
        Powers(std::iter::successors(Some(first), |power| Some(power.squared())).take(count as usize).collect())
    }

    /// Advances `state` by `times` packets and normalizes it; its former sum is multiplied into `chance`.
    fn apply(&self, state: &mut [f64; 2], mut times: u32, chance: &mut Chance) {
        while times > 0 {
            let Power { matrix: m, scale } = &self.0[times.trailing_zeros() as usize];
            *state = [state[0] * m[0][0] + state[1] * m[1][0], state[0] * m[0][1] + state[1] * m[1][1]];
            let total = (state[0] + state[1]).max(1e-100);
            *state = [state[0] / total, state[1] / total];
            chance.product *= total;
            if chance.product < 1e-150 {
                chance.sum = chance.logarithm();
                chance.product = 1.0;
            }
            chance.sum += scale;
            times &= times - 1;
        }
    }
}

/// A probability that may be too small for a number: `product` times e to the power of `sum`. One logarithm per factor
/// would take longer than everything else.
struct Chance {
    product: f64,
    sum: f64,
}

impl Chance {
    fn one() -> Self {
        Chance { product: 1.0, sum: 0.0 }
    }

    fn logarithm(&self) -> f64 {
        self.sum + libm::log(self.product)
    }
}

impl Power {
    fn squared(self) -> Self {
        let m = self.matrix;
        let cell = |row: usize, column: usize| m[row][0] * m[0][column] + m[row][1] * m[1][column];
        let [a, b, c, d] = [cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)];
        let largest = a.max(b).max(c).max(d).max(f64::MIN_POSITIVE);
        let matrix = [[a / largest, b / largest], [c / largest, d / largest]];
        Power { matrix, scale: 2.0 * self.scale + libm::log(largest) }
    }
}

/// The loss in the syntax of a scenario file: bursts if there is a model, else the share `rate`.
pub fn scenario(model: Option<GilbertElliott>, rate: f64) -> String {
    match model {
        None => format!("loss = \"{}\"", percent(rate)),
        Some(GilbertElliott { p, r, bad, good }) => format!(
            "loss = {{ gilbert_elliott = {{ p = \"{}\", r = \"{}\", bad = \"{}\", good = \"{}\" }} }}",
            percent(p),
            percent(r),
            percent(bad),
            percent(good)
        ),
    }
}

/// Three significant digits, at least to a scenario's finest step of 1e-7 %.
fn percent(share: f64) -> String {
    let value = share.clamp(0.0, 1.0) * 100.0;
    let digits = if value > 0.0 { (2.0 - libm::log10(value).floor()).clamp(0.0, 7.0) } else { 0.0 };
    let text = format!("{value:.*}", digits.whole().fit_usize());
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws from the model with a small generator.
    fn drawn(model: GilbertElliott, packets: u64) -> (Vec<LossRun>, u64) {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut bad, mut runs, mut gap, mut run) = (false, Vec::new(), 0_u32, 0_u32);
        for at in 0..packets {
            if uniform() < if bad { model.bad } else { model.good } {
                run += 1;
            } else {
                if run > 0 {
                    runs.push(LossRun { gap, run, time_ns: at });
                    (gap, run) = (0, 0);
                }
                gap += 1;
            }
            let leaves = uniform() < if bad { model.r } else { model.p };
            bad ^= leaves;
        }
        (runs, u64::from(gap))
    }

    fn fitted(model: GilbertElliott) -> Option<GilbertElliott> {
        let (runs, last_gap) = drawn(model, 200_000);
        Sequence { runs: &runs, bursts: &[], last_gap }.fit()
    }

    fn near(estimate: f64, true_value: f64) -> bool {
        (estimate - true_value).abs() < 0.2 * true_value
    }

    #[test]
    fn gilbert_fit_finds_bad_state_that_loses_all() {
        let found = fitted(GilbertElliott { p: 0.005, r: 0.3, bad: 1.0, good: 0.0 }).unwrap();
        assert!(near(found.p, 0.005) && near(found.r, 0.3) && near(found.bad, 1.0), "{found:?}");
    }

    #[test]
    fn gilbert_elliott_fit_finds_partial_bad_state() {
        let found = fitted(GilbertElliott { p: 0.005, r: 0.1, bad: 0.5, good: 0.0 }).unwrap();
        assert!(near(found.p, 0.005) && near(found.r, 0.1) && near(found.bad, 0.5), "{found:?}");
    }

    #[test]
    fn alternating_losses_fit_one_long_bad_state() {
        let mut runs = Vec::new();
        let mut bursts = Vec::new();
        for (burst, lost) in [23, 8, 4, 3].into_iter().enumerate() {
            for at in 0..lost {
                runs.push(LossRun { gap: if at == 0 { 4000 } else { 1 }, run: 1, time_ns: burst as u64 });
            }
            bursts.push(Burst { lost, span: 2 * lost - 1, ..Burst::default() });
        }
        let found = Sequence { runs: &runs, bursts: &bursts, last_gap: 100 }.fit().unwrap();
        assert!(found.r < 0.12 && (0.4..0.75).contains(&found.bad), "{found:?}");
    }

    #[test]
    fn independent_losses_fit_no_bursts() {
        assert_eq!(fitted(GilbertElliott { p: 0.5, r: 0.5, bad: 0.02, good: 0.02 }), None);
    }

    #[test]
    fn few_losses_fit_no_model() {
        let runs = [LossRun { gap: 100, run: 3, time_ns: 0 }; 10];
        assert_eq!(Sequence { runs: &runs, bursts: &[], last_gap: 100 }.fit(), None);
    }

    #[test]
    fn model_text_is_scenario_syntax() {
        let model = GilbertElliott { p: 0.005, r: 0.3, bad: 1.0, good: 0.0 };
        let text = "loss = { gilbert_elliott = { p = \"0.5%\", r = \"30%\", bad = \"100%\", good = \"0%\" } }";
        assert_eq!(scenario(Some(model), 0.1), text);
        assert_eq!(scenario(None, 0.012_345), "loss = \"1.23%\"");
        assert_eq!(scenario(None, 0.0), "loss = \"0%\"");
    }
}
