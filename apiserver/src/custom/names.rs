//! Which names of custom types are accepted, and what the status of their definitions says of it. Pure: every server
//! decides the same over the same definitions.

use std::collections::{BTreeSet, HashMap};
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

/// How many definitions of a group hold a name.
#[derive(Default)]
struct Taken<'a>(HashMap<(&'a str, &'a str), u32>);

impl<'a> Taken<'a> {
    fn add(&mut self, group: &'a str, names: impl Iterator<Item = &'a String>) {
        for name in names.filter(|name| !name.is_empty()) {
            *self.0.entry((group, name)).or_default() += 1;
        }
    }

    fn remove(&mut self, group: &'a str, names: impl Iterator<Item = &'a String>) {
        for name in names.filter(|name| !name.is_empty()) {
            if let Some(count) = self.0.get_mut(&(group, name.as_str())) {
                *count = count.saturating_sub(1);
            }
        }
    }

    fn holds(&self, group: &str, name: &str) -> bool {
        self.0.get(&(group, name)).is_some_and(|count| *count > 0)
    }
}

impl Names {
    /// Names that stand in paths and on command lines.
    fn resources(&self) -> impl Iterator<Item = &String> {
        // A definition may use one of them twice; it is still one holder.
        let singular = Some(&self.singular).filter(|singular| **singular != self.plural);
        let short =
            self.short_names.iter().filter(|short| **short != self.plural && **short != self.singular);
        [&self.plural].into_iter().chain(singular).chain(short)
    }

    /// Names of kinds.
    fn kinds(&self) -> impl Iterator<Item = &String> {
        [&self.kind, &self.list_kind].into_iter()
    }
}

/// Decides over all definitions: those that have names keep them, then the older one wins.
pub fn decide(definitions: &[Arc<Definition>]) -> Vec<Verdict> {
    let (mut resources, mut kinds) = (Taken::default(), Taken::default());
    for definition in definitions {
        resources.add(&definition.group, definition.accepted.resources());
        kinds.add(&definition.group, definition.accepted.kinds());
    }
    let mut order: Vec<usize> = (0..definitions.len()).collect();
    order.sort_by_key(|at| (definitions[*at].created, &definitions[*at].name));
    let mut verdicts: Vec<Option<Verdict>> = vec![None; definitions.len()];
    for at in order {
        let own = &definitions[at];
        resources.remove(&own.group, own.accepted.resources());
        kinds.remove(&own.group, own.accepted.kinds());
        let verdict = judge(own, &resources, &kinds);
        // What is accepted is what is wanted or what was accepted before: both are at hand for as long as needed.
        let held: Vec<&String> = verdict.accepted.resources().collect();
        let kept = own.names.resources().chain(own.accepted.resources());
        resources.add(&own.group, distinct(kept.filter(|name| held.contains(name))));
        let held: Vec<&String> = verdict.accepted.kinds().collect();
        let kept = own.names.kinds().chain(own.accepted.kinds());
        kinds.add(&own.group, distinct(kept.filter(|name| held.contains(name))));
        verdicts[at] = Some(verdict);
    }
    verdicts.into_iter().flatten().collect()
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> impl Iterator<Item = &'a String> {
    names.collect::<BTreeSet<_>>().into_iter()
}

fn judge(own: &Definition, resources: &Taken<'_>, kinds: &Taken<'_>) -> Verdict {
    let (wanted, had) = (&own.names, &own.accepted);
    let mut accepted = had.clone();
    let mut conflict = None;
    let mut one = |wanted: &String, accepted: &mut String, taken: &Taken<'_>, reason| {
        if wanted != accepted && taken.holds(&own.group, wanted) {
            conflict.get_or_insert_with(|| (reason, format!("\"{wanted}\" is already in use")));
        } else {
            accepted.clone_from(wanted);
        }
    };
    one(&wanted.plural, &mut accepted.plural, resources, "PluralConflict");
    one(&wanted.singular, &mut accepted.singular, resources, "SingularConflict");
    one(&wanted.kind, &mut accepted.kind, kinds, "KindConflict");
    one(&wanted.list_kind, &mut accepted.list_kind, kinds, "ListKindConflict");
    let clash = |name: &&String| resources.holds(&own.group, name) && !had.short_names.contains(name);
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
pub fn settle(object: &mut Value, verdict: &Verdict, terminating: bool, now: &str) -> bool {
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
    if terminating {
        let why = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
        set(conditions, "Terminating", true, why, now);
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
