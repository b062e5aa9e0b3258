//! The built-in types that have a schema here, one line per type, and the lookup of their nodes. Knows nothing of how
//! they are served.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{self as core, ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::api::events::v1 as events;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ListMeta, Status, WatchEvent};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
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
static TYPES: [BuiltIn; 32] = [
    one::<Namespace>(),
    list::<Namespace>(),
    one::<core::Node>(),
    list::<core::Node>(),
    one::<Pod>(),
    list::<Pod>(),
    one::<core::Event>(),
    list::<core::Event>(),
    one::<events::Event>(),
    list::<events::Event>(),
    one::<ConfigMap>(),
    list::<ConfigMap>(),
    one::<Secret>(),
    list::<Secret>(),
    one::<ServiceAccount>(),
    list::<ServiceAccount>(),
    one::<Lease>(),
    list::<Lease>(),
    one::<Deployment>(),
    list::<Deployment>(),
    one::<ReplicaSet>(),
    list::<ReplicaSet>(),
    one::<core::Binding>(),
    one::<Scale>(),
    one::<Eviction>(),
    one::<TokenRequest>(),
    one::<SelfSubjectReview>(),
    one::<SelfSubjectAccessReview>(),
    one::<SelfSubjectRulesReview>(),
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
