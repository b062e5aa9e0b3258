//! The built-in types that have a schema here, one line per type, and the lookup of their nodes. Knows nothing of how
//! they are served.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use k8s_openapi::api::admissionregistration::v1 as admission;
use k8s_openapi::api::authentication::v1 as authentication;
use k8s_openapi::api::authorization::v1 as authorization;
use k8s_openapi::api::autoscaling::{v1 as autoscaling, v2 as autoscaling2};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1 as events;
use k8s_openapi::api::flowcontrol::v1 as flow;
use k8s_openapi::api::networking::v1 as networking;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::api::rbac::v1 as rbac;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1 as storage;
use k8s_openapi::api::{apps::v1 as apps, batch::v1 as batch, core::v1 as core};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ListMeta, Status, WatchEvent};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use k8s_openapi::{ListableResource, Resource};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::build::{self, Library};
use super::node::Definition;

/// A built-in type: its coordinates and how its definitions are made.
pub struct BuiltIn {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version, such as `v1`.
    pub version: &'static str,
    /// Kind; for a list the kind of the list.
    pub kind: &'static str,
    /// The kind of a list's elements; `None` for what is not a list.
    pub item_kind: Option<&'static str>,
    generate: fn(&mut SchemaGenerator) -> String,
    definition: OnceLock<Arc<Definition>>,
}

/// One line per type. A type of the core group that is a form of every API (delete options, status, watch event) is
/// found under `meta.k8s.io/v1` as well.
static TYPES: [BuiltIn; 115] = [
    one::<core::ConfigMap>(),
    list::<core::ConfigMap>(),
    one::<core::Endpoints>(),
    list::<core::Endpoints>(),
    one::<core::Event>(),
    list::<core::Event>(),
    one::<core::LimitRange>(),
    list::<core::LimitRange>(),
    one::<core::Namespace>(),
    list::<core::Namespace>(),
    one::<core::Node>(),
    list::<core::Node>(),
    one::<core::PersistentVolume>(),
    list::<core::PersistentVolume>(),
    one::<core::PersistentVolumeClaim>(),
    list::<core::PersistentVolumeClaim>(),
    one::<core::Pod>(),
    list::<core::Pod>(),
    one::<core::PodTemplate>(),
    list::<core::PodTemplate>(),
    one::<core::ReplicationController>(),
    list::<core::ReplicationController>(),
    one::<core::ResourceQuota>(),
    list::<core::ResourceQuota>(),
    one::<core::Secret>(),
    list::<core::Secret>(),
    one::<core::Service>(),
    list::<core::Service>(),
    one::<core::ServiceAccount>(),
    list::<core::ServiceAccount>(),
    one::<CustomResourceDefinition>(),
    list::<CustomResourceDefinition>(),
    one::<APIService>(),
    list::<APIService>(),
    one::<apps::ControllerRevision>(),
    list::<apps::ControllerRevision>(),
    one::<apps::DaemonSet>(),
    list::<apps::DaemonSet>(),
    one::<apps::Deployment>(),
    list::<apps::Deployment>(),
    one::<apps::ReplicaSet>(),
    list::<apps::ReplicaSet>(),
    one::<apps::StatefulSet>(),
    list::<apps::StatefulSet>(),
    one::<events::Event>(),
    list::<events::Event>(),
    one::<autoscaling::HorizontalPodAutoscaler>(),
    list::<autoscaling::HorizontalPodAutoscaler>(),
    one::<autoscaling2::HorizontalPodAutoscaler>(),
    list::<autoscaling2::HorizontalPodAutoscaler>(),
    one::<batch::CronJob>(),
    list::<batch::CronJob>(),
    one::<batch::Job>(),
    list::<batch::Job>(),
    one::<CertificateSigningRequest>(),
    list::<CertificateSigningRequest>(),
    one::<networking::Ingress>(),
    list::<networking::Ingress>(),
    one::<networking::IngressClass>(),
    list::<networking::IngressClass>(),
    one::<networking::NetworkPolicy>(),
    list::<networking::NetworkPolicy>(),
    one::<policy::PodDisruptionBudget>(),
    list::<policy::PodDisruptionBudget>(),
    one::<rbac::ClusterRole>(),
    list::<rbac::ClusterRole>(),
    one::<rbac::ClusterRoleBinding>(),
    list::<rbac::ClusterRoleBinding>(),
    one::<rbac::Role>(),
    list::<rbac::Role>(),
    one::<rbac::RoleBinding>(),
    list::<rbac::RoleBinding>(),
    one::<storage::CSIDriver>(),
    list::<storage::CSIDriver>(),
    one::<storage::CSINode>(),
    list::<storage::CSINode>(),
    one::<storage::CSIStorageCapacity>(),
    list::<storage::CSIStorageCapacity>(),
    one::<storage::StorageClass>(),
    list::<storage::StorageClass>(),
    one::<storage::VolumeAttachment>(),
    list::<storage::VolumeAttachment>(),
    one::<admission::MutatingWebhookConfiguration>(),
    list::<admission::MutatingWebhookConfiguration>(),
    one::<admission::ValidatingAdmissionPolicy>(),
    list::<admission::ValidatingAdmissionPolicy>(),
    one::<admission::ValidatingAdmissionPolicyBinding>(),
    list::<admission::ValidatingAdmissionPolicyBinding>(),
    one::<admission::ValidatingWebhookConfiguration>(),
    list::<admission::ValidatingWebhookConfiguration>(),
    one::<PriorityClass>(),
    list::<PriorityClass>(),
    one::<Lease>(),
    list::<Lease>(),
    one::<RuntimeClass>(),
    list::<RuntimeClass>(),
    one::<EndpointSlice>(),
    list::<EndpointSlice>(),
    one::<flow::FlowSchema>(),
    list::<flow::FlowSchema>(),
    one::<flow::PriorityLevelConfiguration>(),
    list::<flow::PriorityLevelConfiguration>(),
    one::<core::Binding>(),
    one::<autoscaling::Scale>(),
    one::<policy::Eviction>(),
    one::<authentication::TokenRequest>(),
    one::<authentication::TokenReview>(),
    one::<authentication::SelfSubjectReview>(),
    one::<authorization::LocalSubjectAccessReview>(),
    one::<authorization::SelfSubjectAccessReview>(),
    one::<authorization::SelfSubjectRulesReview>(),
    one::<authorization::SubjectAccessReview>(),
    one::<Status>(),
    meta::<DeleteOptions>("DeleteOptions"),
    meta::<WatchEvent<RawExtension>>("WatchEvent"),
];

