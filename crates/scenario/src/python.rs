//! Formats values as Python prints them, so that messages stay the same as in older versions.

use crate::value::Value;

/// As Python's `str(value)`.
pub fn text(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Other(_, text) => text.clone(),
        other => repr(other),
    }
}

/// As Python's `repr(value)`.
fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Whole(number) => number.to_string(),
        Value::Huge(number) => number.clone(),
        Value::Real(number) => float(*number),
        Value::Text(text) => quoted(text),
        Value::Other(_, text) => text.clone(),
        Value::List(list) => format!("[{}]", list.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let pairs: Vec<_> = table.iter().map(|(name, one)| format!("{}: {}", quoted(name), repr(one))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut found = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => found.push_str("\\\\"),
            '\n' => found.push_str("\\n"),
            '\r' => found.push_str("\\r"),
            '\t' => found.push_str("\\t"),
            _ if letter == quote => found.extend(['\\', quote]),
            _ if (letter as u32) < 0x20 || (0x7f..0xa1).contains(&(letter as u32)) || letter == '\u{ad}' => {
                found.push_str(&format!("\\x{:02x}", letter as u32));
            }
            _ if crate::words::is_harmful(letter) && letter as u32 <= 0xffff => {
                found.push_str(&format!("\\u{:04x}", letter as u32));
            }
            _ if crate::words::is_harmful(letter) => found.push_str(&format!("\\U{:08x}", letter as u32)),
            _ => found.push(letter),
        }
    }
    found.push(quote);
    found
}

/// Python's `repr` of a float: the shortest digits that read back the same, with an exponent below 1e-4 and from 1e16
/// on.
pub fn float(number: f64) -> String {
    if !number.is_finite() {
        return if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').expect("scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `f"{number:.{digits}g}"`, or with three digits where `digits` is 3.
pub fn general(number: f64, digits: i32) -> String {
    if number == 0.0 || !number.is_finite() {
        return if number == 0.0 { "0".into() } else { float(number) };
    }
    let scientific = format!("{number:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..digits).contains(&exponent) {
        return trimmed(&format!("{number:.*}", usize::try_from(digits - 1 - exponent).unwrap_or(0)));
    }
    format!("{}e{}{:02}", trimmed(mantissa), if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Python's `round(number)`: halves go to the even neighbour.
pub fn round(number: f64) -> f64 {
    libm::rint(number)
}
