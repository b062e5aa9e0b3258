//! What every namespace has from the start: the ServiceAccount `default`, and the ConfigMap `kube-root-ca.crt` by which
//! what runs there knows the API server. Two controllers of one shape: one object of a fixed name a namespace, made
//! where it is missing, and (the ConfigMap) set right where it was changed. Nothing is made in a namespace that goes.

use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;

use crate::controller::{Action, Controller, Key, MapTo, ObserveError, Plan, Target, View, Watched};

/// The account of pods that name none.
pub const DEFAULT: &str = "default";
/// The ConfigMap with the authority of the API server's certificate.
pub const ROOT_CA: &str = "kube-root-ca.crt";
/// Its one entry.
const ENTRY: &str = "ca.crt";
/// What the ConfigMap says about itself, as in Kubernetes.
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                           endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                           guaranteed across distributions of Kubernetes clusters.";

/// Gives every namespace its default ServiceAccount.
pub struct ServiceAccounts;

/// Gives every namespace the authority of the API server's certificate.
pub struct RootCertificates {
    /// The authority's certificates, PEM.
    pub authority: Arc<str>,
}

/// A namespace, and the object of the fixed name in it.
#[derive(Debug)]
pub struct Observed {
    namespace: Arc<Object>,
    present: Option<Arc<Object>>,
}

fn namespace_of(_: &dyn View, object: &Object) -> Vec<Key> {
    vec![Key::new(&builtin::NAMESPACE, ObjectKey::new("", object.meta().namespace.clone()))]
}

fn observe(
    view: &dyn View,
    key: &Key,
    resource: &strata_model::resource::ResourceType,
    name: &str,
) -> Option<Observed> {
    let namespace = view.get(&key.resource, &key.object)?;
    let present = view.get(&resource.id, &ObjectKey::new(key.object.name.clone(), name));
    Some(Observed { namespace, present })
}

impl Observed {
    fn makes(&self) -> bool {
        self.present.is_none() && !self.namespace.meta().is_deleting()
    }

    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace.meta().name})
    }
}

impl Controller for ServiceAccounts {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "serviceaccount"
    }

    fn watches(&self) -> Vec<Watched> {
        let accounts = Watched::all(&builtin::SERVICE_ACCOUNT, MapTo::With(namespace_of));
        let field_selector = format!("metadata.name={DEFAULT}");
        vec![
            Watched { metadata_only: true, ..Watched::all(&builtin::NAMESPACE, MapTo::Itself) },
            Watched { metadata_only: true, field_selector, ..accounts },
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        Ok(observe(view, key, &builtin::SERVICE_ACCOUNT, DEFAULT))
    }

    fn plan(&self, observed: &Observed, _: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        if observed.makes() {
            let object = json!({
                "apiVersion": builtin::SERVICE_ACCOUNT.api_version(), "kind": builtin::SERVICE_ACCOUNT.kind,
                "metadata": observed.metadata(DEFAULT),
            });
            plan.actions.push(Action::Create { resource: builtin::SERVICE_ACCOUNT.clone(), object });
        }
        plan
    }
}

impl Controller for RootCertificates {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "root-ca-certificate-publisher"
    }

    fn watches(&self) -> Vec<Watched> {
        let maps = Watched::all(&builtin::CONFIG_MAP, MapTo::With(namespace_of));
        vec![
            Watched { metadata_only: true, ..Watched::all(&builtin::NAMESPACE, MapTo::Itself) },
            Watched { field_selector: format!("metadata.name={ROOT_CA}"), ..maps },
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        Ok(observe(view, key, &builtin::CONFIG_MAP, ROOT_CA))
    }

    fn plan(&self, observed: &Observed, _: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let data = json!({ENTRY: &*self.authority});
        if observed.makes() {
            let mut metadata = observed.metadata(ROOT_CA);
            metadata["annotations"] = json!({"kubernetes.io/description": DESCRIPTION});
            let object = json!({
                "apiVersion": builtin::CONFIG_MAP.api_version(), "kind": builtin::CONFIG_MAP.kind,
                "metadata": metadata, "data": data,
            });
            plan.actions.push(Action::Create { resource: builtin::CONFIG_MAP.clone(), object });
        }
        let Some(present) = observed.present.as_ref().filter(|map| !map.meta().is_deleting()) else {
            return plan;
        };
        let value = present.to_value().unwrap_or(Value::Null);
        if value["data"] != data {
            // Entries that do not belong are taken out: a merge patch removes what is null.
            let mut patch = data;
            for entry in value["data"].as_object().into_iter().flat_map(|entries| entries.keys()) {
                if entry != ENTRY {
                    patch[entry.as_str()] = Value::Null;
                }
            }
            let target = Target::of(&builtin::CONFIG_MAP, present);
            plan.actions.push(Action::Patch { target, patch: json!({"data": patch}) });
        }
        plan
    }
}

#[cfg(test)]
mod tests;
