//! Which object is meant, and which Application it belongs to: Argo CD's tracking by annotation. An annotation counts only
//! where it names the very object that bears it: controllers copy annotations to what they make.

use std::fmt;

use serde_json::Value;
use strata_model::object::{Object, ObjectKey};

use super::types::{NAMESPACE, TRACKING_ID};

/// An object by group, kind, namespace and name, whatever its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// Group; empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty where there is none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectId {
    /// Of an object in the cluster.
    pub fn of(object: &Object) -> Self {
        let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
        let meta = object.meta();
        Self {
            group: group.to_owned(),
            kind: object.kind().to_owned(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
        }
    }

    /// Of an object as JSON.
    pub fn of_value(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let meta = &object["metadata"];
        Self {
            group: api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
            kind: text(&object["kind"]),
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.clone(), self.name.clone())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// The name of an Application within tracking ids: with its namespace, where that is not the usual one.
pub fn instance(app: &ObjectKey) -> String {
    match app.namespace.as_str() {
        NAMESPACE | "" => app.name.clone(),
        namespace => format!("{namespace}_{}", app.name),
    }
}

/// The Application of an instance name.
fn of_instance(instance: &str) -> ObjectKey {
    match instance.split_once('_') {
        Some((namespace, name)) => ObjectKey::new(namespace, name),
        None => ObjectKey::new(NAMESPACE, instance),
    }
}

/// The value of the annotation for an object of an Application.
pub fn tracking_id(app: &ObjectKey, id: &ObjectId) -> String {
    let ObjectId { group, kind, namespace, name } = id;
    format!("{}:{group}/{kind}:{namespace}/{name}", instance(app))
}

/// The Application that an object belongs to.
pub fn owner(object: &Object) -> Option<ObjectKey> {
    let annotation = object.meta().annotation(TRACKING_ID)?;
    owner_by(annotation, &ObjectId::of(object))
}

/// The Application that an annotation names, where it is about this object.
pub fn owner_by(annotation: &str, id: &ObjectId) -> Option<ObjectKey> {
    let mut parts = annotation.splitn(3, ':');
    let (app, type_, place) = (parts.next()?, parts.next()?, parts.next()?);
    let (group, kind) = type_.split_once('/')?;
    let (namespace, name) = place.split_once('/')?;
    // A namespace in the id of an object that has none is what older tools wrote.
    let here = namespace == id.namespace || id.namespace.is_empty();
    let same = group == id.group && kind == id.kind && name == id.name && here;
    (same && !app.is_empty()).then(|| of_instance(app))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, annotation: &str) -> Object {
        let metadata = json!({"name": "web", "namespace": "n", "annotations": {TRACKING_ID: annotation}});
        Object::from_value(&json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata})).unwrap()
    }

    #[test]
    fn an_id_leads_back_to_its_application_and_a_copied_one_does_not() {
        for app in [ObjectKey::new(NAMESPACE, "a"), ObjectKey::new("team", "a")] {
            let bare = object("Deployment", "");
            let id = tracking_id(&app, &ObjectId::of(&bare));
            assert_eq!(owner(&object("Deployment", &id)), Some(app));
            assert_eq!(owner(&object("ReplicaSet", &id)), None);
        }
        assert_eq!(owner(&object("Deployment", "a:apps/Deployment:n/web")).unwrap().name, "a");
        for broken in ["", "a", "a:apps", "a:apps/Deployment:web", ":apps/Deployment:n/web"] {
            assert_eq!(owner(&object("Deployment", broken)), None, "{broken}");
        }
    }
}
