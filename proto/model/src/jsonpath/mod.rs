//! kubectl's JSONPath templates: text with expressions in braces, `{range …}{end}`, filters, slices, unions, recursive
//! descent. A template is parsed once and evaluated on values. Pure; knows no command.

mod parse;

mod eval;

use serde_json::Value;

pub use eval::compare;

/// A template that cannot be read, or that cannot be evaluated on a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    /// The text is no template.
    #[error("error parsing jsonpath {template}: {message}")]
    Parse {
        /// The template.
        template: String,
        /// What is wrong, and where.
        message: String,
    },
    /// An index beyond the end of a list.
    #[error("array index out of bounds: index {index}, length {length}")]
    OutOfBounds {
        /// As written.
        index: i64,
        /// Elements there are.
        length: usize,
    },
}

/// One piece of a template, in the order of evaluation.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// Text as it is.
    Text(String),
    /// The values of a path, joined by spaces.
    Path(Vec<Step>),
    /// For each value of the path, the pieces.
    Range(Vec<Step>, Vec<Piece>),
}

/// One step from values to values.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `$`: back to the whole document.
    Root,
    /// `.name`, `['name']`.
    Field(String),
    /// `[*]`, `.*`.
    Every,
    /// `..`: the value and everything in it.
    Deep,
    /// `[i]`.
    Index(i64),
    /// `[from:to:step]`.
    Slice(Option<i64>, Option<i64>, i64),
    /// `[a,b]`: the values of each in turn.
    Union(Vec<Step>),
    /// `[?(left op right)]`.
    Filter(Box<Filter>),
}

/// What must hold of an element.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    /// The comparison; none asks whether the left side exists.
    test: Option<(Comparison, Operand)>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    /// A path from the element (`@`) or the document (`$`).
    Path(Vec<Step>),
    /// A value as written.
    Literal(Value),
}

/// How two sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    pieces: Vec<Piece>,
}

impl JsonPath {
    /// Parses a template: text with `{…}` in it.
    pub fn parse(template: &str) -> Result<Self, JsonPathError> {
        parse::template(template).map(|pieces| Self { pieces })
    }

    /// Parses a single path as custom columns, `--sort-by` and `wait` take it: braces and the first dot may be left out.
    pub fn parse_relaxed(path: &str) -> Result<Self, JsonPathError> {
        let inner = path.trim();
        let inner = inner.strip_prefix('{').and_then(|p| p.strip_suffix('}')).unwrap_or(inner);
        let dotted = match inner.chars().next() {
            None | Some('.' | '[' | '$' | '@') => inner.to_owned(),
            Some(_) => format!(".{inner}"),
        };
        Self::parse(&format!("{{{dotted}}}"))
    }

    /// The text of the template for a value. What is missing is empty.
    pub fn render(&self, value: &Value) -> Result<String, JsonPathError> {
        let mut out = String::new();
        eval::render(&self.pieces, value, value, &mut out)?;
        Ok(out)
    }

    /// All values that the paths of the template find.
    pub fn find<'a>(&self, value: &'a Value) -> Result<Vec<&'a Value>, JsonPathError> {
        let mut found = Vec::new();
        for piece in &self.pieces {
            if let Piece::Path(steps) = piece {
                found.extend(eval::walk(steps, value, value)?);
            }
        }
        Ok(found)
    }
}

/// A value as templates print it: texts bare, the rest as compact JSON, null as nothing.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
