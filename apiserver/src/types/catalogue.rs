//! Everything that is served: each type's descriptor with its rules. The one place where the two meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use strata_model::resource::{GroupResource, Registry, ResourceType, builtin};

use super::review::{REVIEWS, Review};
use super::rules::{Conversion, PLAIN, Rules};
use super::{
    autoscaler, claim, config, cron_job, daemon_set, deployment, event, job, lease, namespace, node, pod,
    policy, print, quota, replica_set, replication_controller, stateful_set,
};
use crate::value;

/// A type as it is served.
pub struct Served {
    /// What it is called and what may be asked of it.
    pub resource: ResourceType,
    /// What the server knows of it.
    pub rules: &'static Rules,
    /// How it is stored, where it is only another form of stored objects.
    pub form: Option<Form>,
}

/// A form of objects that are stored in another.
pub struct Form {
    /// The type as it is stored.
    pub stored: Arc<Served>,
    /// How one becomes the other.
    pub conversion: &'static Conversion,
}

impl Served {
    /// The type as it is stored: itself, or what it is a form of.
    pub fn stored(self: &Arc<Self>) -> &Arc<Self> {
        self.form.as_ref().map_or(self, |form| &form.stored)
    }

    /// Brings an object of this type into the form in which it is stored.
    pub fn store(&self, object: &mut Value) {
        if let Some(form) = &self.form {
            (form.conversion.store)(object);
            name(object, &form.stored.resource);
        }
    }

    /// Brings a stored object into the form of this type.
    pub fn show(&self, object: &mut Value) {
        if let Some(form) = &self.form {
            (form.conversion.show)(object);
            name(object, &self.resource);
        }
    }
}

fn name(object: &mut Value, resource: &ResourceType) {
    let members = value::object(object);
    members.insert("apiVersion".to_owned(), resource.api_version().into());
    members.insert("kind".to_owned(), resource.kind.to_string().into());
}

/// Which rules are whose. A type that is not here is plain.
static RULES: &[(&ResourceType, &Rules)] = &[
    (&builtin::CONFIG_MAP, &config::CONFIG_MAP),
    (&builtin::EVENT, &event::EVENT),
    (&builtin::NAMESPACE, &namespace::NAMESPACE),
    (&builtin::NODE, &node::NODE),
    (&builtin::POD, &pod::POD),
    (&builtin::SECRET, &config::SECRET),
    (&builtin::SERVICE_ACCOUNT, &config::SERVICE_ACCOUNT),
    (&builtin::DEPLOYMENT, &deployment::DEPLOYMENT),
    (&builtin::REPLICA_SET, &replica_set::REPLICA_SET),
    (&builtin::LEASE, &lease::LEASE),
    (&builtin::STATEFUL_SET, &stateful_set::STATEFUL_SET),
    (&builtin::DAEMON_SET, &daemon_set::DAEMON_SET),
    (&builtin::REPLICATION_CONTROLLER, &replication_controller::REPLICATION_CONTROLLER),
    (&builtin::POD_TEMPLATE, &replication_controller::POD_TEMPLATE),
    (&builtin::CONTROLLER_REVISION, &replication_controller::CONTROLLER_REVISION),
    (&builtin::JOB, &job::JOB),
    (&builtin::CRON_JOB, &cron_job::CRON_JOB),
    (&builtin::POD_DISRUPTION_BUDGET, &policy::DISRUPTION_BUDGET),
    (&builtin::PRIORITY_CLASS, &policy::PRIORITY_CLASS),
    (&builtin::RESOURCE_QUOTA, &quota::RESOURCE_QUOTA),
    (&builtin::LIMIT_RANGE, &quota::LIMIT_RANGE),
    (&builtin::PERSISTENT_VOLUME_CLAIM, &claim::CLAIM),
    (&builtin::PERSISTENT_VOLUME, &claim::VOLUME),
    (&builtin::HORIZONTAL_POD_AUTOSCALER, &autoscaler::AUTOSCALER),
];

