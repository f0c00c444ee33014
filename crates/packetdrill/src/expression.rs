//! The statements between `%{` and `}%`: assertions and assignments with integers, in a small subset of Python.

use std::collections::BTreeMap;

/// The result of one assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssertionResult {
    Held,
    /// The condition is false; with the values of its names.
    Failed {
        condition: String,
        values: String,
    },
    /// It uses a value that the simulated sender does not have, or Python beyond the subset.
    Unknown(String),
}

/// Evaluates the statements of `code`; one result per assertion. `variables` are the script's and can change; `read`
/// returns the values of other names.
pub fn check(
    code: &str,
    variables: &mut BTreeMap<String, i64>,
    read: &dyn Fn(&str) -> Option<i64>,
) -> Result<Vec<AssertionResult>, String> {
    let mut results = Vec::new();
    for line in code.replace("\\\n", " ").lines() {
        for statement in split_outside_strings(strip_comment(line), ';') {
            let statement = statement.trim();
            if statement.is_empty() || statement.starts_with("print(") {
                continue;
            }
            if let Some(rest) = statement.strip_prefix("assert ") {
                let condition = split_outside_strings(rest, ',')[0].trim().to_owned();
                results.push(evaluate_assertion(&condition, variables, read));
            } else {
                assign(statement, variables, read)?;
            }
        }
    }
    Ok(results)
}

fn evaluate_assertion(
    condition: &str,
    variables: &BTreeMap<String, i64>,
    read: &dyn Fn(&str) -> Option<i64>,
) -> AssertionResult {
    let mut evaluation = Evaluation::new(condition, variables, read);
    match evaluation.all() {
        Ok(0) => {
            let values = evaluation.seen.iter().map(|(n, v)| format!("{n} = {v}")).collect::<Vec<_>>().join(", ");
            AssertionResult::Failed { condition: condition.to_owned(), values }
        }
        Ok(_) => AssertionResult::Held,
        Err(what) => AssertionResult::Unknown(what),
    }
}

fn assign(
    statement: &str,
    variables: &mut BTreeMap<String, i64>,
    read: &dyn Fn(&str) -> Option<i64>,
) -> Result<(), String> {
    let (target, value) = statement.split_once('=').ok_or_else(|| format!("statement `{statement}`"))?;
    let (name, sign) = match target.trim_end() {
        t if t.ends_with('+') => (t.trim_end_matches('+'), Some(1)),
        t if t.ends_with('-') => (t.trim_end_matches('-'), Some(-1)),
        t => (t, None),
    };
    let name = name.trim();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("statement `{statement}`"));
    }
    let value = Evaluation::new(value, variables, read).all()?;
    let value = match sign {
        Some(sign) => variables.get(name).ok_or_else(|| name.to_owned())? + sign * value,
        None => value,
    };
    variables.insert(name.to_owned(), value);
    Ok(())
}

fn strip_comment(line: &str) -> &str {
    split_outside_strings(line, '#')[0]
}

/// Splits at a separator that is neither in quotes nor in parentheses.
fn split_outside_strings(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut quote, mut depth) = (Vec::new(), 0, None, 0);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), _) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) if c == separator && depth == 0 => {
                parts.push(&text[start..i]);
                start = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// A recursive descent parser with this precedence, lowest first: or, and, not, comparisons, sums, products, signs.
struct Evaluation<'a> {
    rest: &'a str,
    variables: &'a BTreeMap<String, i64>,
    read: &'a dyn Fn(&str) -> Option<i64>,
    seen: BTreeMap<String, i64>,
}

impl<'a> Evaluation<'a> {
    fn new(text: &'a str, variables: &'a BTreeMap<String, i64>, read: &'a dyn Fn(&str) -> Option<i64>) -> Self {
        Evaluation { rest: text, variables, read, seen: BTreeMap::new() }
    }

    fn all(&mut self) -> Result<i64, String> {
        let value = self.either()?;
        if self.rest.trim().is_empty() { Ok(value) } else { Err(format!("expression `{}`", self.rest.trim())) }
    }

