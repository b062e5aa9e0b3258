//! From client-side to server-side apply: what the one owned goes to the other, so that omitting it removes it. For the
//! command line; kubectl does the same for itself.

use serde_json::{Value, json};

use super::apply::LAST_APPLIED;
use super::entries::{Managed, Operation, Writer};
use super::fields::FieldSet;

/// The manager of a client-side apply, of kubectl and of ours.
pub const CLIENT_SIDE: &str = "kubectl-client-side-apply";
/// The manager that holds the annotation of client-side applies for objects that were moved, as kubectl names it.
const KEEPER: &str = "kubectl-last-applied";

/// The `managedFields` of an object after its client-side applier's fields went to the writer; `None` where there is
/// nothing to move. The annotation that remembers client-side applies gets a keeper; the server keeps it true.
pub fn moved(object: &Value, writer: &Writer<'_>) -> Option<Value> {
    let mut head = json!({"metadata": {"managedFields": object.get("metadata")?.get("managedFields")?}});
    let mut managed = Managed::take(&mut head);
    let mut fields = FieldSet::default();
    let is_old = |entry: &super::entries::Entry| {
        entry.operation == Operation::Update && entry.manager == CLIENT_SIDE && entry.subresource.is_empty()
    };
    managed.entries().iter().filter(|entry| is_old(entry)).for_each(|entry| fields.add(&entry.fields));
    if fields.is_empty() {
        return None;
    }
    let all = fields.clone();
    managed.release(&all, |entry| !is_old(entry));
    let annotation = json!({"f:metadata": {"f:annotations": {format!("f:{LAST_APPLIED}"): {}}}});
    let annotation = FieldSet::stored(annotation);
    if !fields.shared(&annotation).is_empty() {
        fields.subtract(&annotation);
        managed.give(&Writer { manager: KEEPER, ..*writer }, Operation::Apply, annotation);
    }
    managed.give(writer, Operation::Apply, fields);
    managed.put(&mut head);
    head["metadata"].get_mut("managedFields").map(Value::take)
}
