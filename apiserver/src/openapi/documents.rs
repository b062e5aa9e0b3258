//! The documents as bytes, made when first asked for, and the index of them. Knows no HTTP beyond paths and tags.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::published::PublishedResource;
use super::{gnostic, operation, schemas, version2};

/// Where the documents are served.
pub const ROOT: &str = "/openapi/v3";

/// A document ready to send.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its JSON, or its protobuf form.
    pub bytes: Bytes,
    /// Changes whenever the bytes do: 32 hexadecimal digits, for `hash=` in its URL and for an `ETag`.
    pub hash: String,
}

/// All documents of a set of published resources. When the set changes, make a new one of it and the old one.
pub struct Documents {
    version: String,
    versions: BTreeSet<(String, String)>,
    groups: BTreeMap<String, Arc<Group>>,
    index: OnceLock<Document>,
    version2_json: OnceLock<Document>,
    version2_protobuf: OnceLock<Document>,
}

struct Group {
    resources: Vec<PublishedResource>,
    document: OnceLock<Document>,
    hash: OnceLock<String>,
}

impl Group {
    /// The hash of custom resources alone, which tells their document without making it.
    fn hash_of_custom(&self, version: &str) -> Option<&String> {
        if self.resources.iter().any(|resource| resource.custom.is_none()) {
            return None;
        }
        Some(self.hash.get_or_init(|| hash_of(&(version, &self.resources))))
    }
}

impl Documents {
    /// Prepares the documents without making them. `version` is what they say the server's version is.
    pub fn new(version: impl Into<String>, resources: impl IntoIterator<Item = PublishedResource>) -> Self {
        Self::after(None, version, resources)
    }

    /// The same, with the documents of an older set where they are of the same resources.
    pub fn after(
        older: Option<&Self>,
        version: impl Into<String>,
        resources: impl IntoIterator<Item = PublishedResource>,
    ) -> Self {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        let mut versions = BTreeSet::new();
        for resource in resources {
            // Custom groups come and go, and leave the documents of all others as they are.
            if resource.custom.is_none() {
                versions.insert((resource.group.clone(), resource.version.clone()));
            }
            let empty = || Group { resources: Vec::new(), document: OnceLock::new(), hash: OnceLock::new() };
            groups.entry(resource.group_version_path()).or_insert_with(empty).resources.push(resource);
        }
        let groups = groups
            .into_iter()
            .map(|(path, group)| {
                let kept = older.and_then(|older| older.groups.get(&path));
                match kept.filter(|kept| kept.resources == group.resources) {
                    Some(kept) => (path, Arc::clone(kept)),
                    None => (path, Arc::new(group)),
                }
            })
            .collect();
        Self {
            version: version.into(),
            versions,
            groups,
            index: OnceLock::new(),
            version2_json: OnceLock::new(),
            version2_protobuf: OnceLock::new(),
        }
    }

    /// The index: for each group version the URL of its document, with the hash. Makes the documents of built-in types.
    pub fn index(&self) -> &Document {
        self.index.get_or_init(|| {
            let paths: Map<String, Value> = self
                .groups
                .iter()
                .map(|(path, group)| {
                    let hash = match group.hash_of_custom(&self.version) {
                        Some(hash) => hash,
                        None => &self.make(group).hash,
                    };
                    let url = format!("{ROOT}/{path}?hash={hash}");
                    (path.clone(), json!({ "serverRelativeURL": url }))
                })
                .collect();
            document(&json!({ "paths": paths }))
        })
    }

    /// The document of OpenAPI version 2 for all group versions, as JSON.
    pub fn version2_json(&self) -> &Document {
        self.version2_json.get_or_init(|| document(&self.version2()))
    }

    /// The document of OpenAPI version 2 for all group versions, in its protobuf form.
    pub fn version2_protobuf(&self) -> &Document {
        self.version2_protobuf.get_or_init(|| hashed(Bytes::from(gnostic::document(&self.version2()))))
    }

    fn version2(&self) -> Value {
        let resources: Vec<PublishedResource> =
            self.groups.values().flat_map(|group| group.resources.iter().cloned()).collect();
        version2::document(self.make_value(&resources))
    }

    /// The document of a group version by its path, such as `api/v1` or `apis/apps/v1`.
    pub fn document(&self, path: &str) -> Option<&Document> {
        self.groups.get(path.trim_start_matches('/')).map(|group| self.make(group))
    }

    fn make<'a>(&self, group: &'a Group) -> &'a Document {
        group.document.get_or_init(|| {
            let made = document(&self.make_value(&group.resources));
            match group.hash_of_custom(&self.version) {
                Some(hash) => Document { hash: hash.clone(), ..made },
                None => made,
            }
        })
    }

    /// Group versions whose delete options a document knows: those of built-in types and its own.
    fn versions_of(&self, resources: &[PublishedResource]) -> BTreeSet<(String, String)> {
        let own = resources.iter().map(|resource| (resource.group.clone(), resource.version.clone()));
        self.versions.iter().cloned().chain(own).collect()
    }

    fn make_value(&self, resources: &[PublishedResource]) -> Value {
        let mut paths = Map::new();
        resources.iter().for_each(|resource| operation::add_paths(&mut paths, resource));
        json!({
            "openapi": "3.0.0",
            "info": {"title": "Strata", "version": self.version},
            "paths": paths,
            "components": {"schemas": schemas::schemas(resources, &self.versions_of(resources))},
        })
    }
}

fn document(value: &Value) -> Document {
    hashed(Bytes::from(value.to_string()))
}

fn hashed(bytes: Bytes) -> Document {
    let hash = hash_of(&bytes);
    Document { bytes, hash }
}

fn hash_of(value: &impl Hash) -> String {
    let part = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        value.hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016X}{:016X}", part(0), part(1))
}
