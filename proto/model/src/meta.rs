//! The metadata every object carries. Only reads and holds; what may change when is the API server's business.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The owner of an object: identity is the `uid`, the rest is for people and look-ups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name, in the namespace of the dependent, or cluster-scoped.
    pub name: String,
    /// The identity of the owner.
    pub uid: String,
    /// Whether this owner is the managing controller; at most one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// The API group of the owner, empty for core.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// Parsed object metadata. `managedFields` stays in the object's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Name; empty only in requests that use `generateName`.
    pub name: String,
    /// Prefix from which the server makes the name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Identity over time and space, given by the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Revision of the last write, opaque to clients.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Counts changes of desired state; 0 where the type has none.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// When deletion was asked for (pods: when the grace period ends).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Grace of the running deletion, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// What selectors select on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What tools and people note down.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Who must act before the object goes.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub finalizers: Vec<String>,
}

impl Meta {
    /// The owner that controls this object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|o| o.controller == Some(true))
    }

    /// Whether deletion was asked for.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// The revision as a number; `None` where it is absent or not ours.
    pub fn revision(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }
}

fn is_zero(n: &i64) -> bool {
    *n == 0
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
