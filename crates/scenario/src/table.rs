//! Declares the tables of a scenario file once, with each field's name, type, limits, default and description. Reading,
//! writing, defaults, and limits in messages are derived from this.

use crate::files::{Files, NoFiles};
use crate::problem::{FieldProblem, FieldProblems, Problem, ProblemKind, below, one};
use crate::schema::Definitions;
use crate::units::Unit;
use crate::value::{Table, Value};
use crate::view::View;

/// A restriction of a field's type.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    Any,
    /// A quantity between two limits.
    Between(&'static str, &'static str),
    /// An integer between two limits.
    Within(u64, u64),
    /// A number between two limits.
    Decimal(f64, f64),
    /// A list with a least and a largest length.
    Count(usize, usize),
    /// A queue's limit in one of these units, and how it is written.
    In(&'static [Unit], &'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these numbers.
    OneOfNumbers(&'static [u64]),
    /// Letters, digits, `_`, `-` and the characters in the text, up to this length.
    Letters(&'static str, usize),
    /// A name: like `Letters`, but not a number.
    Name(usize),
    /// A kernel: a name that may also have dots, like `v6.1`, but neither first nor two in a row.
    Kernel,
    /// A host of a flow: a name, or `s*` and `r*`.
    End,
    /// A host or `link:NAME`.
    Via,
    /// The name of a parameter in C.
    Identifier,
    /// Printable text on one line.
    Line,
}

/// The value of a field that is absent.
#[derive(Clone, Copy, Debug)]
pub enum AbsentValue {
    /// None: the field is required.
    Needed,
    /// The field then has no value.
    Nothing,
    Text(&'static str),
    Texts(&'static [&'static str]),
    Whole(u64),
    Real(f64),
    Flag(bool),
    /// An empty list, an empty table, or a list with one empty table.
    EmptyList,
    EmptyTable,
    OneTable,
}

impl AbsentValue {
    pub fn value(self) -> Value {
        match self {
            AbsentValue::Needed | AbsentValue::Nothing => Value::Null,
            AbsentValue::Text(text) => Value::text(text),
            AbsentValue::Texts(texts) => Value::List(texts.iter().map(|text| Value::text(*text)).collect()),
            AbsentValue::Whole(number) => Value::Whole(number.into()),
            AbsentValue::Real(number) => Value::Real(number),
            AbsentValue::Flag(flag) => Value::Bool(flag),
            AbsentValue::EmptyList => Value::List(Vec::new()),
            AbsentValue::EmptyTable => Value::Table(Table::new()),
            AbsentValue::OneTable => Value::List(vec![Value::Table(Table::new())]),
        }
    }
}

/// The declaration of a field.
pub struct Declared {
    pub name: &'static str,
    pub rule: Rule,
    pub otherwise: AbsentValue,
    pub description: &'static str,
}

/// Where a value is read.
#[derive(Clone, Copy)]
pub struct ReadContext<'a> {
    /// Name of the field, or the position in a list, for the fix.
    pub name: &'a str,
    /// The files that fields may name.
    pub files: &'a dyn Files,
}

/// The type of a field: how it is read, and how it is written in its one spelling.
pub trait Field: Sized + Clone + PartialEq {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Self, FieldProblems>;
    /// `Value::Null` if it has no value.
    fn write(&self) -> Value;

    /// The same, with only those fields of a table that the file gave.
    fn given(&self) -> Value {
        self.write()
    }

    /// The value as a program sees it.
    fn view(&self) -> View {
        View::Plain(self.write())
    }

    /// Its JSON Schema.
    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value;
}

/// A declared table.
pub trait Declare: Field {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const FIELDS: &'static [Declared];

    /// Whether the file gives the field.
    fn gives(&self, name: &str) -> bool;

    /// Defaults of the optional fields, with the names and types that a program sees.
    fn usual() -> Vec<(&'static str, View)>;
}

/// Which fields a file gave, as a set of their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given(pub u64);

impl PartialEq for Given {
    /// Always equal: tables with the same values are equal, whether a value was given or is a default.
    fn eq(&self, _: &Given) -> bool {
        true
    }
}

/// Declares a table: `name: Type, Rule, AbsentValue, "description";` for each field, `"from" from_: …` where the file
/// has another name for it. `check`: what only the whole table can tell.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $Name:ident $(check $check:path)? {
            $( $($file:literal)? $field:ident : $Type:ty, $rule:expr, $otherwise:expr, $description:expr; )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Name {
            $( #[doc = $description] pub $field: $Type, )+
            /// Which fields the file gave.
            pub given: $crate::table::Given,
        }

        impl $crate::table::Declare for $Name {
            const NAME: &'static str = stringify!($Name);
            const ABOUT: &'static str = concat!($($about, "\n"),+);
            const FIELDS: &'static [$crate::table::Declared] = {
                #[allow(unused_imports)]
                use $crate::table::{AbsentValue::*, Rule::*};
                &[$( $crate::table::Declared {
                    name: $crate::table::named!($($file)? $field),
                    rule: $rule,
                    otherwise: $otherwise,
                    description: $description,
                }, )+]
            };

            fn gives(&self, name: &str) -> bool {
                let index = <Self as $crate::table::Declare>::FIELDS.iter().position(|field| field.name == name);
                index.is_some_and(|index| self.given.0 & 1 << index != 0)
            }

            fn usual() -> Vec<(&'static str, $crate::view::View)> {
                let mut fields = <Self as $crate::table::Declare>::FIELDS.iter();
                let all = [$( (stringify!($field), $crate::table::usual::<$Type>(fields.next()).as_ref().map($crate::table::Field::view)) ),+];
                all.into_iter().filter_map(|(name, seen)| Some((name, seen?))).collect()
            }
        }

        impl $crate::table::Field for $Name {
            fn read(
                given: &$crate::value::Value,
                _: &$crate::table::Rule,
                at: $crate::table::ReadContext,
            ) -> Result<$Name, $crate::problem::FieldProblems> {
                let mut reading = $crate::table::TableReader::begin::<$Name>(given, at)?;
                $( let $field = reading.next::<$Type>(); )+
                let given = reading.end()?;
                let read = $Name { $( $field: $field.expect("fields that were not read are reported"), )+ given };
                $( $check(&read, at.files).map_err($crate::problem::one)?; )?
                Ok(read)
            }

            fn write(&self) -> $crate::value::Value {
                let mut written = $crate::value::Table::new();
                $(
                    let value = $crate::table::Field::write(&self.$field);
                    if value != $crate::value::Value::Null {
                        written.push($crate::table::named!($($file)? $field), value);
                    }
                )+
                $crate::value::Value::Table(written)
            }

            fn given(&self) -> $crate::value::Value {
                let (mut written, mut indices) = ($crate::value::Table::new(), 0..);
                $(
                    if indices.next().is_some_and(|index| self.given.0 & 1 << index != 0) {
                        written.push($crate::table::named!($($file)? $field), $crate::table::Field::given(&self.$field));
                    }
                )+
                $crate::value::Value::Table(written)
            }

            fn view(&self) -> $crate::view::View {
                $crate::view::View::Table($crate::view::Viewed {
                    name: <$Name as $crate::table::Declare>::NAME,
                    fields: vec![$( (stringify!($field), $crate::table::Field::view(&self.$field)) ),+],
                    given: $crate::table::Field::given(self),
                })
            }

            fn schema(_: &$crate::table::Rule, definitions: &mut $crate::schema::Definitions) -> $crate::value::Value {
                definitions.table::<$Name>(|definitions| {
                    let mut fields = <$Name as $crate::table::Declare>::FIELDS.iter();
                    let mut written = Vec::new();
                    $(
                        let field = fields.next().expect("each field is declared");
                        written.push($crate::schema::property::<$Type>(field, definitions));
                    )+
                    written
                })
            }
        }

        impl Default for $Name {
            /// With no field given. Panics for a table that has a field which must be.
            fn default() -> $Name {
                let empty = $crate::value::Value::Table($crate::value::Table::new());
                let at = $crate::table::ReadContext { name: "", files: &$crate::files::NoFiles };
                <$Name as $crate::table::Field>::read(&empty, &$crate::table::Rule::Any, at).expect("defaults are valid")
            }
        }
    };
}

