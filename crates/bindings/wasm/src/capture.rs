//! Reads captures from bytes that the page provides. Only part of a file is in memory at a time, so memory does not
//! grow with the file.

use crate::columns::{self, Values};
use crate::handles::{self, Handles};
use crate::text;
use sawtooth_capture::path::Facts;
use sawtooth_capture::tables::{Column, Table};
use sawtooth_capture::{Analysis, Retention, RetentionPolicy};
use std::cell::RefCell;
use std::io::{self, Read};

/// No connection.
const NONE: u32 = u32::MAX;

thread_local! {
    static ANALYSES: RefCell<Handles<Analysis>> = const { RefCell::new(Handles::new()) };
    static KEPT: RefCell<Handles<Retention>> = const { RefCell::new(Handles::new()) };
}

#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Writes the next bytes of a file to `place`, at most `most`. Returns their number: 0 at the end, negative on a
    /// read error.
    fn read(file: u32, place: *mut u8, most: usize) -> i32;
}

/// A file of the page, by its number there.
struct File(u32);

impl Read for File {
    #[cfg(target_family = "wasm")]
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = bytes.len().min(i32::MAX as usize);
        // SAFETY: the page gets the start and length of the slice, and writes only there.
        let count = unsafe { read(self.0, bytes.as_mut_ptr(), most) };
        usize::try_from(count)
            .ok()
            .filter(|&count| count <= most)
            .ok_or_else(|| io::Error::other("the file could not be read"))
    }

    #[cfg(not(target_family = "wasm"))]
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other(format!("file {} is a page's, and there is none", self.0)))
    }
}

/// Starts reading `file`. `detailed`: the connection whose segments are all kept; -1 keeps those of the longest
/// connections that fit into `rows`. Returns 0 if it is not a capture; the answer then has the reason.
#[unsafe(no_mangle)]
extern "C" fn capture_open(file: u32, detailed: u32, rows: usize) -> u32 {
    let policy = match (detailed, rows) {
        (NONE, 0) => RetentionPolicy::None,
        (NONE, rows) => RetentionPolicy::Longest { rows },
        (detailed, _) => RetentionPolicy::One(detailed),
    };
    match Analysis::new(File(file), policy) {
        Ok(analysis) => handles::add(&ANALYSES, analysis),
        Err(why) => {
            text::tell(why.to_string());
            0
        }
    }
}

/// Reads up to `segments` segments. True at the capture's end.
#[unsafe(no_mangle)]
extern "C" fn capture_advance(handle: u32, segments: u64) -> bool {
    handles::with(&ANALYSES, handle, |one| one.advance(segments))
}

/// Bytes of the file read so far, before decompression.
#[unsafe(no_mangle)]
extern "C" fn capture_bytes(handle: u32) -> u64 {
    handles::with(&ANALYSES, handle, |one| one.bytes_read())
}

/// Ends reading and hands out its tables. The answer is `{"facts": …, "tables": …, "kept": …}`; `kept` is a handle for
/// the kept segments. False: it failed, and the answer has the reason.
#[unsafe(no_mangle)]
extern "C" fn capture_finish(handle: u32) -> bool {
    let analysis = handles::remove(&ANALYSES, handle);
    let (facts, tables, kept) = analysis.finish();
    let tables = hand_out(tables);
    match serde_json::to_string(&facts) {
        Ok(facts) => {
            let kept = handles::add(&KEPT, kept);
            text::tell(format!("{{\"facts\":{facts},\"tables\":{tables},\"kept\":{kept}}}"));
        }
        Err(why) => {
            text::tell(why.to_string());
            return false;
        }
    }
    true
}

/// Answers with the path that a connection shows, or the reason why it shows none: `{"Ok": …}` or `{"Err": …}`. The
/// input is the connection's facts. False: its segments are not kept.
#[unsafe(no_mangle)]
extern "C" fn kept_path(handle: u32, connection: u32) -> bool {
    let facts: Facts = match serde_json::from_str(&text::given()) {
        Ok(facts) => facts,
        Err(why) => panic!("no facts of a connection: {why}"),
    };
    let estimate = handles::with(&KEPT, handle, |kept| kept.path(connection, &facts));
    estimate.map(|estimate| text::tell(serde_json::json!(estimate).to_string())).is_some()
}

/// Hands out the tables of a connection's segments, once, and answers with their addresses. False: they are not kept.
#[unsafe(no_mangle)]
extern "C" fn kept_segments(handle: u32, connection: u32) -> bool {
    let tables = handles::with(&KEPT, handle, |kept| kept.take(connection));
    tables.map(|tables| text::tell(hand_out(tables))).is_some()
}

/// Closes a capture, finished or not.
#[unsafe(no_mangle)]
extern "C" fn capture_close(handle: u32) {
    drop(handles::remove(&ANALYSES, handle));
}

fn hand_out(tables: Vec<(&'static str, Table)>) -> String {
    let values = |column| match column {
        Column::Float(values) => Values::Float(values),
        Column::Integer(values) => Values::Integer(values),
        Column::Unsigned(values) => Values::Unsigned(values),
        Column::Medium(values) => Values::Medium(values),
        Column::Small(values) => Values::Small(values),
        Column::Flag(values) => Values::Small(values.into_iter().map(u8::from).collect()),
    };
    let table =
        |(name, columns): (_, Vec<_>)| (name, columns.into_iter().map(|(name, one)| (name, values(one))).collect());
    columns::hand_out(tables.into_iter().map(table).collect())
}
