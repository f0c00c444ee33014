//! Applications at the receiving host that request their data: `requests`, `pages` and `video` of a `source`.
//!
//! `from` is the host that has the data, `to` the one that reads it. `to` opens the connections, and its requests
//! travel on the reverse path.

use crate::files::Files;
use crate::kinds::{Kind, kinds};
use crate::problem::{FieldProblems, Problem, one};
use crate::schema::Definitions;
use crate::sizes::Sizes;
use crate::table::{Field, ReadContext, Rule, table};
use crate::units::{Quantity, Rate, Span};
use crate::value::Value;
use crate::view::View;
use sawtooth_net::scenario as net;

const HOUR_NS: u64 = 3_600 * 1_000_000_000;
/// Netflix's fixed bitrates, used before each title had its own ("Per-Title Encode Optimization", Netflix Technology
/// Blog, 2015).
const LADDER: &[&str] = &[
    "235 kbit/s",
    "375 kbit/s",
    "560 kbit/s",
    "750 kbit/s",
    "1050 kbit/s",
    "1750 kbit/s",
    "2350 kbit/s",
    "3 Mbit/s",
    "4300 kbit/s",
    "5800 kbit/s",
];

table! {
    /// Exponentially distributed times, independent of each other.
    Exponential {
        kind: Kind, Any, Needed, "`exponential`";
        mean: Span, Between("1 us", "1 h"), Needed, "mean time";
    }
}

kinds! {
    /// Random times.
    Chance of "think time", like "think = \"1 s\", or think = { kind = \"exponential\", mean = \"1 s\" }" {
        "exponential" Exponential,
    }
}

/// How long a reader waits before its next request.
#[derive(Clone, Debug, PartialEq)]
pub enum Think {
    Fixed(Span),
    Drawn(Chance),
}

impl Think {
    fn compile(&self) -> net::Think {
        match self {
            Think::Fixed(time) => net::Think::FixedNs(time.ns),
            Think::Drawn(Chance::Exponential(one)) => net::Think::ExponentialNs(one.mean.ns),
        }
    }
}

impl Field for Think {
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<Think, FieldProblems> {
        if let Value::Table(table) = given {
            return Chance::read(table, at.files).map(Think::Drawn);
        }
        let time = Span::parse(given).map_err(one)?;
        if time.ns <= HOUR_NS {
            return Ok(Think::Fixed(time));
        }
        let message = format!("\"{time}\" is outside 0 s … 1 h");
        Err(one(Problem::new("out-of-range", message, "write it like \"1 s\"")))
    }

    fn write(&self) -> Value {
        match self {
            Think::Fixed(time) => time.write(),
            Think::Drawn(chance) => chance.write(),
        }
    }

    fn view(&self) -> View {
        match self {
            Think::Fixed(time) => time.view(),
            Think::Drawn(chance) => chance.view(),
        }
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        let text = Span::schema(rule, definitions);
        Chance::schema(Some(text), definitions)
    }
}

table! {
    /// Responses over one connection. The client requests the next one a think time after the last byte.
    Requests {
        kind: Kind, Any, Needed, "`requests`";
        sizes: Sizes, Any, Needed, "size of a response: `100 kB`, or a table";
        think: Think, Any, Text("0 s"), "time from the last byte of a response to the next request: a time, or a table";
    }
}

impl Requests {
    pub(crate) fn compile(&self, files: &dyn Files) -> Result<net::Application, Problem> {
        Ok(net::Application::Requests { sizes: self.sizes.compile(files)?, think: self.think.compile() })
    }
}

table! {
    /// Web pages of several objects. The reader requests each object when a connection is free.
    Pages {
        kind: Kind, Any, Needed, "`pages`";
        objects: u64, Within(1, 100_000), Needed, "number of objects on a page";
        sizes: Sizes, Any, Needed, "size of an object: `20 kB`, or a table";
        think: Think, Any, Text("1 s"), "time from the last byte of a page to the next page: a time, or a table";
        connections: u64, Within(1, 256), Whole(6), "parallel connections of one reader; browsers open 6 to a host";
        keep: bool, Any, Flag(false), "use the same connections for the next page; false: each page opens new ones";
    }
}

impl Pages {
    pub(crate) fn compile(&self, files: &dyn Files) -> Result<net::Application, Problem> {
        Ok(net::Application::Pages {
            objects: self.objects,
            sizes: self.sizes.compile(files)?,
            think: self.think.compile(),
            connections: self.connections as usize,
            keep: self.keep,
        })
    }
}

table! {
    /// Segments of a video. The player requests the next one when its playback buffer has room.
    Video check video_agrees {
        kind: Kind, Any, Needed, "`video`";
        rates: Vec<Rate>, Count(1, 100), Texts(LADDER),
            "list of the video's rates, lowest first; absent: Netflix's ten rates of 2015, 235 kbit/s to 5.8 Mbit/s";
        segment: Span, Between("100 ms", "60 s"), Text("4 s"), "playing time of a segment";
        buffer: Span, Between("100 ms", "1 h"), Text("30 s"), "most video held in the playback buffer, as playing time";
        rule: String, OneOf(&["buffer", "throughput"]), Text("buffer"),
            "choice of the next rate: `buffer` is BBA-0 (Huang and others 2014); `throughput` takes the highest rate within 90% of the mean of the last four segments";
    }
}

fn video_agrees(video: &Video, _: &dyn Files) -> Result<(), Problem> {
    if !video.rates.is_sorted_by(|low, high| low < high) {
        let message = "each rate must be higher than the one before it";
        return Err(Problem::new("out-of-range", message, "write the rates in rising order, each once").of("rates"));
    }
    if video.segment > video.buffer {
        let message = format!("a segment of \"{}\" does not fit into a buffer of \"{}\"", video.segment, video.buffer);
        return Err(Problem::new("out-of-range", message, "choose a buffer of at least one segment").of("buffer"));
    }
    Ok(())
}

impl Video {
    pub(crate) fn compile(&self) -> net::Application {
        net::Application::Video {
            rates_bps: self.rates.iter().map(|rate| rate.bps).collect(),
            segment_ns: self.segment.ns,
            buffer_ns: self.buffer.ns,
            rule: if self.rule == "buffer" { net::Rule::Buffer } else { net::Rule::Throughput },
        }
    }
}
