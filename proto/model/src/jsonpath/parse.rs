//! From text to steps.

use serde_json::{Number, Value};

use super::{Comparison, Filter, JsonPathError, Operand, Piece, Step};

/// Deepest nesting of ranges and filters.
const MAX_DEPTH: usize = 32;

/// Parses a whole template.
pub(super) fn template(text: &str) -> Result<Vec<Piece>, JsonPathError> {
    let mut parser = Parser { chars: text.chars().collect(), at: 0 };
    let fail = |message: String| JsonPathError::Parse { template: text.to_owned(), message };
    let (pieces, ended) = parser.pieces(0).map_err(fail)?;
    match ended {
        true => Err(fail("{end} without {range}".to_owned())),
        false => Ok(pieces),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

type Parsed<T> = Result<T, String>;

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, expected: char) -> bool {
        let there = self.peek() == Some(expected);
        self.at += usize::from(there);
        there
    }

    fn take_word(&mut self, word: &str) -> bool {
        let there = self.chars[self.at..].iter().copied().take(word.len()).eq(word.chars());
        if there {
            self.at += word.len();
        }
        there
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn fault<T>(&self, what: &str) -> Parsed<T> {
        Err(match self.peek() {
            Some(c) => format!("{what} at {c:?}, character {}", self.at + 1),
            None => format!("{what} at the end"),
        })
    }

    /// Pieces up to the end of the text or an `{end}`; says which.
    fn pieces(&mut self, depth: usize) -> Parsed<(Vec<Piece>, bool)> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if c != '{' {
                text.push(c);
                continue;
            }
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            if self.block(&mut pieces, depth)? {
                return Ok((pieces, true));
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok((pieces, false))
    }

    /// The inside of braces, the first one being taken. Says whether it was `{end}`.
    fn block(&mut self, pieces: &mut Vec<Piece>, depth: usize) -> Parsed<bool> {
        let mut path = Vec::new();
        let mut ended = false;
        loop {
            self.skip_spaces();
            match self.peek() {
                None => return self.fault("unclosed action"),
                Some('}') => {
                    self.at += 1;
                    break;
                }
                Some(quote @ ('"' | '\'')) => {
                    self.at += 1;
                    pieces.push(Piece::Text(self.quoted(quote)?));
                }
                Some(_) if self.take_word("range") => {
                    let steps = self.path()?;
                    self.skip_spaces();
                    if !self.take('}') {
                        return self.fault("expected } behind range");
                    }
                    if depth >= MAX_DEPTH {
                        return self.fault("nested too deep");
                    }
                    let (inner, closed) = self.pieces(depth + 1)?;
                    if !closed {
                        return Err("{range} without {end}".to_owned());
                    }
                    pieces.push(Piece::Range(steps, inner));
                    return Ok(false);
                }
                Some(_) if self.take_word("end") => ended = true,
                Some(_) => path.extend(self.path()?),
            }
        }
        if !path.is_empty() {
            pieces.push(Piece::Path(path));
        }
        Ok(ended)
    }

    /// Steps, one behind the other; at least one character must be taken.
    fn path(&mut self) -> Parsed<Vec<Step>> {
        self.skip_spaces();
        let mut steps = Vec::new();
        let start = self.at;
        loop {
            match self.peek() {
                Some('$') => {
                    self.at += 1;
                    steps.push(Step::Root);
                }
                Some('@') => self.at += 1,
                Some('.') => {
                    self.at += 1;
                    if self.take('.') {
                        steps.push(Step::Deep);
                    }
                    if self.take('*') {
                        steps.push(Step::Every);
                    } else if let Some(name) = self.name()? {
                        steps.push(Step::Field(name));
                    }
                }
                Some('[') => {
                    self.at += 1;
                    steps.push(self.bracket()?);
                }
                Some('*') if self.at == start => {
                    self.at += 1;
                    steps.push(Step::Every);
                }
                Some(c) if self.at == start && (c.is_alphanumeric() || c == '_') => {
                    if let Some(name) = self.name()? {
                        steps.push(Step::Field(name));
                    }
                }
                _ => break,
            }
        }
        if self.at == start {
            return self.fault("unexpected text");
        }
        Ok(steps)
    }

    /// A field's name behind a dot; a backslash takes the next character as it is.
    fn name(&mut self) -> Parsed<Option<String>> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some(escaped) => name.push(escaped),
                        None => return self.fault("unfinished escape"),
                    }
                }
                '.' | '[' | ']' | '{' | '}' | '(' | ')' | ',' | '=' | '!' | '<' | '>' | '&' | '|' | '"'
                | '\'' => break,
                c if c.is_whitespace() => break,
                c => name.push(c),
            }
            self.at += 1;
        }
        Ok((!name.is_empty()).then_some(name))
    }

    /// A quoted text, the quote being taken; with `\n`, `\t` and the like.
    fn quoted(&mut self, quote: char) -> Parsed<String> {
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                c if c == quote => return Ok(text),
                '\\' => {
                    let Some(escaped) = self.peek() else { break };
                    self.at += 1;
                    text.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        other => other,
                    });
                }
                c => text.push(c),
            }
        }
        self.fault("unterminated quoted string")
    }

    /// The inside of `[…]`, the bracket being taken.
    fn bracket(&mut self) -> Parsed<Step> {
        self.skip_spaces();
        if self.take_word("?(") {
            let filter = self.filter()?;
            return match self.take(']') {
                true => Ok(Step::Filter(Box::new(filter))),
                false => self.fault("expected ] behind the filter"),
            };
        }
        let mut parts = Vec::new();
        loop {
            self.skip_spaces();
            parts.push(self.element()?);
            self.skip_spaces();
            if self.take(']') {
                break;
            }
            if !self.take(',') {
                return self.fault("expected , or ]");
            }
        }
        Ok(match (parts.len(), parts.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                parts.extend(last);
                Step::Union(parts)
            }
        })
    }

    fn element(&mut self) -> Parsed<Step> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                return Ok(Step::Every);
            }
            Some(quote @ ('"' | '\'')) => {
                self.at += 1;
                return self.quoted(quote).map(Step::Field);
            }
            _ => {}
        }
        let first = self.integer()?;
        if !self.take(':') {
            return match first {
                Some(index) => Ok(Step::Index(index)),
                None => self.fault("expected an index, a quoted name, * or ?(filter)"),
            };
        }
        let to = self.integer()?;
        let step = if self.take(':') { self.integer()?.unwrap_or(1) } else { 1 };
        if step < 1 {
            return self.fault("the step of a slice must be at least 1");
        }
        Ok(Step::Slice(first, to, step))
    }

    fn integer(&mut self) -> Parsed<Option<i64>> {
        let start = self.at;
        self.take('-');
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        if start == self.at {
            return Ok(None);
        }
        let text: String = self.chars[start..self.at].iter().collect();
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => self.fault("not a whole number"),
        }
    }

    /// `left [op right])`, the `?(` being taken.
    fn filter(&mut self) -> Parsed<Filter> {
        let left = self.operand()?;
        self.skip_spaces();
        let comparisons = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let comparison = comparisons.into_iter().find(|(word, _)| self.take_word(word));
        let test = match comparison {
            Some((_, comparison)) => Some((comparison, self.operand()?)),
            None => None,
        };
        self.skip_spaces();
        match self.take(')') {
            true => Ok(Filter { left, test }),
            false => self.fault("expected ) behind the filter"),
        }
    }

    fn operand(&mut self) -> Parsed<Operand> {
        self.skip_spaces();
        match self.peek() {
            Some('@' | '$' | '.') => self.path().map(Operand::Path),
            Some(quote @ ('"' | '\'')) => {
                self.at += 1;
                self.quoted(quote).map(|text| Operand::Literal(Value::String(text)))
            }
            _ => {
                let start = self.at;
                while self.peek().is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '+' | '.')) {
                    self.at += 1;
                }
                let word: String = self.chars[start..self.at].iter().collect();
                let value = match word.as_str() {
                    "" => return self.fault("expected a path, a text or a number"),
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    "null" | "nil" => Value::Null,
                    number => match number.parse::<i64>() {
                        Ok(number) => Value::Number(number.into()),
                        Err(_) => match number.parse::<f64>().ok().and_then(Number::from_f64) {
                            Some(number) => Value::Number(number),
                            None => return self.fault("expected a path, a text in quotes or a number"),
                        },
                    },
                };
                Ok(Operand::Literal(value))
            }
        }
    }
}
