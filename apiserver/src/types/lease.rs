//! Leases: who holds what, and until when.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::print;
use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column};
use crate::value::{child, int, text};

/// Rules of leases.
pub static LEASE: Rules = Rules {
    defaults: |lease| {
        child(lease, "spec");
    },
    validate,
    columns: const { &[NAME, column("Holder", "Who holds it."), AGE] as &[Column] },
    row: |lease, now| {
        let holder = json!(text(lease, &["spec", "holderIdentity"]));
        vec![print::name(lease), holder, print::created(lease, now)]
    },
    revision_required: true,
    create_on_update: true,
    ..PLAIN
};

fn validate(lease: &Value, faults: &mut Faults) {
    let path = FieldPath::new("spec");
    if let Some(seconds) = int(lease, &["spec", "leaseDurationSeconds"]).filter(|n| *n <= 0) {
        faults.push(FieldError::invalid(
            path.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        ));
    }
    if let Some(count) = int(lease, &["spec", "leaseTransitions"]).filter(|n| *n < 0) {
        let detail = "must be greater than or equal to 0";
        faults.push(FieldError::invalid(path.child("leaseTransitions"), count, detail));
    }
}
