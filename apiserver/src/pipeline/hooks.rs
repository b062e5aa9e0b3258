//! Webhooks on the way of a write: who is asked, in which order, and what becomes of what they answer.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;
use strata_model::resource::builtin;
use strata_model::status::{Reason, Status};
use strata_store::record::Record;
use strata_store::snapshot::Snapshot;

use super::api::Api;
use crate::admission::asked::Asked;
use crate::admission::hook::{Hook, Place};
use crate::admission::review::{self, Said};
use crate::patch::json::JsonPatch;
use crate::refusal::{Outcome, Refusal, bad_request, internal};
use crate::storage;
use crate::value::{at, flag, int, list, text};
use crate::webhook::{self, Endpoint};

/// What one webhook came to.
struct Answer {
    patch: Option<JsonPatch>,
    warnings: Vec<String>,
}

impl Api {
    /// Asks webhooks that may change an object, one after the other; those that want it once more where others changed the
    /// object after them. Answers whether it differs now.
    pub async fn ask_mutating(
        &self,
        hooks: &[Arc<Hook>],
        asked: &Asked<'_>,
        object: &mut Value,
        snapshot: &Snapshot,
        warnings: &mut Vec<String>,
    ) -> Outcome<bool> {
        let mut changed = false;
        let mut seen: Vec<(usize, Value)> = Vec::new();
        for round in 0..2 {
            for (index, hook) in hooks.iter().enumerate() {
                let before = seen.iter().position(|(asked, _)| *asked == index);
                let wanted = match before {
                    None => round == 0,
                    Some(at) => round == 1 && hook.again && seen[at].1 != *object,
                };
                if !wanted {
                    continue;
                }
                let Some(answer) = self.ask(hook, &asked.with(object), snapshot).await? else { continue };
                warnings.extend(answer.warnings);
                if let Some(patch) = answer.patch {
                    let patched =
                        patch.apply(object.clone()).map_err(|error| failed(hook, &error.to_string()))?;
                    if !patched.is_object() {
                        return Err(failed(hook, "its patch leaves no object"));
                    }
                    changed |= patched != *object;
                    *object = patched;
                }
                seen.retain(|(asked, _)| *asked != index);
                seen.push((index, object.clone()));
            }
        }
        Ok(changed)
    }

    /// Asks webhooks that may refuse a write, all at a time. Answers sentences for the user.
    pub async fn ask_validating(
        &self,
        hooks: &[Arc<Hook>],
        asked: &Asked<'_>,
        snapshot: &Snapshot,
    ) -> Outcome<Vec<String>> {
        let answers = join_all(hooks.iter().map(|hook| self.ask(hook, asked, snapshot))).await;
        let mut warnings = Vec::new();
        for answer in answers {
            warnings.extend(answer?.map(|answer| answer.warnings).into_iter().flatten());
        }
        Ok(warnings)
    }

    /// Asks one webhook, if it is about the write. `None`: it is not, or it cannot be asked and need not be.
    async fn ask(&self, hook: &Hook, asked: &Asked<'_>, snapshot: &Snapshot) -> Outcome<Option<Answer>> {
        match hook.is_about(asked) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(_) if hook.lenient => return Ok(None),
            Err(why) => {
                let mut status = Status::failure(Reason::Forbidden, format!("webhook {}: {why}", hook.name));
                status.code = Some(403);
                return Err(Box::new(status));
            }
        }
        if asked.dry_run && !hook.is_pure {
            return Err(bad_request(format!("admission webhook \"{}\" does not support dry run", hook.name)));
        }
        match exchange(hook, asked, snapshot).await {
            Ok((Said::Allowed(patch), warnings)) => Ok(Some(Answer { patch, warnings })),
            Ok((Said::Denied(refusal), _)) => Err(refusal),
            Err(why) if hook.lenient => {
                tracing::warn!(webhook = hook.name, why, "a webhook cannot be asked; its policy is to go on");
                Ok(None)
            }
            Err(why) => Err(failed(hook, &why)),
        }
    }
}

