//! Whether a live object is as it is wished: by what the server says that applying the wish would make of it, so that
//! defaults never show as a difference. Names fields, never their values.

use serde_json::Value;

use super::desired;

/// What applying a wish would do to a live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Same,
    /// Change these fields.
    Differs(Vec<String>),
    /// The server refuses it, and says why.
    Refused(String),
}

/// Most fields that are named.
pub const MOST_FIELDS: usize = 20;

/// Members of metadata that the server keeps, or that say nothing of the wish.
const KEPT: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// An object without its status and without what the server keeps.
#[must_use]
pub fn plain(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        for kept in KEPT {
            meta.remove(kept);
        }
    }
    object
}

/// A number for what of a live object a wish can change. The status does not count: it comes and goes.
pub fn fingerprint(live: Value) -> u64 {
    desired::hash(&plain(live))
}

/// The verdict on two plain objects, from which ignored fields are taken out.
pub fn verdict(live: &Value, predicted: &Value) -> Verdict {
    if live == predicted {
        return Verdict::Same;
    }
    let mut fields = Vec::new();
    collect(live, predicted, &mut String::new(), &mut fields);
    Verdict::Differs(fields)
}

fn collect(a: &Value, b: &Value, path: &mut String, fields: &mut Vec<String>) {
    if a == b || fields.len() >= MOST_FIELDS {
        return;
    }
    let length = path.len();
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let only_b = y.keys().filter(|k| !x.contains_key(*k));
            for name in x.keys().chain(only_b) {
                path.push('.');
                path.push_str(name);
                collect(&a[name], &b[name], path, fields);
                path.truncate(length);
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for at in 0..x.len() {
                path.push_str(&format!("[{at}]"));
                collect(&x[at], &y[at], path, fields);
                path.truncate(length);
            }
        }
        _ => fields.push(path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_keeps_is_no_difference_and_fields_are_named() {
        let live = json!({"metadata": {"name": "a", "resourceVersion": "1", "generation": 1}, "status": {"a": 1},
            "spec": {"replicas": 1, "list": [1, 2], "old": 1}});
        let mut wished = live.clone();
        wished["metadata"]["resourceVersion"] = json!("2");
        wished["status"] = json!({});
        assert_eq!(verdict(&plain(live.clone()), &plain(wished.clone())), Verdict::Same);
        assert_eq!(fingerprint(live.clone()), fingerprint(wished.clone()));
        wished["spec"] = json!({"replicas": 2, "list": [1, 3], "new": 1});
        let Verdict::Differs(fields) = verdict(&plain(live), &plain(wished)) else { panic!("no difference") };
        assert_eq!(fields, [".spec.list[1]", ".spec.old", ".spec.replicas", ".spec.new"]);
    }
}
