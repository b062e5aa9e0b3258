//! Definitions of custom types: the rules of the type CustomResourceDefinition. What they say is next door, in `custom`.

use serde_json::{Value, json};

use super::print;
use super::rules::{Column, NAME, PLAIN, Rules, column};
use crate::custom::definition::CLEANUP;
use crate::custom::{check, names};
use crate::value::text;

const COLUMNS: &[Column] = &[NAME, column("Created At", "When the definition was created.")];

/// Rules of definitions.
pub static DEFINITION: Rules = Rules {
    defaults: names::fill,
    create: |definition| names::begin(definition, CLEANUP),
    update: |definition, _| names::note_storage(definition),
    validate: check::check,
    validate_update: check::check_update,
    columns: COLUMNS,
    row: |definition: &Value, _| {
        vec![print::name(definition), json!(text(definition, &["metadata", "creationTimestamp"]))]
    },
    revision_required: true,
    ..PLAIN
};
