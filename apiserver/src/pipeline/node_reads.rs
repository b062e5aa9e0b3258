//! What a node may read of what lies beside its pods: only that which a pod bound to it names. Looked up in the newest
//! state, so that it holds from the binding on and ends with the pod.

use strata_model::resource::{ResourceType, builtin};
use strata_model::status::Status;

use super::api::Api;
use super::request::{Caller, Target};
use crate::authn::User;
use crate::authz;
use crate::refusal::{Outcome, about};
use crate::storage;
use crate::types::pod::POD;
use crate::types::pod_references::{Named, names};

/// Types that a node reads by name alone, as its pods name them.
static BESIDE: [(&ResourceType, Named); 4] = [
    (&builtin::SECRET, Named::Secret),
    (&builtin::CONFIG_MAP, Named::ConfigMap),
    (&builtin::PERSISTENT_VOLUME_CLAIM, Named::Claim),
    (&builtin::SERVICE_ACCOUNT, Named::ServiceAccount),
];

impl Api {
    /// Checks that a node asks for something that a pod bound to it names. For other users, and for other types, it has
    /// nothing to say. What they may do at all is decided before.
    pub async fn admit_node(&self, caller: &Caller, target: &Target, verb: &str, name: &str) -> Outcome<()> {
        let who = &caller.user;
        let type_ = &target.served.resource;
        let Some((_, what)) = BESIDE.iter().find(|(own, _)| own.id == type_.id) else { return Ok(()) };
        if !authz::is_node(who) || self.names_it(who, &target.namespace, *what, name).await? {
            return Ok(());
        }
        let resource = match target.subresource.as_str() {
            "" => type_.id.resource.to_string(),
            part => format!("{}/{part}", type_.id.resource),
        };
        let why = format!(
            "User \"{}\" cannot {verb} resource \"{resource}\" in API group \"\" in the namespace \"{}\": no relationship \
             found between node '{}' and this object",
            who.name,
            target.namespace,
            authz::node_name(who)
        );
        Err(Box::new(Status::forbidden(about(type_, name), &why)))
    }

    async fn names_it(&self, who: &User, namespace: &str, what: Named, name: &str) -> Outcome<bool> {
        if namespace.is_empty() || name.is_empty() {
            return Ok(false);
        }
        let snapshot = self.latest().await?;
        let node = POD.fields.iter().position(|field| field.name == "spec.nodeName").unwrap_or_default();
        let range = storage::range(&builtin::POD.id, namespace);
        let found = snapshot
            .range(&range, None)
            .filter(|record| {
                storage::head(record, &POD).fields.get(node).is_some_and(|node| authz::is_own(who, node))
            })
            .filter_map(|record| storage::parse(record).ok())
            .any(|pod| names(&pod, what, name));
        Ok(found)
    }
}
