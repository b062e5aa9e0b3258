//! An ApplicationSet as it is written: generators make parameters, a template makes an Application of each. Decides
//! nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::Other;

/// An ApplicationSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSet {
    /// The wish.
    pub spec: SetSpec,
    /// What was observed.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub status: Value,
}

/// The wish.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetSpec {
    /// What makes parameters.
    pub generators: Vec<Generator>,
    /// The Application, with parameters in its texts.
    pub template: Value,
    /// Templates are Go's, not plain `{{name}}`.
    pub go_template: bool,
    /// Options of those, as `missingkey=error`.
    pub go_template_options: Vec<String>,
    /// What may be done to Applications.
    pub sync_policy: Option<SetSyncPolicy>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// What may be done to Applications.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetSyncPolicy {
    /// `create-only`, `create-update`, `create-delete` or `sync`, which is the usual one.
    pub applications_sync: String,
    /// Applications stay when the set goes.
    pub preserve_resources_on_deletion: bool,
}

/// One generator: exactly one of the kinds is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Generator {
    /// Parameters as they are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<ListGenerator>,
    /// Folders or files of a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitGenerator>,
    /// Every pair of what two generators make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixGenerator>,
    /// Kinds that we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Parameters as they are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListGenerator {
    /// One set of parameters each.
    pub elements: Vec<Value>,
    /// The same, as YAML in a text.
    pub elements_yaml: String,
    /// Laid over the template.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub template: Value,
}

/// Folders or files of a repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitGenerator {
    /// The repository.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// Branch, tag or commit.
    pub revision: String,
    /// Folders.
    pub directories: Vec<GitDirectory>,
    /// Files with parameters.
    pub files: Vec<GitFile>,
    /// Seconds between looks.
    pub requeue_after_seconds: Option<i64>,
    /// Prefix of the names of parameters.
    pub path_param_prefix: String,
    /// More parameters, which may hold the generated ones.
    pub values: std::collections::BTreeMap<String, String>,
    /// Laid over the template.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub template: Value,
}

/// Folders, by a glob.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitDirectory {
    /// The glob.
    pub path: String,
    /// Not these.
    pub exclude: bool,
}

/// Files, by a glob.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitFile {
    /// The glob.
    pub path: String,
    /// Not these.
    pub exclude: bool,
}

/// Every pair of what two generators make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MatrixGenerator {
    /// The two.
    pub generators: Vec<Generator>,
    /// Laid over the template.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub template: Value,
}
