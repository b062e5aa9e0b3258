//! Unknown members taken out of objects, and nulls that stand for nothing. Pure.

use serde_json::Value;

use super::structural::{Additional, Structural};
use crate::decode::check::{self, Fault, FaultKind, MAX_FAULTS};
use crate::decode::document::{push_field, push_index};
use crate::schema::registry;

/// Members that every object has.
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Takes what the schema does not know out of an object, and brings its metadata into form; tells what went and what
/// metadata cannot be.
pub fn prune(schema: &Structural, object: &mut Value) -> Vec<Fault> {
    let mut pruner = Pruner { path: String::new(), faults: Vec::new() };
    pruner.value(schema, object, true);
    pruner.faults
}

/// Takes what the schema does not know out of a part of an object; tells the paths of what went.
pub fn unknown(schema: &Structural, value: &mut Value) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), faults: Vec::new() };
    pruner.value(schema, value, schema.embedded);
    pruner.faults.into_iter().map(|fault| fault.path).collect()
}

struct Pruner {
    path: String,
    faults: Vec<Fault>,
}

impl Pruner {
    fn tell(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    fn below(&mut self, step: impl FnOnce(&mut String), run: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        step(&mut self.path);
        run(self);
        self.path.truncate(length);
    }

    fn value(&mut self, schema: &Structural, value: &mut Value, is_object: bool) {
        match value {
            Value::Object(members) => {
                members.retain(|name, member| {
                    if is_object && OF_OBJECTS.contains(&name.as_str()) {
                        if name == "metadata" {
                            self.metadata(member);
                        }
                        return true;
                    }
                    if let Some(known) = schema.member(name) {
                        self.below(
                            |path| push_field(path, name),
                            |below| below.value(known, member, known.embedded),
                        );
                        return true;
                    }
                    let stays = schema.preserve || matches!(schema.additional, Some(Additional::Open));
                    if !stays {
                        let mut path = self.path.clone();
                        push_field(&mut path, name);
                        self.tell(Fault { path, kind: FaultKind::UnknownField });
                    }
                    stays
                });
            }
            Value::Array(items) => {
                let Some(item) = &schema.items else { return };
                for (index, element) in items.iter_mut().enumerate() {
                    self.below(
                        |path| push_index(path, index),
                        |below| below.value(item, element, item.embedded),
                    );
                }
            }
            _ => {}
        }
    }

    fn metadata(&mut self, metadata: &mut Value) {
        if metadata.is_null() {
            return;
        }
        let Some(definition) = registry::by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") else {
            return;
        };
        let mut at = self.path.clone();
        push_field(&mut at, "metadata");
        for fault in check::check(definition.node(), metadata) {
            let path = if fault.path.is_empty() { at.clone() } else { format!("{at}.{}", fault.path) };
            self.tell(Fault { path, ..fault });
        }
    }
}

/// Takes out nulls of members that may not be null and have no default: they stand for nothing.
pub fn drop_nulls(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|name, member| {
            let Some(known) = schema.member(name) else { return true };
            if known.refuses_null(member) && known.default.is_none() {
                return false;
            }
            drop_nulls(known, member);
            true
        }),
        Value::Array(items) => {
            if let Some(item) = &schema.items {
                items.iter_mut().for_each(|element| drop_nulls(item, element));
            }
        }
        _ => {}
    }
}
