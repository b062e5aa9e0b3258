//! The suite `scale`: a whole platform of real processes, with simulated nodes and pods. One platform serves all
//! measurements, as each needs what the one before it made.

mod site;
mod steps;

use crate::context::Case;

/// All measurements of the suite.
pub fn cases() -> Vec<Case> {
    let names = &[
        "running_s",
        "controllers_mb",
        "drift_p99_ms",
        "rollout_s",
        "noop_us_per_key",
        "noop_writes",
        "restart_us_per_object",
    ];
    vec![Case { names, run: |context| Box::pin(steps::all(context)) }]
}
