//! YAML as kubectl prints it: keys in order, lists at the level of their key, texts plain where that reads back as the
//! same text, quoted or literal where not, folded at 80 columns. Source of the rules: YAML 1.1 and what kubectl 1.33
//! prints (checked by hand). Pure: a value in, text out.

use serde_json::Value;

/// Column after which a text goes on in the next line.
const WIDTH: usize = 80;
/// Longest key written in the short form; longer ones begin with `? `.
const LONGEST_SIMPLE_KEY: usize = 128;

/// One document, ending in a newline.
pub fn to_string(value: &Value) -> String {
    let mut out = Emitter::default();
    match value {
        Value::Object(members) if !members.is_empty() => out.members(members, 0, true),
        Value::Array(items) if !items.is_empty() => out.items(items, 0, true),
        scalar => {
            out.scalar(scalar, 2);
            out.newline();
        }
    }
    out.text
}

#[derive(Default)]
struct Emitter {
    text: String,
    column: usize,
}

impl Emitter {
    fn put(&mut self, c: char) {
        self.text.push(c);
        self.column = if c == '\n' { 0 } else { self.column + 1 };
    }

    fn write(&mut self, text: &str) {
        for c in text.chars() {
            self.put(c);
        }
    }

    fn newline(&mut self) {
        if self.column > 0 {
            self.put('\n');
        }
    }

    fn indent(&mut self, width: usize) {
        for _ in 0..width {
            self.put(' ');
        }
    }

    fn fold(&mut self, width: usize) {
        self.put('\n');
        self.indent(width);
    }

    /// The members of a mapping; the first one stands where the cursor is unless `fresh`.
    fn members(&mut self, members: &serde_json::Map<String, Value>, indent: usize, mut fresh: bool) {
        for (key, value) in members {
            if fresh {
                self.indent(indent);
            }
            fresh = true;
            if key.chars().count() > LONGEST_SIMPLE_KEY || key.contains('\n') {
                self.write("? ");
                self.text_scalar(key, indent + 2, false);
                self.newline();
                self.indent(indent);
            } else {
                self.text_scalar(key, indent + 2, true);
            }
            self.write(":");
            match value {
                Value::Object(inner) if !inner.is_empty() => {
                    self.newline();
                    self.members(inner, indent + 2, true);
                }
                Value::Array(items) if !items.is_empty() => {
                    self.newline();
                    self.items(items, indent, true);
                }
                scalar => {
                    self.write(" ");
                    self.scalar(scalar, indent + 2);
                    self.newline();
                }
            }
        }
    }

    fn items(&mut self, items: &[Value], indent: usize, mut fresh: bool) {
        for item in items {
            if fresh {
                self.indent(indent);
            }
            fresh = true;
            self.write("- ");
            match item {
                Value::Object(inner) if !inner.is_empty() => self.members(inner, indent + 2, false),
                Value::Array(inner) if !inner.is_empty() => self.items(inner, indent + 2, false),
                scalar => {
                    self.scalar(scalar, indent + 2);
                    self.newline();
                }
            }
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) => self.text_scalar(text, indent, false),
            Value::Object(_) => self.write("{}"),
            Value::Array(_) => self.write("[]"),
            other => self.write(&other.to_string()),
        }
    }

    fn text_scalar(&mut self, text: &str, indent: usize, key: bool) {
        match style(text, key) {
            Style::Plain => self.folded(text, indent, key, ""),
            Style::Single => self.folded(text, indent, key, "'"),
            Style::Double => self.double(text, indent, key),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn folded(&mut self, text: &str, indent: usize, key: bool, quote: &str) {
        self.write(quote);
        let chars: Vec<char> = text.chars().collect();
        let mut after_space = false;
        for (i, &c) in chars.iter().enumerate() {
            let inside = quote.is_empty() || (i > 0 && i + 1 < chars.len());
            let lonely = chars.get(i + 1) != Some(&' ');
            if c == ' ' && !key && !after_space && self.column > WIDTH && inside && lonely {
                self.fold(indent);
            } else {
                self.put(c);
                if c == '\'' && !quote.is_empty() {
                    self.put(c);
                }
            }
            after_space = c == ' ';
        }
        self.write(quote);
    }

    fn double(&mut self, text: &str, indent: usize, key: bool) {
        self.put('"');
        let chars: Vec<char> = text.chars().collect();
        let mut after_space = false;
        for (i, &c) in chars.iter().enumerate() {
            let inside = i > 0 && i + 1 < chars.len();
            if c == ' ' && !key && !after_space && self.column > WIDTH && inside {
                self.fold(indent);
                if chars.get(i + 1) == Some(&' ') {
                    self.put('\\');
                }
                after_space = true;
                continue;
            }
            after_space = c == ' ';
            match escape(c) {
                Some(escaped) => self.write(&escaped),
                None => self.put(c),
            }
        }
        self.put('"');
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put('|');
        if text.starts_with([' ', '\n']) {
            self.put('2');
        }
        if !text.ends_with('\n') {
            self.put('-');
        } else if text == "\n" || text.ends_with("\n\n") {
            self.put('+');
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.put('\n');
            if !line.is_empty() {
                self.indent(indent);
                self.write(line);
            }
        }
        self.put('\n');
    }
}

fn escape(c: char) -> Option<String> {
    Some(match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\0' => "\\0".to_owned(),
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\x0b' => "\\v".to_owned(),
        '\x0c' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\x1b' => "\\e".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        c if printable(c) => return None,
        c if u32::from(c) <= 0xff => format!("\\x{:02X}", u32::from(c)),
        c if u32::from(c) <= 0xffff => format!("\\u{:04X}", u32::from(c)),
        c => format!("\\U{:08X}", u32::from(c)),
    })
}

