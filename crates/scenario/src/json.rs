//! The compiled form as JSON, read by the core, a guest and a page.

use crate::compile::Compiled;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{Result, Write};

/// Writes a space after each comma and colon, as Python does, so that output is equal byte by byte to that of older
/// versions.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, is_first: bool) -> Result<()> {
        to.write_all(if is_first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, is_first: bool) -> Result<()> {
        to.write_all(if is_first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> Result<()> {
        to.write_all(b": ")
    }
}

impl Compiled {
    /// JSON that `sawtooth_net::scenario::Scenario::parse` takes.
    pub fn to_json(&self) -> String {
        let mut text = Vec::new();
        self.scenario
            .serialize(&mut Serializer::with_formatter(&mut text, Spaced))
            .expect("numbers and names are JSON");
        String::from_utf8(text).expect("JSON is text")
    }
}
