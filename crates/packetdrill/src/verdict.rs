//! The result of a script.

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
