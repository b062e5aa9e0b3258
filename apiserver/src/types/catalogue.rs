//! Everything that is served: each type's descriptor with its rules. The one place where the two meet. A catalogue never
//! changes; where custom types come and go, a new one takes its place.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::resource::{GroupResource, Registry, ResourceType, builtin};

use super::review::{REVIEWS, Review};
use super::rules::{self, Conversion, Faults, PLAIN, Rules};
use super::{
    admission, api_services, autoscaler, certificates, claim, config, cron_job, custom_object, daemon_set,
    definition, deployment, endpoints, event, ingress, job, lease, namespace, node, pod, policy, print,
    quota, rbac, replica_set, replication_controller, service, stateful_set, storage_class,
};
use crate::custom;
use crate::custom::definition::{Custom, Names};
use crate::openapi::documents::Documents;
use crate::value;

/// A type as it is served.
pub struct Served {
    /// What it is called and what may be asked of it.
    pub resource: ResourceType,
    /// What the server knows of it.
    pub rules: &'static Rules,
    /// How it is stored, where it is only another form of stored objects.
    pub form: Option<Form>,
    /// What is known of it, where it is a custom type.
    pub custom: Option<Custom>,
}

/// A form of objects that are stored in another.
pub struct Form {
    /// The type as it is stored.
    pub stored: Arc<Served>,
    /// How one becomes the other.
    pub conversion: &'static Conversion,
}

impl Served {
    /// A custom type under its accepted names.
    pub fn of_custom(custom: Custom, names: &Names) -> Self {
        let rules = if custom.version().has_status {
            &custom_object::WITH_STATUS
        } else {
            &custom_object::PLAIN_CUSTOM
        };
        Self { resource: custom.describe(names), rules, form: None, custom: Some(custom) }
    }

    /// The kind of its lists.
    pub fn list_kind(&self) -> String {
        match &self.custom {
            Some(custom) => custom.definition.names.list_kind.clone(),
            None => format!("{}List", self.resource.kind),
        }
    }

    /// Fills what a client left out.
    pub fn defaults(&self, object: &mut Value) {
        match &self.custom {
            Some(custom) => custom::default::fill(custom.schema(), object),
            None => (self.rules.defaults)(object),
        }
    }

    /// Faults of a new object, or of a change from an old one.
    pub fn validate(&self, new: &Value, old: Option<&Value>, faults: &mut Faults) {
        let Some(custom) = &self.custom else {
            (self.rules.validate)(new, faults);
            if let Some(old) = old {
                (self.rules.validate_update)(new, old, faults);
            }
            return;
        };
        let before = faults.len();
        custom::validate::validate(custom.schema(), new, old, faults);
        custom_object::scale(custom, new, faults);
        if faults.len() == before {
            custom::cel::check::check(custom.schema(), custom.rules(), new, old, faults);
        } else if !custom.rules().is_empty() {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            faults.push(FieldError::invalid(FieldPath::new("<nil>"), Value::Null, detail));
        }
    }

    /// Sentences that every request to the type is answered with.
    pub fn notice(&self) -> Option<&str> {
        self.custom.as_ref().and_then(|custom| custom.version().warning.as_deref())
    }

    /// How its Table describes its columns.
    pub fn columns(&self) -> Vec<Value> {
        match &self.custom {
            Some(custom) => {
                let name = std::iter::once(rules::NAME.definition());
                name.chain(custom.columns().iter().map(|column| column.definition())).collect()
            }
            None => self.rules.columns.iter().map(rules::Column::definition).collect(),
        }
    }

