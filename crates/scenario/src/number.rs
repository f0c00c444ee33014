//! Exact decimal numbers from a file: digits and a power of ten, multiplied by a unit without rounding.

/// A number as it was written.
pub struct Number<'a> {
    pub text: &'a str,
    is_negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: String,
    exponent: i32,
}

/// The product of a number and a unit.
pub enum Amount {
    Whole(i128),
    /// The product is not an integer.
    Finer,
}

/// Stands for a value larger than any limit.
const TOO_MANY: i128 = i128::MAX;

impl<'a> Number<'a> {
    /// The number at the start of `text`, and the rest. The lengths of digits and exponent are limited, so that a
    /// hostile number cannot take long to expand. None if `text` does not start with a number, or the number is too
    /// long.
    pub fn read(text: &'a str) -> Option<(Number<'a>, &'a str)> {
        let bytes = text.as_bytes();
        let digits_at =
            |from: usize, most: usize| bytes[from..].iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let whole = digits_at(sign, 30);
        let mut end = sign + whole;
        let mut fraction = (end, end);
        if bytes.get(end) == Some(&b'.') {
            let count = digits_at(end + 1, 30);
            if whole + count > 0 {
                fraction = (end + 1, end + 1 + count);
                end = fraction.1;
            }
        }
        if whole == 0 && fraction.0 == fraction.1 {
            return None;
        }
        let mut exponent = 0;
        let exponent_at = |from: usize| {
            let sign = usize::from(matches!(bytes.get(from + 1), Some(b'+' | b'-')));
            let is_one = matches!(bytes.get(from), Some(b'e' | b'E'));
            (is_one && bytes.get(from + 1 + sign).is_some_and(u8::is_ascii_digit)).then_some(from + 1)
        };
        if let Some(begin) = exponent_at(end) {
            let sign = usize::from(!bytes[begin].is_ascii_digit());
            end = begin + sign + digits_at(begin + sign, 2);
            exponent = text[begin..end].parse().ok()?;
        }
        if matches!(bytes.get(end), Some(b'0'..=b'9' | b'.' | b',' | b'_')) || exponent_at(end).is_some() {
            return None;
        }
        let all = format!("{}{}", &text[sign..sign + whole], &text[fraction.0..fraction.1]);
        let digits = all.trim_start_matches('0').trim_end_matches('0').to_string();
        let zeros = i32::try_from(all.len() - all.trim_end_matches('0').len()).ok()?;
        exponent += zeros - i32::try_from(fraction.1 - fraction.0).ok()?;
        Some((Number { text: &text[..end], is_negative: bytes[0] == b'-', digits, exponent }, &text[end..]))
    }

    /// The number times `scale`.
    pub fn times(&self, scale: u64) -> Amount {
        if self.digits.is_empty() {
            return Amount::Whole(0);
        }
        let mut product = Natural::read(&self.digits);
        product.multiply(scale);
        for _ in self.exponent..0 {
            if product.divide(10) != 0 {
                return Amount::Finer;
            }
        }
        for _ in 0..self.exponent.min(40) {
            product.multiply(10);
        }
        let amount = product.amount().unwrap_or(TOO_MANY);
        Amount::Whole(if self.is_negative { -amount } else { amount })
    }

    /// A number between 0 and 1 as percent, in text. None if it is outside.
    pub fn percent(&self) -> Option<String> {
        let length = i32::try_from(self.digits.len()).ok()?;
        if self.is_negative || self.digits.is_empty() || length + self.exponent > 0 {
            return None;
        }
        Some(match usize::try_from(-self.exponent - 2) {
            Err(_) => format!("{}{}", self.digits, "0".repeat(usize::try_from(self.exponent + 2).ok()?)),
            Ok(0) => self.digits.clone(),
            Ok(places) => {
                let padded = format!("{:0>width$}", self.digits, width = places + 1);
                let point = padded.len() - places;
                format!("{}.{}", &padded[..point], &padded[point..])
            }
        })
    }
}

/// A natural number of any size.
#[derive(Clone)]
pub struct Natural(Vec<u32>);

impl Natural {
    pub fn new(value: u128) -> Natural {
        let mut found = Natural(vec![1]);
        found.0 = (0..4).map(|part| (value >> (32 * part)) as u32).collect();
        found
    }

    fn read(digits: &str) -> Natural {
        let mut found = Natural(Vec::new());
        for digit in digits.bytes() {
            found.step(10, u64::from(digit - b'0'));
        }
        found
    }

    pub fn multiply(&mut self, by: u64) {
        // Multiply in halves of 32 bits: their products with a digit plus a carry fit into 64 bits.
        let (high, low) = (by >> 32, by & 0xffff_ffff);
        let mut upper = self.clone();
        self.step(low, 0);
        if high > 0 {
            upper.step(high, 0);
            upper.0.insert(0, 0);
            self.add(&upper);
        }
    }

    fn step(&mut self, by: u64, more: u64) {
        let mut carry = more;
        for digit in &mut self.0 {
            let sum = u64::from(*digit) * by + carry;
            (*digit, carry) = (sum as u32, sum >> 32);
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    pub fn add(&mut self, other: &Natural) {
        let mut carry = 0;
        self.0.resize(self.0.len().max(other.0.len()) + 1, 0);
        for (at, digit) in self.0.iter_mut().enumerate() {
            let sum = u64::from(*digit) + u64::from(other.0.get(at).copied().unwrap_or(0)) + carry;
            (*digit, carry) = (sum as u32, sum >> 32);
        }
    }

    /// Divides in place, rounding down. Returns the remainder.
    pub fn divide(&mut self, by: u32) -> u32 {
        let mut rest = 0;
        for digit in self.0.iter_mut().rev() {
            let value = rest << 32 | u64::from(*digit);
            (*digit, rest) = ((value / u64::from(by)) as u32, value % u64::from(by));
        }
        rest as u32
    }

    /// The value; None if it does not fit.
    pub fn amount(&self) -> Option<i128> {
        let mut found: i128 = 0;
        for &digit in self.0.iter().rev() {
            found = found.checked_mul(1 << 32)?.checked_add(digit.into())?;
        }
        Some(found)
    }
}

/// `amount / scale` as decimal text. `scale` is a power of ten.
pub fn decimal(amount: u128, scale: u128) -> String {
    let (whole, mut rest) = (amount / scale, amount % scale);
    let mut text = whole.to_string();
    if rest > 0 {
        text.push('.');
    }
    while rest > 0 {
        rest *= 10;
        text.push_str(&(rest / scale).to_string());
        rest %= scale;
    }
    text
}
