//! What is published: resources as plain data. Knows nothing of OpenAPI.

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
