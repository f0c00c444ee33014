//! All declared tables by name.

use crate::application::Chance;
use crate::control::{Module, Variant};
use crate::files::Files;
use crate::flow::{Flow, Probe, Replace};
use crate::jitter::Jitter;
use crate::loss::{GilbertElliott, LossPattern};
use crate::parts::{Card, Chain, Direction, Dumbbell, Home, Host, Link, ParkingLot, Path, Route};
use crate::policer::Policer;
use crate::problem::{Problem, first};
use crate::program::Program;
use crate::queue::Discipline;
use crate::scenario::Scenario;
use crate::sizes::Distribution;
use crate::sources::{Reader, Source};
use crate::table::{Declare, Field, ReadContext, Rule};
use crate::value::Value;
use crate::varying::{Change, Reorder, Share};
use crate::view::View;

/// Asks the tables that exist in several kinds.
macro_rules! of_kinds {
    ($what:ident ($($given:expr),+)) => {
        Discipline::$what($($given),+)
            .or_else(|| Source::$what($($given),+))
            .or_else(|| Distribution::$what($($given),+))
            .or_else(|| Chance::$what($($given),+))
    };
}

macro_rules! by_name {
    ($($Table:ident)+) => {
        /// Reads a single table. None if no table has this name.
        pub fn read_table(name: &str, given: &Value, files: &dyn Files) -> Option<Result<View, Problem>> {
            let at = ReadContext { name: "", files };
            match name {
                $( stringify!($Table) => Some($Table::read(given, &Rule::Any, at).map(|read| Field::view(&read)).map_err(first)), )+
                _ => of_kinds!(read_table(name, given, at)).map(|read| read.map_err(first)),
            }
        }

        /// Defaults of a table's fields, with the names and types that a program sees. None if no table has this name.
        pub fn usual_fields(name: &str) -> Option<Vec<(&'static str, View)>> {
            match name {
                $( stringify!($Table) => Some($Table::usual()), )+
                "Scenario" => Some(Scenario::usual()),
                _ => of_kinds!(usual_fields(name)),
            }
        }
    };
}

by_name! {
    Card Chain Change Direction Dumbbell Flow GilbertElliott Home Host Jitter Link LossPattern Module
    ParkingLot Path Policer Probe Program Reader Reorder Replace Route Share Variant
}

impl Scenario {
    /// A field by its name in programs. None if it does not exist.
    pub fn field(&self, name: &str) -> Option<View> {
        macro_rules! fields {
            ($($field:ident)+) => {
                match name {
                    $( stringify!($field) => Some(self.$field.view()), )+
                    _ => None,
                }
            };
        }
        fields! {
            name topology duration warmup interval seed traffic ip date queue_delays fast path chain dumbbell parking_lot home host hosts cards links
            routes flows probes programs
        }
    }
}
