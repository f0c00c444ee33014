//! How fields of the plain types are read and written: options, lists, quantities, numbers, flags and texts.

use crate::problem::{FieldProblem, FieldProblems, Problem, ProblemKind, below, one};
use crate::python;
use crate::schema::{self, Definitions};
use crate::table::{Field, ReadContext, Rule};
use crate::units::{Burst, Loss, Quantity, Queue, Rate, Size, Span};
use crate::value::Value;
use crate::view::View;
use crate::words;

/// A problem with a value's type.
pub(crate) fn wrong_type<A>(message: &str, fix: impl Into<String>) -> Result<A, FieldProblems> {
    Err(one(Problem::new("wrong-type", message, fix)))
}

impl<A: Field> Field for Option<A> {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Option<A>, FieldProblems> {
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
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Vec<A>, FieldProblems> {
        let Value::List(list) = given else {
            return wrong_type(
                "a list is needed",
                format!("write it as a list: {} = [ … ], or [[{0}]] for a list of tables", at.name),
            );
        };
        let (mut read, mut problems) = (Vec::with_capacity(list.len()), Vec::new());
        for (number, one) in list.iter().enumerate() {
            let place = number.to_string();
            match A::read(one, rule, ReadContext { name: &place, ..at }) {
                Ok(one) => read.push(one),
                Err(found) => problems.extend(below(&place, found)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
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
pub(crate) fn counted(count: usize, least: usize, most: usize) -> Result<(), FieldProblems> {
    let (message, fix) = match count {
        _ if count < least => (format!("{count} given, and at least {least} needed"), format!("give at least {least}")),
        _ if count > most => (format!("more than {most} given"), format!("give at most {most}")),
        _ => return Ok(()),
    };
    Err(one(Problem::new("out-of-range", message, fix)))
}

fn quantity<A: Quantity>(given: &Value, rule: &Rule) -> Result<A, FieldProblems> {
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
            fn read(given: &Value, rule: &Rule, _: ReadContext) -> Result<$Type, FieldProblems> {
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
    fn read(given: &Value, rule: &Rule, _: ReadContext) -> Result<Queue, FieldProblems> {
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
fn limited(given: &Value, is_low: bool, is_high: bool, low: &str, high: &str) -> Result<(), FieldProblems> {
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
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<u64, FieldProblems> {
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
    fn read(given: &Value, rule: &Rule, _: ReadContext) -> Result<f64, FieldProblems> {
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
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<bool, FieldProblems> {
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
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<String, FieldProblems> {
        if let Rule::OneOf(known) = rule {
            return word(given, known, at.name).map(str::to_string);
        }
        let Value::Text(text) = given else {
            return wrong_type("text is needed", format!("write it in quotes: {} = \"…\"", at.name));
        };
        if !matches(text, rule) {
            return Err(vec![FieldProblem { steps: Vec::new(), what: ProblemKind::NotAName(text.clone()) }]);
        }
        if matches!(rule, Rule::Name(_) | Rule::Kernel) && text.bytes().all(|byte| byte.is_ascii_digit()) {
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
            Rule::Kernel => schema::pattern(r"^(?!\.|.*\.\.)[A-Za-z0-9_+.-]{1,40}$"),
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
    let message = format!("\"{}\" has characters that steer a terminal", words::printable(text));
    Err(Problem::new("bad-name", message, "leave out control characters, line ends and marks of direction"))
}

fn matches(text: &str, rule: &Rule) -> bool {
    let count = text.chars().count();
    let are = |text: &str, more: &str| text.chars().all(|one| one.is_ascii_alphanumeric() || more.contains(one));
    match *rule {
        Rule::Letters(more, most) => (1..=most).contains(&count) && are(text, more),
        Rule::Name(most) => (1..=most).contains(&count) && are(text, "_+-"),
        Rule::Kernel => {
            (1..=40).contains(&count) && are(text, "_+-.") && !text.starts_with('.') && !text.contains("..")
        }
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
fn word<'a>(given: &Value, known: &'a [&'a str], name: &str) -> Result<&'a str, FieldProblems> {
    if let Some(found) = given.as_text().and_then(|text| known.iter().find(|one| **one == text)) {
        return Ok(found);
    }
    Err(one(not_known(given, known, name, false)))
}

/// The problem for an unknown word. `is_bare`: the words are numbers and need no quotes.
pub(crate) fn not_known(given: &Value, known: &[&str], name: &str, is_bare: bool) -> Problem {
    let text = words::printable(&python::text(given));
    let is_text = matches!(given, Value::Text(_));
    let message = if is_text { format!("\"{text}\" is not known here") } else { format!("{text} is not known here") };
    let fix = match is_text && is_bare && known.contains(&text.as_str()) {
        true => format!("write it without quotes: {name} = {text}"),
        false => words::suggestion(&text, known.iter().copied()),
    };
    Problem::new("unknown-name", message, fix)
}
