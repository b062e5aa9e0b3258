//! A CustomResourceDefinition as the server works with it: few facts at hand, the rest read from its stored bytes when a
//! request first needs it. Knows no requests and no store.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;
use strata_model::resource::{GroupResource, ResourceType, Scope, Subresource, Verb};
use tokio::sync::watch;

use super::cel::rules::Rules;
use super::columns::{self, Column};
use super::nodes;
use super::structural::Structural;
use crate::schema::node::Definition as NodeDefinition;
use crate::value::{at, flag, int, list, text};

/// The finalizer that holds a definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Names of a custom type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Plural, in paths.
    pub plural: String,
    /// Singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Categories.
    pub categories: Vec<String>,
}

impl Names {
    /// Reads names as a definition or its status has them.
    pub fn read(names: &Value) -> Self {
        let word = |name: &str| text(names, &[name]).to_owned();
        let words = |name: &str| {
            list(names, &[name]).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        Self {
            plural: word("plural"),
            singular: word("singular"),
            short_names: words("shortNames"),
            kind: word("kind"),
            list_kind: word("listKind"),
            categories: words("categories"),
        }
    }
}

/// Where the scale of an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Wanted replicas, as member names.
    pub wanted: Vec<String>,
    /// Replicas there are.
    pub actual: Vec<String>,
    /// The selector as text, where there is one.
    pub selector: Option<Vec<String>>,
}

/// How objects go from version to version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only the name of the version changes.
    None,
    /// A webhook is asked.
    Webhook(Box<Webhook>),
}

/// A webhook that converts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Webhook {
    /// Where it is; empty where a service is named.
    pub url: String,
    /// Namespace, name, path and port of the service.
    pub service: Option<(String, String, String, i64)>,
    /// Authorities of its certificate, base64 of PEM.
    pub authority: String,
    /// Versions of the review that it understands.
    pub reviews: Vec<String>,
}

/// One version of a custom type.
#[derive(Debug)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// What users of it are warned of; `None` where they are not.
    pub warning: Option<String>,
    /// Whether status is apart.
    pub has_status: bool,
    /// Where the scale is, if there is one.
    pub scale: Option<ScalePaths>,
    /// Fields that selectors may name: paths of member names, as they are written.
    pub selectable: Vec<String>,
    compiled: OnceLock<Compiled>,
}

/// What a version's requests need.
#[derive(Debug)]
struct Compiled {
    schema: Arc<Structural>,
    columns: Arc<[Column]>,
    nodes: OnceLock<Arc<NodeDefinition>>,
    rules: OnceLock<Arc<Rules>>,
}

/// A definition.
#[derive(Debug)]
pub struct Definition {
    /// Its name, `plural.group`.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Counts changes of what is wanted.
    pub generation: i64,
    /// Group of the type.
    pub group: String,
    /// Names that are asked for.
    pub names: Names,
    /// Names that its status says were accepted.
    pub accepted: Names,
    /// Whether its status says that it is established.
    pub established: bool,
    /// Whether its status says that not all names are accepted.
    pub conflict: bool,
    /// Whether its status says all that it must.
    pub settled: bool,
    /// Whether objects are in namespaces.
    pub namespaced: bool,
    /// Versions, in the order in which it has them.
    pub versions: Vec<Version>,
    /// Place of the version in which objects are stored.
    pub storage: usize,
    /// How objects go from version to version.
    pub conversion: Conversion,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The revision at which it came into being.
    pub created: u64,
    /// Objects stored after this revision have the defaults of the schemas that are valid now.
    pub since: u64,
    bytes: Bytes,
    retired: watch::Sender<bool>,
}

