//! Printer columns: what a Table of custom objects shows. Pure.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::age::human;
use strata_model::jsonpath::JsonPath;

use crate::value::{int, list, text};

/// One column.
#[derive(Debug)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// Form of the value, such as `int64`.
    pub format: String,
    /// What it shows.
    pub description: String,
    /// Columns above 0 are shown on demand.
    pub priority: i64,
    path: Option<JsonPath>,
}

/// Reads the columns of a version, or those of a version that names none.
pub fn read(version: &Value) -> Arc<[Column]> {
    let named = list(version, &["additionalPrinterColumns"]);
    if named.is_empty() {
        return Arc::new([Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: "How long ago the object was created.".to_owned(),
            priority: 0,
            path: parse(".metadata.creationTimestamp").ok(),
        }]);
    }
    named.iter().map(column).collect()
}

/// Parses the path of a column.
pub fn parse(path: &str) -> Result<JsonPath, String> {
    JsonPath::parse(&format!("{{{path}}}")).map_err(|error| error.to_string())
}

fn column(column: &Value) -> Column {
    let path = text(column, &["jsonPath"]);
    let described = text(column, &["description"]);
    Column {
        name: text(column, &["name"]).to_owned(),
        kind: text(column, &["type"]).to_owned(),
        format: text(column, &["format"]).to_owned(),
        description: if described.is_empty() {
            format!("Custom resource definition column (in JSONPath format): {path}")
        } else {
            described.to_owned()
        },
        priority: int(column, &["priority"]).unwrap_or(0),
        path: parse(path).ok(),
    }
}

impl Column {
    /// How a Table describes the column.
    pub fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": self.description,
            "priority": self.priority})
    }

    /// The cell of an object; null where it has no such value, or one of another type.
    pub fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.as_ref().and_then(|path| path.find(object).ok()).unwrap_or_default();
        let Some(first) = found.first() else { return Value::Null };
        match self.kind.as_str() {
            "integer" => first.as_i64().or_else(|| whole(first)).map_or(Value::Null, Value::from),
            "number" => first.as_f64().map_or(Value::Null, Value::from),
            "boolean" => first.as_bool().map_or(Value::Null, Value::from),
            "date" => match first.as_str().map(str::parse::<Timestamp>) {
                Some(Ok(then)) => json!(human(now.as_second() - then.as_second())),
                Some(Err(_)) => json!("<invalid>"),
                None => Value::Null,
            },
            _ => {
                let texts: Vec<String> =
                    found.iter().map(|value| strata_model::jsonpath::text_of(value)).collect();
                match (found.len(), first) {
                    (1, Value::Null) => Value::Null,
                    _ => json!(texts.join(",")),
                }
            }
        }
    }
}

fn whole(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|number| number.abs() < 9.0e15)?;
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is cut off on purpose")]
    Some(number as i64)
}
