//! Who owns the fields of what is written: the pipeline's use of `managed`. Knows how requests name their managers.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use strata_model::status::{Cause, Details, Reason, Status};

use super::body::Wanted;
use super::request::{Caller, Target, WriteOptions};
use crate::managed::apply::{self, Apply, ApplyError, Conflict};
use crate::managed::collect;
use crate::managed::entries::{Managed, Wish, Writer};
use crate::managed::shape::Schema;
use crate::managed::track;
use crate::refusal::{Outcome, Refusal, internal};
use crate::schema::node::Definition;
use crate::types::catalogue::Served;
use crate::value::{child, text};

/// What ownership needs to know of one write.
pub struct Ownership<'a> {
    definition: Option<Arc<Definition>>,
    native: bool,
    manager: &'a str,
    api_version: String,
    /// The subresource that is written through, or empty.
    subresource: &'a str,
    now: Timestamp,
}

impl<'a> Ownership<'a> {
    /// The ownership of a write to a target, through a subresource or (empty) directly: its manager is the one that the request names, else the client's program.
    pub fn of(
        caller: &'a Caller,
        target: &Target,
        through: &'a str,
        options: &'a WriteOptions,
        now: Timestamp,
    ) -> Self {
        let manager =
            if options.manager.is_empty() { caller.agent.as_str() } else { options.manager.as_str() };
        Self {
            definition: wanted(&target.served).definition(),
            native: target.served.custom.is_none(),
            manager,
            api_version: target.served.resource.api_version(),
            subresource: through,
            now,
        }
    }

    /// The schema of the type.
    fn schema(&self) -> Schema<'_> {
        schema(self.definition.as_ref(), self.native)
    }

    fn of_config<'s>(&'s self, config: &'s Value, force: bool) -> Apply<'s> {
        Apply { schema: self.schema(), config, writer: self.writer(), force }
    }

    /// Makes an object of a configuration, and its managers.
    pub fn apply_new(&self, target: &Target, config: &Value) -> Outcome<(Value, Managed)> {
        apply::create(&self.of_config(config, false))
            .map_err(|error| refused(&error, target, wanted(&target.served)))
    }

    /// Lays a configuration over an object, and moves its managers. The result names a revision only if the
    /// configuration does.
    pub fn apply(
        &self,
        target: &Target,
        (config, force): (&Value, bool),
        old: &Value,
        managers: &mut Managed,
    ) -> Outcome<Value> {
        let mut merged = apply::apply(&self.of_config(config, force), old, managers)
            .map_err(|error| refused(&error, target, wanted(&target.served)))?;
        if text(config, &["metadata", "resourceVersion"]).is_empty() {
            child(&mut merged, "metadata").remove("resourceVersion");
        }
        Ok(merged)
    }

    /// Who writes.
    fn writer(&self) -> Writer<'_> {
        Writer {
            manager: self.manager,
            api_version: &self.api_version,
            subresource: self.subresource,
            now: self.now,
        }
    }

    /// Makes the writer own a new object.
    pub fn create(&self, object: &mut Value) {
        track::created(self.schema(), object, &self.writer()).put(object);
    }

    /// The managers of an object after a write to it; `None` where the write changes neither the object nor them. Only
    /// writes to the object itself may rewrite its managers.
    pub fn update(&self, before: Managed, wish: Wish, old: &Value, new: &Value) -> Option<Managed> {
        let (mut after, rewritten) = match wish {
            Wish::Rewrite(wanted) if self.subresource.is_empty() => {
                let differs = !wanted.owns_same(&before);
                (wanted, differs)
            }
            _ => (before, false),
        };
        let changed = new != old;
        if changed {
            track::updated(self.schema(), &mut after, (old, new), &self.writer());
        }
        (changed || rewritten).then_some(after)
    }
}

/// The type that bodies of a target are of.
pub fn wanted(served: &Served) -> Wanted<'_> {
    let resource = &served.resource;
    let named = Wanted::new(&resource.id.group, &resource.version, &resource.kind);
    Wanted { custom: served.custom.as_ref(), ..named }
}

/// A schema as ownership sees it.
pub fn schema(definition: Option<&Arc<Definition>>, native: bool) -> Schema<'_> {
    match definition {
        Some(definition) => Schema { root: definition.node(), native },
        None => Schema::UNKNOWN,
    }
}

/// Checks that a configuration can be applied as an object of a type.
pub fn check(target: &Target, of: Wanted<'_>, config: &Value) -> Outcome<()> {
    let definition = of.definition();
    let claimed = collect::claimed(schema(definition.as_ref(), of.custom.is_none()), config);
    claimed.map(drop).map_err(|problems| refused(&ApplyError::NotTyped(problems), target, of))
}

/// The refusal of an apply.
fn refused(error: &ApplyError, target: &Target, of: Wanted<'_>) -> Refusal {
    match error {
        ApplyError::NotTyped(_) => {
            let Wanted { group, version, kind, .. } = of;
            let what = format!("{}/{}; {group}/{version}, Kind={kind}", target.namespace, target.name);
            let mut status = internal("");
            status.message = format!("failed to create typed patch object ({what}): {error}");
            status
        }
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.iter().map(cause).collect();
            let details = Details { causes, ..Details::default() };
            Box::new(Status::failure(Reason::Conflict, error.to_string()).with_details(details))
        }
    }
}

fn cause(conflict: &Conflict) -> Cause {
    Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {}", conflict.owner),
        field: conflict.field.clone(),
    }
}
