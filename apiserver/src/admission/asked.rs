//! A write as policies and webhooks see it. Plain data, and the `request` that both are told.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use strata_model::resource::ResourceType;

use super::operation::Operation;
use crate::authn::User;
use crate::value::{at, put};

/// A write.
pub struct Asked<'a> {
    /// What is done.
    pub operation: Operation,
    /// The type of the object that it is done to.
    pub resource: &'a ResourceType,
    /// The versions in which objects of the type are served.
    pub versions: &'a [&'a str],
    /// The subresource that it is done through, or empty.
    pub subresource: &'a str,
    /// Namespace, or empty.
    pub namespace: &'a str,
    /// Name; empty while it is not known.
    pub name: &'a str,
    /// Who does it.
    pub user: &'a User,
    /// The object as it shall be: that of the subresource, where it has one of its own kind.
    pub object: Option<&'a Value>,
    /// The object as it is.
    pub old: Option<&'a Value>,
    /// Labels of the namespace; of one that is written itself, its own.
    pub namespace_labels: Option<Arc<BTreeMap<String, String>>>,
    /// Whether nothing is stored.
    pub dry_run: bool,
}

impl Asked<'_> {
    /// The same write with another object.
    pub fn with<'o>(&'o self, object: &'o Value) -> Asked<'o> {
        Asked { object: Some(object), namespace_labels: self.namespace_labels.clone(), ..*self }
    }

    /// Whether the object configures admission itself: nobody may keep such a mistake from being mended.
    pub fn is_exempt(&self) -> bool {
        self.resource.id.group == "admissionregistration.k8s.io"
    }

    /// Group, version and kind of the object.
    fn kind(&self) -> Value {
        let own = self.resource.subresource(self.subresource).and_then(|part| part.body.as_ref());
        match own {
            Some((group, version, kind)) => json!({"group": group, "version": version, "kind": kind}),
            None => {
                json!({"group": self.resource.id.group, "version": self.resource.version, "kind": self.resource.kind})
            }
        }
    }

    /// The request without its objects, as `AdmissionRequest` has it.
    pub fn request(&self) -> Value {
        let (kind, resource) = (self.kind(), &self.resource);
        let place = json!({"group": resource.id.group, "version": resource.version, "resource": resource.id.resource});
        let options = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
            Operation::Connect => "",
        };
        let mut request = json!({
            "kind": kind, "resource": place, "requestKind": kind, "requestResource": place, "name": self.name,
            "operation": self.operation.as_str(), "dryRun": self.dry_run,
            "userInfo": {"username": self.user.name, "groups": self.user.groups},
        });
        let members = crate::value::object(&mut request);
        let some = |text: &str| (!text.is_empty()).then(|| json!(text));
        put(members, "namespace", some(self.namespace));
        put(members, "subResource", some(self.subresource));
        put(members, "requestSubResource", some(self.subresource));
        if !options.is_empty() {
            let mut options = json!({"kind": options, "apiVersion": "meta.k8s.io/v1"});
            if self.dry_run {
                options["dryRun"] = json!(["All"]);
            }
            members.insert("options".to_owned(), options);
        }
        if !self.user.uid.is_empty() {
            request["userInfo"]["uid"] = json!(self.user.uid);
        }
        request
    }
}

/// The labels of an object.
pub fn labels(object: &Value) -> BTreeMap<String, String> {
    let members = at(object, &["metadata", "labels"]).and_then(Value::as_object).into_iter().flatten();
    members.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}