impl Definition {
    /// Reads a stored definition. `None` where it is none: what is stored was checked.
    pub fn read(bytes: &Bytes, created: u64, modified: u64) -> Option<Self> {
        let object: Value = serde_json::from_slice(bytes).ok()?;
        let spec = object.get("spec")?;
        let versions = list(spec, &["versions"]);
        let storage = versions.iter().position(|version| flag(version, &["storage"]))?;
        let group = text(spec, &["group"]);
        let names = Names::read(spec.get("names")?);
        let conditions = list(&object, &["status", "conditions"]);
        let says = |kind: &str, status: &str| {
            conditions
                .iter()
                .any(|c| text(c, &["type"]) == kind && (status.is_empty() || text(c, &["status"]) == status))
        };
        let deleting = at(&object, &["metadata", "deletionTimestamp"]).is_some();
        Some(Self {
            name: text(&object, &["metadata", "name"]).to_owned(),
            uid: text(&object, &["metadata", "uid"]).to_owned(),
            generation: int(&object, &["metadata", "generation"]).unwrap_or(0),
            accepted: at(&object, &["status", "acceptedNames"]).map(Names::read).unwrap_or_default(),
            established: says("Established", "True"),
            conflict: says("NamesAccepted", "False"),
            settled: says("NamesAccepted", "")
                && says("Established", "")
                && (!deleting || says("Terminating", "")),
            namespaced: text(spec, &["scope"]) == "Namespaced",
            versions: versions.iter().map(|v| Version::read(v, group, &names.kind)).collect(),
            conversion: conversion(spec),
            deleting,
            group: group.to_owned(),
            names,
            storage,
            created,
            since: modified,
            bytes: bytes.clone(),
            retired: watch::Sender::new(false),
        })
    }

    /// Takes what an earlier state of the same definition has compiled, where its specification is the same.
    pub fn inherit(&mut self, earlier: &Self) {
        if self.uid != earlier.uid {
            return;
        }
        self.retired = earlier.retired.clone();
        if self.generation != earlier.generation {
            return;
        }
        self.since = earlier.since;
        for (own, old) in self.versions.iter_mut().zip(&earlier.versions) {
            if let Some(compiled) = old.compiled.get() {
                own.compiled = OnceLock::from(compiled.clone());
            }
        }
    }

    /// The identity of the type.
    pub fn id(&self) -> GroupResource {
        GroupResource { group: self.group.clone().into(), resource: self.names.plural.clone().into() }
    }

    /// The version of a name.
    pub fn version(&self, name: &str) -> Option<usize> {
        self.versions.iter().position(|version| version.name == name)
    }

    /// The stored object.
    pub fn object(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// Says that the type is gone: its watches end.
    pub fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Turns true when the type is gone.
    pub fn retired(&self) -> watch::Receiver<bool> {
        self.retired.subscribe()
    }

    fn compiled(&self, index: usize) -> &Compiled {
        self.versions[index].compiled.get_or_init(|| {
            let object = self.object();
            let version = list(&object, &["spec", "versions"]).get(index).cloned().unwrap_or_default();
            let schema = at(&version, &["schema", "openAPIV3Schema"]).cloned().unwrap_or_default();
            Compiled {
                schema: Arc::new(Structural::read(&schema)),
                columns: columns::read(&version),
                nodes: OnceLock::new(),
                rules: OnceLock::new(),
            }
        })
    }
}

impl Clone for Compiled {
    fn clone(&self) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            columns: Arc::clone(&self.columns),
            nodes: self.nodes.clone(),
            rules: self.rules.clone(),
        }
    }
}

impl Version {
    fn read(version: &Value, group: &str, kind: &str) -> Self {
        let name = text(version, &["name"]).to_owned();
        let own = text(version, &["deprecationWarning"]);
        let warning = flag(version, &["deprecated"]).then(|| match own {
            "" => format!("{group}/{name} {kind} is deprecated"),
            own => own.to_owned(),
        });
        let scale = at(version, &["subresources", "scale"]).filter(|scale| scale.is_object());
        let selectable = list(version, &["selectableFields"]).iter();
        Self {
            served: flag(version, &["served"]),
            warning,
            has_status: at(version, &["subresources", "status"]).is_some(),
            scale: scale.map(ScalePaths::read),
            selectable: selectable
                .map(|field| text(field, &["jsonPath"]).trim_start_matches('.').to_owned())
                .collect(),
            name,
            compiled: OnceLock::new(),
        }
    }
}