    fn accept(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        let Some(after) = rest.strip_prefix(token) else { return false };
        let word = token.ends_with(|c: char| c.is_ascii_alphabetic());
        if word && after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return false;
        }
        self.rest = after;
        true
    }

    fn either(&mut self) -> Result<i64, String> {
        let mut value = self.both()?;
        while self.accept("or") {
            let other = self.both()?;
            value = i64::from(value != 0 || other != 0);
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<i64, String> {
        let mut value = self.negation()?;
        while self.accept("and") {
            let other = self.negation()?;
            value = i64::from(value != 0 && other != 0);
        }
        Ok(value)
    }

    fn negation(&mut self) -> Result<i64, String> {
        if self.accept("not") { Ok(i64::from(self.negation()? == 0)) } else { self.comparison() }
    }

    /// A chain: `1 <= x <= 9` holds when each neighbouring pair does.
    fn comparison(&mut self) -> Result<i64, String> {
        type Order = fn(&i64, &i64) -> bool;
        const ORDERS: [(&str, Order); 6] =
            [("==", i64::eq), ("!=", i64::ne), ("<=", i64::le), (">=", i64::ge), ("<", i64::lt), (">", i64::gt)];
        let mut left = self.sum()?;
        let (mut compared, mut holds) = (false, true);
        while let Some((_, order)) = ORDERS.iter().find(|(token, _)| self.accept(token)) {
            let right = self.sum()?;
            (compared, holds, left) = (true, holds && order(&left, &right), right);
        }
        Ok(if compared { i64::from(holds) } else { left })
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut value = self.product()?;
        loop {
            let result = if self.accept("+") {
                value.checked_add(self.product()?)
            } else if self.accept("-") {
                value.checked_sub(self.product()?)
            } else {
                return Ok(value);
            };
            value = result.ok_or("an overflow")?;
        }
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut value = self.sign()?;
        loop {
            let result = if self.accept("*") {
                value.checked_mul(self.sign()?)
            } else if self.accept("//") {
                value.checked_div_euclid(self.sign()?)
            } else if self.accept("%") {
                value.checked_rem_euclid(self.sign()?)
            } else {
                return Ok(value);
            };
            value = result.ok_or("an overflow")?;
        }
    }

    fn sign(&mut self) -> Result<i64, String> {
        if self.accept("-") { Ok(-self.sign()?) } else { self.atom() }
    }

    fn atom(&mut self) -> Result<i64, String> {
        if self.accept("(") {
            let value = self.either()?;
            return if self.accept(")") { Ok(value) } else { Err("`)` expected".to_owned()) };
        }
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.strip_prefix("0x").map_or_else(|| word.parse(), |hex| i64::from_str_radix(hex, 16));
            return number.map_err(|_| format!("number `{word}`"));
        }
        let value = self.variables.get(word).copied().or_else(|| (self.read)(word)).ok_or_else(|| word.to_owned())?;
        if !self.variables.contains_key(word) || word.starts_with("tcpi_") {
            self.seen.insert(word.to_owned(), value);
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(code: &str) -> Vec<AssertionResult> {
        let read = |name: &str| match name {
            "tcpi_snd_cwnd" => Some(10),
            "tcpi_lost" => Some(3),
            _ => None,
        };
        check(code, &mut BTreeMap::new(), &read).expect("readable")
    }

    #[test]
    fn assertion_passes_or_reports_values() {
        assert_eq!(results("assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd"), [AssertionResult::Held]);
        let broken = AssertionResult::Failed {
            condition: "tcpi_snd_cwnd == 11".to_owned(),
            values: "tcpi_snd_cwnd = 10".to_owned(),
        };
        assert_eq!(results("assert tcpi_snd_cwnd == 11, 'cwnd, %d' % tcpi_snd_cwnd"), [broken]);
    }

    #[test]
    fn operator_precedence_and_chaining_follow_python() {
        for (condition, holds) in [
            ("9 <= tcpi_snd_cwnd <= 11", true),
            ("9 <= tcpi_snd_cwnd < 10", false),
            ("2 + 3 * 4 == 14 and not 1 > 2", true),
            ("(2 + 3) * 4 == 0x14", true),
            ("-7 // 2 == -4 and -7 % 2 == 1", true),
            ("tcpi_lost == 4 or tcpi_lost == 3", true),
        ] {
            assert_eq!(results(&format!("assert {condition}"))[0] == AssertionResult::Held, holds, "{condition}");
        }
    }

    #[test]
    fn variables_persist_between_statements() {
        assert_eq!(
            results("cwnd = 9; print(cwnd); cwnd += 1\nassert tcpi_snd_cwnd == cwnd # as before"),
            [AssertionResult::Held]
        );
    }

    #[test]
    fn unavailable_value_makes_assertion_unknown() {
        assert_eq!(results("assert tcpi_probes == 0"), [AssertionResult::Unknown("tcpi_probes".to_owned())]);
        assert!(check("import os", &mut BTreeMap::new(), &|_| None).is_err());
    }
}
