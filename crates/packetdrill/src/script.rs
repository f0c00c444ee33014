//! A script as it was read: which thing happens when. Times are microseconds, sequence numbers bytes, as written there.

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Lines `--name=value` at the top; the value is empty where there is none.
    pub options: Vec<(String, String)>,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Line of the script, from 1.
    pub line: usize,
    pub when: When,
    pub action: Action,
}

/// When something happens or is expected; a single time is a range without length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once, or whenever it comes (`*`).
    Any,
    /// Since the script's start.
    Absolute { start_us: i64, end_us: i64 },
    /// Since the event before it.
    Relative { start_us: i64, end_us: i64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A packet that the peer sends (`<`).
    Inbound(Packet),
    /// A packet that the host under test is expected to send (`>`).
    Outbound(Packet),
    Call(Call),
    /// Shell commands between backticks.
    Command(String),
    /// Python statements between `%{` and `}%`.
    Assertions(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Letters as written: `S`, `F`, `P`, `R`, `.` for ACK, and others for ECN.
    pub flags: String,
    /// An ECN codepoint is given in brackets.
    pub marked: bool,
    pub start: u64,
    pub length: u64,
    pub ack: Option<u64>,
    pub window: Option<u64>,
    pub options: Vec<TcpOption>,
}

impl Packet {
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }
    /// Anything that belongs to Explicit Congestion Notification (RFC 3168).
    pub fn uses_ecn(&self) -> bool {
        self.marked || self.flags.contains(['E', 'W', 'A'])
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    Mss(u64),
    SackPermitted,
    WindowScale(u32),
    Timestamps,
    Sack(Vec<(u64, u64)>),
    /// Padding (`nop`, `eol`), or `...` for any options.
    Nothing,
    /// One that the simulated sender does not know, by its name.
    Other(String),
}

/// A system call of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<String>,
    /// The result as written, without the comment after it.
    pub result: String,
}
