//! The annotation in which a client-side apply remembers what it applied, byte for byte as kubectl writes it, so that
//! both may be used on one object in turn. And the patch between what was applied, what is wanted and what is. Pure.

use serde_json::{Map, Value};
use strata_apiserver::patch::three_way::three_way;
use strata_apiserver::schema::registry;
use strata_client::options::Patch;
use strata_model::resource::ResourceType;

/// The annotation.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object with the annotation that remembers it. Without `metadata` being a mapping it is left as it is.
pub fn remember(mut object: Value) -> Value {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return object };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if !annotations.is_object() {
        *annotations = Value::Object(Map::new());
    }
    if let Value::Object(annotations) = annotations {
        annotations.remove(LAST_APPLIED);
    }
    let text = format!("{}\n", as_go_writes(&object.to_string()));
    object["metadata"]["annotations"][LAST_APPLIED] = Value::String(text);
    object
}

/// What was applied last, if it can be read.
pub fn recall(live: &Value) -> Option<Value> {
    let text = live["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    serde_json::from_str(text).ok()
}

/// The patch that leads from `live` to `wanted`; `None` where they agree. Strategic where the type has a schema here.
pub fn patch(resource: &ResourceType, last: Option<&Value>, wanted: &Value, live: &Value) -> Option<Patch> {
    let definition = registry::definition(&resource.id.group, &resource.version, &resource.kind);
    let node = definition.as_ref().map(|d| d.node());
    let patch = three_way(last, wanted, live, node);
    match patch.as_object().is_some_and(Map::is_empty) {
        true => None,
        false if node.is_some() => Some(Patch::Strategic(patch)),
        false => Some(Patch::Merge(patch)),
    }
}

/// Go's encoder writes these characters of texts as escapes; elsewhere in JSON they cannot be.
fn as_go_writes(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use strata_model::resource::builtin;

    fn config(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": data})
    }

    #[test]
    fn the_annotation_is_that_of_kubectl() {
        let object = remember(config(json!({"k": "a<b"})));
        assert_eq!(
            object["metadata"]["annotations"][LAST_APPLIED],
            "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"a\\u003cb\"},\"kind\":\"ConfigMap\",\"metadata\":\
             {\"annotations\":{},\"name\":\"a\",\"namespace\":\"default\"}}\n"
        );
        assert_eq!(remember(object.clone()), object);
        assert_eq!(recall(&object).unwrap()["data"]["k"], "a<b");
    }

    #[test]
    fn applying_again_changes_nothing_and_dropped_fields_go() {
        let resource = &builtin::CONFIG_MAP;
        let applied = remember(config(json!({"a": "1", "b": "2"})));
        let mut live = applied.clone();
        live["metadata"]["uid"] = json!("u");
        live["data"]["theirs"] = json!("3");
        let last = recall(&live);
        assert!(patch(resource, last.as_ref(), &applied, &live).is_none());
        let wanted = remember(config(json!({"a": "1"})));
        let Some(Patch::Strategic(change)) = patch(resource, last.as_ref(), &wanted, &live) else {
            panic!("a strategic patch is expected");
        };
        assert_eq!(change["data"], json!({ "b": null }));
    }
}