fn failed(hook: &Hook, why: &str) -> Refusal {
    internal(format!("failed calling webhook \"{}\": {why}", hook.name))
}

async fn exchange(
    hook: &Hook,
    asked: &Asked<'_>,
    snapshot: &Snapshot,
) -> Result<(Said, Vec<String>), String> {
    let Some(version) = hook.review else {
        return Err("it understands no version of AdmissionReview that is known here: v1, v1beta1".to_owned());
    };
    let uid = uuid::Uuid::new_v4().to_string();
    let (url, address) = match &hook.place {
        Place::Url(url) => (url.clone(), String::new()),
        Place::Service { namespace, name, port, path } => {
            let address = endpoint(snapshot, namespace, name, *port)?;
            (format!("https://{name}.{namespace}.svc:{port}{path}"), address)
        }
    };
    let endpoint = Endpoint { url: &url, address: &address, authority: &hook.authority };
    let answer = webhook::call(endpoint, &review::ask(asked, version, &uid), hook.timeout).await;
    let answer = answer.map_err(|error| {
        let mut told = format!("failed to call webhook: {error}");
        let mut below = std::error::Error::source(&error);
        while let Some(source) = below {
            told.push_str(&format!(": {source}"));
            below = source.source();
        }
        told
    })?;
    review::read(&answer, &hook.name, &uid)
}

/// Where a Service leads: a ready endpoint of its port, by its slices or its Endpoints.
fn endpoint(snapshot: &Snapshot, namespace: &str, name: &str, port: u16) -> Result<String, String> {
    let service = snapshot.get(&storage::key(&builtin::SERVICE.id, namespace, name));
    let Some(service) = service.as_ref().and_then(parsed) else {
        return Err(format!("service \"{name}\" not found in namespace \"{namespace}\""));
    };
    let ports = list(&service, &["spec", "ports"]);
    let Some(wanted) = ports.iter().find(|p| int(p, &["port"]) == Some(i64::from(port))) else {
        return Err(format!("service \"{name}\" has no port {port}"));
    };
    if text(&service, &["spec", "type"]) == "ExternalName" {
        return Ok(format!("{}:{port}", text(&service, &["spec", "externalName"])));
    }
    listed(snapshot, namespace, name, wanted)
        .ok_or_else(|| format!("no endpoints available for service \"{name}\""))
}

fn parsed(record: &Arc<Record>) -> Option<Value> {
    storage::parse(record).ok()
}

/// A ready endpoint that somebody wrote down for a Service.
fn listed(snapshot: &Snapshot, namespace: &str, name: &str, wanted: &Value) -> Option<String> {
    let is_wanted = |p: &&Value| text(p, &["name"]) == text(wanted, &["name"]);
    let found = |ports: &[Value]| ports.iter().find(is_wanted).and_then(|p| int(p, &["port"]));
    let range = storage::range(&builtin::ENDPOINT_SLICE.id, namespace);
    for slice in snapshot.range(&range, None).filter_map(parsed) {
        if text(&slice, &["metadata", "labels", "kubernetes.io/service-name"]) != name {
            continue;
        }
        let ready = |e: &&Value| {
            at(e, &["conditions", "ready"]).is_none_or(Value::is_null) || flag(e, &["conditions", "ready"])
        };
        let address =
            list(&slice, &["endpoints"]).iter().find(ready).and_then(|e| list(e, &["addresses"]).first());
        if let (Some(address), Some(port)) =
            (address.and_then(Value::as_str), found(list(&slice, &["ports"])))
        {
            return Some(placed(address, port));
        }
    }
    let endpoints = snapshot.get(&storage::key(&builtin::ENDPOINTS.id, namespace, name));
    let endpoints = endpoints.as_ref().and_then(parsed)?;
    list(&endpoints, &["subsets"]).iter().find_map(|subset| {
        let address = list(subset, &["addresses"]).first().map(|a| text(a, &["ip"]))?;
        Some(placed(address, found(list(subset, &["ports"]))?))
    })
}

fn placed(address: &str, port: i64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}
