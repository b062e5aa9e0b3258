//! An AppProject as it is written: what its Applications may read, where they may write, and when. Decides nothing.

use serde::{Deserialize, Serialize};

use super::spec::{Destination, Other};

/// An AppProject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppProject {
    /// The rules.
    pub spec: ProjectSpec,
}

/// The rules of a project. Lists of what is allowed allow nothing where they are empty, except where it is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectSpec {
    /// Repositories, globs; one that begins with `!` forbids.
    pub source_repos: Vec<String>,
    /// Destinations, globs; namespace and server that begin with `!` forbid.
    pub destinations: Vec<Destination>,
    /// For people.
    pub description: String,
    /// Types without a namespace that are allowed.
    pub cluster_resource_whitelist: Vec<GroupKind>,
    /// Types without a namespace that are not.
    pub cluster_resource_blacklist: Vec<GroupKind>,
    /// Types in namespaces that are allowed; absent allows all.
    pub namespace_resource_whitelist: Option<Vec<GroupKind>>,
    /// Types in namespaces that are not.
    pub namespace_resource_blacklist: Vec<GroupKind>,
    /// Namespaces whose Applications may be of the project, globs, beside that of the project itself.
    pub source_namespaces: Vec<String>,
    /// When syncs may be.
    pub sync_windows: Vec<SyncWindow>,
    /// Whether objects that no Application has are told.
    pub orphaned_resources: Option<OrphanedResources>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// A group and a kind, globs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupKind {
    /// Group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Only objects of this name, a glob; empty is all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Whether and how orphans are told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OrphanedResources {
    /// As a condition.
    pub warn: Option<bool>,
    /// Not these.
    pub ignore: Vec<GroupKind>,
}

/// A time at which syncs are allowed, or denied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncWindow {
    /// `allow` or `deny`.
    pub kind: String,
    /// When it begins, as cron says it.
    pub schedule: String,
    /// How long it lasts, as `1h`.
    pub duration: String,
    /// Applications, globs.
    pub applications: Vec<String>,
    /// Namespaces of destinations, globs.
    pub namespaces: Vec<String>,
    /// Destinations by name or server, globs.
    pub clusters: Vec<String>,
    /// What people ask for is allowed all the same.
    pub manual_sync: bool,
    /// Zone of the schedule; UTC where empty.
    pub time_zone: String,
    /// All three lists must match, not one of them.
    #[serde(rename = "andOperator")]
    pub use_and_operator: bool,
    /// For people.
    pub description: String,
}