    /// The cells of an object's row, one a column.
    pub fn row(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.custom {
            Some(custom) => {
                let name = std::iter::once(print::name(object));
                name.chain(custom.columns().iter().map(|column| column.cell(object, now))).collect()
            }
            None => (self.rules.row)(object, now),
        }
    }

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
    (&builtin::ENDPOINTS, &endpoints::ENDPOINTS),
    (&builtin::ENDPOINT_SLICE, &endpoints::ENDPOINT_SLICE),
    (&builtin::INGRESS, &ingress::INGRESS),
    (&builtin::INGRESS_CLASS, &ingress::INGRESS_CLASS),
    (&builtin::NETWORK_POLICY, &ingress::NETWORK_POLICY),
    (&builtin::ROLE, &rbac::ROLE),
    (&builtin::CLUSTER_ROLE, &rbac::CLUSTER_ROLE),
    (&builtin::ROLE_BINDING, &rbac::ROLE_BINDING),
    (&builtin::CLUSTER_ROLE_BINDING, &rbac::CLUSTER_ROLE_BINDING),
    (&builtin::CERTIFICATE_SIGNING_REQUEST, &certificates::CERTIFICATE_REQUEST),
    (&builtin::STORAGE_CLASS, &storage_class::STORAGE_CLASS),
    (&builtin::VOLUME_ATTACHMENT, &storage_class::VOLUME_ATTACHMENT),
    (&builtin::CSI_DRIVER, &storage_class::CSI_DRIVER),
    (&builtin::CSI_NODE, &storage_class::CSI_NODE),
    (&builtin::CSI_STORAGE_CAPACITY, &storage_class::CSI_STORAGE_CAPACITY),
    (&builtin::RUNTIME_CLASS, &storage_class::RUNTIME_CLASS),
    (&builtin::VALIDATING_WEBHOOK_CONFIGURATION, &admission::VALIDATING_WEBHOOKS),
    (&builtin::MUTATING_WEBHOOK_CONFIGURATION, &admission::MUTATING_WEBHOOKS),
    (&builtin::VALIDATING_ADMISSION_POLICY, &admission::ADMISSION_POLICY),
    (&builtin::VALIDATING_ADMISSION_POLICY_BINDING, &admission::ADMISSION_BINDING),
    (&builtin::API_SERVICE, &api_services::API_SERVICE),
    (&builtin::FLOW_SCHEMA, &api_services::FLOW_SCHEMA),
    (&builtin::PRIORITY_LEVEL_CONFIGURATION, &api_services::PRIORITY_LEVEL),
    (&builtin::SERVICE, &service::SERVICE),
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
    (&builtin::CUSTOM_RESOURCE_DEFINITION, &definition::DEFINITION),
];

/// How the types that are only another form of others become those.
static CONVERSIONS: &[(&ResourceType, &Conversion)] =
    &[(&builtin::EVENTS_EVENT, &event::EVENTS), (&builtin::HORIZONTAL_POD_AUTOSCALER_V1, &autoscaler::V1)];

static PLAIN_RULES: Rules =
    Rules { row: |object, now| vec![print::name(object), print::created(object, now)], ..PLAIN };

/// All served types, found by their path.
pub struct Catalogue {
    served: Vec<Arc<Served>>,
    by_path: BTreeMap<(String, String, String), Arc<Served>>,
    groups: Vec<(String, Vec<String>)>,
    /// What the facades make of the catalogue when first asked, and keep for as long as it is the valid one.
    pub kept: Kept,
}

/// Texts made of a catalogue.
#[derive(Default)]
pub struct Kept {
    /// Aggregated discovery of the core group and of all others, in both of its versions: text and tag.
    pub discovery: [OnceLock<(String, String)>; 4],
    /// OpenAPI documents.
    pub documents: OnceLock<Arc<Documents>>,
    /// Those of the catalogue before: what is the same in both is taken from there.
    before: OnceLock<Arc<Documents>>,
}

impl Kept {
    /// Takes over what an older catalogue has made.
    pub fn inherit(&self, older: &Self) {
        if let Some(documents) = older.documents.get().or_else(|| older.before.get()) {
            self.before.get_or_init(|| Arc::clone(documents));
        }
    }

    /// Documents of the catalogue before.
    pub fn before(&self) -> Option<&Documents> {
        self.before.get().map(AsRef::as_ref)
    }
}

