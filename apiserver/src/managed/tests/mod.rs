//! Tests of ownership and server-side apply: each rule by example, and laws that hold for any object.

mod apply;
mod fields;
mod laws;
mod ownership;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::apply::{self as applying, Apply, ApplyError};
use super::entries::{Managed, Operation, Writer};
use super::shape::Schema;
use super::track;
use crate::schema::node::Definition;
use crate::schema::registry;

fn definition(group: &str, kind: &str) -> Arc<Definition> {
    registry::definition(group, "v1", kind).expect("a built-in type")
}

/// An object with its managers, and what is done to it.
struct World {
    definition: Arc<Definition>,
    api_version: &'static str,
    object: Option<Value>,
    managed: Managed,
    /// Seconds since the epoch; each step is one later.
    clock: i64,
}

impl World {
    fn of(group: &str, kind: &str, api_version: &'static str) -> Self {
        let definition = definition(group, kind);
        Self { definition, api_version, object: None, managed: Managed::default(), clock: 0 }
    }

    fn config_map() -> Self {
        Self::of("", "ConfigMap", "v1")
    }

    fn deployment() -> Self {
        Self::of("apps", "Deployment", "apps/v1")
    }

    fn writer<'a>(&self, manager: &'a str, subresource: &'a str) -> Writer<'a> {
        let now = Timestamp::from_second(self.clock).expect("a time");
        Writer { manager, api_version: self.api_version, subresource, now }
    }

    fn apply(&mut self, manager: &str, config: Value) -> Result<(), ApplyError> {
        self.apply_as(manager, "", config, false)
    }

    fn force(&mut self, manager: &str, config: Value) {
        self.apply_as(manager, "", config, true).expect("the apply is forced");
    }

    fn apply_as(&mut self, manager: &str, part: &str, config: Value, force: bool) -> Result<(), ApplyError> {
        self.clock += 1;
        let definition = self.definition.clone();
        let schema = Schema { root: definition.node(), native: true };
        let apply = Apply { schema, config: &config, writer: self.writer(manager, part), force };
        let mut managed = self.managed.clone();
        let object = match &self.object {
            None => {
                let (object, created) = applying::create(&apply)?;
                managed = created;
                object
            }
            Some(live) => applying::apply(&apply, live, &mut managed)?,
        };
        (self.object, self.managed) = (Some(object), managed);
        Ok(())
    }

    fn update_as(&mut self, manager: &str, part: &str, object: Value) {
        self.clock += 1;
        let definition = self.definition.clone();
        let schema = Schema { root: definition.node(), native: true };
        let writer = self.writer(manager, part);
        match &self.object {
            None => self.managed = track::created(schema, &object, &writer),
            Some(old) => track::updated(schema, &mut self.managed, (old, &object), &writer),
        }
        self.object = Some(object);
    }

    fn update(&mut self, manager: &str, object: Value) {
        self.update_as(manager, "", object);
    }

    fn object(&self) -> &Value {
        self.object.as_ref().expect("an object")
    }

    /// What a manager owns, as stored; null if nothing.
    fn fields(&self, manager: &str, operation: Operation) -> Value {
        let mut found =
            self.managed.entries().iter().filter(|e| e.manager == manager && e.operation == operation);
        found.next().map_or(Value::Null, |entry| entry.fields.clone().into_value())
    }

    fn applied(&self, manager: &str) -> Value {
        self.fields(manager, Operation::Apply)
    }

    fn updated(&self, manager: &str) -> Value {
        self.fields(manager, Operation::Update)
    }

    fn time(&self, manager: &str) -> String {
        let mut found = self.managed.entries().iter().filter(|entry| entry.manager == manager);
        found.next().map_or_else(String::new, |entry| entry.time.clone())
    }
}

fn data(members: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": members})
}

/// A deployment with these containers.
fn containers(list: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": list}}}})
}

fn container_names(object: &Value) -> Vec<&str> {
    let list = object["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
    list.iter().map(|container| container["name"].as_str().expect("a name")).collect()
}
