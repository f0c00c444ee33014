//! The language of scenarios: reads the tables of a file, checks every value, and produces what the core runs.
//!
//! ```text
//! TOML, JSON ─► Value ─► Scenario ─► Network ─► Compiled ─► sawtooth-net
//!                 table.rs  topology.rs   compile.rs
//!                           custom.rs, routing.rs, placement.rs
//! ```
//!
//! Each table of the file is declared once (`table!`): its fields' names, types, limits, defaults and descriptions.
//! This crate opens no file: it gets the contents of files that a scenario names from [`Files`]. An error is a
//! [`Problem`] with the field and a fix.

#![allow(clippy::cast_precision_loss)]

mod application;
mod arrivals;
mod as_custom;
mod canonical;
mod compile;
mod control;
mod custom;
mod declared;
mod draw;
mod fields;
mod files;
mod flow;
mod jitter;
mod json;
mod kinds;
mod loss;
mod network;
mod number;
mod overrides;
mod parts;
mod placement;
mod policer;
mod problem;
mod program;
mod python;
mod queue;
mod queue_model;
mod registry;
mod routing;
mod scenario;
mod schema;
mod simulated;
mod sizes;
mod sources;
mod table;
mod text;
mod topology;
mod units;
mod value;
mod varying;
mod view;
mod words;

pub use compile::{Compiled, Sources};
pub use declared::{read_table, usual_fields};
pub use files::{Files, Listed, NoFiles, Steps, Traced};
pub use placement::flow_names;
pub use problem::{Problem, elsewhere};
pub use program::Programs;
pub use queue::Discipline;
pub use registry::registry;
pub use scenario::Scenario;
pub use table::{Declare, Field};
pub use text::parse_toml;
pub use units::{Burst, Loss, Quantity, Queue, Rate, Size, Span, Unit};
pub use value::{Table, Value};
pub use view::{View, Viewed};
