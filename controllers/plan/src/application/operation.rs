//! An Application as it is written, and the operations that people ask for in it. Decides nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::{Info, Other, Retry, Source, Spec, is_false};

/// An Application: the wish, the operation asked for, and what was observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Application {
    /// The wish.
    pub spec: Spec,
    /// What somebody asks to be done now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// What was observed: read in its own form by those who write it.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub status: Value,
}

/// What somebody asks to be done now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Operation {
    /// A sync, the only operation there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncOperation>,
    /// Who asks.
    #[serde(skip_serializing_if = "InitiatedBy::is_nobody")]
    pub initiated_by: InitiatedBy,
    /// Notes for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub info: Vec<Info>,
    /// What happens when it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Who asked for an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitiatedBy {
    /// A person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The controller, by the policy.
    #[serde(skip_serializing_if = "is_false")]
    pub automated: bool,
}

impl InitiatedBy {
    /// Whether nobody is named.
    pub fn is_nobody(&self) -> bool {
        *self == Self::default()
    }
}

/// A sync, as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOperation {
    /// To which revision; empty is what the source says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Objects that are in the repository no longer go.
    #[serde(skip_serializing_if = "is_false")]
    pub prune: bool,
    /// Nothing is written.
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// How: `apply`, or `hook` which runs hooks as well and is the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_strategy: Option<SyncStrategy>,
    /// Only these; empty is all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<SyncResource>,
    /// Another source than that of the Application: a rollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The same, several times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// To which revisions, one a source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// Options beside those of the Application.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sync_options: Vec<String>,
    /// What we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// How a sync is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStrategy {
    /// Objects are applied, hooks are not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply: Option<Force>,
    /// Hooks are run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<Force>,
}

/// Whether what cannot be changed is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Force {
    /// Deleted and made anew where it must be.
    #[serde(skip_serializing_if = "is_false")]
    pub force: bool,
}

/// An object that is named for a sync of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncResource {
    /// Group; empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; empty is any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::application::spec::Destination;
    use crate::application::types::{IN_CLUSTER, IN_CLUSTER_NAME};

    #[test]
    fn an_application_is_read_and_what_is_not_known_survives() {
        let written = json!({"spec": {"project": "", "destination": {"server": IN_CLUSTER, "namespace": "guestbook"},
            "source": {"repoURL": "https://example.org/apps.git", "path": "guestbook", "targetRevision": "HEAD",
                "directory": {"recurse": true}, "novel": {"a": [1]},
                "kustomize": {"images": ["a:1"], "replicas": [{"name": "a", "count": 3}]},
                "helm": {"valuesObject": {"a": 1}, "parameters": [{"name": "a", "value": "b"}]}},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"],
                "retry": {"limit": 5, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}}},
            "ignoreDifferences": [{"group": "apps", "kind": "Deployment", "jqPathExpressions": [".a"]}]}});
        let app: Application = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(app.spec.project(), "default");
        assert!(app.spec.destination.is_here());
        assert!(app.spec.automated().is_some_and(|a| a.prune && a.self_heal));
        assert_eq!(app.spec.all_sources()[0].other["novel"], json!({"a": [1]}));
        assert_eq!(serde_json::to_value(&app).unwrap(), written);
    }

    #[test]
    fn automation_can_be_off_and_destinations_elsewhere() {
        let spec: Spec =
            serde_json::from_value(json!({"syncPolicy": {"automated": {"enabled": false}}})).unwrap();
        assert!(spec.automated().is_none());
        assert!(!spec.destination.is_here());
        let named = Destination { name: IN_CLUSTER_NAME.to_owned(), ..Destination::default() };
        assert!(named.is_here());
        let both = Destination { server: IN_CLUSTER.to_owned(), ..named };
        assert!(!both.is_here());
    }
}
