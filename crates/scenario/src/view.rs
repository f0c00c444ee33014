//! A scenario as a program sees it: quantities in their finest unit, lists and tables, each with its declared name.

use crate::units::Unit;
use crate::value::Value;

/// A field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum View {
    /// What has no unit: text, numbers, nothing.
    Plain(Value),
    /// A quantity's name, `Rate`, and its amount.
    Quantity(&'static str, u64),
    /// A queue's limit, of `Unit::Bdp` in billionths.
    Queue(Unit, u64),
    List(Vec<View>),
    Named(Vec<(String, View)>),
    Table(Viewed),
}

/// A declared table: its name, its fields as a program calls them, and what of it the file gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Viewed {
    pub name: &'static str,
    pub fields: Vec<(&'static str, View)>,
    pub given: Value,
}