const fn one<T: Resource + JsonSchema>() -> BuiltIn {
    BuiltIn {
        group: T::GROUP,
        version: T::VERSION,
        kind: T::KIND,
        item_kind: None,
        generate: generate::<T>,
        definition: OnceLock::new(),
    }
}

const fn list<T: ListableResource + JsonSchema>() -> BuiltIn {
    BuiltIn {
        group: T::GROUP,
        version: T::VERSION,
        kind: T::LIST_KIND,
        item_kind: Some(T::KIND),
        generate: generate_list::<T>,
        definition: OnceLock::new(),
    }
}

const fn meta<T: JsonSchema>(kind: &'static str) -> BuiltIn {
    BuiltIn {
        group: "",
        version: "v1",
        kind,
        item_kind: None,
        generate: generate::<T>,
        definition: OnceLock::new(),
    }
}

impl BuiltIn {
    /// The root of the type's schema, built when first asked for.
    pub fn definition(&self) -> Arc<Definition> {
        self.definition.get_or_init(|| load(self)).clone()
    }

    /// The name of its definition, such as `io.k8s.api.apps.v1.Deployment`.
    pub fn definition_name(&self) -> String {
        self.definition().name().to_owned()
    }
}

/// All built-in types, in the order of the table.
pub fn all() -> &'static [BuiltIn] {
    &TYPES
}

/// The built-in type of these coordinates.
pub fn find(group: &str, version: &str, kind: &str) -> Option<&'static BuiltIn> {
    let group = if group == "meta.k8s.io" { "" } else { group };
    TYPES.iter().find(|entry| entry.group == group && entry.version == version && entry.kind == kind)
}

/// The schema of the built-in type of these coordinates.
pub fn definition(group: &str, version: &str, kind: &str) -> Option<Arc<Definition>> {
    find(group, version, kind).map(BuiltIn::definition)
}

/// The definition `name` (OpenAPI form) of any built-in type or part of one. A part is found after some type that
/// contains it was used; else all types are built to search them.
pub fn by_name(name: &str) -> Option<Arc<Definition>> {
    let cached = || library().lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    cached().or_else(|| {
        TYPES.iter().for_each(|entry| drop(entry.definition()));
        cached()
    })
}

/// The JSON schemas, descriptions included, of these types and everything they refer to, by definition name. Made anew
/// at each call; nothing of it stays in memory.
pub fn json_definitions<'a>(entries: impl IntoIterator<Item = &'a BuiltIn>) -> Map<String, Value> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    for entry in entries {
        (entry.generate)(&mut generator);
    }
    std::mem::take(generator.definitions_mut())
}

fn library() -> &'static Mutex<Library> {
    static CELL: OnceLock<Mutex<Library>> = OnceLock::new();
    CELL.get_or_init(Mutex::default)
}

fn load(entry: &BuiltIn) -> Arc<Definition> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let name = (entry.generate)(&mut generator);
    let mut library = library().lock().unwrap_or_else(PoisonError::into_inner);
    build::extend(&mut library, generator.definitions());
    match library.get(name.as_str()) {
        Some(definition) => definition.clone(),
        None => Arc::new(Definition::empty(&name)),
    }
}

fn generate<T: JsonSchema>(generator: &mut SchemaGenerator) -> String {
    generator.subschema_for::<T>();
    T::schema_name().into_owned()
}

fn generate_list<T: ListableResource + JsonSchema>(generator: &mut SchemaGenerator) -> String {
    let item = generate::<T>(generator);
    let list_meta = generate::<ListMeta>(generator);
    let name = format!("{item}List");
    let reference = |name: &str| format!("{}{name}", build::REFERENCE);
    let definition = json!({
        "description": format!("{} is a list of {} objects.", T::LIST_KIND, T::KIND),
        "type": "object",
        "properties": {
            "apiVersion": { "type": "string", "description": "The group and version of this form of the list." },
            "kind": { "type": "string", "description": "The kind of the list." },
            "metadata": { "$ref": reference(&list_meta), "description": "The state that the list shows." },
            "items": {
                "type": "array",
                "items": { "$ref": reference(&item) },
                "description": "The objects.",
            },
        },
        "required": ["items"],
    });
    generator.definitions_mut().insert(name.clone(), definition);
    name
}
