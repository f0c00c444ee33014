//! Tables that exist in several kinds, distinguished by their field `kind`.

use crate::fields::not_known;
use crate::problem::{FieldProblems, Problem, first, one};
use crate::python;
use crate::schema::{self, Definitions};
use crate::table::{Field, ReadContext, Rule};
use crate::value::{Table, Value};
use crate::words;

/// The field `kind` of a table whose kind is already known.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind(String);

impl Field for Kind {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Kind, FieldProblems> {
        String::read(given, rule, at).map(Kind)
    }

    fn write(&self) -> Value {
        Value::text(&self.0)
    }

    fn schema(_: &Rule, _: &mut Definitions) -> Value {
        schema::of_type("string")
    }
}

/// Reads a table by its kind, with the `read` function of one of `kinds`. Problems name the table's fields.
pub(crate) fn of_kind<A>(
    given: &Table,
    kinds: &[&'static str],
    noun: &str,
    example: &str,
    read: impl FnOnce(&str, &Value) -> Result<A, FieldProblems>,
) -> Result<A, FieldProblems> {
    let kind = match given.get("kind") {
        None | Some(Value::Null) => {
            let fix = format!("add kind, one of {}: {example}", kinds.join(", "));
            return Err(one(Problem::new("missing-field", format!("a {noun} needs a kind"), fix).of("kind")));
        }
        Some(kind) => kind,
    };
    let Some(known) = kind.as_text().and_then(|text| kinds.iter().find(|known| **known == text)) else {
        let named = words::printable(&python::text(kind));
        let fix = words::suggestion(&named, kinds.iter().copied());
        return Err(one(Problem::new("unknown-name", format!("\"{named}\" is no kind of {noun}"), fix).of("kind")));
    };
    read(known, &Value::Table(given.clone())).map_err(|problems| one(first(problems)))
}

/// Declares an enum of the tables that a field may have, by kind.
macro_rules! kinds {
    (
        $(#[doc = $about:literal])+
        $Name:ident of $noun:literal, like $example:literal { $( $kind:literal $Table:ident, )+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Name {
            $( $Table($Table), )+
        }

        impl $Name {
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// Reads a table. Problems name its fields.
            pub(crate) fn read(
                given: &$crate::value::Table,
                files: &dyn $crate::files::Files,
            ) -> Result<$Name, $crate::problem::FieldProblems> {
                $crate::kinds::of_kind(given, $Name::KINDS, $noun, $example, |kind, table| {
                    let at = $crate::table::ReadContext { name: "", files };
                    match kind {
                        $( $kind => $Table::read(table, &$crate::table::Rule::Any, at).map($Name::$Table), )+
                        _ => unreachable!("the kind is known"),
                    }
                })
            }

            /// The declared fields of each kind.
            pub fn declared() -> Vec<(&'static str, &'static [$crate::table::Declared])> {
                vec![$( ($kind, <$Table as $crate::table::Declare>::FIELDS) ),+]
            }

            /// Reads a table by its own name. None if it is no kind's.
            pub(crate) fn read_table(
                name: &str,
                given: &$crate::value::Value,
                at: $crate::table::ReadContext,
            ) -> Option<Result<$crate::view::View, $crate::problem::FieldProblems>> {
                use $crate::table::Field;
                match name {
                    $( stringify!($Table) => {
                        Some($Table::read(given, &$crate::table::Rule::Any, at).map(|read| read.view()))
                    } )+
                    _ => None,
                }
            }

            /// Defaults of the fields of a table by its own name.
            pub(crate) fn usual_fields(name: &str) -> Option<Vec<(&'static str, $crate::view::View)>> {
                use $crate::table::Declare;
                match name {
                    $( stringify!($Table) => Some($Table::usual()), )+
                    _ => None,
                }
            }

            pub fn write(&self) -> $crate::value::Value {
                match self {
                    $( $Name::$Table(one) => $crate::table::Field::write(one), )+
                }
            }

            pub fn view(&self) -> $crate::view::View {
                match self {
                    $( $Name::$Table(one) => $crate::table::Field::view(one), )+
                }
            }

            /// The schema of each kind, and of `more`, for values that are not tables.
            pub(crate) fn schema(
                more: Option<$crate::value::Value>,
                definitions: &mut $crate::schema::Definitions,
            ) -> $crate::value::Value {
                let mut all: Vec<_> = more.into_iter().collect();
                $(
                    all.push(<$Table as $crate::table::Field>::schema(&$crate::table::Rule::Any, definitions));
                    definitions.is_of_kind(<$Table as $crate::table::Declare>::NAME, $kind);
                )+
                $crate::schema::object([("anyOf", $crate::value::Value::List(all))])
            }
        }
    };
}

pub(crate) use kinds;

fn too_long() -> FieldProblems {
    one(Problem::new("out-of-range", "a number of too many digits", "shorten it"))
}

/// An IP version: 4 or 6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Version(pub u8);

impl Field for Version {
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<Version, FieldProblems> {
        match given {
            Value::Whole(4) => Ok(Version(4)),
            Value::Whole(6) => Ok(Version(6)),
            Value::Whole(number) if i64::try_from(*number).is_err() => Err(too_long()),
            Value::Huge(_) => Err(too_long()),
            _ => Err(one(not_known(given, &["4", "6"], at.name, true))),
        }
    }

    fn write(&self) -> Value {
        Value::Whole(self.0.into())
    }

    fn schema(_: &Rule, _: &mut Definitions) -> Value {
        schema::object([("enum", Value::List(vec![Value::Whole(4), Value::Whole(6)]))])
    }
}

/// A date and a time of day in UTC, as `2026-11-26 12:00:00`.
#[derive(Clone, Debug, PartialEq)]
pub struct Date(String);

/// The years that a kernel's clock can start in: it counts nanoseconds since 1970 in 64 bits.
const YEARS: std::ops::RangeInclusive<u32> = 1970..=2200;

impl Date {
    fn parse(text: &str) -> Option<Date> {
        let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
        let [year, month, date] = parts(day, '-', [4, 2, 2])?;
        let [hour, minute, second] = parts(time, ':', [2, 2, 2])?;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let is_one = YEARS.contains(&year) && (1..=days).contains(&date) && hour < 24 && minute < 60 && second < 60;
        is_one.then(|| Date(format!("{day} {time}")))
    }
}

/// Three numbers, each with the given count of digits.
fn parts(text: &str, between: char, digits: [usize; 3]) -> Option<[u32; 3]> {
    let mut numbers = text.split(between).zip(digits).map(|(part, digits)| {
        (part.len() == digits && part.bytes().all(|one| one.is_ascii_digit())).then(|| part.parse().ok())?
    });
    let found = [numbers.next()??, numbers.next()??, numbers.next()??];
    (text.split(between).count() == 3).then_some(found)
}

impl Field for Date {
    fn read(given: &Value, _: &Rule, _: ReadContext) -> Result<Date, FieldProblems> {
        // With quotes, and as TOML's own date.
        let text = match given {
            Value::Text(text) => Some(text),
            Value::Other(kind, text) if kind.starts_with("date") => Some(text),
            _ => None,
        };
        text.and_then(|text| Date::parse(text)).ok_or_else(|| {
            let message = format!("\"{}\" is no date from 1970 to 2200", words::printable(&python::text(given)));
            one(Problem::new("bad-quantity", message, "write it as \"2026-11-26\" or \"2026-11-26 12:00:00\", in UTC"))
        })
    }

    fn write(&self) -> Value {
        Value::text(&self.0)
    }

    fn schema(_: &Rule, _: &mut Definitions) -> Value {
        schema::pattern(r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2})?$")
    }
}
