//! The verdict on a transfer, one sentence each: what it got, what limited it, and what was lost. The command line and
//! the pages print these sentences.

use crate::output::facts::{DataFacts, Limited};
use sawtooth_units::width::Approx;

/// Share of the time from which a further limit is mentioned.
const TOLD: f64 = 0.05;

/// Pairs of a question and its answer, in the order in which a reader asks.
pub fn verdict(facts: &DataFacts) -> [(&'static str, String); 3] {
    [
        ("What did it get?", got(facts)),
        ("What limited it?", limited(&facts.limits)),
        ("What was lost, and where?", lost(facts) + &marked(facts)),
    ]
}

fn got(facts: &DataFacts) -> String {
    let bytes = quantity(facts.volume.acknowledged_bytes.approx(), "B", 3);
    let rate = facts.goodput_bps.map_or_else(String::new, |bps| format!(", {}", quantity(bps, "bit/s", 4)));
    let told = format!("{bytes} in {}{rate}", quantity(facts.duration_s, "s", 3));
    let Some(trip) = &facts.rtt.whole else { return format!("{told}; no round trip was seen.") };
    let (least, median) = (quantity(trip.min_s, "s", 3), quantity(trip.median_s, "s", 3));
    format!("{told}, with a minimum RTT of {least} and a median of {median}.")
}

fn limited(limits: &Limited) -> String {
    let mut spent = [
        (limits.unknown_s, "unknown", "the limit is unknown, because no round trip had been seen yet"),
        (limits.sender_s, "nothing to send", "the application had nothing to send"),
        (
            limits.receiver_window_s,
            "the receiver's window",
            "the receiver's window was full: its application reads too slowly, or its buffer is too small",
        ),
        (
            limits.congestion_window_s,
            "the congestion window",
            "the sender's congestion window was full while the bottleneck's queue was empty",
        ),
        (limits.path_s, "the path", "the path was full: packets waited in the bottleneck's queue"),
        (limits.idle_s, "idle", "nothing was in flight"),
    ];
    let whole: f64 = spent.iter().map(|(seconds, ..)| seconds).sum();
    if whole == 0.0 {
        return "All data was sent at once, so nothing limited it.".to_owned();
    }
    spent.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let share = |seconds: f64| format!("{:.0}%", seconds / whole * 100.0);
    let [(most, _, first), others @ ..] = spent;
    let told = others.into_iter().filter(|(seconds, ..)| seconds / whole >= TOLD);
    let more: Vec<String> = told.map(|(seconds, name, _)| format!("{name} for {}", share(seconds))).collect();
    let more = if more.is_empty() { String::new() } else { format!("; {}", more.join(", ")) };
    format!("For {} of the time {first}{more}.", share(most))
}

fn lost(facts: &DataFacts) -> String {
    let (loss, counts) = (&facts.loss, &facts.counts);
    let again = counts.retransmits;
    let sent = format!("{} of {} segments were retransmitted", grouped(again), grouped(facts.volume.data_packets));
    let Some(rate) = loss.rate else { return format!("Unknown; {sent}.") };
    if loss.lost == 0 {
        return if again > 0 {
            format!("Nothing was lost; {sent}.")
        } else {
            "Nothing was lost or retransmitted.".to_owned()
        };
    }
    let place = match loss.place {
        "data before" => "between the sender and the capture point",
        "data after" => "between the capture point and the receiver",
        "data both" => "on both sides of the capture point",
        "acknowledgements" => "as acknowledgements, on the way back",
        _ => "",
    };
    let place = if place.is_empty() { ", it is unknown where".to_owned() } else { format!(" {place} ({})", loss.sure) };
    let bursts = if loss.largest_burst > u64::from(loss.longest_run) {
        format!(", in {} bursts", grouped(loss.bursts))
    } else {
        String::new()
    };
    let (lost, of, share) = (grouped(loss.lost), grouped(loss.segments), digits(rate * 100.0, 3));
    let timeouts = grouped(counts.timeout_retransmits);
    format!("{lost} of {of} segments, {share}%, were lost{place}{bursts}; {sent}, {timeouts} of them after timeouts.")
}

/// What ECN said (RFC 3168, section 6.1), where it said something.
fn marked(facts: &DataFacts) -> String {
    if facts.ecn_echoes == 0 {
        return String::new();
    }
    let (echoes, reductions) = (grouped(facts.ecn_echoes), grouped(facts.window_reductions));
    format!(" {echoes} acknowledgements echoed an ECN mark, and {reductions} segments reported a reduced window (CWR).")
}

/// A number with its unit, like 44.9 MB.
fn quantity(value: f64, unit: &str, most: usize) -> String {
    const PREFIXES: [(f64, &str); 6] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ")];
    let (factor, prefix) = PREFIXES
        .into_iter()
        .find(|&(factor, _)| value >= factor && !(unit == "B" && factor < 1.0))
        .unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", digits(value / factor, most))
}

/// At most this many significant digits, without an exponent.
fn digits(value: f64, most: usize) -> String {
    let text = format!("{value:.*e}", most - 1);
    let power: i32 = text.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    let after = i32::try_from(most).unwrap_or(0) - 1 - power;
    let text = format!("{value:.*}", usize::try_from(after).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// With a comma between groups of three digits.
fn grouped(count: u64) -> String {
    let text = count.to_string();
    let groups = text.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::counts::{Counts, Volume};
    use crate::output::loss_facts::LossFacts;

    /// 400 segments of which 7 were lost.
    fn transfer() -> DataFacts {
        DataFacts {
            volume: Volume { data_packets: 400, acknowledged_bytes: 579_200, ..Volume::default() },
            counts: Counts { retransmits: 7, timeout_retransmits: 2, ..Counts::default() },
            duration_s: 0.4,
            goodput_bps: Some(11_584_000.0),
            limits: Limited { sender_s: 0.1, path_s: 0.3, ..Limited::default() },
            loss: LossFacts {
                segments: 400,
                lost: 7,
                rate: Some(7.0 / 400.0),
                bursts: 7,
                place: "data after",
                sure: "exact",
                ..LossFacts::default()
            },
            ..DataFacts::default()
        }
    }

    fn told(facts: &DataFacts) -> [String; 3] {
        verdict(facts).map(|(_, told)| told)
    }

    #[test]
    fn each_question_is_answered_in_a_sentence() {
        let asked = verdict(&transfer()).map(|(asked, _)| asked);
        assert_eq!(asked, ["What did it get?", "What limited it?", "What was lost, and where?"]);
        assert_eq!(
            told(&transfer())[1..],
            [
                "For 75% of the time the path was full: packets waited in the bottleneck's queue; nothing to send for 25%.",
                "7 of 400 segments, 1.75%, were lost between the capture point and the receiver (exact); \
                 7 of 400 segments were retransmitted, 2 of them after timeouts.",
            ]
        );
    }

    #[test]
    fn the_round_trip_is_reported_where_it_was_seen() {
        let mut facts = transfer();
        assert_eq!(told(&facts)[0], "579 kB in 400 ms, 11.58 Mbit/s; no round trip was seen.");
        facts.rtt.whole =
            Some(crate::analysis::quantiles::Summary { min_s: 0.020_04, median_s: 1.5, ..Default::default() });
        let seen = "579 kB in 400 ms, 11.58 Mbit/s, with a minimum RTT of 20 ms and a median of 1.5 s.";
        assert_eq!(told(&facts)[0], seen);
    }

    #[test]
    fn what_limits_most_of_the_time_is_put_in_words() {
        let path_s = 0.01;
        let all = [
            (Limited { sender_s: 1.0, path_s, ..Limited::default() }, "the application had nothing to send"),
            (Limited { receiver_window_s: 1.0, path_s, ..Limited::default() }, "its application reads too slowly"),
            (
                Limited { congestion_window_s: 1.0, path_s, ..Limited::default() },
                "congestion window was full while the bottleneck",
            ),
            (Limited { idle_s: 1.0, path_s, ..Limited::default() }, "nothing was in flight"),
            (Limited { unknown_s: 1.0, path_s, ..Limited::default() }, "the limit is unknown"),
        ];
        for (limits, words) in all {
            let told = limited(&limits);
            assert!(told.contains(words) && !told.contains("path"), "{told}");
        }
    }

    #[test]
    fn what_is_unknown_is_reported_as_unknown() {
        let mut facts = DataFacts { limits: Limited::default(), ..transfer() };
        facts.loss.rate = None;
        let [_, limit, loss] = told(&facts);
        assert_eq!(limit, "All data was sent at once, so nothing limited it.");
        assert_eq!(loss, "Unknown; 7 of 400 segments were retransmitted.");
    }

    #[test]
    fn where_nothing_was_lost_that_is_reported() {
        let mut facts = transfer();
        (facts.loss.lost, facts.loss.rate) = (0, Some(0.0));
        assert_eq!(told(&facts)[2], "Nothing was lost; 7 of 400 segments were retransmitted.");
        facts.counts.retransmits = 0;
        assert_eq!(told(&facts)[2], "Nothing was lost or retransmitted.");
    }

    #[test]
    fn what_ecn_said_and_bursts_are_reported() {
        let mut facts = DataFacts { ecn_echoes: 1234, window_reductions: 12, ..transfer() };
        (facts.loss.bursts, facts.loss.largest_burst, facts.loss.longest_run) = (3, 4, 2);
        let told = &told(&facts)[2];
        assert!(told.contains("(exact), in 3 bursts; 7 of 400"), "{told}");
        let ecn = " 1,234 acknowledgements echoed an ECN mark, and 12 segments reported a reduced window (CWR).";
        assert!(told.ends_with(ecn), "{told}");
    }

    #[test]
    fn quantities_have_the_digits_that_mean_something_and_no_exponent() {
        let told = [(0.0, "s"), (0.999_6, "s"), (999.6e6, "bit/s"), (44_923_456.0, "bit/s"), (12.0, "B"), (3e-7, "s")];
        let told = told.map(|(value, unit)| quantity(value, unit, if unit == "bit/s" { 4 } else { 3 }));
        assert_eq!(told, ["0 s", "1000 ms", "999.6 Mbit/s", "44.92 Mbit/s", "12 B", "0.0000003 s"]);
        assert_eq!([0, 12, 1000, 1_234_567].map(grouped), ["0", "12", "1,000", "1,234,567"]);
    }
}
