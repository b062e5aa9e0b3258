//! Manifests as text: objects written by people, as YAML or JSON, several in one file or in a `List`. Every fault names
//! the file, the line and the column. Knows no server and opens no file.

use std::fmt;

use serde_json::Value;

/// How deep YAML may nest, as with the API.
const MAX_DEPTH: usize = 64;

/// A text that is no manifest: neither YAML nor JSON, or no object of an API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ParseError {
    /// Where.
    pub place: Place,
    /// What is wrong or missing, and how it is written.
    pub message: String,
}

/// A place in a manifest, lines and columns from 1; a column of 0 is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it; `stdin` for `-`.
    pub file: String,
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "{}:{}", self.file, self.line),
            column => write!(f, "{}:{}:{column}", self.file, self.line),
        }
    }
}

/// One object and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The first line of the document it stands in.
    pub place: Place,
    /// The object; it has `apiVersion` and `kind`.
    pub value: Value,
}

/// The objects in a text. Empty documents are left out, lists are taken apart.
pub fn parse(file: &str, text: &str) -> Result<Vec<Document>, ParseError> {
    let mut documents = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        parse_json(file, text, &mut documents)?;
    } else {
        for (line, part) in split(text) {
            parse_yaml(file, line, &part, &mut documents)?;
        }
    }
    Ok(documents)
}

fn parse_json(file: &str, text: &str, out: &mut Vec<Document>) -> Result<(), ParseError> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let line = 1 + text[..stream.byte_offset()].matches('\n').count() as u64;
        match stream.next() {
            None => return Ok(()),
            Some(Ok(value)) => add(Place { file: file.to_owned(), line, column: 0 }, value, out)?,
            Some(Err(error)) => {
                let place =
                    Place { file: file.to_owned(), line: error.line() as u64, column: error.column() as u64 };
                let message = format!("this is not JSON: {}", without_place(&error.to_string()));
                return Err(ParseError { place, message });
            }
        }
    }
}

fn parse_yaml(file: &str, line: u64, text: &str, out: &mut Vec<Document>) -> Result<(), ParseError> {
    let blank = |l: &str| l.trim().is_empty() || l.trim_start().starts_with('#');
    let Some(skipped) = text.lines().position(|l| !blank(l)) else { return Ok(()) };
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH, flow_nesting_limit: MAX_DEPTH },
    };
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Ok(Value::Null) => Ok(()),
        Ok(value) => {
            let place = Place { file: file.to_owned(), line: line + skipped as u64, column: 0 };
            add(place, value, out)
        }
        Err(error) => {
            let (at, column) = error.location().map_or((1, 0), |l| (l.line(), l.column()));
            let place = Place { file: file.to_owned(), line: line + at.max(1) - 1, column };
            let said = error.to_string();
            let mut message = format!("this is not YAML: {}", without_place(&said));
            if text.lines().nth(at.max(1) as usize - 1).is_some_and(|l| l.contains('\t')) {
                message.push_str(" (the line has a tab; YAML is indented by spaces)");
            }
            Err(ParseError { place, message })
        }
    }
}

/// An error's first line without the place at its end, which is told apart.
fn without_place(text: &str) -> &str {
    let first = text.lines().next().unwrap_or(text);
    let end = first.find(" at line ").or_else(|| first.find(": line ")).unwrap_or(first.len());
    first[..end].trim_end_matches([':', ' '])
}

/// The documents of a YAML text with the line each begins on.
fn split(text: &str) -> Vec<(u64, String)> {
    let mut parts = vec![(1u64, String::new())];
    for (at, line) in text.lines().enumerate() {
        let marker = |mark: &str| {
            line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r']))
        };
        if marker("---") {
            // The mark leaves a blank behind, so that lines and columns stay as the user sees them.
            parts.push((at as u64 + 1, format!("   {}\n", &line[3..])));
        } else if marker("...") {
            parts.push((at as u64 + 1, "\n".to_owned()));
        } else if let Some((_, part)) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts
}

fn add(place: Place, value: Value, out: &mut Vec<Document>) -> Result<(), ParseError> {
    let fail = |message: &str| ParseError { place: place.clone(), message: message.to_owned() };
    let Value::Object(members) = &value else {
        return Err(fail("this is no object: begin with apiVersion: …, kind: … and metadata: …"));
    };
    let said = |field: &str| members.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    match (said("apiVersion"), said("kind")) {
        (true, true) => {}
        (true, false) => {
            return Err(fail("kind is not set: write what the object is, such as kind: Deployment"));
        }
        (false, true) => {
            return Err(fail("apiVersion is not set: `strata api-resources` lists that of each kind"));
        }
        (false, false) => {
            return Err(fail(
                "apiVersion and kind are not set: write, say, apiVersion: v1 and kind: ConfigMap",
            ));
        }
    }
    let is_list = members.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match (is_list, value) {
        (true, Value::Object(mut members)) if matches!(members.get("items"), Some(Value::Array(_))) => {
            if let Some(Value::Array(items)) = members.remove("items") {
                for item in items {
                    add(place.clone(), item, out)?;
                }
            }
        }
        (_, value) => out.push(Document { place, value }),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
