//! What an Entitlement decides: a delivery for each published version of its track, and none else. Free of any effect,
//! so it is a plain controller.

use jiff::Timestamp;
use serde_json::json;
use strata_model::object::{Object, ObjectKey};
use strata_plan::controller::{
    Action, Controller, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};
use strata_plan::ownership::controller_reference;
use strata_plan::status::difference;
use strata_plan::typed::Typed;

use crate::api::{self, Delivery, Entitlement, Publication, TRACK};

/// The controller.
pub struct Entitlements;

/// An entitlement, what its track has published, and what is delivered.
#[derive(Debug)]
pub struct Observed {
    entitlement: Typed<Entitlement>,
    publications: Vec<Typed<Publication>>,
    deliveries: Vec<Typed<Delivery>>,
}

/// The keys of a publication: every entitlement to its track.
fn entitled(view: &dyn View, publication: &Object) -> Vec<Key> {
    let Some(track) = publication.meta().label(TRACK) else { return Vec::new() };
    let all = view.list(&api::entitlements().id, &publication.meta().namespace);
    let entitlements = all.into_iter().filter_map(|object| Typed::<Entitlement>::new(object).ok());
    let to_track = entitlements.filter(|entitlement| entitlement.spec.track == track);
    to_track.map(|entitlement| Key::new(&api::entitlements(), entitlement.object().key())).collect()
}

/// The key of a delivery: the entitlement that owns it.
fn owner(_: &dyn View, delivery: &Object) -> Vec<Key> {
    let meta = delivery.meta();
    let owner = meta.controller().filter(|owner| owner.kind == api::entitlements().kind);
    let key = owner.map(|owner| ObjectKey::new(meta.namespace.clone(), owner.name.clone()));
    key.map(|key| Key::new(&api::entitlements(), key)).into_iter().collect()
}

impl Controller for Entitlements {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "entitlement"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&api::entitlements(), MapTo::Itself),
            Watched::all(&api::publications(), MapTo::With(entitled)),
            Watched::all(&api::deliveries(), MapTo::With(owner)),
        ]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        let Some(object) = view.get(&key.resource, &key.object) else { return Ok(None) };
        let deliveries = view.owned_by(&api::deliveries().id, &object.meta().uid);
        let entitlement: Typed<Entitlement> = Typed::new(object).map_err(ObserveError::at(key))?;
        let mut publications = view.list(&api::publications().id, &key.object.namespace);
        publications
            .retain(|p| p.meta().label(TRACK) == Some(&entitlement.spec.track) && !p.meta().is_deleting());
        Ok(Some(Observed {
            publications: Typed::all(publications).map_err(ObserveError::at(key))?,
            deliveries: Typed::all(deliveries).map_err(ObserveError::at(key))?,
            entitlement,
        }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let object = observed.entitlement.object();
        if object.meta().is_deleting() {
            return plan;
        }
        let (mut published, mut delivered, mut wanted) = (0, 0, Vec::new());
        for publication in &observed.publications {
            let name = format!("{}-{}", object.meta().name, publication.spec.version);
            wanted.push(name.clone());
            // What is delivered is what is published, not what is to be.
            let digest = publication.status.as_ref().map(|s| s.digest.as_str()).unwrap_or_default();
            if !digest.is_empty() {
                published += 1;
                delivered += i64::from(deliver(observed, publication, &name, digest, &mut plan));
            }
        }
        for delivery in &observed.deliveries {
            let meta = delivery.object().meta();
            if !wanted.contains(&meta.name) && !meta.is_deleting() {
                plan.actions.push(Action::Delete {
                    target: Target::of(&api::deliveries(), delivery.object()),
                    propagation: Propagation::Background,
                    grace_seconds: None,
                });
            }
        }
        let message = format!("{delivered} of {published} published versions are delivered");
        let value = object.to_value().unwrap_or_default();
        let reason = if delivered == published { "Delivered" } else { "Delivering" };
        let fields = json!({"published": published, "delivered": delivered,
            "observedGeneration": object.meta().generation,
            "conditions": api::ready(&value, delivered == published, reason, &message, now)});
        if let Some(status) = difference(object, fields) {
            plan.actions.push(Action::Status { target: Target::of(&api::entitlements(), object), status });
        }
        plan
    }
}

/// Has a digest delivered under a version. Answers whether it is.
fn deliver(
    observed: &Observed,
    publication: &Publication,
    name: &str,
    digest: &str,
    plan: &mut Plan,
) -> bool {
    let (resource, entitlement) = (api::deliveries(), observed.entitlement.object());
    let spec = json!({"customer": observed.entitlement.spec.customer, "image": publication.spec.image,
        "version": publication.spec.version, "digest": digest});
    let Some(present) = observed.deliveries.iter().find(|d| d.object().meta().name == name) else {
        let object = json!({
            "apiVersion": resource.api_version(), "kind": resource.kind, "spec": spec,
            "metadata": {"name": name, "namespace": entitlement.meta().namespace,
                "ownerReferences": [controller_reference(&api::entitlements(), entitlement)]},
        });
        plan.actions.push(Action::Create { resource, object });
        return false;
    };
    let target = Target::of(&resource, present.object());
    if present.spec.customer != observed.entitlement.spec.customer
        || present.spec.image != publication.spec.image
    {
        // Elsewhere: it is taken away there first, and made anew.
        if !present.object().meta().is_deleting() {
            let propagation = Propagation::Background;
            plan.actions.push(Action::Delete { target, propagation, grace_seconds: None });
        }
        return false;
    }
    if present.spec.digest != digest {
        plan.actions.push(Action::Patch { target, patch: json!({"spec": {"digest": digest}}) });
        return false;
    }
    present.status.as_ref().is_some_and(|status| status.digest == digest)
}
