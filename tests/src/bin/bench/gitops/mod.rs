//! The suite `gitops`: many Applications of one repository on a whole platform of real processes.

mod repository;
mod steps;

use crate::context::Case;

/// All measurements of the suite.
pub fn cases() -> Vec<Case> {
    let names = &["first_sync_s", "noop_pass_s", "noop_pass_writes", "one_commit_ms", "heal_p99_ms"];
    vec![Case { names, run: |context| Box::pin(steps::all(context)) }]
}
