//! The wish of an Application: Argo CD's fields by their names, with its defaults. What is not known is kept, so that
//! a source that is copied into the status is whole. Decides nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::types::{DEFAULT_PROJECT, IN_CLUSTER, IN_CLUSTER_NAME};

/// Fields that we do not know.
pub type Other = BTreeMap<String, Value>;

/// The wish.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// Where the manifests are. Not looked at where there are `sources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The same, several times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Where the objects go.
    pub destination: Destination,
    /// The project, empty for `default`.
    pub project: String,
    /// What is done without being asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_policy: Option<SyncPolicy>,
    /// Differences that are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_differences: Vec<IgnoreDifferences>,
    /// Notes for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub info: Vec<Info>,
    /// How many deployments are remembered; 10 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i64>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// How many deployments are remembered unless the Application says.
pub const HISTORY_LIMIT: i64 = 10;

impl Spec {
    /// The sources, in order.
    pub fn all_sources(&self) -> &[Source] {
        match &self.source {
            Some(one) if self.sources.is_empty() => std::slice::from_ref(one),
            _ => &self.sources,
        }
    }

    /// The name of the project.
    pub fn project(&self) -> &str {
        if self.project.is_empty() { DEFAULT_PROJECT } else { &self.project }
    }

    /// What is done without being asked, where anything is.
    pub fn automated(&self) -> Option<&Automated> {
        let automated = self.sync_policy.as_ref()?.automated.as_ref()?;
        (automated.enabled != Some(false)).then_some(automated)
    }

    /// Options of every sync.
    pub fn sync_options(&self) -> &[String] {
        self.sync_policy.as_ref().map_or(&[], |policy| &policy.sync_options)
    }

    /// How many deployments are remembered.
    pub fn history_limit(&self) -> usize {
        usize::try_from(self.revision_history_limit.unwrap_or(HISTORY_LIMIT)).unwrap_or(0)
    }
}

/// Where manifests are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Source {
    /// URL of the repository: https, ssh (also `user@host:path`), file; of a Helm repository where there is a `chart`.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// Folder within it; empty for its root, as with `.`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Branch, tag, range of versions or commit; empty for `HEAD`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_revision: String,
    /// Settings of Helm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<Helm>,
    /// Settings of Kustomize.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<Kustomize>,
    /// Settings of plain directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Directory>,
    /// Settings of a plugin, which there are none of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Value>,
    /// Name of a chart of a Helm repository.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chart: String,
    /// Name by which other sources refer to this one, as `$name/path`.
    #[serde(rename = "ref", skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// A name for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Settings of plain directories.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Directory {
    /// Folders below count too.
    #[serde(skip_serializing_if = "is_false")]
    pub recurse: bool,
    /// Settings of Jsonnet, which there is none of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonnet: Option<Value>,
    /// Files that do not count: a glob, or several as `{a,b}`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub exclude: String,
    /// The only files that count.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub include: String,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Settings of Helm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "options of helm template, by their own names")]
pub struct Helm {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub value_files: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<HelmParameter>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub values: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file_parameters: Vec<HelmFileParameter>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "is_false")]
    pub pass_credentials: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub ignore_missing_value_files: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub skip_crds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_object: Option<Value>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_versions: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub skip_tests: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub skip_schema_validation: bool,
    #[serde(flatten)]
    pub other: Other,
}

/// `--set name=value`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmParameter {
    /// Path in the values.
    pub name: String,
    /// The value.
    pub value: String,
    /// It is a string, whatever it looks like.
    #[serde(skip_serializing_if = "is_false")]
    pub force_string: bool,
}

/// `--set-file name=path`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmFileParameter {
    /// Path in the values.
    pub name: String,
    /// File with the value.
    pub path: String,
}

/// Settings of Kustomize.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "fields of a kustomization, by their own names")]
pub struct Kustomize {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name_prefix: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name_suffix: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub common_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub common_annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "is_false")]
    pub force_common_labels: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub force_common_annotations: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "is_false")]
    pub common_annotations_envsubst: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<KustomizeReplica>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub ignore_missing_components: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub label_without_selector: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub label_include_templates: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_versions: Vec<String>,
    #[serde(flatten)]
    pub other: Other,
}

/// How many replicas something has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeReplica {
    /// Name of the workload.
    pub name: String,
    /// How many: a number, or a number in quotes.
    pub count: Value,
}

/// Where objects go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// URL of the server; `https://kubernetes.default.svc` is the platform itself, and the only one there is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// Namespace of namespaced objects that name none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The server by its name: `in-cluster`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

impl Destination {
    /// Whether it is the platform itself.
    pub fn is_here(&self) -> bool {
        match (self.server.trim_end_matches('/'), self.name.as_str()) {
            (server, "") => server == IN_CLUSTER,
            ("", name) => name == IN_CLUSTER_NAME,
            _ => false,
        }
    }
}

/// What is done without being asked, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicy {
    /// New commits are synced by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automated: Option<Automated>,
    /// Options, as `CreateNamespace=true`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sync_options: Vec<String>,
    /// What happens when a sync fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Metadata of the destination's namespace, where `CreateNamespace=true` makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_namespace_metadata: Option<NamespaceMetadata>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Metadata of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceMetadata {
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What is done without being asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Automated {
    /// Objects that are in the repository no longer go.
    #[serde(skip_serializing_if = "is_false")]
    pub prune: bool,
    /// What others change is changed back.
    #[serde(skip_serializing_if = "is_false")]
    pub self_heal: bool,
    /// A repository without any object empties the Application.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_empty: bool,
    /// `false` turns it all off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// What happens when a sync fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    /// How often it is tried again; below 0 is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The time between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// The time between attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Backoff {
    /// Before the first: `5s` unless said. A number alone is seconds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub duration: String,
    /// By what it grows each time; 2 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<i64>,
    /// The longest: `3m` unless said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub max_duration: String,
}

/// Differences that are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IgnoreDifferences {
    /// Group, a glob.
    pub group: String,
    /// Kind, a glob.
    pub kind: String,
    /// Only the object of this name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Only in this namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Fields, as RFC 6901 points to them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
    /// Fields, as jq finds them.
    #[serde(rename = "jqPathExpressions", skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
    /// Everything that these managers own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_fields_managers: Vec<String>,
}

/// A note for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Info {
    /// What.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// For `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}
