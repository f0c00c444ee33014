//! A position in a script's text, with its line number.

/// What could not be read, and on which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub line: usize,
    pub what: String,
}

#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a str,
    pub line: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Cursor { rest: text, line: 1 }
    }
    /// A cursor over a part of a script that starts on `line`.
    pub fn at_line(text: &'a str, line: usize) -> Self {
        Cursor { rest: text, line }
    }
    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }
    pub fn rest(&self) -> &'a str {
        self.rest
    }
    pub fn unreadable(&self, what: impl Into<String>) -> Unreadable {
        Unreadable { line: self.line, what: what.into() }
    }

    /// Advances by `bytes`, which must end at a character boundary.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }
    pub fn take_while(&mut self, matches: impl Fn(char) -> bool) -> &'a str {
        self.take(self.rest.find(|c| !matches(c)).unwrap_or(self.rest.len()))
    }
    /// The next character, as text; empty at the end.
    pub fn take_char(&mut self) -> &'a str {
        self.take(self.peek().map_or(0, char::len_utf8))
    }
    /// The text before `end`. Advances beyond `end`.
    pub fn until(&mut self, end: &str) -> Result<&'a str, Unreadable> {
        let Some(bytes) = self.rest.find(end) else { return Err(self.unreadable(format!("`{end}` is missing"))) };
        let taken = self.take(bytes);
        self.take(end.len());
        Ok(taken)
    }
    pub fn line_end(&mut self) -> &'a str {
        self.take_while(|c| c != '\n')
    }
    /// Advances beyond `text` and returns true if it comes next.
    pub fn accept(&mut self, text: &str) -> bool {
        let found = self.rest.starts_with(text);
        if found {
            self.take(text.len());
        }
        found
    }
    pub fn expect(&mut self, text: &str) -> Result<(), Unreadable> {
        if self.accept(text) { Ok(()) } else { Err(self.unreadable(format!("`{text}` expected"))) }
    }
    pub fn skip_blanks(&mut self) {
        self.take_while(|c| c == ' ' || c == '\t');
    }
    /// Skips white space and comments.
    pub fn skip_space(&mut self) -> Result<(), Unreadable> {
        loop {
            self.take_while(char::is_whitespace);
            if self.accept("//") {
                self.line_end();
            } else if self.accept("/*") {
                self.until("*/")?;
            } else {
                return Ok(());
            }
        }
    }
    /// A number that fits into 32 bits, like all fields of TCP headers.
    pub fn number(&mut self) -> Result<u64, Unreadable> {
        let digits = self.take_while(|c| c.is_ascii_digit());
        let number: u32 = digits.parse().map_err(|_| self.unreadable("a number of at most 32 bits expected"))?;
        Ok(u64::from(number))
    }
}
