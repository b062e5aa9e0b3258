//! What is served, as clients discover it: group by group, or all at once. Made once of each catalogue.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use strata_model::names::fnv32;
use strata_model::resource::{ResourceType, Verb};

use super::negotiate::{Offer, Shape, Wanted, accept};
use super::respond::{self, Answer};
use crate::refusal::{Outcome, no_such_place};
use crate::types::catalogue::Catalogue;
use crate::types::review::REVIEWS;

fn verbs(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|v| v.as_str()).collect()
}

/// `/api`.
fn core_versions(host: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    })
}

fn group(name: &str, versions: &[String]) -> Value {
    let entry = |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let entries: Vec<Value> = versions.iter().map(entry).collect();
    json!({"name": name, "versions": entries, "preferredVersion": entries.first()})
}

/// `/apis`.
fn group_list(catalogue: &Catalogue) -> Value {
    let groups: Vec<Value> = catalogue
        .groups()
        .iter()
        .filter(|(g, _)| !g.is_empty())
        .map(|(g, versions)| group(g, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`; `None` where there is no such group.
pub fn one_group(catalogue: &Catalogue, name: &str) -> Option<Value> {
    let groups = catalogue.groups();
    let (_, versions) = groups.iter().find(|(g, _)| g == name && !g.is_empty())?;
    let mut found = group(name, versions);
    found["kind"] = json!("APIGroup");
    found["apiVersion"] = json!("v1");
    Some(found)
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub fn resources(catalogue: &Catalogue, group: &str, version: &str) -> Outcome<Value> {
    let mut found: Vec<Value> = Vec::new();
    for served in catalogue.all() {
        let resource = &served.resource;
        if resource.id.group == group && resource.version == version {
            found.push(resource_entry(resource));
            found.extend(resource.subresources.iter().map(|s| part_entry(resource, s)));
        }
    }
    for review in REVIEWS.iter().filter(|r| r.group == group && r.version == version) {
        found.push(
            json!({"name": review.resource, "singularName": review.singular, "namespaced": review.namespaced,
            "kind": review.kind, "verbs": ["create"]}),
        );
    }
    if found.is_empty() {
        return Err(no_such_place());
    }
    found.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": found}),
    )
}

fn resource_entry(resource: &ResourceType) -> Value {
    let mut entry = json!({
        "name": resource.id.resource,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced(),
        "kind": resource.kind,
        "verbs": verbs(resource.verbs),
        "storageVersionHash": storage_hash(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    entry
}

fn part_entry(resource: &ResourceType, part: &strata_model::resource::Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.id.resource, part.name),
        "singularName": "",
        "namespaced": resource.is_namespaced(),
        "kind": resource.kind,
        "verbs": verbs(part.verbs),
    });
    if let Some((group, version, kind)) = &part.body {
        entry["kind"] = json!(kind);
        if *group != resource.id.group || *version != resource.version {
            entry["group"] = json!(group);
            entry["version"] = json!(version);
        }
    }
    entry
}

fn storage_hash(resource: &ResourceType) -> String {
    let text = format!("{}/{}/{}", resource.id.group, resource.version, resource.kind);
    let (first, second) = (fnv32(text.as_bytes()), fnv32(resource.id.resource.as_bytes()));
    STANDARD.encode([first.to_be_bytes(), second.to_be_bytes()].concat())
}

/// All resources of the groups that `wanted` picks, in the aggregated form.
fn aggregated(catalogue: &Catalogue, api: &str, wanted: impl Fn(&str) -> bool) -> Value {
    let groups = catalogue.groups();
    let items: Vec<Value> = groups
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|v| json!({"version": v, "freshness": "Current", "resources": aggregated_resources(catalogue, name, v)}))
                .collect();
            let metadata = if name.is_empty() {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": name, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{api}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resources(catalogue: &Catalogue, group: &str, version: &str) -> Vec<Value> {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut found = Vec::new();
    for served in
        catalogue.all().iter().filter(|s| s.resource.id.group == group && s.resource.version == version)
    {
        let resource = &served.resource;
        let mut entry = json!({
            "resource": resource.id.resource,
            "responseKind": kind("", "", &resource.kind),
            "scope": if resource.is_namespaced() { "Namespaced" } else { "Cluster" },
            "singularResource": resource.singular,
            "verbs": verbs(resource.verbs),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        let parts: Vec<Value> = resource
            .subresources
            .iter()
            .map(|part| {
                let response = match &part.body {
                    Some((g, v, k)) if *g != resource.id.group || *v != resource.version => kind(g, v, k),
                    Some((_, _, k)) => kind("", "", k),
                    None => kind("", "", &resource.kind),
                };
                json!({"subresource": part.name, "responseKind": response, "verbs": verbs(part.verbs)})
            })
            .collect();
        if !parts.is_empty() {
            entry["subresources"] = parts.into();
        }
        found.push(entry);
    }
    for review in REVIEWS.iter().filter(|r| r.group == group && r.version == version) {
        let scope = if review.namespaced { "Namespaced" } else { "Cluster" };
        found.push(
            json!({"resource": review.resource, "responseKind": kind("", "", review.kind), "scope": scope,
            "singularResource": review.singular, "verbs": ["create"]}),
        );
    }
    found
}

/// Answers `/api` (`core`) or `/apis`.
pub fn root(catalogue: &Catalogue, core: bool, headers: &HeaderMap) -> Outcome<Answer> {
    let header = |name| headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok()).unwrap_or_default();
    let wanted = accept(header(http::header::ACCEPT), Offer::Discovery)?;
    let Shape::Discovery(version) = wanted.shape else {
        let host = header(http::header::HOST);
        let plain = if core { core_versions(host) } else { group_list(catalogue) };
        let mut answer = respond::value(StatusCode::OK, &plain, wanted)?;
        answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        return Ok(answer);
    };
    let cell = &catalogue.kept.discovery[usize::from(core) * 2 + usize::from(version != "v2")];
    let (text, tag) = cell.get_or_init(|| {
        let text = aggregated(catalogue, version, |name| name.is_empty() == core).to_string();
        let tag = format!("\"{:08X}{:08X}\"", fnv32(text.as_bytes()), text.len());
        (text, tag)
    });
    let unchanged = header(IF_NONE_MATCH) == tag;
    let media = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    let media = HeaderValue::from_str(&media).unwrap_or(HeaderValue::from_static("application/json"));
    let mut answer = if unchanged {
        respond::bytes(StatusCode::NOT_MODIFIED, media, "")
    } else {
        respond::bytes(StatusCode::OK, media, text.clone())
    };
    let headers = answer.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    Ok(answer)
}

/// A value in the form the client accepts.
pub fn answer(value: &Value, accepted: &str) -> Outcome<Answer> {
    let wanted: Wanted = accept(accepted, Offer::Whole)?;
    respond::value(StatusCode::OK, value, wanted)
}
