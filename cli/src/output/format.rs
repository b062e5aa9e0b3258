//! The forms of `-o`: which there are, and the text of objects in each. Pure; files that a form names are read by the
//! caller.

use serde::Serialize as _;
use serde_json::{Value, json};

use super::columns::{Columns, ColumnsError};
use super::yaml;
use strata_model::jsonpath::{JsonPath, JsonPathError};

/// The forms people may ask for, as errors list them.
const ALLOWED: &str = "custom-columns, custom-columns-file, json, jsonpath, jsonpath-file, name, wide, yaml";

/// A form that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// There is no such form.
    #[error("unable to match a printer suitable for the output format {0:?}, allowed formats are: {ALLOWED}")]
    Unknown(String),
    /// Go templates are not spoken here.
    #[error(
        "go templates are not supported: use -o jsonpath='{{.metadata.name}}', -o custom-columns=… or -o json"
    )]
    GoTemplate,
    /// A form that takes a template, and none is given.
    #[error("template format specified but no template given: write {0}")]
    NoTemplate(&'static str),
    /// A template is wrong.
    #[error(transparent)]
    JsonPath(#[from] JsonPathError),
    /// Columns are wrong.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
}

/// How objects are printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Format {
    /// A table for people, by the server.
    #[default]
    Table,
    /// The same with all columns.
    Wide,
    /// JSON, indented.
    Json,
    /// YAML.
    Yaml,
    /// `type/name`.
    Name,
    /// A template.
    JsonPath(JsonPath),
    /// Columns by paths.
    Columns(Columns),
}

impl Format {
    /// Parses the value of `-o`. `file` reads a template from a file that the form names.
    pub fn parse(text: &str, file: impl Fn(&str) -> Result<String, String>) -> Result<Self, String> {
        let (form, argument) = match text.split_once('=') {
            Some((form, argument)) => (form, Some(argument)),
            None => (text, None),
        };
        if let ("jsonpath-file" | "custom-columns-file", Some(path)) = (form, argument) {
            let template = file(path)?;
            let parsed = if form == "jsonpath-file" {
                JsonPath::parse(&template).map(Self::JsonPath).map_err(FormatError::from)
            } else {
                Columns::parse_file(&template).map(Self::Columns).map_err(FormatError::from)
            };
            return parsed.map_err(|e| e.to_string());
        }
        Self::parse_inline(text, form, argument).map_err(|e| e.to_string())
    }

    fn parse_inline(text: &str, form: &str, argument: Option<&str>) -> Result<Self, FormatError> {
        Ok(match (form, argument) {
            ("", None) => Self::Table,
            ("wide", None) => Self::Wide,
            ("json", None) => Self::Json,
            ("yaml", None) => Self::Yaml,
            ("name", None) => Self::Name,
            ("jsonpath", Some(template)) if !template.is_empty() => {
                Self::JsonPath(JsonPath::parse(template)?)
            }
            ("jsonpath", _) => return Err(FormatError::NoTemplate("-o jsonpath='{.metadata.name}'")),
            ("custom-columns", Some(spec)) => Self::Columns(Columns::parse(spec)?),
            ("custom-columns", None) => return Err(ColumnsError::Empty.into()),
            ("go-template" | "go-template-file" | "template" | "templatefile", _) => {
                return Err(FormatError::GoTemplate);
            }
            _ => return Err(FormatError::Unknown(text.to_owned())),
        })
    }

    /// Whether the server's tables are asked for, rather than objects.
    pub fn is_table(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// The text of one object, or of a whole `List`. Table forms fall back to names: they are the server's to print.
    pub fn print(&self, value: &Value) -> Result<String, JsonPathError> {
        match self {
            Self::Json => Ok(pretty_json(value)),
            Self::Yaml => Ok(yaml::to_string(value)),
            Self::Name | Self::Table | Self::Wide => {
                let names = items(value).iter().map(|object| format!("{}\n", name_of(object)));
                Ok(names.collect())
            }
            Self::JsonPath(path) => path.render(value),
            Self::Columns(columns) => columns.print(items(value), true, &mut Vec::new()),
        }
    }
}

/// The objects of a `List`, or the one object.
pub fn items(value: &Value) -> &[Value] {
    match (value["kind"].as_str(), value["items"].as_array()) {
        (Some(kind), Some(items)) if kind.ends_with("List") => items,
        _ => std::slice::from_ref(value),
    }
}

/// Objects as one `List`.
pub fn list_of(objects: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": objects, "metadata": {"resourceVersion": ""}})
}

/// `pod/web`, `deployment.apps/web`: how an object is named among all.
pub fn name_of(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["apiVersion"].as_str().and_then(|v| v.split_once('/')) {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// Takes `managedFields` out of an object or of the objects of a list: nobody reads them, all scroll past them.
pub fn strip_managed_fields(value: &mut Value) {
    if let Some(Value::Array(items)) = value.get_mut("items") {
        items.iter_mut().for_each(strip_managed_fields);
    }
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        metadata.remove("managedFields");
    }
}

/// JSON with four spaces of indentation and a newline at the end.
pub fn pretty_json(value: &Value) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    let written = value.serialize(&mut serializer);
    debug_assert!(written.is_ok(), "a value is always JSON");
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Format, String> {
        Format::parse(text, |_| Ok("{.kind}".to_owned()))
    }

    #[test]
    fn forms_are_told_apart() {
        assert_eq!(parse(""), Ok(Format::Table));
        assert!(parse("wide").unwrap().is_table());
        assert!(!parse("yaml").unwrap().is_table());
        let value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
        assert_eq!(parse("jsonpath-file=x").unwrap().print(&value).unwrap(), "Deployment");
        assert_eq!(parse("name").unwrap().print(&value).unwrap(), "deployment.apps/web\n");
        assert_eq!(
            parse("name").unwrap().print(&list_of(vec![value.clone(), value])).unwrap().lines().count(),
            2
        );
    }

    #[test]
    fn wrong_forms_say_what_would_be_right() {
        assert!(parse("xml").unwrap_err().contains("allowed formats are: custom-columns"));
        assert!(parse("go-template={{.x}}").unwrap_err().contains("jsonpath"));
        assert!(parse("jsonpath").unwrap_err().contains("-o jsonpath='{.metadata.name}'"));
        assert!(parse("custom-columns").unwrap_err().contains("NAME:.metadata.name"));
    }

    #[test]
    fn json_is_indented_by_four_and_managed_fields_go() {
        let mut value = json!({"kind": "Pod", "metadata": {"managedFields": [1], "name": "a"}, "l": []});
        strip_managed_fields(&mut value);
        let text = "{\n    \"kind\": \"Pod\",\n    \"l\": [],\n    \"metadata\": {\n        \"name\": \"a\"\n    }\n}\n";
        assert_eq!(pretty_json(&value), text);
    }
}
