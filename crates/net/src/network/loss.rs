//! Loss model of a link direction: which packets are lost, decided one after another.

use crate::rng::{Purpose, Rng};
use crate::scenario::{Link, LossPattern};
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

const BILLION: u64 = 1_000_000_000;

/// The loss of one link direction, with its own random generator.
#[derive(Clone, Debug)]
pub struct Loss {
    model: Model,
    rng: Rng,
}

#[derive(Clone, Debug)]
enum Model {
    None,
    Independent(Chance),
    /// A probability that changes: the current one, and later ones with their times.
    Changing {
        chance: Chance,
        next: usize,
        steps: Vec<(Time, Chance)>,
    },
    /// The last of each `period` packets.
    Every {
        period: u64,
        left: u64,
    },
    /// The packets with these numbers: how many have passed, and the numbers that have not, the next one last.
    Packets {
        passed: u64,
        lost: Vec<u64>,
    },
    GilbertElliott {
        is_bad: bool,
        /// By state, good first: the probability of leaving it, and of losing a packet in it.
        leaves: [Chance; 2],
        loses: [Chance; 2],
    },
}

/// A probability as the bound below which a uniform 64-bit number must be.
#[derive(Clone, Copy, Debug)]
struct Chance(u64);

impl Chance {
    fn of_billion(ppb: u64) -> Self {
        Chance(if ppb >= BILLION { u64::MAX } else { ((u128::from(ppb) << 64) / u128::from(BILLION)).fit_u64() })
    }
    fn hits(self, draw: u64) -> bool {
        draw < self.0 || self.0 == u64::MAX
    }
}

impl Loss {
    pub fn is_none(&self) -> bool {
        matches!(self.model, Model::None)
    }

    pub fn new(link: &Link, seed: u64, index: usize) -> Self {
        let steps = || link.losses.iter().map(|&(at, ppb)| (Time::from_nanos(at), Chance::of_billion(ppb))).collect();
        let model = match &link.loss_pattern {
            None if !link.losses.is_empty() => {
                Model::Changing { chance: Chance::of_billion(link.loss_ppb), next: 0, steps: steps() }
            }
            None if link.loss_ppb == 0 => Model::None,
            None => Model::Independent(Chance::of_billion(link.loss_ppb)),
            &Some(LossPattern::Every(period)) => Model::Every { period, left: period },
            Some(LossPattern::Packets(numbers)) => {
                Model::Packets { passed: 0, lost: numbers.iter().rev().copied().collect() }
            }
            &Some(LossPattern::GilbertElliott { p_ppb, r_ppb, bad_ppb, good_ppb }) => Model::GilbertElliott {
                is_bad: false,
                leaves: [p_ppb, r_ppb].map(Chance::of_billion),
                loses: [good_ppb, bad_ppb].map(Chance::of_billion),
            },
        };
        Loss { model, rng: Rng::new(seed, Purpose::Loss, index as u64) }
    }

    /// Whether the next packet is lost, whatever it is.
    pub fn takes(&mut self, now: Time) -> bool {
        match self.model {
            Model::None => false,
            Model::Independent(chance) => chance.hits(self.rng.next()),
            _ => self.takes_by_pattern(now),
        }
    }

