//! What a ReleaseTrack decides: a build for each version that upstream has, by the digest of its sources, and a
//! publication of the latest build of each. Pure: what upstream holds comes in.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strata_model::names;
use strata_model::object::Object;
use strata_plan::controller::{Action, Plan, Propagation, Target};
use strata_plan::ownership::controller_reference;
use strata_plan::status::difference;
use strata_plan::typed::Typed;

use crate::api::{self, ImageBuild, Publication, ReleaseTrack, TRACK};

/// Between two looks at upstream, which tells nobody of changes.
pub const EVERY: SignedDuration = SignedDuration::from_secs(1);

/// A track, what upstream has, and what there is.
#[derive(Debug)]
pub struct Observed {
    /// The track.
    pub track: Typed<ReleaseTrack>,
    /// Versions and the digests of their sources, or why they are not known.
    pub upstream: Result<BTreeMap<String, String>, String>,
    /// Its builds.
    pub builds: Vec<Typed<ImageBuild>>,
    /// Its publications.
    pub publications: Vec<Typed<Publication>>,
}

/// Decides.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan::settled();
    let track = observed.track.object();
    if track.meta().is_deleting() {
        return plan;
    }
    plan.next = plan.next.or_at(now + EVERY);
    let versions = match &observed.upstream {
        Ok(versions) => versions,
        Err(why) => {
            // What is unknown is not gone: everything stays as it is.
            plan.note("UpstreamUnknown", why.clone());
            let status = observed.track.status.clone().unwrap_or_default();
            report(observed, (status.versions, status.published), Some(why), now, &mut plan);
            return plan;
        }
    };
    let (mut wanted_builds, mut wanted_publications) = (BTreeSet::new(), BTreeSet::new());
    let mut published = 0;
    for (version, source) in versions {
        let build = format!("{}-{version}-{}", track.meta().name, source.get(..12).unwrap_or(source));
        if let Some(fault) = names::dns_subdomain(&build) {
            plan.note("UnusableVersion", format!("{version}: {fault}"));
            continue;
        }
        let publication = format!("{}-{version}", track.meta().name);
        let digest = digest_of(observed, &build);
        if observed.builds.iter().all(|b| b.object().meta().name != build) {
            create_build(observed, &build, version, source, &mut plan);
        }
        if let Some(digest) = &digest {
            published += i64::from(publish(observed, &publication, version, digest, &mut plan));
        } else {
            // Until the new build is there, the one that is published stays.
            wanted_builds.extend(names_of_builds(observed, version));
        }
        wanted_builds.insert(build);
        wanted_publications.insert(publication);
    }
    for build in &observed.builds {
        delete(&api::builds(), build.object(), &wanted_builds, &mut plan);
    }
    for publication in &observed.publications {
        delete(&api::publications(), publication.object(), &wanted_publications, &mut plan);
    }
    report(observed, (versions.len() as i64, published), None, now, &mut plan);
    plan
}

/// The digest of what a build has built.
fn digest_of(observed: &Observed, build: &str) -> Option<String> {
    let build = observed.builds.iter().find(|b| b.object().meta().name == build)?;
    let digest = build.status.as_ref()?.digest.clone();
    (!digest.is_empty()).then_some(digest)
}

fn names_of_builds(observed: &Observed, version: &str) -> Vec<String> {
    let builds = observed.builds.iter().filter(|build| build.spec.version == version);
    builds.map(|build| build.object().meta().name.clone()).collect()
}

fn metadata(observed: &Observed, name: &str) -> Value {
    let track = observed.track.object();
    json!({"name": name, "namespace": track.meta().namespace, "labels": {TRACK: track.meta().name},
        "ownerReferences": [controller_reference(&api::tracks(), track)]})
}

fn create_build(observed: &Observed, name: &str, version: &str, source: &str, plan: &mut Plan) {
    let spec = &observed.track.spec;
    let resource = api::builds();
    let object = json!({
        "apiVersion": resource.api_version(), "kind": resource.kind, "metadata": metadata(observed, name),
        "spec": {"image": spec.image, "version": version, "source": format!("{}/{version}", spec.upstream),
            "sourceDigest": source},
    });
    plan.actions.push(Action::Create { resource, object });
}

/// Has a digest published under a version. Answers whether it is.
fn publish(observed: &Observed, name: &str, version: &str, digest: &str, plan: &mut Plan) -> bool {
    let resource = api::publications();
    let Some(present) = observed.publications.iter().find(|p| p.object().meta().name == name) else {
        let object = json!({
            "apiVersion": resource.api_version(), "kind": resource.kind, "metadata": metadata(observed, name),
            "spec": {"image": observed.track.spec.image, "version": version, "digest": digest},
        });
        plan.actions.push(Action::Create { resource, object });
        return false;
    };
    if present.spec.digest != digest {
        let target = Target::of(&resource, present.object());
        plan.actions.push(Action::Patch { target, patch: json!({"spec": {"digest": digest}}) });
        return false;
    }
    present.status.as_ref().is_some_and(|status| status.digest == digest)
}

fn delete(
    resource: &strata_model::resource::ResourceType,
    object: &Object,
    wanted: &BTreeSet<String>,
    plan: &mut Plan,
) {
    if !wanted.contains(&object.meta().name) && !object.meta().is_deleting() {
        plan.actions.push(Action::Delete {
            target: Target::of(resource, object),
            propagation: Propagation::Background,
            grace_seconds: None,
        });
    }
}

fn report(
    observed: &Observed,
    (versions, published): (i64, i64),
    unknown: Option<&str>,
    now: Timestamp,
    plan: &mut Plan,
) {
    let track = observed.track.object();
    let value = track.to_value().unwrap_or_default();
    let message = format!("{published} of {versions} versions are published");
    let conditions = match unknown {
        Some(why) => api::ready(&value, false, "UpstreamUnknown", why, now),
        None if published == versions => api::ready(&value, true, "Published", &message, now),
        None => api::ready(&value, false, "Building", &message, now),
    };
    let fields = json!({"versions": versions, "published": published,
        "observedGeneration": track.meta().generation, "conditions": conditions});
    if let Some(status) = difference(track, fields) {
        plan.actions.push(Action::Status { target: Target::of(&api::tracks(), track), status });
    }
}
