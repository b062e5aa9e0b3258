//! `explain`: what a type and its fields are, from the server's OpenAPI documents. Walking and printing are pure.

use clap::Args;
use serde_json::{Map, Value};
use strata_model::resource::ResourceType;

use crate::commands::error::{CliResult, usage};
use crate::commands::session::Session;
use crate::output::stdout;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata explain deployment                        what a Deployment is, and its fields
  strata explain deployment.spec.strategy
  strata explain pod.spec.containers --recursive   all fields below, by name";

/// Column at which descriptions are folded.
const WIDTH: usize = 80;
/// Deepest level that `--recursive` shows: some types hold themselves.
const MAX_DEPTH: usize = 12;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// TYPE or TYPE.FIELD.FIELD…
    #[arg(value_name = "TYPE[.FIELD…]")]
    path: String,

    /// All fields below, by name
    #[arg(long)]
    recursive: bool,

    /// The version to explain, such as apps/v1
    #[arg(long, value_name = "GROUP/VERSION")]
    api_version: Option<String>,
}

/// Runs the command.
pub async fn run(session: &Session, args: ExplainArgs) -> CliResult {
    let (word, fields) = args.path.split_once('.').unwrap_or((&args.path, ""));
    let found = session.lookup(word).await?;
    let resource = match &args.api_version {
        Some(version) => session.type_of(version, &found.kind).await?,
        None => found,
    };
    let bytes = session.client.schema(&resource.id.group, &resource.version).await?;
    let document: Value = serde_json::from_slice(&bytes)
        .map_err(|e| usage(format!("the server's OpenAPI document cannot be read: {e}")))?;
    let fields: Vec<&str> = fields.split('.').filter(|f| !f.is_empty()).collect();
    let text = explain(&document, &resource, &fields, args.recursive).map_err(usage)?;
    Ok(stdout::data(&text)?)
}

/// The text about a type, or about a field of it.
fn explain(
    document: &Value,
    resource: &ResourceType,
    fields: &[&str],
    recursive: bool,
) -> Result<String, String> {
    let schemas = Schemas { all: document["components"]["schemas"].as_object() };
    let mut at = schemas
        .of_kind(resource)
        .ok_or_else(|| format!("the server's OpenAPI document does not describe {}", resource.kind))?;
    let mut field: Option<(String, String)> = None;
    let mut description = at["description"].as_str().unwrap_or_default();
    for name in fields {
        let struct_ = schemas.struct_of(at);
        let Some(next) = struct_["properties"].get(*name) else {
            let known: Vec<&str> =
                struct_["properties"].as_object().into_iter().flatten().map(|(k, _)| k.as_str()).collect();
            let near = match known.is_empty() {
                true => "it has no fields".to_owned(),
                false => format!("its fields: {}", known.join(", ")),
            };
            return Err(format!("field \"{name}\" does not exist; {near}"));
        };
        field = Some(((*name).to_owned(), schemas.type_name(next)));
        description = next["description"].as_str().unwrap_or_default();
        at = next;
    }
    let struct_ = schemas.struct_of(at);
    let mut text = String::new();
    if !resource.id.group.is_empty() {
        text.push_str(&format!("GROUP:      {}\n", resource.id.group));
    }
    text.push_str(&format!("KIND:       {}\nVERSION:    {}\n\n", resource.kind, resource.version));
    if let Some((name, type_)) = &field {
        text.push_str(&format!("FIELD: {name} <{type_}>\n\n"));
    }
    let mut sentences = vec![description];
    let of_type = struct_["description"].as_str().unwrap_or_default();
    if field.is_some() && of_type != description {
        sentences.push(of_type);
    }
    let said: Vec<&str> = sentences.into_iter().filter(|s| !s.is_empty()).collect();
    let said = if said.is_empty() { vec!["<empty>"] } else { said };
    text.push_str(&format!(
        "DESCRIPTION:\n{}\n",
        said.iter().map(|s| folded(s, 4)).collect::<Vec<_>>().join("\n")
    ));
    if struct_["properties"].is_object() {
        text.push_str("FIELDS:\n");
        schemas.fields(struct_, recursive, 1, &mut text);
    }
    if !text.ends_with("\n\n") {
        text.push('\n');
    }
    Ok(text)
}

/// The schemas of a document, by name.
#[derive(Clone, Copy)]
struct Schemas<'a> {
    all: Option<&'a Map<String, Value>>,
}

