//! Which names of custom types are accepted, and what the status of their definitions says of it. Pure: every server
//! decides the same over the same definitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definition::{Definition, Names};
use crate::value::{child, list, list_mut, put, text};

/// What is decided of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The names under which it is served.
    pub accepted: Names,
    /// Why not all names are accepted: a reason and a sentence.
    pub conflict: Option<(&'static str, String)>,
    /// Whether it is served.
    pub established: bool,
}

/// Names that are taken in one group.
#[derive(Default)]
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    fn add(&mut self, names: &Names) {
        let resources = [&names.plural, &names.singular].into_iter().chain(&names.short_names);
        self.resources.extend(resources.filter(|name| !name.is_empty()).cloned());
        self.kinds.extend([&names.kind, &names.list_kind].into_iter().filter(|n| !n.is_empty()).cloned());
    }
}

/// Decides over all definitions: those that have names keep them, then the older one wins.
pub fn decide(definitions: &[Arc<Definition>]) -> Vec<Verdict> {
    let mut order: Vec<usize> = (0..definitions.len()).collect();
    order.sort_by_key(|at| (definitions[*at].created, &definitions[*at].name));
    let mut verdicts: Vec<Option<Verdict>> = vec![None; definitions.len()];
    for at in order {
        let own = &definitions[at];
        let mut taken = Taken::default();
        for (other, definition) in definitions.iter().enumerate() {
            if other == at || definition.group != own.group {
                continue;
            }
            match &verdicts[other] {
                Some(verdict) => taken.add(&verdict.accepted),
                None => taken.add(&definition.accepted),
            }
        }
        verdicts[at] = Some(judge(own, &taken));
    }
    verdicts.into_iter().flatten().collect()
}

fn judge(own: &Definition, taken: &Taken) -> Verdict {
    let (wanted, had) = (&own.names, &own.accepted);
    let mut accepted = had.clone();
    let mut conflict = None;
    let mut one = |wanted: &String, accepted: &mut String, taken: &BTreeSet<String>, reason| {
        if wanted != accepted && taken.contains(wanted) {
            conflict.get_or_insert_with(|| (reason, format!("\"{wanted}\" is already in use")));
        } else {
            accepted.clone_from(wanted);
        }
    };
    one(&wanted.plural, &mut accepted.plural, &taken.resources, "PluralConflict");
    one(&wanted.singular, &mut accepted.singular, &taken.resources, "SingularConflict");
    one(&wanted.kind, &mut accepted.kind, &taken.kinds, "KindConflict");
    one(&wanted.list_kind, &mut accepted.list_kind, &taken.kinds, "ListKindConflict");
    let clash = |name: &&String| taken.resources.contains(*name) && !had.short_names.contains(name);
    match wanted.short_names.iter().find(clash) {
        Some(name) => {
            conflict.get_or_insert_with(|| ("ShortNamesConflict", format!("\"{name}\" is already in use")));
        }
        None => accepted.short_names.clone_from(&wanted.short_names),
    }
    accepted.categories.clone_from(&wanted.categories);
    let established = own.established || conflict.is_none();
    Verdict { accepted, conflict, established }
}

/// Brings the status of a definition in line with what was decided; false where it already is. `now` is an instant as
/// text.
pub fn settle(object: &mut Value, verdict: &Verdict, remaining: Option<usize>, now: &str) -> bool {
    let before = object.get("status").cloned();
    let status = child(object, "status");
    put(status, "acceptedNames", Some(written(&verdict.accepted)));
    status.entry("storedVersions").or_insert_with(|| json!([]));
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    match &verdict.conflict {
        None => set(conditions, "NamesAccepted", true, ("NoConflicts", "no conflicts found"), now),
        Some((reason, message)) => set(conditions, "NamesAccepted", false, (reason, message), now),
    }
    if verdict.established {
        let why = ("InitialNamesAccepted", "the initial names have been accepted");
        set(conditions, "Established", true, why, now);
    } else {
        set(conditions, "Established", false, ("NotAccepted", "not all names are accepted"), now);
    }
    match remaining {
        Some(0) => {
            let why = ("InstanceDeletionCompleted", "removed all instances");
            set(conditions, "Terminating", false, why, now);
        }
        Some(count) => {
            let message = format!("CustomResource deletion is in progress: {count} remain");
            set(conditions, "Terminating", true, ("InstanceDeletionInProgress", &message), now);
        }
        None => {}
    }
    object.get("status") != before.as_ref()
}

fn set(conditions: &mut Value, kind: &str, holds: bool, (reason, message): (&str, &str), now: &str) {
    let status = if holds { "True" } else { "False" };
    let Some(list) = conditions.as_array_mut() else { return };
    let found = list.iter_mut().find(|condition| text(condition, &["type"]) == kind);
    let since = match &found {
        Some(old) if text(old, &["status"]) == status => text(old, &["lastTransitionTime"]).to_owned(),
        _ => now.to_owned(),
    };
    let condition = json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since});
    match found {
        Some(old) => *old = condition,
        None => list.push(condition),
    }
}

fn written(names: &Names) -> Value {
    let mut out = Map::new();
    let mut word = |name: &str, word: &str| {
        if !word.is_empty() {
            out.insert(name.to_owned(), json!(word));
        }
    };
    word("plural", &names.plural);
    word("singular", &names.singular);
    word("kind", &names.kind);
    word("listKind", &names.list_kind);
    for (name, words) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        if !words.is_empty() {
            out.insert(name.to_owned(), json!(words));
        }
    }
    // Both are required members.
    for name in ["plural", "kind"] {
        out.entry(name).or_insert_with(|| json!(""));
    }
    Value::Object(out)
}

/// Fills in what a definition leaves out.
pub fn fill(object: &mut Value) {
    let spec = child(object, "spec");
    let names = spec.entry("names").or_insert_with(|| json!({}));
    let kind = text(names, &["kind"]).to_owned();
    if let Some(names) = names.as_object_mut().filter(|_| !kind.is_empty()) {
        let mut word = |name: &str, value: String| {
            let absent = names.get(name).and_then(Value::as_str).is_none_or(str::is_empty);
            if absent {
                names.insert(name.to_owned(), value.into());
            }
        };
        word("singular", kind.to_lowercase());
        word("listKind", format!("{kind}List"));
    }
    let conversion = spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    if let Some(service) =
        conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut)
    {
        service.entry("port").or_insert_with(|| json!(443));
    }
    // What is said in the default way is not said.
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.remove("preserveUnknownFields");
    }
}

/// What a new definition begins with: the finalizer that waits for its objects, and the version that is stored.
pub fn begin(object: &mut Value, finalizer: &str) {
    let metadata = child(object, "metadata");
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.contains(&json!(finalizer))
    {
        finalizers.push(json!(finalizer));
    }
    let stored: Vec<&str> = storage_version(object).into_iter().collect();
    let status =
        json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": stored});
    put(crate::value::object(object), "status", Some(status));
}

/// Notes a storage version that was not one before.
pub fn note_storage(object: &mut Value) {
    let Some(version) = storage_version(object).map(str::to_owned) else { return };
    child(object, "status").entry("storedVersions").or_insert_with(|| json!([]));
    if let Some(stored) = list_mut(object, &["status", "storedVersions"])
        && !stored.contains(&json!(version))
    {
        stored.push(json!(version));
    }
}

fn storage_version(object: &Value) -> Option<&str> {
    let versions = list(object, &["spec", "versions"]);
    versions.iter().find(|v| v["storage"] == true).map(|v| text(v, &["name"]))
}
