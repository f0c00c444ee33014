//! A parsed script: events and their times. Times are in microseconds, sequence numbers in bytes, as in the script.

use sawtooth_tcp::packet::Ecn;

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Lines `--name=value` at the top; the value is empty if missing.
    pub options: Vec<(String, String)>,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Line number in the script, from 1.
    pub line: usize,
    pub when: When,
    pub action: Action,
}

/// The time of an event, or of an expected one. A single time is a range of length zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Immediately, or at any time (`*`).
    Any,
    /// Relative to the script's start.
    Absolute { start_us: i64, end_us: i64 },
    /// Relative to the previous event.
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
    /// The ECN codepoint given in brackets.
    pub mark: Option<Mark>,
    pub start: u64,
    pub length: u64,
    pub ack: Option<u64>,
    pub window: Option<u64>,
    pub options: Vec<TcpOption>,
    /// `<...>`: the options of the expected packet are not compared.
    pub any_options: bool,
}

/// The ECN field of the IP header as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Is(Ecn),
    /// `ect01`: one of the two.
    Ect,
}

impl Packet {
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }
    /// The byte after its last one; SYN and FIN count as one.
    pub fn end(&self) -> u64 {
        self.start + self.length + u64::from(self.has('F')) + u64::from(self.has('S'))
    }
    /// Timestamp value and echo.
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Timestamps(value, echo) => Some((*value, *echo)),
            _ => None,
        })
    }
    pub fn sack(&self) -> &[(u64, u64)] {
        let blocks = self.options.iter().find_map(|option| match option {
            TcpOption::Sack(blocks) => Some(blocks.as_slice()),
            _ => None,
        });
        blocks.unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    Mss(u64),
    SackPermitted,
    WindowScale(u32),
    /// Value and echo.
    Timestamps(u32, u32),
    Sack(Vec<(u64, u64)>),
    /// Padding (`nop`, `eol`).
    Nothing,
    /// An option that the simulated sender does not support, by name.
    Other(String),
}

/// A system call of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<String>,
    /// The result as written, without the comment.
    pub result: String,
}