/// Which types are only another form of which others.
static FORMS: &[(&ResourceType, &ResourceType, &Conversion)] = &[
    (&builtin::EVENTS_EVENT, &builtin::EVENT, &event::EVENTS),
    (&builtin::HORIZONTAL_POD_AUTOSCALER_V1, &builtin::HORIZONTAL_POD_AUTOSCALER, &autoscaler::V1),
];

static PLAIN_RULES: Rules =
    Rules { row: |object, now| vec![print::name(object), print::created(object, now)], ..PLAIN };

/// All served types, found by their path.
pub struct Catalogue {
    served: Vec<Arc<Served>>,
    by_path: BTreeMap<(String, String, String), Arc<Served>>,
    groups: Vec<(String, Vec<String>)>,
}

impl Catalogue {
    /// The catalogue of a registry's types.
    pub fn new(registry: &Registry) -> Self {
        let served: Vec<Arc<Served>> = registry.types().iter().map(|resource| serve(resource)).collect();
        let path = |s: &Served| {
            let r = &s.resource;
            (r.id.group.to_string(), r.version.to_string(), r.id.resource.to_string())
        };
        let by_path = served.iter().map(|s| (path(s), Arc::clone(s))).collect();
        let groups = groups(&served);
        Self { served, by_path, groups }
    }

    /// The type at a path.
    pub fn find(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<Served>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }

    /// The type of an identity, in its first version.
    pub fn by_id(&self, id: &GroupResource) -> Option<&Arc<Served>> {
        self.served.iter().find(|s| s.resource.id == *id)
    }

    /// All types, in the order of the registry.
    pub fn all(&self) -> &[Arc<Served>] {
        &self.served
    }

    /// The review at a path.
    pub fn review(&self, group: &str, version: &str, resource: &str) -> Option<&'static Review> {
        REVIEWS.iter().find(|r| r.group == group && r.version == version && r.resource == resource)
    }

    /// Groups and their versions, core first, in the order that clients prefer.
    pub fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }

    /// Whether a group is served.
    pub fn has_group(&self, group: &str) -> bool {
        self.groups.iter().any(|(known, _)| known == group)
    }
}

fn serve(resource: &ResourceType) -> Arc<Served> {
    let form =
        FORMS.iter().find(|(shown, _, _)| shown.id == resource.id && shown.version == resource.version);
    let form = form.map(|(_, stored, conversion)| Form { stored: serve(stored), conversion });
    let rules = form.as_ref().map_or_else(|| rules_of(&resource.id), |form| form.conversion.rules);
    Arc::new(Served { resource: resource.clone(), rules, form })
}

fn groups(served: &[Arc<Served>]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let own = served.iter().map(|s| (s.resource.id.group.to_string(), s.resource.version.to_string()));
    let reviews = REVIEWS.iter().map(|r| (r.group.to_owned(), r.version.to_owned()));
    for (group, version) in own.chain(reviews) {
        match groups.iter_mut().find(|(g, _)| *g == group) {
            Some((_, versions)) if versions.contains(&version) => {}
            Some((_, versions)) => versions.push(version),
            None => groups.push((group, vec![version])),
        }
    }
    groups.sort_by_key(|(group, _)| rank(group));
    groups
}

/// The place of a group in discovery; it decides which group kubectl prefers for a short name.
fn rank(group: &str) -> usize {
    const ORDER: &[&str] = &[
        "",
        "apiregistration.k8s.io",
        "apps",
        "events.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "discovery.k8s.io",
        "flowcontrol.apiserver.k8s.io",
    ];
    ORDER.iter().position(|g| *g == group).unwrap_or(ORDER.len())
}

fn rules_of(id: &GroupResource) -> &'static Rules {
    RULES.iter().find(|(resource, _)| resource.id == *id).map_or(&PLAIN_RULES, |(_, rules)| rules)
}