macro_rules! named {
    ($file:literal $field:ident) => {
        $file
    };
    ($field:ident) => {
        stringify!($field)
    };
}

pub(crate) use {named, table};

/// A table that is being read: its fields one after the other, in the order of declaration.
pub(crate) struct TableReader<'a> {
    fields: &'static [Declared],
    table: &'a Table,
    files: &'a dyn Files,
    index: usize,
    given: u64,
    problems: FieldProblems,
}

impl<'a> TableReader<'a> {
    pub fn begin<A: Declare>(given: &'a Value, at: ReadContext<'a>) -> Result<TableReader<'a>, FieldProblems> {
        let Value::Table(table) = given else {
            let fix = format!("write it as a table: {} = {{ FIELD = VALUE }}", at.name);
            return Err(one(Problem::new("wrong-type", "a table is needed", fix)));
        };
        Ok(TableReader { fields: A::FIELDS, table, files: at.files, index: 0, given: 0, problems: Vec::new() })
    }

    /// The next field; None if there is a problem with it.
    pub fn next<A: Field>(&mut self) -> Option<A> {
        let field = &self.fields[self.index];
        let given = self.table.get(field.name);
        self.given |= u64::from(given.is_some()) << self.index;
        self.index += 1;
        let at = ReadContext { name: field.name, files: self.files };
        let read = match (given, field.otherwise) {
            (Some(given), _) => A::read(given, &field.rule, at),
            (None, AbsentValue::Needed) => {
                let fix = format!("add the field \"{}\"", field.name);
                Err(one(Problem::new("missing-field", "this field is required", fix)))
            }
            (None, otherwise) => A::read(&otherwise.value(), &field.rule, at),
        };
        read.map_err(|problems| self.problems.extend(below(field.name, problems))).ok()
    }

    /// Ends reading, after all fields.
    pub fn end(mut self) -> Result<Given, FieldProblems> {
        let names: Vec<&'static str> = self.fields.iter().map(|field| field.name).collect();
        for (name, _) in self.table.iter().filter(|(name, _)| !names.contains(name)) {
            self.problems
                .push(FieldProblem { steps: vec![name.to_string()], what: ProblemKind::Unknown(names.clone()) });
        }
        if self.problems.is_empty() { Ok(Given(self.given)) } else { Err(self.problems) }
    }
}

/// The default of a field; None if it is required.
pub(crate) fn usual<A: Field>(declared: Option<&Declared>) -> Option<A> {
    let declared = declared.filter(|declared| !matches!(declared.otherwise, AbsentValue::Needed))?;
    let at = ReadContext { name: declared.name, files: &NoFiles };
    A::read(&declared.otherwise.value(), &declared.rule, at).ok()
}
