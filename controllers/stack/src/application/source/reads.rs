//! What a render read beside its own folder, and the key made of it: two renders with the same key have the same objects.
//! Reads nothing itself.

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::{Kind as ObjectKind, compute_hash};
use strata_plan::application::rendered::RenderError;

use super::tree::{Snapshot, broken};

/// Paths outside the source's own folder that a render looked at, and what was there: none where there was nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    paths: BTreeMap<(usize, String), Option<ObjectId>>,
}

impl Reads {
    /// Notes that something at a path was looked at, in the repository of source number `source`.
    pub fn note(&mut self, source: usize, path: &str, found: Option<ObjectId>) {
        self.paths.insert((source, path.to_owned()), found);
    }

    /// Whether all of it is the same in other commits, by number of the source. A source that is absent is another.
    pub fn hold(&self, snapshots: &BTreeMap<usize, &Snapshot>) -> bool {
        self.paths.iter().all(|((source, path), found)| {
            let now = snapshots.get(source).map(|snapshot| snapshot.at(path));
            matches!(now, Some(Ok(place)) if place.as_ref().map(|place| place.node.id) == *found)
        })
    }

    /// One key for a base key and everything noted.
    pub fn key(&self, base: &str) -> Result<String, RenderError> {
        let mut text = base.to_owned();
        for ((source, path), found) in &self.paths {
            let id = found.map_or_else(|| "-".to_owned(), |id| id.to_string());
            text.push_str(&format!("\n{source} {id} {path}"));
        }
        digest(text.as_bytes())
    }
}

/// A digest in hex.
pub fn digest(bytes: &[u8]) -> Result<String, RenderError> {
    let id = compute_hash(HashKind::Sha1, ObjectKind::Blob, bytes);
    id.map(|id| id.to_string()).map_err(|error| broken(format!("cannot be hashed: {error}")))
}
