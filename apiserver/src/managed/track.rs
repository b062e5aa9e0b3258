//! Ownership over writes that are no apply: who sets a field owns it, and nobody owns what is gone.

use serde_json::Value;

use super::compare;
use super::entries::{Managed, Operation, Writer};
use super::shape::Schema;

/// The managers of a new object: the writer owns all of it.
pub fn created(schema: Schema<'_>, object: &Value, writer: &Writer<'_>) -> Managed {
    let mut managed = Managed::default();
    managed.give(writer, Operation::Update, compare::objects(schema, None, object).set);
    managed
}

/// Moves ownership as the difference between two versions of an object says: to the writer what has a new value, from
/// everybody what is gone. An object that nobody manages stays so.
pub fn updated(schema: Schema<'_>, managed: &mut Managed, (old, new): (&Value, &Value), writer: &Writer<'_>) {
    if managed.is_empty() {
        return;
    }
    let changes = compare::objects(schema, Some(old), new);
    if changes.is_empty() {
        return;
    }
    managed.release(&changes.removed, |_| false);
    managed.release(&changes.set, |entry| entry.is_of(writer, Operation::Update));
    managed.give(writer, Operation::Update, changes.set);
    managed.cap();
}
