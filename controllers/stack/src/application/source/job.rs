//! What a program is to render. Decides nothing.

use std::collections::BTreeMap;

use tokio::runtime::Handle;

use super::program::Programs;
use super::tree::{Place, Snapshot};

/// One source for one program.
pub struct Job<'a> {
    /// Its commit.
    pub snapshot: &'a Snapshot,
    /// Its number among the sources of its Application.
    pub number: usize,
    /// Its folder.
    pub place: &'a Place,
    /// All sources that have a name, as `ref`, with their numbers and commits.
    pub references: BTreeMap<&'a str, (usize, &'a Snapshot)>,
    /// The Application.
    pub name: &'a str,
    /// The namespace of its destination.
    pub namespace: &'a str,
    /// The programs there are.
    pub programs: &'a Programs,
    /// Who does the waiting.
    pub runtime: &'a Handle,
}
