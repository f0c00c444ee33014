//! Declares the tables of a scenario file once, with each field's name, type, limits, default and description. Reading,
//! writing, defaults, and limits in messages are derived from this.

use crate::files::{Files, NoFiles};
use crate::problem::{Found, Problem, What, Wrong, below, one};
use crate::python;
use crate::schema::{self, Definitions};
use crate::units::{Burst, Loss, Quantity, Queue, Rate, Size, Span, Unit};
use crate::value::{Table, Value};
use crate::view::View;
use crate::words;

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
pub enum Otherwise {
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

impl Otherwise {
    pub fn value(self) -> Value {
        match self {
            Otherwise::Needed | Otherwise::Nothing => Value::Null,
            Otherwise::Text(text) => Value::text(text),
            Otherwise::Texts(texts) => Value::List(texts.iter().map(|text| Value::text(*text)).collect()),
            Otherwise::Whole(number) => Value::Whole(number.into()),
            Otherwise::Real(number) => Value::Real(number),
            Otherwise::Flag(flag) => Value::Bool(flag),
            Otherwise::EmptyList => Value::List(Vec::new()),
            Otherwise::EmptyTable => Value::Table(Table::new()),
            Otherwise::OneTable => Value::List(vec![Value::Table(Table::new())]),
        }
    }
}

/// The declaration of a field.
pub struct Declared {
    pub name: &'static str,
    pub rule: Rule,
    pub otherwise: Otherwise,
    pub description: &'static str,
}

/// Where a value is read.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Name of the field, or the position in a list, for the fix.
    pub name: &'a str,
    /// The files that fields may name.
    pub files: &'a dyn Files,
}

/// The type of a field: how it is read, and how it is written in its one spelling.
pub trait Field: Sized + Clone + PartialEq {
    fn read(given: &Value, rule: &Rule, at: At) -> Result<Self, Wrong>;
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

/// Declares a table: `name: Type, Rule, Otherwise, "description";` for each field, `"from" from_: …` where the file has another name for
/// it. `check`: what only the whole table can tell.
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
                use $crate::table::{Otherwise::*, Rule::*};
                &[$( $crate::table::Declared {
                    name: $crate::table::named!($($file)? $field),
                    rule: $rule,
                    otherwise: $otherwise,
                    description: $description,
                }, )+]
            };

            fn gives(&self, name: &str) -> bool {
                let place = <Self as $crate::table::Declare>::FIELDS.iter().position(|field| field.name == name);
                place.is_some_and(|place| self.given.0 & 1 << place != 0)
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
                at: $crate::table::At,
            ) -> Result<$Name, $crate::problem::Wrong> {
                let mut reading = $crate::table::Reading::begin::<$Name>(given, at)?;
                $( let $field = reading.next::<$Type>(); )+
                let given = reading.end()?;
                let read = $Name { $( $field: $field.expect("what was not read was told"), )+ given };
                $( $check(&read, at.files).map_err($crate::problem::one)?; )?
                Ok(read)
            }

            fn write(&self) -> $crate::value::Value {
                let mut told = $crate::value::Table::new();
                $(
                    let value = $crate::table::Field::write(&self.$field);
                    if value != $crate::value::Value::Null {
                        told.push($crate::table::named!($($file)? $field), value);
                    }
                )+
                $crate::value::Value::Table(told)
            }

            fn given(&self) -> $crate::value::Value {
                let (mut told, mut places) = ($crate::value::Table::new(), 0..);
                $(
                    if places.next().is_some_and(|place| self.given.0 & 1 << place != 0) {
                        told.push($crate::table::named!($($file)? $field), $crate::table::Field::given(&self.$field));
                    }
                )+
                $crate::value::Value::Table(told)
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
                    let mut told = Vec::new();
                    $(
                        let field = fields.next().expect("each field is declared");
                        told.push($crate::schema::property::<$Type>(field, definitions));
                    )+
                    told
                })
            }
        }

        impl Default for $Name {
            /// With no field given. Panics for a table that has a field which must be.
            fn default() -> $Name {
                let empty = $crate::value::Value::Table($crate::value::Table::new());
                let at = $crate::table::At { name: "", files: &$crate::files::NoFiles };
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
pub(crate) struct Reading<'a> {
    fields: &'static [Declared],
    table: &'a Table,
    files: &'a dyn Files,
    place: usize,
    given: u64,
    wrong: Wrong,
}

impl<'a> Reading<'a> {
    pub fn begin<A: Declare>(given: &'a Value, at: At<'a>) -> Result<Reading<'a>, Wrong> {
        let Value::Table(table) = given else {
            let fix = format!("write it as a table: {} = {{ FIELD = VALUE }}", at.name);
            return Err(one(Problem::new("wrong-type", "a table is needed", fix)));
        };
        Ok(Reading { fields: A::FIELDS, table, files: at.files, place: 0, given: 0, wrong: Vec::new() })
    }

    /// The next field; None if there is a problem with it.
    pub fn next<A: Field>(&mut self) -> Option<A> {
        let field = &self.fields[self.place];
        let given = self.table.get(field.name);
        self.given |= u64::from(given.is_some()) << self.place;
        self.place += 1;
        let at = At { name: field.name, files: self.files };
        let read = match (given, field.otherwise) {
            (Some(given), _) => A::read(given, &field.rule, at),
            (None, Otherwise::Needed) => {
                let fix = format!("add the field \"{}\"", field.name);
                Err(one(Problem::new("missing-field", "this field is required", fix)))
            }
            (None, otherwise) => A::read(&otherwise.value(), &field.rule, at),
        };
        read.map_err(|wrong| self.wrong.extend(below(field.name, wrong))).ok()
    }

    /// Ends reading, after all fields.
    pub fn end(mut self) -> Result<Given, Wrong> {
        let names: Vec<&'static str> = self.fields.iter().map(|field| field.name).collect();
        for (name, _) in self.table.iter().filter(|(name, _)| !names.contains(name)) {
            self.wrong.push(Found { steps: vec![name.to_string()], what: What::Unknown(names.clone()) });
        }
        if self.wrong.is_empty() { Ok(Given(self.given)) } else { Err(self.wrong) }
    }
}

