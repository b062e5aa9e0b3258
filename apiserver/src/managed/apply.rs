//! Server-side apply: a manager says all it wants of an object, and the object comes to hold it, in peace with what
//! others own.

use std::fmt;

use serde_json::Value;

use super::collect::{self, Problem};
use super::compare;
use super::entries::{Entry, Managed, Operation, Writer};
use super::fields::FieldSet;
use super::merge::merge;
use super::prune::prune;
use super::shape::Schema;

/// Who owns what was there before anybody applied.
pub const BEFORE_FIRST: &str = "before-first-apply";
/// The managers that kubectl and our own command line apply as: both also know client-side apply.
const COMMAND_LINES: &[&str] = &["kubectl", "strata"];
/// Where kubectl's client-side apply keeps what it applied.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The longest annotation that is written there, in bytes.
const LAST_APPLIED_MAX: usize = 256 * 1024;

/// An apply.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// The schema of the type.
    pub schema: Schema<'a>,
    /// All that the manager wants of the object, without `managedFields`.
    pub config: &'a Value,
    /// Who applies.
    pub writer: Writer<'a>,
    /// Whether to take fields that others own and that differ.
    pub force: bool,
}

/// Fields that somebody else owns and that the apply would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Who owns it, with how it wrote, such as `"m1" with subresource "status" using apps/v1`.
    pub owner: String,
    /// Which field, such as `.spec.replicas`.
    pub field: String,
}

/// Why an apply was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The configuration does not fit the type.
    #[error("{}", problems(.0))]
    NotTyped(Vec<Problem>),
    /// Others own what it would change.
    #[error("{}", conflicts(.0))]
    Conflicts(Vec<Conflict>),
}

fn problems(problems: &[Problem]) -> String {
    match problems {
        [one] => one.to_string(),
        many => {
            let lines: Vec<String> = many.iter().map(|problem| format!("\n  {problem}")).collect();
            format!("errors:{}", lines.concat())
        }
    }
}

fn conflicts(conflicts: &[Conflict]) -> String {
    if let [Conflict { owner, field }] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {owner}: {field}");
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut last = None;
    for (index, Conflict { owner, field }) in conflicts.iter().enumerate() {
        if last != Some(owner) {
            let line = if index > 0 { "\n" } else { "" };
            text.push_str(&format!("{line}conflicts with {owner}:"));
        }
        text.push_str(&format!("\n- {field}"));
        last = Some(owner);
    }
    text
}

/// The owner of an entry, for people.
struct Owner<'a>(&'a Entry);

impl fmt::Display for Owner<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { manager, subresource, api_version, operation, .. } = self.0;
        write!(formatter, "{manager:?}")?;
        if !subresource.is_empty() {
            write!(formatter, " with subresource {subresource:?}")?;
        }
        match operation {
            Operation::Update => write!(formatter, " using {api_version}"),
            Operation::Apply => Ok(()),
        }
    }
}

/// Applies to an object that is not there yet: the object, and its managers.
pub fn create(apply: &Apply<'_>) -> Result<(Value, Managed), ApplyError> {
    let fields = claimed(apply)?;
    let mut managed = Managed::default();
    managed.set(&apply.writer, Operation::Apply, fields, true);
    Ok((apply.config.clone(), managed))
}

/// Applies to an object that is there (without its `managedFields`): the object that comes of it, and moves its
/// managers. Where the apply changes nothing, both stay as they are, times included.
pub fn apply(apply: &Apply<'_>, live: &Value, managed: &mut Managed) -> Result<Value, ApplyError> {
    let Apply { schema, config, writer, force } = *apply;
    let fields = claimed(apply)?;
    // Who applies nothing but a name takes nothing from whoever had it before, so there is nothing to remember of them.
    if managed.is_empty() && !fields.is_empty() {
        let first = Writer { manager: BEFORE_FIRST, subresource: "", ..writer };
        managed.give(&first, Operation::Update, compare::objects(schema, None, live).set);
    }
    let own = |entry: &Entry| entry.is_of(&writer, Operation::Apply);
    let mut merged = merge(schema, live.clone(), config);
    if let Some(last) = managed.find(&writer, Operation::Apply) {
        let others = managed.entries().iter().filter(|entry| !own(entry)).map(|entry| &entry.fields);
        let now: Vec<&FieldSet> = std::iter::once(&fields).chain(others).collect();
        prune(schema, &mut merged, &last.fields, &now);
    }
    let changes = compare::objects(schema, Some(live), &merged);
    if !force {
        let found = disputed(managed, &changes.set, &own, allowed(apply, live).as_ref());
        if !found.is_empty() {
            return Err(ApplyError::Conflicts(found));
        }
    }
    managed.release(&changes.removed, own);
    managed.release(&changes.set, own);
    managed.set(&writer, Operation::Apply, fields, !changes.is_empty());
    managed.cap();
    if COMMAND_LINES.contains(&writer.manager) {
        refresh_last_applied(&mut merged, config);
    }
    Ok(merged)
}

fn claimed(apply: &Apply<'_>) -> Result<FieldSet, ApplyError> {
    collect::claimed(apply.schema, apply.config).map_err(ApplyError::NotTyped)
}

/// The fields among `changed` that others own and may not be taken without force.
fn disputed(
    managed: &Managed,
    changed: &FieldSet,
    own: &impl Fn(&Entry) -> bool,
    allowed: Option<&FieldSet>,
) -> Vec<Conflict> {
    let mut changed = changed.clone();
    if let Some(allowed) = allowed {
        changed.subtract(allowed);
    }
    let mut found: Vec<Conflict> = Vec::new();
    for entry in managed.entries().iter().filter(|entry| !own(entry)) {
        let owner = Owner(entry).to_string();
        let fields = entry.fields.shared(&changed).into_iter();
        found.extend(fields.map(|field| Conflict { owner: owner.clone(), field }));
    }
    found.sort_by(|a, b| (&a.owner, &a.field).cmp(&(&b.owner, &b.field)));
    found
}

/// What a command line may take from others without force, as it applied it itself from the client's side before:
/// fields that still have the values it then gave them.
fn allowed(apply: &Apply<'_>, live: &Value) -> Option<FieldSet> {
    if !COMMAND_LINES.contains(&apply.writer.manager) {
        return None;
    }
    let text = live.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
    let mut fields = collect::claimed(apply.schema, &last).ok()?;
    let changes = compare::objects(apply.schema, Some(&last), live);
    fields.subtract(&changes.set);
    fields.subtract(&changes.removed);
    Some(fields)
}

/// Keeps the annotation of client-side apply true, where there is one, so that users can go back to it.
fn refresh_last_applied(object: &mut Value, config: &Value) {
    let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    let Some(Value::Object(annotations)) = annotations else { return };
    if !annotations.contains_key(LAST_APPLIED) {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(own)) = config.pointer_mut("/metadata/annotations") {
        own.remove(LAST_APPLIED);
    }
    let text = format!("{config}\n");
    if text.len() <= LAST_APPLIED_MAX {
        annotations.insert(LAST_APPLIED.to_owned(), Value::String(text));
    }
}
