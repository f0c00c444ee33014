//! The result of a script, and a table of many results.

use std::fmt::Write;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    #[default]
    Passed,
    /// The first difference.
    Failed { line: usize, expected: String, got: String },
    /// The script needs something that is not simulated.
    NotApplicable(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub verdict: Verdict,
    /// Number of outbound packets that came as expected.
    pub packets: usize,
    /// Number of assertions that were true.
    pub assertions: usize,
    /// Differences from the script, and parts that were not checked.
    pub notes: Vec<String>,
}

impl Outcome {
    pub fn not_applicable(reason: String) -> Self {
        Outcome { verdict: Verdict::NotApplicable(reason), ..Outcome::default() }
    }
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
    /// Notes an assertion that could not be checked.
    pub fn unchecked(&mut self, what: String) {
        self.note(format!("assertions on {what} are not checked"));
    }
}

/// Counts of verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub passed: usize,
    pub failed: usize,
    pub not_applicable: usize,
}

impl Totals {
    pub fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed { .. } => self.failed += 1,
            Verdict::NotApplicable(_) => self.not_applicable += 1,
        }
    }
}

/// The results as a Markdown table, and their totals.
pub fn table(outcomes: &[(String, Outcome)]) -> (String, Totals) {
    let mut text = "| script | verdict | packets | assertions | reason, remarks |\n|---|---|--:|--:|---|\n".to_owned();
    let mut totals = Totals::default();
    for (name, outcome) in outcomes {
        totals.count(&outcome.verdict);
        let (verdict, reason) = match &outcome.verdict {
            Verdict::Passed => ("passed", None),
            Verdict::Failed { line, expected, got } => {
                ("FAILED", Some(format!("line {line}: {expected} expected, {got}")))
            }
            Verdict::NotApplicable(reason) => ("not applicable", Some(reason.clone())),
        };
        let remarks = reason.iter().chain(&outcome.notes).cloned().collect::<Vec<_>>().join("; ").replace('|', "\\|");
        let (packets, assertions) = (outcome.packets, outcome.assertions);
        writeln!(text, "| {name} | {verdict} | {packets} | {assertions} | {remarks} |").expect("a string takes all");
    }
    (text, totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_a_script_and_counts_each_verdict() {
        let failed = Verdict::Failed { line: 7, expected: "a | b".to_owned(), got: "c".to_owned() };
        let outcomes = [
            ("one".to_owned(), Outcome { packets: 2, ..Outcome::default() }),
            ("two".to_owned(), Outcome { verdict: failed, notes: vec!["n".to_owned()], ..Outcome::default() }),
            ("three".to_owned(), Outcome::not_applicable("ECN".to_owned())),
        ];
        let (text, totals) = table(&outcomes);
        assert_eq!(totals, Totals { passed: 1, failed: 1, not_applicable: 1 });
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| one | passed | 2 | 0 |  |",
                "| two | FAILED | 0 | 0 | line 7: a \\| b expected, c; n |",
                "| three | not applicable | 0 | 0 | ECN |"
            ]
        );
    }
}
