//! Renders that are kept in memory, found by what they depend on. Renders nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use strata_plan::application::rendered::Rendered;

use crate::application::source::bounds::{MAX_RENDERED_MANIFESTS, MAX_RENDERS};
use crate::application::source::reads::Reads;
use crate::application::source::tree::Snapshot;

/// The renders.
#[derive(Default)]
pub struct Kept(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    clock: u64,
    manifests: usize,
    renders: HashMap<String, One>,
}

struct One {
    used: u64,
    reads: Reads,
    rendered: Rendered,
}

impl Kept {
    /// A render with this base whose other reads are the same in these commits.
    pub fn find(&self, base: &str, snapshots: &BTreeMap<usize, &Snapshot>) -> Option<Rendered> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.clock += 1;
        let now = shelf.clock;
        let one = shelf.renders.get_mut(base)?;
        one.used = now;
        let (reads, rendered) = (one.reads.clone(), one.rendered.clone());
        drop(shelf);
        reads.hold(snapshots).then_some(rendered)
    }

    /// Keeps a render; the least recently used go.
    pub fn keep(&self, base: String, reads: Reads, rendered: Rendered) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.clock += 1;
        let used = shelf.clock;
        shelf.manifests += rendered.manifests.len();
        if let Some(old) = shelf.renders.insert(base, One { used, reads, rendered }) {
            shelf.manifests -= old.rendered.manifests.len();
        }
        while shelf.renders.len() > MAX_RENDERS
            || (shelf.manifests > MAX_RENDERED_MANIFESTS && shelf.renders.len() > 1)
        {
            let oldest = shelf.renders.iter().min_by_key(|(_, one)| one.used).map(|(base, _)| base.clone());
            let Some(gone) = oldest.and_then(|base| shelf.renders.remove(&base)) else { return };
            shelf.manifests -= gone.rendered.manifests.len();
        }
    }
}
