//! The verdict on a transfer, one sentence each: what it got, what limited it, and what was lost. The command line and
//! the pages print these sentences.

use crate::output::facts::{DataFacts, LimitTimes};
use sawtooth_units::width::Approx;

/// Share of the time from which a further limit is mentioned.
const MIN_REPORTED_SHARE: f64 = 0.05;

/// Pairs of a question and its answer, in the order in which a reader asks.
pub fn verdict(facts: &DataFacts) -> [(&'static str, String); 3] {
    [
        ("What did it get?", amount_sentence(facts)),
        ("What limited it?", limit_sentence(&facts.limits)),
        ("What was lost, and where?", loss_sentence(facts) + &ecn_sentence(facts)),
    ]
}

fn amount_sentence(facts: &DataFacts) -> String {
    let bytes = quantity(facts.volume.acknowledged_bytes.approx(), "B", 3);
    let rate = facts.goodput_bps.map_or_else(String::new, |bps| format!(", {}", quantity(bps, "bit/s", 4)));
    let summary = format!("{bytes} in {}{rate}", quantity(facts.duration_s, "s", 3));
    let Some(trip) = &facts.rtt.whole else { return format!("{summary}; no round trip was seen.") };
    let (least, median) = (quantity(trip.min_s, "s", 3), quantity(trip.median_s, "s", 3));
    format!("{summary}, with a minimum RTT of {least} and a median of {median}.")
}

fn limit_sentence(limits: &LimitTimes) -> String {
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
    let reported = others.into_iter().filter(|(seconds, ..)| seconds / whole >= MIN_REPORTED_SHARE);
    let more: Vec<String> = reported.map(|(seconds, name, _)| format!("{name} for {}", share(seconds))).collect();
    let more = if more.is_empty() { String::new() } else { format!("; {}", more.join(", ")) };
    format!("For {} of the time {first}{more}.", share(most))
}

fn loss_sentence(facts: &DataFacts) -> String {
    let (loss, counts) = (&facts.loss, &facts.counts);
    let retransmits = counts.retransmits;
    let sent =
        format!("{} of {} segments were retransmitted", thousands(retransmits), thousands(facts.volume.data_packets));
    let Some(rate) = loss.rate else { return format!("Unknown; {sent}.") };
    if loss.lost == 0 {
        return if retransmits > 0 {
            format!("Nothing was lost; {sent}.")
        } else {
            "Nothing was lost or retransmitted.".to_owned()
        };
    }
    let where_lost = match loss.place {
        "data before" => "between the sender and the capture point",
        "data after" => "between the capture point and the receiver",
        "data both" => "on both sides of the capture point",
        "acknowledgements" => "as acknowledgements, on the return path",
        _ => "",
    };
    let where_lost = if where_lost.is_empty() {
        ", it is unknown where".to_owned()
    } else {
        format!(" {where_lost} ({})", loss.sure)
    };
    let bursts = if loss.largest_burst > u64::from(loss.longest_run) {
        format!(", in {} bursts", thousands(loss.bursts))
    } else {
        String::new()
    };
    let (lost, of, share) = (thousands(loss.lost), thousands(loss.segments), digits(rate * 100.0, 3));
    let timeouts = thousands(counts.timeout_retransmits);
    format!(
        "{lost} of {of} segments, {share}%, were lost{where_lost}{bursts}; {sent}, {timeouts} of them after timeouts."
    )
}

/// What ECN said (RFC 3168, section 6.1), where it said something.
fn ecn_sentence(facts: &DataFacts) -> String {
    if facts.ecn_echoes == 0 {
        return String::new();
    }
    let (echoes, reductions) = (thousands(facts.ecn_echoes), thousands(facts.window_reductions));
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
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let after = i32::try_from(most).unwrap_or(0) - 1 - exponent;
    let text = format!("{value:.*}", usize::try_from(after).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// With a comma between groups of three digits.
fn thousands(count: u64) -> String {
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
            limits: LimitTimes { sender_s: 0.1, path_s: 0.3, ..LimitTimes::default() },
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

    fn sentences(facts: &DataFacts) -> [String; 3] {
        verdict(facts).map(|(_, sentence)| sentence)
    }

    #[test]
    fn verdict_answers_each_question_in_a_sentence() {
        let questions = verdict(&transfer()).map(|(question, _)| question);
        assert_eq!(questions, ["What did it get?", "What limited it?", "What was lost, and where?"]);
        assert_eq!(
            sentences(&transfer())[1..],
            [
                "For 75% of the time the path was full: packets waited in the bottleneck's queue; nothing to send for 25%.",
                "7 of 400 segments, 1.75%, were lost between the capture point and the receiver (exact); \
                 7 of 400 segments were retransmitted, 2 of them after timeouts.",
            ]
        );
    }

    #[test]
    fn amount_sentence_includes_rtt_if_known() {
        let mut facts = transfer();
        assert_eq!(sentences(&facts)[0], "579 kB in 400 ms, 11.58 Mbit/s; no round trip was seen.");
        facts.rtt.whole =
            Some(crate::analysis::quantiles::Summary { min_s: 0.020_04, median_s: 1.5, ..Default::default() });
        let seen = "579 kB in 400 ms, 11.58 Mbit/s, with a minimum RTT of 20 ms and a median of 1.5 s.";
        assert_eq!(sentences(&facts)[0], seen);
    }

    #[test]
    fn limit_sentence_describes_the_longest_limit() {
        let path_s = 0.01;
        let all = [
            (LimitTimes { sender_s: 1.0, path_s, ..LimitTimes::default() }, "the application had nothing to send"),
            (
                LimitTimes { receiver_window_s: 1.0, path_s, ..LimitTimes::default() },
                "its application reads too slowly",
            ),
            (
                LimitTimes { congestion_window_s: 1.0, path_s, ..LimitTimes::default() },
                "congestion window was full while the bottleneck",
            ),
            (LimitTimes { idle_s: 1.0, path_s, ..LimitTimes::default() }, "nothing was in flight"),
            (LimitTimes { unknown_s: 1.0, path_s, ..LimitTimes::default() }, "the limit is unknown"),
        ];
        for (limits, words) in all {
            let sentence = limit_sentence(&limits);
            assert!(sentence.contains(words) && !sentence.contains("path"), "{sentence}");
        }
    }

    #[test]
    fn unknown_limit_and_loss_are_reported() {
        let mut facts = DataFacts { limits: LimitTimes::default(), ..transfer() };
        facts.loss.rate = None;
        let [_, limit, loss] = sentences(&facts);
        assert_eq!(limit, "All data was sent at once, so nothing limited it.");
        assert_eq!(loss, "Unknown; 7 of 400 segments were retransmitted.");
    }

    #[test]
    fn zero_losses_are_reported() {
        let mut facts = transfer();
        (facts.loss.lost, facts.loss.rate) = (0, Some(0.0));
        assert_eq!(sentences(&facts)[2], "Nothing was lost; 7 of 400 segments were retransmitted.");
        facts.counts.retransmits = 0;
        assert_eq!(sentences(&facts)[2], "Nothing was lost or retransmitted.");
    }

    #[test]
    fn ecn_echoes_and_bursts_are_reported() {
        let mut facts = DataFacts { ecn_echoes: 1234, window_reductions: 12, ..transfer() };
        (facts.loss.bursts, facts.loss.largest_burst, facts.loss.longest_run) = (3, 4, 2);
        let sentence = &sentences(&facts)[2];
        assert!(sentence.contains("(exact), in 3 bursts; 7 of 400"), "{sentence}");
        let ecn = " 1,234 acknowledgements echoed an ECN mark, and 12 segments reported a reduced window (CWR).";
        assert!(sentence.ends_with(ecn), "{sentence}");
    }

    #[test]
    fn quantities_have_significant_digits_without_exponent() {
        let texts = [(0.0, "s"), (0.999_6, "s"), (999.6e6, "bit/s"), (44_923_456.0, "bit/s"), (12.0, "B"), (3e-7, "s")];
        let texts = texts.map(|(value, unit)| quantity(value, unit, if unit == "bit/s" { 4 } else { 3 }));
        assert_eq!(texts, ["0 s", "1000 ms", "999.6 Mbit/s", "44.92 Mbit/s", "12 B", "0.0000003 s"]);
        assert_eq!([0, 12, 1000, 1_234_567].map(thousands), ["0", "12", "1,000", "1,234,567"]);
    }
}