impl<'a> Schemas<'a> {
    fn of_kind(self, resource: &ResourceType) -> Option<&'a Value> {
        let is = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.into_iter().flatten().any(|k| {
                k["group"] == *resource.id.group
                    && k["version"] == *resource.version
                    && k["kind"] == *resource.kind
            })
        };
        self.all?.values().find(is)
    }

    /// Follows a reference, in any of the ways in which one is written.
    fn resolve(self, schema: &'a Value) -> &'a Value {
        let direct = schema["$ref"].as_str();
        let wrapped = schema["allOf"].as_array().and_then(|all| all.iter().find_map(|s| s["$ref"].as_str()));
        let target = direct.or(wrapped).and_then(|r| self.all?.get(r.rsplit('/').next().unwrap_or(r)));
        target.unwrap_or(schema)
    }

    /// The struct behind a field: through references, lists and maps.
    fn struct_of(self, schema: &'a Value) -> &'a Value {
        let mut at = self.resolve(schema);
        for _ in 0..MAX_DEPTH {
            let inner =
                ["items", "additionalProperties"].into_iter().map(|f| &at[f]).find(|inner| inner.is_object());
            match inner {
                Some(inner) if !at["properties"].is_object() => at = self.resolve(inner),
                _ => break,
            }
        }
        at
    }

    fn reference_name(self, schema: &'a Value) -> Option<&'a str> {
        let direct = schema["$ref"].as_str();
        let wrapped = schema["allOf"].as_array().and_then(|all| all.iter().find_map(|s| s["$ref"].as_str()));
        direct.or(wrapped).map(|r| r.rsplit(['/', '.']).next().unwrap_or(r))
    }

    fn type_name(self, schema: &'a Value) -> String {
        let resolved = self.resolve(schema);
        if let Some(name) = self.reference_name(schema) {
            // A named scalar, such as a time or a quantity, is better known by what it is written as.
            let is_struct = resolved["properties"].is_object();
            return match (is_struct, resolved["type"].as_str()) {
                (false, Some(type_)) if type_ != "object" => type_.to_owned(),
                _ => name.to_owned(),
            };
        }
        match resolved["type"].as_str() {
            Some("array") => format!("[]{}", self.type_name(&resolved["items"])),
            Some("object") if resolved["additionalProperties"].is_object() => {
                format!("map[string]{}", self.type_name(&resolved["additionalProperties"]))
            }
            Some("object") => "Object".to_owned(),
            Some(type_) => type_.to_owned(),
            None if resolved["oneOf"].is_array() => "int-or-string".to_owned(),
            None => "Object".to_owned(),
        }
    }

    fn fields(self, struct_: &'a Value, recursive: bool, depth: usize, out: &mut String) {
        let required =
            |name: &str| struct_["required"].as_array().is_some_and(|r| r.iter().any(|n| n == name));
        let indent = "  ".repeat(depth);
        for (name, field) in struct_["properties"].as_object().into_iter().flatten() {
            let must = if required(name) { " -required-" } else { "" };
            out.push_str(&format!("{indent}{name}\t<{}>{must}\n", self.type_name(field)));
            if recursive {
                let inner = self.struct_of(field);
                if inner["properties"].is_object() && depth < MAX_DEPTH {
                    self.fields(inner, true, depth + 1, out);
                }
                continue;
            }
            let description =
                field["description"].as_str().filter(|d| !d.is_empty()).unwrap_or("<no description>");
            out.push_str(&folded(description, indent.len() + 2));
            out.push('\n');
        }
    }
}

/// Text folded at spaces, each line indented.
fn folded(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let margin = " ".repeat(indent);
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
                out.push_str(&format!("{margin}{line}\n"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        out.push_str(format!("{margin}{line}").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use strata_model::resource::builtin;

    fn document() -> Value {
        json!({"components": {"schemas": {
            "io.x.Deployment": {"description": "A set of pods.", "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
                "properties": {"spec": {"description": "What is wished.", "allOf": [{"$ref": "#/components/schemas/io.x.Spec"}]}}},
            "io.x.Spec": {"description": "The spec.", "type": "object", "required": ["list"], "properties": {
                "list": {"type": "array", "items": {"$ref": "#/components/schemas/io.x.Item"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "n": {"type": "integer", "description": "A number."}}},
            "io.x.Item": {"type": "object", "properties": {"name": {"type": "string", "description": "Its name."}}}}}})
    }

    fn text(fields: &[&str], recursive: bool) -> Result<String, String> {
        explain(&document(), &builtin::DEPLOYMENT, fields, recursive)
    }

    #[test]
    fn types_and_fields_are_explained() {
        let top = text(&[], false).unwrap();
        assert!(top.starts_with("GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n\nDESCRIPTION:\n    A set of pods.\n"), "{top}");
        assert!(top.contains("FIELDS:\n  spec\t<Spec>\n    What is wished.\n"), "{top}");
        let spec = text(&["spec"], false).unwrap();
        assert!(spec.contains("FIELD: spec <Spec>"), "{spec}");
        assert!(spec.contains("  list\t<[]Item> -required-\n    <no description>\n"), "{spec}");
        assert!(spec.contains("  map\t<map[string]string>\n"), "{spec}");
        assert!(text(&["spec", "list", "name"], false).unwrap().contains("FIELD: name <string>"));
    }

    #[test]
    fn recursion_shows_names_alone() {
        let all = text(&[], true).unwrap();
        assert!(
            all.contains("  spec\t<Spec>\n    list\t<[]Item> -required-\n      name\t<string>\n    map"),
            "{all}"
        );
    }

    #[test]
    fn an_unknown_field_names_the_known_ones() {
        assert_eq!(
            text(&["spec", "x"], false).unwrap_err(),
            "field \"x\" does not exist; its fields: list, map, n"
        );
    }
}