fn printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

#[derive(Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// How a text is written so that it reads back as the same text.
fn style(text: &str, key: bool) -> Style {
    if text.is_empty() || reads_as_other(text) {
        return Style::Double;
    }
    let (first, last) = (text.chars().next(), text.chars().next_back());
    let special = text.chars().any(|c| !printable(c)) || text.contains(" \n");
    if text.contains('\n') {
        let literal = !key && !special && last != Some(' ');
        return if literal { Style::Literal } else { Style::Double };
    }
    if special {
        Style::Double
    } else if first == Some(' ') || last == Some(' ') || indicates(text) {
        Style::Single
    } else {
        Style::Plain
    }
}

/// Whether a plain text would be taken for YAML's own punctuation.
fn indicates(text: &str) -> bool {
    let blank_after = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '\n']);
    if text.starts_with("---")
        || text.starts_with("...")
        || text.starts_with(['#', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`'])
        || text.strip_prefix(['?', ':', '-']).is_some_and(blank_after)
    {
        return true;
    }
    text.match_indices(':').any(|(i, _)| blank_after(&text[i + 1..])) || text.contains(" #")
}

/// Whether a plain text would be read as something else than text: null, a boolean, a number or a date.
fn reads_as_other(text: &str) -> bool {
    const WORDS: [&str; 33] = [
        "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON",
        "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", ".nan", ".NaN", ".NAN",
        ".inf", ".Inf", ".INF", "-.inf",
    ];
    let first = text.as_bytes()[0];
    if WORDS.contains(&text) || ["-.Inf", "-.INF", "+.inf", "+.Inf", "+.INF"].contains(&text) {
        return true;
    }
    (first.is_ascii_digit() || matches!(first, b'.' | b'+' | b'-'))
        && (is_integer(text) || is_float(text) || is_base_60(text) || is_date(text))
}

fn is_integer(text: &str) -> bool {
    let plain = text.replace('_', "");
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let all = |digits: &str, base: u32| !digits.is_empty() && digits.chars().all(|c| c.is_digit(base));
    let lower = digits.to_ascii_lowercase();
    all(&lower, 10)
        || lower.strip_prefix("0x").is_some_and(|d| all(d, 16))
        || lower.strip_prefix("0o").is_some_and(|d| all(d, 8))
        || lower.strip_prefix("0b").is_some_and(|d| all(d, 2))
}

fn is_float(text: &str) -> bool {
    let plain = text.replace('_', "");
    let body = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let digits = |d: &str| d.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let number = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    number && exponent
}

fn is_base_60(text: &str) -> bool {
    let mut parts = text.strip_prefix(['+', '-']).unwrap_or(text).split(':');
    let digits = |d: &str| d.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let head = parts.next().is_some_and(|d| !d.is_empty() && digits(d) && !d.starts_with('_'));
    let rest: Vec<&str> = parts.collect();
    head && !rest.is_empty()
        && rest.iter().enumerate().all(|(i, part)| {
            let whole = if i + 1 == rest.len() { part.split('.').next().unwrap_or(part) } else { part };
            (1..=2).contains(&whole.len()) && whole.parse::<u8>().is_ok_and(|n| n < 60)
        })
}

/// `2006-1-2`, alone or with a time behind it.
fn is_date(text: &str) -> bool {
    let head = text.split(['T', 't', ' ']).next().unwrap_or(text);
    let parts: Vec<&str> = head.split('-').collect();
    let digits = |d: &str| d.bytes().all(|b| b.is_ascii_digit());
    let date = matches!(parts.as_slice(), [y, m, d] if y.len() == 4
        && (1..=2).contains(&m.len()) && (1..=2).contains(&d.len()) && digits(y) && digits(m) && digits(d));
    let time = text[head.len()..].trim_start_matches(['T', 't', ' ']);
    date && (text.len() == head.len()
        || (time.contains(':') && time.starts_with(|c: char| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests;
