//! What is observed of an Application, as it is written to its status: Argo CD's fields and words. Decides nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::health::HealthWord;
use super::operation::{InitiatedBy, Operation};
use super::spec::{Destination, IgnoreDifferences, Other, Source, is_false};

/// Whether something is as its source says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SyncWord {
    /// It is.
    Synced,
    /// It is not.
    OutOfSync,
    /// Nobody can tell.
    #[default]
    #[serde(other)]
    Unknown,
}

impl SyncWord {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Synced => "Synced",
            Self::OutOfSync => "OutOfSync",
            Self::Unknown => "Unknown",
        }
    }
}

/// How an operation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationPhase {
    /// It runs, or waits to be tried again.
    Running,
    /// Somebody asked for its end.
    Terminating,
    /// The cluster refused something, or a hook failed.
    Failed,
    /// It is done.
    Succeeded,
    /// It could not begin: no render, a rule against it.
    #[default]
    #[serde(other)]
    Error,
}

impl OperationPhase {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Terminating => "Terminating",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Succeeded => "Succeeded",
        }
    }

    /// Whether nothing more happens.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Running | Self::Terminating)
    }
}

/// The status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// Every object of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceStatus>,
    /// Whether it is as its source says.
    pub sync: SyncStatus,
    /// How it is.
    pub health: AppHealth,
    /// Deployments, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Deployed>,
    /// What people should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<AppCondition>,
    /// When anything of this last changed, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reconciled_at: String,
    /// The latest operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_state: Option<OperationState>,
    /// By what the source is rendered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_type: String,
    /// By what the sources are rendered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_types: Vec<String>,
    /// For people.
    #[serde(skip_serializing_if = "Summary::is_empty")]
    pub summary: Summary,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Whether an Application is as its source says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStatus {
    /// The word.
    pub status: SyncWord,
    /// With what it was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_to: Option<ComparedTo>,
    /// The commit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The commits, one a source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
}

/// With what an Application was compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ComparedTo {
    /// The source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Where it goes.
    pub destination: Destination,
    /// Differences that are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_differences: Vec<IgnoreDifferences>,
}

/// How an Application is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppHealth {
    /// The word.
    pub status: HealthWord,
    /// Since when, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_transition_time: String,
}

/// One object of an Application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceStatus {
    /// Group; empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty where there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Whether it is as its source says.
    pub status: SyncWord,
    /// How it is, where its kind has health.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<super::health::Health>,
    /// It is a hook.
    #[serde(skip_serializing_if = "is_false")]
    pub hook: bool,
    /// It is in the source no longer.
    #[serde(skip_serializing_if = "is_false")]
    pub requires_pruning: bool,
    /// Its wave.
    #[serde(skip_serializing_if = "is_zero")]
    pub sync_wave: i64,
}

/// One deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Deployed {
    /// Counts up.
    pub id: i64,
    /// The commit.
    pub revision: String,
    /// The commits, one a source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// When it was done, RFC 3339.
    pub deployed_at: String,
    /// When it began, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deploy_started_at: String,
    /// The source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Who asked for it.
    #[serde(skip_serializing_if = "InitiatedBy::is_nobody")]
    pub initiated_by: InitiatedBy,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Something people should know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppCondition {
    /// One word.
    #[serde(rename = "type")]
    pub type_: String,
    /// A sentence.
    pub message: String,
    /// Since when, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_transition_time: String,
}

/// For people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Images that its objects run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Addresses.
    #[serde(rename = "externalURLs", skip_serializing_if = "Vec::is_empty")]
    pub external_urls: Vec<String>,
}

impl Summary {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An operation, and how it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationState {
    /// What was asked for.
    pub operation: Operation,
    /// How it stands.
    pub phase: OperationPhase,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What became of each object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_result: Option<SyncResult>,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// When it ended, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub finished_at: String,
    /// How often it was tried again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_count: i64,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// What a sync did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncResult {
    /// What became of each object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceResult>,
    /// The commit.
    pub revision: String,
    /// The commits, one a source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// The source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// What became of one object in a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceResult {
    /// Group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty where there is none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `Synced`, `SyncFailed`, `Pruned`, `PruneSkipped`; empty for what only waits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The kind of hook; empty where it is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hook_type: String,
    /// How the object stands: an [`OperationPhase`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hook_phase: String,
    /// In which phase of the sync it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sync_phase: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(value: &i64) -> bool {
    *value == 0
}

impl Status {
    /// Reads a status; what is not one counts as none, and is written anew.
    pub fn read(value: &Value) -> Self {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }
}