/// The default of a field; None if it is required.
pub(crate) fn usual<A: Field>(declared: Option<&Declared>) -> Option<A> {
    let declared = declared.filter(|declared| !matches!(declared.otherwise, Otherwise::Needed))?;
    let at = At { name: declared.name, files: &NoFiles };
    A::read(&declared.otherwise.value(), &declared.rule, at).ok()
}

/// A problem with a value's type.
pub(crate) fn wrong_type<A>(message: &str, fix: impl Into<String>) -> Result<A, Wrong> {
    Err(one(Problem::new("wrong-type", message, fix)))
}

impl<A: Field> Field for Option<A> {
    fn read(given: &Value, rule: &Rule, at: At) -> Result<Option<A>, Wrong> {
        if *given == Value::Null { Ok(None) } else { A::read(given, rule, at).map(Some) }
    }

    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, A::write)
    }

    fn given(&self) -> Value {
        self.as_ref().map_or(Value::Null, A::given)
    }

    fn view(&self) -> View {
        self.as_ref().map_or(View::Plain(Value::Null), A::view)
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        schema::any([A::schema(rule, definitions), schema::of_type("null")])
    }
}

impl<A: Field> Field for Vec<A> {
    fn read(given: &Value, rule: &Rule, at: At) -> Result<Vec<A>, Wrong> {
        let Value::List(list) = given else {
            return wrong_type(
                "a list is needed",
                format!("write it as a list: {} = [ … ], or [[{0}]] for a list of tables", at.name),
            );
        };
        let (mut read, mut wrong) = (Vec::with_capacity(list.len()), Vec::new());
        for (number, one) in list.iter().enumerate() {
            let place = number.to_string();
            match A::read(one, rule, At { name: &place, ..at }) {
                Ok(one) => read.push(one),
                Err(found) => wrong.extend(below(&place, found)),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        if let Rule::Count(least, most) = *rule {
            counted(read.len(), least, most)?;
        }
        Ok(read)
    }

    fn write(&self) -> Value {
        Value::List(self.iter().map(A::write).collect())
    }

    fn given(&self) -> Value {
        Value::List(self.iter().map(A::given).collect())
    }

    fn view(&self) -> View {
        View::List(self.iter().map(A::view).collect())
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        let (least, most) = if let Rule::Count(least, most) = *rule { (least, Some(most)) } else { (0, None) };
        schema::list(A::schema(rule, definitions), least, most)
    }
}

/// Refuses a list that is too long or too short.
pub(crate) fn counted(count: usize, least: usize, most: usize) -> Result<(), Wrong> {
    let (message, fix) = match count {
        _ if count < least => (format!("{count} given, and at least {least} needed"), format!("give at least {least}")),
        _ if count > most => (format!("more than {most} given"), format!("give at most {most}")),
        _ => return Ok(()),
    };
    Err(one(Problem::new("out-of-range", message, fix)))
}

fn quantity<A: Quantity>(given: &Value, rule: &Rule) -> Result<A, Wrong> {
    let read = A::parse(given).map_err(one)?;
    if let Rule::Between(low, high) = rule {
        let within = A::of(low).amount()..=A::of(high).amount();
        if !within.contains(&read.amount()) {
            let limits = format!("{low} … {high}");
            let message = format!("\"{read}\" is outside {limits}");
            return Err(one(Problem::new("out-of-range", message, format!("choose {limits}"))));
        }
    }
    Ok(read)
}

macro_rules! quantities {
    ($($Type:ident),+) => {$(
        impl Field for $Type {
            fn read(given: &Value, rule: &Rule, _: At) -> Result<$Type, Wrong> {
                quantity(given, rule)
            }

            fn write(&self) -> Value {
                Value::Text(self.to_string())
            }

            fn view(&self) -> View {
                View::Quantity($Type::NAME, self.amount())
            }

            fn schema(_: &Rule, definitions: &mut Definitions) -> Value {
                definitions.quantity::<$Type>()
            }
        }
    )+};
}

quantities!(Rate, Span, Size, Loss, Burst);

impl Field for Queue {
    fn read(given: &Value, rule: &Rule, _: At) -> Result<Queue, Wrong> {
        let read = Queue::parse(given).map_err(one)?;
        match rule {
            Rule::In(units, like) if !units.contains(&read.unit) => {
                let message = format!("\"{read}\" is no limit of this kind of queue");
                Err(one(Problem::new("unknown-unit", message, format!("write it like {like}"))))
            }
            _ => Ok(read),
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }

    fn view(&self) -> View {
        View::Queue(self.unit, self.amount)
    }

    fn schema(_: &Rule, definitions: &mut Definitions) -> Value {
        definitions.quantity::<Queue>()
    }
}

/// Refuses a number outside the limits. The message shows them as Python does.
fn limited(given: &Value, is_low: bool, is_high: bool, low: &str, high: &str) -> Result<(), Wrong> {
    let limit = match () {
        () if is_low => format!("at least {low}"),
        () if is_high => format!("at most {high}"),
        () => return Ok(()),
    };
    let shown = match given {
        Value::Whole(number) if number.unsigned_abs() < 10u128.pow(30) => number.to_string(),
        Value::Real(number) if number.abs() < 1e30 => python::float(*number),
        _ => "the value".into(),
    };
    Err(one(Problem::new("out-of-range", format!("{shown} is not {limit}"), format!("choose {limit}"))))
}

impl Field for u64 {
    fn read(given: &Value, rule: &Rule, at: At) -> Result<u64, Wrong> {
        let number = match given {
            Value::Whole(number) => *number,
            Value::Huge(number) if number.starts_with('-') => i128::MIN,
            Value::Huge(_) => i128::MAX,
            _ => {
                let fix = format!("write it without quotes, unit or decimals, like {} = 10", at.name);
                return wrong_type("a whole number is needed", fix);
            }
        };
        if let Rule::Within(low, high) = *rule {
            let (is_low, is_high) = (number < low.into(), number > high.into());
            limited(given, is_low, is_high, &low.to_string(), &high.to_string())?;
        }
        if let Rule::OneOfNumbers(known) = rule
            && !known.iter().any(|one| i128::from(*one) == number)
        {
            let (last, others) = known.split_last().expect("there are some");
            let others: Vec<String> = others.iter().map(u64::to_string).collect();
            let fix = format!("choose {} or {last}", others.join(", "));
            return Err(one(Problem::new(
                "out-of-range",
                format!("{} is not a timer tick of Linux", python::text(given)),
                fix,
            )));
        }
        u64::try_from(number).or_else(|_| limited(given, number < 0, true, "0", "18446744073709551615").map(|()| 0))
    }

    fn write(&self) -> Value {
        Value::Whole((*self).into())
    }

    fn schema(rule: &Rule, _: &mut Definitions) -> Value {
        match *rule {
            Rule::Within(low, high) => schema::object([
                ("type", Value::text("integer")),
                ("minimum", Value::Whole(low.into())),
                ("maximum", Value::Whole(high.into())),
            ]),
            Rule::OneOfNumbers(known) => schema::object([
                ("type", Value::text("integer")),
                ("enum", Value::List(known.iter().map(|one| Value::Whole((*one).into())).collect())),
            ]),
            _ => schema::of_type("integer"),
        }
    }
}

impl Field for f64 {
    fn read(given: &Value, rule: &Rule, _: At) -> Result<f64, Wrong> {
        let fix = "see docs/reference/scenario.md";
        let number = match given {
            Value::Whole(number) => *number as f64,
            Value::Huge(number) => number.parse().unwrap_or(f64::MAX),
            Value::Real(number) if !number.is_finite() => return wrong_type("Input should be a finite number", fix),
            Value::Real(number) => *number,
            _ => return wrong_type("Input should be a valid number", fix),
        };
        if let Rule::Decimal(low, high) = *rule {
            limited(given, number < low, number > high, &python::float(low), &python::float(high))?;
        }
        Ok(number)
    }

    fn write(&self) -> Value {
        Value::Real(*self)
    }

    fn schema(rule: &Rule, _: &mut Definitions) -> Value {
        let Rule::Decimal(low, high) = *rule else { return schema::of_type("number") };
        schema::object([("type", Value::text("number")), ("minimum", Value::Real(low)), ("maximum", Value::Real(high))])
    }
}

impl Field for bool {
    fn read(given: &Value, _: &Rule, at: At) -> Result<bool, Wrong> {
        match given {
            Value::Bool(flag) => Ok(*flag),
            _ => wrong_type("true or false is needed", format!("write {0} = true or {0} = false", at.name)),
        }
    }

    fn write(&self) -> Value {
        Value::Bool(*self)
    }

    fn schema(_: &Rule, _: &mut Definitions) -> Value {
        schema::of_type("boolean")
    }
}

impl Field for String {
    fn read(given: &Value, rule: &Rule, at: At) -> Result<String, Wrong> {
        if let Rule::OneOf(known) = rule {
            return word(given, known, at.name).map(str::to_string);
        }
        let Value::Text(text) = given else {
            return wrong_type("text is needed", format!("write it in quotes: {} = \"…\"", at.name));
        };
        if !matches(text, rule) {
            return Err(vec![Found { steps: Vec::new(), what: What::NotAName(text.clone()) }]);
        }
        if matches!(rule, Rule::Name(_)) && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = format!("a name made of digits only, \"{text}\", would be read as a position");
            let fix = format!("begin it with a letter, like \"n{text}\": flows.0 means the first flow");
            return Err(one(Problem::new("bad-name", message, fix)));
        }
        if matches!(rule, Rule::Line) {
            one_line(text).map_err(one)?;
        }
        Ok(text.clone())
    }

    fn write(&self) -> Value {
        Value::text(self)
    }

    fn schema(rule: &Rule, _: &mut Definitions) -> Value {
        match *rule {
            Rule::OneOf(words) => schema::one_of(words),
            Rule::Letters(more, most) => schema::pattern(&format!("^[A-Za-z0-9{more}]{{1,{most}}}$")),
            Rule::Name(most) => schema::pattern(&format!("^[A-Za-z0-9_+-]{{1,{most}}}$")),
            Rule::End => schema::pattern(r"^([A-Za-z0-9_+-]{1,40}|[sr]\*)$"),
            Rule::Via => schema::pattern("^(link:)?[A-Za-z0-9_+-]{1,40}$"),
            Rule::Line => schema::pattern(r"^[^\x00-\x1f\x7f]{1,100}$"),
            _ => schema::of_type("string"),
        }
    }
}

/// Refuses characters that a terminal would not show as text on one line.
pub(crate) fn one_line(text: &str) -> Result<(), Problem> {
    if words::is_plain(text) {
        return Ok(());
    }
    let message = format!("\"{}\" has characters that steer a terminal", words::shown(text));
    Err(Problem::new("bad-name", message, "leave out control characters, line ends and marks of direction"))
}

fn matches(text: &str, rule: &Rule) -> bool {
    let count = text.chars().count();
    let are = |text: &str, more: &str| text.chars().all(|one| one.is_ascii_alphanumeric() || more.contains(one));
    match *rule {
        Rule::Letters(more, most) => (1..=most).contains(&count) && are(text, more),
        Rule::Name(most) => (1..=most).contains(&count) && are(text, "_+-"),
        Rule::End => text == "s*" || text == "r*" || ((1..=40).contains(&count) && are(text, "_+-")),
        Rule::Via => {
            let name = text.strip_prefix("link:").unwrap_or(text);
            (1..=40).contains(&name.chars().count()) && are(name, "_+-")
        }
        Rule::Identifier => {
            (1..=100).contains(&count) && are(text, "_") && !text.starts_with(|one: char| one.is_ascii_digit())
        }
        Rule::Line => (1..=100).contains(&count) && !text.contains(|one: char| one < ' ' || one == '\x7f'),
        _ => true,
    }
}

/// Accepts one of the known words.
fn word<'a>(given: &Value, known: &'a [&'a str], name: &str) -> Result<&'a str, Wrong> {
    if let Some(found) = given.as_text().and_then(|text| known.iter().find(|one| **one == text)) {
        return Ok(found);
    }
    Err(one(not_known(given, known, name, false)))
}

/// The problem for an unknown word. `is_bare`: the words are numbers and need no quotes.
pub(crate) fn not_known(given: &Value, known: &[&str], name: &str, is_bare: bool) -> Problem {
    let text = words::shown(&python::text(given));
    let is_text = matches!(given, Value::Text(_));
    let message = if is_text { format!("\"{text}\" is not known here") } else { format!("{text} is not known here") };
    let fix = match is_text && is_bare && known.contains(&text.as_str()) {
        true => format!("write it without quotes: {name} = {text}"),
        false => words::suggestion(&text, known.iter().copied()),
    };
    Problem::new("unknown-name", message, fix)
}