    #[inline(never)]
    fn takes_by_pattern(&mut self, now: Time) -> bool {
        match &mut self.model {
            Model::Changing { chance, next, steps } => {
                while let Some(&(at, step)) = steps.get(*next)
                    && at <= now
                {
                    (*chance, *next) = (step, *next + 1);
                }
                chance.hits(self.rng.next())
            }
            Model::Every { period, left } => {
                *left -= 1;
                let last = *left == 0;
                if last {
                    *left = *period;
                }
                last
            }
            Model::Packets { passed, lost } => {
                *passed += 1;
                lost.pop_if(|next| *next == *passed).is_some()
            }
            // As netem (`loss_gilb_ell`): a packet may change the state, but the state before that change decides its
            // loss.
            Model::GilbertElliott { is_bad, leaves, loses } => {
                let found = usize::from(*is_bad);
                *is_bad ^= leaves[found].hits(self.rng.next());
                loses[found].hits(self.rng.next())
            }
            Model::None | Model::Independent(_) => unreachable!("not patterns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(loss_ppb: u64) -> Link {
        let json = r#"{"name": "", "from": 0, "to": 1, "transmitter": null, "delay_ns": 0, "loss_ppb": 0, "overhead_bytes": 0}"#;
        Link { loss_ppb, ..serde_json::from_str(json).unwrap() }
    }

    fn loss(loss_ppb: u64, loss_pattern: Option<LossPattern>) -> Loss {
        Loss::new(&Link { loss_pattern, ..link(loss_ppb) }, 1, 0)
    }

    #[test]
    fn a_share_that_changes_holds_from_its_time_on() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let losses = vec![(10_000_000, BILLION), (20_000_000, 0)];
        let mut loss = Loss::new(&Link { losses, ..link(0) }, 1, 0);
        assert_eq!([0, 9, 10, 19, 20, 30].map(|ms| loss.takes(at(ms))), [false, false, true, true, false, false]);
    }

    fn bursts(p_ppb: u64, r_ppb: u64, bad_ppb: u64, good_ppb: u64) -> Loss {
        loss(1, Some(LossPattern::GilbertElliott { p_ppb, r_ppb, bad_ppb, good_ppb }))
    }

    fn taken(loss: &mut Loss, packets: usize) -> Vec<bool> {
        (0..packets).map(|_| loss.takes(Time::ZERO)).collect()
    }

    fn share(taken: &[bool]) -> f64 {
        taken.iter().filter(|&&lost| lost).count() as f64 / taken.len() as f64
    }

    #[test]
    fn every_nth_packet_is_lost_and_no_other() {
        let taken = taken(&mut loss(1, Some(LossPattern::Every(4))), 4_000);
        assert!(taken.iter().zip(1..).all(|(&lost, number)| lost == (number % 4 == 0)));
    }

    #[test]
    fn the_packets_with_the_given_numbers_are_lost_and_no_others() {
        let taken = taken(&mut loss(1, Some(LossPattern::Packets(vec![1, 2, 5]))), 6);
        assert_eq!(taken, [true, true, false, false, true, false]);
    }

    #[test]
    fn every_packet_is_lost_at_one_in_one_and_at_certainty() {
        assert_eq!(taken(&mut loss(BILLION, Some(LossPattern::Every(1))), 3), [true; 3]);
        assert_eq!(taken(&mut loss(BILLION, None), 3), [true; 3]);
        assert_eq!(taken(&mut loss(0, None), 3), [false; 3]);
    }

    #[test]
    fn the_mean_loss_of_two_states_is_that_of_their_shares() {
        // 1% / (1% + 30%) of the time in the bad state.
        let in_bad = 1.0 / 31.0;
        let all = share(&taken(&mut bursts(10_000_000, 300_000_000, BILLION, 0), 2_000_000));
        assert!((all / in_bad - 1.0).abs() < 0.02, "{all}");
        let some = share(&taken(&mut bursts(10_000_000, 300_000_000, 500_000_000, 1_000_000), 2_000_000));
        assert!((some / (in_bad * 0.5 + (1.0 - in_bad) * 0.001) - 1.0).abs() < 0.02, "{some}");
    }

    #[test]
    fn a_run_of_losses_lasts_as_long_as_the_bad_state() {
        let taken = taken(&mut bursts(10_000_000, 250_000_000, BILLION, 0), 2_000_000);
        let runs = taken.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let lost = taken.iter().filter(|&&lost| lost).count();
        let mean = lost as f64 / runs as f64;
        assert!((mean / 4.0 - 1.0).abs() < 0.02, "{mean} packets");
    }

    #[test]
    fn a_packet_is_lost_by_the_state_that_it_found() {
        // It leaves each state at once: the first packet meets the good one.
        assert_eq!(taken(&mut bursts(BILLION, BILLION, BILLION, 0), 4), [false, true, false, true]);
    }

    #[test]
    fn a_state_that_is_never_left_stays() {
        assert_eq!(taken(&mut bursts(BILLION, 0, BILLION, 0), 4), [false, true, true, true]);
        assert_eq!(taken(&mut bursts(0, BILLION, BILLION, 0), 4), [false; 4]);
    }
}
