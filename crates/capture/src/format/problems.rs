//! Why a capture could not be read, or not to its end.

use std::fmt;

/// Not a capture. `Display` gives `code: text`.
#[derive(Debug)]
pub enum ReadError {
    NotFound(String),
    Unreadable(String),
    NotACapture(String),
}

impl ReadError {
    /// A stable code, as in docs/reference/errors.md.
    pub fn code(&self) -> &'static str {
        match self {
            ReadError::NotFound(_) => "file-not-found",
            ReadError::Unreadable(_) => "file-unreadable",
            ReadError::NotACapture(_) => "not-a-capture",
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ReadError::NotFound(text) | ReadError::Unreadable(text) | ReadError::NotACapture(text)) = self;
        write!(f, "{}: {text}", self.code())
    }
}

impl std::error::Error for ReadError {}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => ReadError::NotFound("there is no such file".into()),
            _ => ReadError::Unreadable(error.to_string()),
        }
    }
}

/// Problems listed one by one up to this number: a hostile file may have one in every packet.
const LISTED: usize = 100;

/// Problems inside a capture that is otherwise readable.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<String>,
    more: u64,
}

impl Problems {
    /// `packet` from 1, `byte` from 0 in the uncompressed stream.
    pub fn add(&mut self, packet: u64, byte: u64, text: impl fmt::Display) {
        if self.list.len() < LISTED {
            self.list.push(format!("packet {packet}, byte {byte}: {text}"));
            return;
        }
        self.more += 1;
        self.list.truncate(LISTED);
        self.list.push(format!("and {} more", self.more));
    }

    pub fn list(&self) -> &[String] {
        &self.list
    }
}
