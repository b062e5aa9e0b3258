//! What is published: resources as plain data. Knows nothing of OpenAPI.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

/// A resource that the server serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublishedResource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// Kind of its objects, such as `Deployment`.
    pub kind: String,
    /// Name in paths, such as `deployments`.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Verbs that it takes, as discovery names them: `create`, `get`, `list`, `watch`, `update`, `patch`, `delete`,
    /// `deletecollection`.
    pub verbs: Vec<String>,
    /// What is below its objects.
    pub subresources: Vec<PublishedSubresource>,
    /// Its schema, where it is a custom type.
    pub custom: Option<CustomSchema>,
}

/// The schema of a custom type, made when its document is.
#[derive(Clone)]
pub struct CustomSchema {
    /// Changes whenever the schema does.
    pub key: String,
    /// Kind of its lists.
    pub list_kind: String,
    /// Makes the schema as it is written.
    pub make: Arc<dyn Fn() -> Value + Send + Sync>,
}

impl CustomSchema {
    /// The name of the definition of a kind: `com.example.v1.Widget`.
    pub fn name(group: &str, version: &str, kind: &str) -> String {
        let reversed: Vec<&str> = group.rsplit('.').collect();
        format!("{}.{version}.{kind}", reversed.join("."))
    }
}

impl PartialEq for CustomSchema {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for CustomSchema {}

impl Hash for CustomSchema {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl fmt::Debug for CustomSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomSchema({})", self.key)
    }
}

/// A subresource of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublishedSubresource {
    /// Name in paths, such as `status`.
    pub name: String,
    /// API group of what it takes and gives.
    pub group: String,
    /// API version of what it takes and gives.
    pub version: String,
    /// Kind of what it takes and gives.
    pub kind: String,
    /// Verbs that it takes: `create`, `get`, `update`, `patch`.
    pub verbs: Vec<String>,
}

/// Group, version and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gvk<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

impl PublishedResource {
    /// Group, version and kind of its objects.
    pub fn gvk(&self) -> Gvk<'_> {
        Gvk { group: &self.group, version: &self.version, kind: &self.kind }
    }

    /// Kind of its lists.
    pub fn list_kind(&self) -> String {
        match &self.custom {
            Some(custom) => custom.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    /// Path of its group version, without leading slash: `api/v1`, `apis/apps/v1`.
    pub fn group_version_path(&self) -> String {
        if self.group.is_empty() {
            format!("api/{}", self.version)
        } else {
            format!("apis/{}/{}", self.group, self.version)
        }
    }
}

impl PublishedSubresource {
    /// Group, version and kind of what it takes and gives.
    pub fn gvk(&self) -> Gvk<'_> {
        Gvk { group: &self.group, version: &self.version, kind: &self.kind }
    }
}
