//! A scenario as a program sees it: quantities in their smallest unit, and lists and tables with their declared names.

use crate::units::Unit;
use crate::value::Value;

/// A field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum View {
    /// A value without a unit: text, numbers, nothing.
    Plain(Value),
    /// A quantity's type name, such as `Rate`, and its amount.
    Quantity(&'static str, u64),
    /// A queue's limit; for `Unit::Bdp` in billionths.
    Queue(Unit, u64),
    List(Vec<View>),
    Named(Vec<(String, View)>),
    Table(Viewed),
}

/// A declared table: its name, its fields by their names in programs, and which of them the file gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Viewed {
    pub name: &'static str,
    pub fields: Vec<(&'static str, View)>,
    pub given: Value,
}
