//! Admission policies on the way of a write: which concern it, with which parameters, and what becomes of what they say.

use serde_json::Value;
use strata_model::resource::builtin;
use strata_model::selector::Selector;
use strata_model::status::{Cause, Status};
use strata_store::snapshot::Snapshot;

use super::api::Api;
use crate::admission::asked::Asked;
use crate::admission::policy::{Binding, Objection, Policy};
use crate::admission::table::Tables;
use crate::refusal::{Outcome, about};
use crate::storage;
use crate::strategy::spoken_name;
use crate::types::catalogue::Served;
use crate::value::{at, text};

/// Most parameters of one binding that one write is judged by.
const MAX_PARAMETERS: usize = 100;

impl Api {
    /// Asks all policies that are bound to a write. Answers sentences for the user.
    pub async fn ask_policies(
        &self,
        tables: &Tables,
        asked: &Asked<'_>,
        snapshot: &Snapshot,
    ) -> Outcome<Vec<String>> {
        let mut warnings = Vec::new();
        for policy in tables.policies().filter(|policy| policy.matching.matches(asked)) {
            for binding in tables.bindings(&policy.name) {
                if !binding.matching.narrows(asked) {
                    continue;
                }
                for objection in self.ask_one(policy, binding, asked, snapshot).await? {
                    let told = &objection.message;
                    if binding.denies {
                        return Err(denied(asked, policy, binding, &objection));
                    }
                    if binding.warns {
                        warnings.push(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {told}",
                            policy.name, binding.name
                        ));
                    }
                    if binding.audits {
                        tracing::info!(
                            policy = policy.name, binding = binding.name, user = asked.user.name,
                            resource = %asked.resource.id, namespace = asked.namespace, name = asked.name,
                            message = told, "a policy does not agree with a write"
                        );
                    }
                }
            }
        }
        Ok(warnings)
    }

    async fn ask_one(
        &self,
        policy: &Policy,
        binding: &Binding,
        asked: &Asked<'_>,
        snapshot: &Snapshot,
    ) -> Outcome<Vec<Objection>> {
        let parameters = match self.parameters(policy, binding, asked, snapshot).await? {
            Ok(parameters) => parameters,
            Err(why) => {
                let why = format!("failed to configure binding: {why}");
                return Ok(policy.failed(why).into_iter().collect());
            }
        };
        let mut namespace = Value::Null;
        if policy.uses("namespaceObject") && !asked.namespace.is_empty() {
            let key = storage::key(&builtin::NAMESPACE.id, "", asked.namespace);
            namespace =
                snapshot.get(&key).map(|record| storage::parse(&record)).transpose()?.unwrap_or_default();
        }
        let mut objections = Vec::new();
        for one in parameters {
            let verdict = policy.judge(asked, &one, &namespace);
            for (key, value) in verdict.annotations {
                tracing::info!(policy = policy.name, binding = binding.name, key, value, "noted by a policy");
            }
            objections.extend(verdict.objections);
        }
        Ok(objections)
    }

    /// The parameters of a binding: one judgement each, none where there may be none. Null is a judgement without.
    async fn parameters(
        &self,
        policy: &Policy,
        binding: &Binding,
        asked: &Asked<'_>,
        snapshot: &Snapshot,
    ) -> Outcome<Result<Vec<Value>, String>> {
        let (Some((version, kind)), false) = (&policy.parameters, binding.parameters.is_null()) else {
            return Ok(Ok(vec![Value::Null]));
        };
        let catalogue = self.catalogue();
        let of_kind = |served: &&std::sync::Arc<Served>| {
            served.resource.kind == **kind && served.resource.api_version() == *version
        };
        let Some(served) = catalogue.all().iter().find(of_kind) else {
            return Ok(Err(format!(
                "failed to find resource referenced by paramKind: '{version}, Kind={kind}'"
            )));
        };
        let stored = served.stored();
        let mut namespace = text(&binding.parameters, &["namespace"]);
        if served.resource.is_namespaced() {
            namespace = if namespace.is_empty() { asked.namespace } else { namespace };
            if namespace.is_empty() {
                return Ok(Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                        .to_owned(),
                ));
            }
        } else if !namespace.is_empty() {
            return Ok(Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()
            ));
        }
        let mut found = Vec::new();
        let name = text(&binding.parameters, &["name"]);
        if name.is_empty() {
            let body = at(&binding.parameters, &["selector"]).cloned().unwrap_or_default();
            let selector = serde_json::from_value(body).ok().and_then(|body| Selector::from_body(&body).ok());
            let selector = selector.unwrap_or_else(Selector::everything);
            let range = storage::range(&stored.resource.id, namespace);
            let chosen = snapshot
                .range(&range, None)
                .filter(|record| selector.matches(&storage::head(record, stored.rules).labels));
            for record in chosen.take(MAX_PARAMETERS) {
                found.push(self.load(served, record).await?);
            }
        } else if let Some(record) = snapshot.get(&storage::key(&stored.resource.id, namespace, name)) {
            found.push(self.load(served, &record).await?);
        }
        if found.is_empty() && text(&binding.parameters, &["parameterNotFoundAction"]) != "Allow" {
            return Ok(Err(
                "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
            ));
        }
        Ok(Ok(found))
    }
}

fn denied(
    asked: &Asked<'_>,
    policy: &Policy,
    binding: &Binding,
    objection: &Objection,
) -> crate::refusal::Refusal {
    let why = format!(
        "ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {}",
        policy.name, binding.name, objection.message
    );
    let name = if asked.old.is_none() { asked.object.map_or(asked.name, spoken_name) } else { asked.name };
    let mut status = Status::forbidden(about(asked.resource, name), &why);
    status.reason = Some(objection.reason);
    status.code = Some(objection.reason.code());
    if let Some(details) = &mut status.details {
        details.causes.push(Cause { message: why, ..Cause::default() });
    }
    Box::new(status)
}
