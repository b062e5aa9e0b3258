//! The namespace controller: empties a namespace whose deletion was asked for, and lets it go.
//!
//! Owns the finalizer `kubernetes` in `spec.finalizers`, and the conditions of a namespace that is being deleted. What
//! must always hold:
//! * a namespace that lives is not touched, nor anything in it;
//! * the finalizer goes only after the server itself, type by type, said that nothing is left: the caches of two types
//!   may be of different age, and what is created last is created before the deletion;
//! * objects go as they ask to (grace, finalizers); what holds them is written down.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;
use strata_model::condition::{self, Condition, rfc3339};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{ResourceType, Verb, builtin};

use crate::controller::{
    Action, Controller, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use crate::typed::Typed;

/// The finalizer that this controller answers.
pub const FINALIZER: &str = "kubernetes";
/// Most deletions of one turn.
pub const BATCH: usize = 500;

/// The controller.
#[derive(Clone, Debug)]
pub struct Namespaces {
    types: Vec<Arc<ResourceType>>,
}

impl Namespaces {
    /// Knows how to empty a namespace of these types; those that are not namespaced, or cannot be deleted, are left out.
    pub fn new(types: impl IntoIterator<Item = Arc<ResourceType>>) -> Self {
        let can = |t: &ResourceType, verb| t.verbs.contains(&verb);
        let usable = |t: &Arc<ResourceType>| {
            t.is_namespaced() && can(t, Verb::Delete) && can(t, Verb::List) && can(t, Verb::Watch)
        };
        Self { types: types.into_iter().filter(usable).collect() }
    }
}

/// A namespace on its way out, with what is in it.
#[derive(Debug)]
pub struct Observed {
    namespace: Typed<Namespace>,
    /// Every known namespaced type with its objects here; most have none.
    content: Vec<(Arc<ResourceType>, Vec<Arc<Object>>)>,
}

impl Controller for Namespaces {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "namespace"
    }

    fn watches(&self) -> Vec<Watched> {
        let mut watches = vec![Watched::all(&builtin::NAMESPACE, MapTo::Itself)];
        for resource in &self.types {
            let mut content = Watched::all(resource, MapTo::With(leaving_namespace));
            content.metadata_only = true;
            watches.push(content);
        }
        watches
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        let found = view.get(&builtin::NAMESPACE.id, &key.object).filter(|n| n.meta().is_deleting());
        let Some(object) = found else { return Ok(None) };
        let list = |t: &Arc<ResourceType>| (Arc::clone(t), view.list(&t.id, &key.object.name));
        let content = self.types.iter().map(list).collect();
        let namespace = Typed::new(object).map_err(ObserveError::at(key))?;
        Ok(Some(Observed { namespace, content }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        if !observed.is_held() {
            return plan;
        }
        delete(observed, now, &mut plan);
        if plan.is_settled() && observed.content.iter().all(|(_, objects)| objects.is_empty()) {
            finalize(observed, &mut plan);
        } else if plan.is_settled() {
            report(observed, now, &mut plan);
        }
        plan
    }
}

impl Observed {
    /// Whether our finalizer is still on it.
    fn is_held(&self) -> bool {
        let finalizers = self.namespace.spec.as_ref().and_then(|s| s.finalizers.as_ref());
        finalizers.is_some_and(|f| f.iter().any(|name| name == FINALIZER))
    }

    fn target(&self) -> Target {
        Target::of(&builtin::NAMESPACE, self.namespace.object())
    }
}

/// The namespace of an object, if it is on its way out.
fn leaving_namespace(view: &dyn View, object: &Object) -> Vec<Key> {
    let key = ObjectKey::new("", object.meta().namespace.clone());
    let leaving = view.get(&builtin::NAMESPACE.id, &key).is_some_and(|n| n.meta().is_deleting());
    if leaving { vec![Key::new(&builtin::NAMESPACE, key)] } else { Vec::new() }
}

/// Asks for the deletion of everything that was not asked yet.
fn delete(observed: &Observed, now: Timestamp, plan: &mut Plan) {
    for (resource, objects) in &observed.content {
        for object in objects.iter().filter(|o| !o.meta().is_deleting()) {
            if plan.actions.len() == BATCH {
                plan.next = plan.next.or_at(now);
                return;
            }
            plan.actions.push(Action::Delete {
                target: Target::of(resource, object).at_any_revision(),
                propagation: Propagation::Background,
                grace_seconds: None,
            });
        }
    }
}

/// Nothing is left in the cache: asks the server whether that is so, and lets the namespace go.
fn finalize(observed: &Observed, plan: &mut Plan) {
    let namespace = observed.namespace.object();
    let mut object = match namespace.to_value() {
        Ok(object) => object,
        Err(error) => return plan.note("BadNamespace", error.to_string()),
    };
    if let Some(finalizers) = object["spec"]["finalizers"].as_array_mut() {
        finalizers.retain(|f| f != FINALIZER);
    }
    for (resource, _) in &observed.content {
        plan.actions.push(Action::ConfirmEmpty {
            resource: ResourceType::clone(resource),
            namespace: namespace.meta().name.clone(),
        });
    }
    plan.actions.push(Action::Replace { target: observed.target(), subresource: "finalize", object });
}

/// Writes down what is waited for: how many objects of which type, and which finalizers hold them.
fn report(observed: &Observed, now: Timestamp, plan: &mut Plan) {
    let mut remaining = Vec::new();
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for (resource, objects) in observed.content.iter().filter(|(_, objects)| !objects.is_empty()) {
        remaining.push(format!("{} has {} resource instances", name_of(resource), objects.len()));
        for finalizer in objects.iter().flat_map(|o| &o.meta().finalizers) {
            *finalizers.entry(finalizer).or_default() += 1;
        }
    }
    let holds: Vec<String> =
        finalizers.iter().map(|(name, n)| format!("{name} in {n} resource instances")).collect();
    let content = format!("Some resources are remaining: {}", remaining.join(", "));
    let held = format!("Some content in the namespace has finalizers remaining: {}", holds.join(", "));
    plan.note("SomeResourcesRemain", content.clone());
    let finished = "All content-preserving finalizers finished".to_owned();
    let conditions = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered".to_owned(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".to_owned(),
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        ),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", content),
        match holds.is_empty() {
            true => ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", finished),
            false => ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", held),
        },
    ];
    let mut list = written(observed);
    let mut changed = false;
    for (type_, status, reason, message) in conditions {
        let new = Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            ..Condition::default()
        };
        changed |= condition::set(&mut list, new, now);
    }
    if changed {
        plan.actions.push(Action::Status { target: observed.target(), status: json!({"conditions": list}) });
    }
}

fn name_of(resource: &ResourceType) -> String {
    // The usual words are `plural.group`, with the dot also where the group is empty.
    format!("{}.{}", resource.id.resource, resource.id.group)
}

fn written(observed: &Observed) -> Vec<Condition> {
    let list = observed.namespace.status.as_ref().and_then(|s| s.conditions.as_ref());
    let one = |c: &k8s_openapi::api::core::v1::NamespaceCondition| Condition {
        type_: c.type_.clone(),
        status: c.status.clone(),
        reason: c.reason.clone().unwrap_or_default(),
        message: c.message.clone().unwrap_or_default(),
        last_transition_time: c.last_transition_time.as_ref().map(|t| rfc3339(t.0)),
        last_update_time: None,
    };
    list.into_iter().flatten().map(one).collect()
}
