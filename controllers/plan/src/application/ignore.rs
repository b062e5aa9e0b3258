//! Differences that are none: fields that an Application, or the object itself, says not to look at. Takes them out of the
//! live and of the wished object alike, so that what remains can be compared.

use serde_json::Value;

use super::identity::ObjectId;
use super::spec::IgnoreDifferences;

/// The rules of one object.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pointers: Vec<String>,
    expressions: Vec<String>,
    managers: Vec<String>,
}

impl Rules {
    /// The rules among these that concern an object.
    pub fn of(all: &[IgnoreDifferences], id: &ObjectId) -> Self {
        let mut rules = Self::default();
        for one in all.iter().filter(|one| concerns(one, id)) {
            rules.pointers.extend(one.json_pointers.iter().cloned());
            rules.expressions.extend(one.jq_path_expressions.iter().cloned());
            rules.managers.extend(one.managed_fields_managers.iter().cloned());
        }
        rules
    }

    /// Whether there is nothing to take out.
    pub fn is_empty(&self) -> bool {
        self.pointers.is_empty() && self.expressions.is_empty() && self.managers.is_empty()
    }

    /// Whether the managers of fields must be known.
    pub fn asks_managers(&self) -> bool {
        !self.managers.is_empty()
    }

    /// The expressions for jq.
    pub fn expressions(&self) -> &[String] {
        &self.expressions
    }

    /// Takes fields out of an object; `managed` is `metadata.managedFields` of the live one. Expressions are the
    /// business of whoever has a jq.
    pub fn strip(&self, object: &mut Value, managed: &Value) {
        for pointer in &self.pointers {
            remove(object, pointer);
        }
        let owned = managed.as_array().into_iter().flatten();
        for entry in owned.filter(|e| self.managers.iter().any(|m| e["manager"] == **m)) {
            strip_owned(object, &entry["fieldsV1"]);
        }
    }
}

fn concerns(rule: &IgnoreDifferences, id: &ObjectId) -> bool {
    let given = |pattern: &str, text: &str| pattern.is_empty() || pattern == text;
    // An empty group is core; `*` is any.
    glob(&rule.group, &id.group)
        && glob(&rule.kind, &id.kind)
        && given(&rule.name, &id.name)
        && given(&rule.namespace, &id.namespace)
}

/// Whether a text matches a pattern of `*` and `?`.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                // The last star takes one character more.
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                t = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Removes what an RFC 6901 pointer leads to, if it leads anywhere.
fn remove(object: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    let last = last.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.remove(&last)),
        Some(Value::Array(list)) => {
            if let Some(at) = last.parse::<usize>().ok().filter(|at| *at < list.len()) {
                list.remove(at);
            }
        }
        _ => {}
    }
}

/// Removes the fields of a set as `managedFields` writes it.
fn strip_owned(object: &mut Value, set: &Value) {
    let Some(set) = set.as_object() else { return };
    for (name, below) in set {
        let is_leaf = below.as_object().is_none_or(|b| b.keys().all(|k| k == "."));
        if let (Some(field), Some(fields)) = (name.strip_prefix("f:"), object.as_object_mut()) {
            match fields.get_mut(field) {
                Some(_) if is_leaf => drop(fields.remove(field)),
                Some(inner) => strip_owned(inner, below),
                None => {}
            }
        } else if let (Some(keys), Some(list)) = (name.strip_prefix("k:"), object.as_array_mut()) {
            let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { continue };
            let is_it = |item: &Value| keys.iter().all(|(k, v)| item[k] == *v);
            match list.iter().position(is_it) {
                Some(at) if is_leaf => drop(list.remove(at)),
                Some(at) => strip_owned(&mut list[at], below),
                None => {}
            }
        } else if let (Some(value), Some(list)) = (name.strip_prefix("v:"), object.as_array_mut()) {
            let Ok(value) = serde_json::from_str::<Value>(value) else { continue };
            list.retain(|item| *item != value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_match_as_shells_do() {
        for (pattern, text, matches) in [
            ("*", "", true),
            ("*", "anything", true),
            ("a*c", "abc", true),
            ("a*c", "abcb", false),
            ("a?c", "abc", true),
            ("", "", true),
            ("", "a", false),
            ("*-*-x", "a-b-c-x", true),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn fields_go_by_pointer_and_by_manager() {
        let rule: IgnoreDifferences = serde_json::from_value(json!({"group": "apps", "kind": "*",
            "jsonPointers": ["/spec/replicas", "/metadata/annotations/a~1b", "/not/there"],
            "managedFieldsManagers": ["scaler"]}))
        .unwrap();
        let id = ObjectId { group: "apps".to_owned(), kind: "Deployment".to_owned(), ..ObjectId::default() };
        let rules = Rules::of(std::slice::from_ref(&rule), &id);
        assert!(Rules::of(&[rule], &ObjectId::default()).is_empty());
        let mut object = json!({"metadata": {"annotations": {"a/b": "1", "c": "2"}}, "spec": {"replicas": 1,
            "containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}], "set": ["x", "y"]}});
        let managed = json!([{"manager": "scaler", "fieldsV1": {"f:spec": {
            "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}, "f:set": {"v:\"x\"": {}}}}},
            {"manager": "other", "fieldsV1": {"f:metadata": {}}}]);
        rules.strip(&mut object, &managed);
        assert_eq!(
            object,
            json!({"metadata": {"annotations": {"c": "2"}}, "spec": {"set": ["y"],
            "containers": [{"name": "a"}, {"name": "b", "image": "j"}]}})
        );
    }
}