impl ScalePaths {
    fn read(scale: &Value) -> Self {
        let path = |name: &str| {
            let path = text(scale, &[name]).trim_start_matches('.');
            path.split('.').map(str::to_owned).collect::<Vec<_>>()
        };
        let selector =
            Some(path("labelSelectorPath")).filter(|path| path.iter().all(|part| !part.is_empty()));
        Self { wanted: path("specReplicasPath"), actual: path("statusReplicasPath"), selector }
    }
}

fn conversion(spec: &Value) -> Conversion {
    if text(spec, &["conversion", "strategy"]) != "Webhook" {
        return Conversion::None;
    }
    let config = at(spec, &["conversion", "webhook", "clientConfig"]).cloned().unwrap_or_default();
    let service = at(&config, &["service"]).map(|service| {
        let word = |name: &str| text(service, &[name]).to_owned();
        (word("namespace"), word("name"), word("path"), int(service, &["port"]).unwrap_or(443))
    });
    let reviews = list(spec, &["conversion", "webhook", "conversionReviewVersions"]);
    Conversion::Webhook(Box::new(Webhook {
        url: text(&config, &["url"]).to_owned(),
        service,
        authority: text(&config, &["caBundle"]).to_owned(),
        reviews: reviews.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    }))
}

/// A custom type in one version.
#[derive(Clone, Debug)]
pub struct Custom {
    /// Its definition.
    pub definition: Arc<Definition>,
    /// The place of the version in it.
    pub index: usize,
}

impl Custom {
    /// The version.
    pub fn version(&self) -> &Version {
        &self.definition.versions[self.index]
    }

    /// Its schema.
    pub fn schema(&self) -> &Arc<Structural> {
        &self.definition.compiled(self.index).schema
    }

    /// Its printer columns, without the name.
    pub fn columns(&self) -> &Arc<[Column]> {
        &self.definition.compiled(self.index).columns
    }

    /// Its rules in CEL.
    pub fn rules(&self) -> &Arc<Rules> {
        let compiled = self.definition.compiled(self.index);
        compiled.rules.get_or_init(|| Arc::new(Rules::compile(&compiled.schema)))
    }

    /// Its schema as field ownership reads it.
    pub fn nodes(&self) -> &Arc<NodeDefinition> {
        let compiled = self.definition.compiled(self.index);
        compiled.nodes.get_or_init(|| {
            let name =
                format!("{}/{}.{}", self.definition.group, self.version().name, self.definition.names.kind);
            nodes::definition(&name, &compiled.schema)
        })
    }

    /// The schema as it is written, for those who publish it.
    pub fn written(&self) -> Value {
        let object = self.definition.object();
        let version = list(&object, &["spec", "versions"]).get(self.index).cloned().unwrap_or_default();
        at(&version, &["schema", "openAPIV3Schema"]).cloned().unwrap_or_default()
    }

    /// `group/version`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.definition.group, self.version().name)
    }

    /// The descriptor under which the type is served.
    pub fn describe(&self, names: &Names) -> ResourceType {
        let verbs = |words: &[&str]| Verb::set(words.iter().copied());
        let read_write = verbs(&["get", "patch", "update"]);
        let mut subresources = Vec::new();
        if self.version().has_status {
            subresources.push(Subresource { name: "status".into(), body: None, verbs: read_write });
        }
        if self.version().scale.is_some() {
            let body = Some(("autoscaling".into(), "v1".into(), "Scale".into()));
            subresources.push(Subresource { name: "scale".into(), body, verbs: read_write });
        }
        let texts =
            |words: &[String]| words.iter().map(|word| word.clone().into()).collect::<Vec<_>>().into();
        ResourceType {
            id: self.definition.id(),
            version: self.version().name.clone().into(),
            kind: names.kind.clone().into(),
            singular: names.singular.clone().into(),
            short_names: texts(&names.short_names),
            categories: texts(&names.categories),
            scope: if self.definition.namespaced { Scope::Namespaced } else { Scope::Cluster },
            verbs: verbs(&[
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch",
            ]),
            subresources: subresources.into(),
            counts_generation: true,
        }
    }
}