impl Catalogue {
    /// The catalogue of a registry's types.
    pub fn new(registry: &Registry) -> Self {
        Self::of(registry.types().iter().map(|resource| serve(resource)).collect())
    }

    /// This catalogue's built-in types, and these custom ones. A custom type never hides a built-in one.
    #[must_use]
    pub fn with_custom(&self, custom: impl IntoIterator<Item = Arc<Served>>) -> Self {
        let built_in = self.served.iter().filter(|served| served.custom.is_none());
        let hidden = |served: &Arc<Served>| {
            let resource = &served.resource;
            let found = self.find(&resource.id.group, &resource.version, &resource.id.resource);
            found.is_some_and(|found| found.custom.is_none())
        };
        Self::of(built_in.cloned().chain(custom.into_iter().filter(|served| !hidden(served))).collect())
    }

    fn of(served: Vec<Arc<Served>>) -> Self {
        let path = |s: &Served| {
            let r = &s.resource;
            (r.id.group.to_string(), r.version.to_string(), r.id.resource.to_string())
        };
        let by_path = served.iter().map(|s| (path(s), Arc::clone(s))).collect();
        let groups = groups(&served);
        Self { served, by_path, groups, kept: Kept::default() }
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
    let same = |known: &ResourceType| known.id == resource.id && known.version == resource.version;
    let stored = builtin::FORMS.iter().find(|(form, _)| same(form)).map(|(_, stored)| *stored);
    let conversion = CONVERSIONS.iter().find(|(form, _)| same(form)).map(|(_, conversion)| *conversion);
    let form = stored.zip(conversion).map(|(stored, conversion)| Form { stored: serve(stored), conversion });
    let rules = form.as_ref().map_or_else(|| rules_of(&resource.id), |form| form.conversion.rules);
    Arc::new(Served { resource: resource.clone(), rules, form, custom: None })
}

fn groups(served: &[Arc<Served>]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let own = served.iter().map(|s| (s.resource.id.group.to_string(), s.resource.version.to_string()));
    let reviews = REVIEWS.iter().map(|r| (r.group.to_owned(), r.version.to_owned()));
    let mut places: HashMap<String, usize> = HashMap::new();
    for (group, version) in own.chain(reviews) {
        match places.get(&group).map(|at| &mut groups[*at].1) {
            Some(versions) if versions.contains(&version) => {}
            Some(versions) => versions.push(version),
            None => {
                places.insert(group.clone(), groups.len());
                groups.push((group, vec![version]));
            }
        }
    }
    // Of custom groups the newest version comes first; those of built-in groups stand in their order.
    let of_custom: std::collections::HashSet<&str> =
        served.iter().filter(|s| s.custom.is_some()).map(|s| &*s.resource.id.group).collect();
    for (_, versions) in groups.iter_mut().filter(|(group, _)| of_custom.contains(group.as_str())) {
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
    }
    groups.sort_by(|(a, _), (b, _)| {
        rank(a).cmp(&rank(b)).then_with(|| match rank(a) {
            LAST_RANK => a.cmp(b),
            _ => std::cmp::Ordering::Equal,
        })
    });
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
    ORDER.iter().position(|g| *g == group).unwrap_or(LAST_RANK)
}

/// The rank of groups that have no place of their own.
const LAST_RANK: usize = usize::MAX;

/// How new a version is, by its name: stable, beta, alpha, then all others.
fn priority(version: &str) -> (u8, u64, u64) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest[..end].parse().ok()?;
        match &rest[end..] {
            "" => Some((3, major, 0)),
            rest if rest.starts_with("beta") => Some((2, major, rest["beta".len()..].parse().ok()?)),
            rest if rest.starts_with("alpha") => Some((1, major, rest["alpha".len()..].parse().ok()?)),
            _ => None,
        }
    };
    parse().unwrap_or((0, 0, 0))
}

fn rules_of(id: &GroupResource) -> &'static Rules {
    RULES.iter().find(|(resource, _)| resource.id == *id).map_or(&PLAIN_RULES, |(_, rules)| rules)
}
