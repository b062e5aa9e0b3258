//! Fetching what the tree of an object is made from. First the objects themselves; events, nodes and leases only where
//! something is amiss. What may not be read is left out, never guessed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use strata_client::client::Client;
use strata_client::error::ClientError;
use strata_client::options::{GetOptions, ListOptions};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{Lookup, Registry, ResourceType, Verb, builtin};

use super::{Facts, Line, explain};

/// Objects a page of a list holds.
const PAGE: u64 = 500;
/// Most nodes that are asked about.
const MAX_NODES: usize = 64;
/// Where controllers keep their leases.
const LEASES: &str = "kube-system";

/// The tree of an object, as things are now.
pub async fn tree(
    client: &Client,
    registry: &Registry,
    root: &Value,
    now: Timestamp,
) -> Result<Line, ClientError> {
    let mut facts = Facts { objects: dependents(client, registry, root).await?, ..Facts::default() };
    let line = explain(root, &facts, now);
    if line.settled() {
        return Ok(line);
    }
    let namespace = root["metadata"]["namespace"].as_str().unwrap_or_default();
    facts.events = optional(list(client, registry, "events", namespace, "").await)?.unwrap_or_default();
    facts.leases = optional(list(client, registry, "leases.coordination.k8s.io", LEASES, "").await)?;
    facts.nodes = nodes(client, registry, root, &facts.objects).await?;
    Ok(explain(root, &facts, now))
}

/// The tree of everything that an object owns, of whatever type, as things are now.
pub async fn owned(
    client: &Client,
    registry: &Registry,
    root: &Value,
    now: Timestamp,
) -> Result<Line, ClientError> {
    let namespace = root["metadata"]["namespace"].as_str().unwrap_or_default();
    let mut facts = Facts::default();
    for resource in owned_types(registry) {
        let namespace = if resource.is_namespaced() { namespace } else { "" };
        facts.objects.extend(optional(pages(client, &resource, namespace, "").await)?.unwrap_or_default());
    }
    Ok(explain(root, &facts, now))
}

/// The types whose objects may be owned by another: all that can be listed, in one version each; but not events, which
/// are about objects and belong to none.
pub fn owned_types(registry: &Registry) -> Vec<Arc<ResourceType>> {
    let mut types: Vec<Arc<ResourceType>> = Vec::new();
    for one in registry.types() {
        let known = types.iter().any(|t| t.id == one.id);
        let listed = one.verbs.contains(&Verb::List) && one.verbs.contains(&Verb::Watch);
        if listed && !known && one.id.resource != builtin::EVENT.id.resource {
            types.push(Arc::clone(one));
        }
    }
    types
}

/// The types whose objects may be parts of another: namespaced, with a status of their own.
pub fn part_types(registry: &Registry) -> Vec<Arc<ResourceType>> {
    registry.types().iter().filter(|t| t.is_namespaced() && t.has_status()).cloned().collect()
}

async fn dependents(client: &Client, registry: &Registry, root: &Value) -> Result<Vec<Value>, ClientError> {
    let namespace = root["metadata"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() || root["spec"]["containers"].is_array() {
        return Ok(Vec::new());
    }
    let labels = root["spec"]["selector"]["matchLabels"].as_object();
    let pairs = labels.into_iter().flatten().filter_map(|(k, v)| Some(format!("{k}={}", v.as_str()?)));
    let selector = pairs.collect::<Vec<_>>().join(",");
    let mut all = Vec::new();
    for resource in part_types(registry) {
        all.extend(pages(client, &resource, namespace, &selector).await?);
    }
    Ok(all)
}

async fn pages(
    client: &Client,
    resource: &ResourceType,
    namespace: &str,
    selector: &str,
) -> Result<Vec<Value>, ClientError> {
    let mut options =
        ListOptions { label_selector: selector.to_owned(), limit: PAGE, ..ListOptions::default() };
    let mut all = Vec::new();
    loop {
        let page = client.list(resource, namespace, &options).await?;
        for object in &page.items {
            all.push(value(client, resource, object)?);
        }
        if page.continue_token.is_empty() {
            return Ok(all);
        }
        options.continue_token = page.continue_token;
    }
}

fn value(client: &Client, resource: &ResourceType, object: &Object) -> Result<Value, ClientError> {
    let decode = |source| ClientError::Decode { server: client.server().to_owned(), source };
    let mut value = object.to_value().map_err(decode)?;
    if value["kind"].is_null() {
        value["kind"] = Value::String(resource.kind.to_string());
        value["apiVersion"] = Value::String(resource.api_version());
    }
    Ok(value)
}

async fn list(
    client: &Client,
    registry: &Registry,
    word: &str,
    namespace: &str,
    selector: &str,
) -> Result<Vec<Value>, ClientError> {
    match registry.lookup(word) {
        Lookup::One(resource) => pages(client, &resource, namespace, selector).await,
        Lookup::None(_) => Ok(Vec::new()),
    }
}

/// What the server refuses to show is not known; a lost connection is an error.
fn optional<T>(outcome: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(ClientError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The nodes that the pods are on, as far as there are; `None` where nodes may not be read.
async fn nodes(
    client: &Client,
    registry: &Registry,
    root: &Value,
    objects: &[Value],
) -> Result<Option<Vec<Value>>, ClientError> {
    let Lookup::One(resource) = registry.lookup("nodes") else { return Ok(None) };
    let placed = objects.iter().chain([root]).filter_map(|o| o["spec"]["nodeName"].as_str());
    let names: BTreeSet<&str> = placed.filter(|name| !name.is_empty()).collect();
    if names.len() > MAX_NODES {
        return optional(pages(client, &resource, "", "").await);
    }
    let mut found = Vec::new();
    for name in names {
        match client.get(&resource, &ObjectKey::new("", name), &GetOptions::default()).await {
            Ok(node) => found.push(value(client, &resource, &node)?),
            Err(error) if error.is(strata_model::status::Reason::NotFound) => {}
            Err(ClientError::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(found))
}
