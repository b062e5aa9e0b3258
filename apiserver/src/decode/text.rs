//! JSON and YAML text → documents. Knows no schema.

use serde_saphyr::options::{DuplicateKeyPolicy, Options};

use super::document::Document;

/// How deep YAML may nest: less than JSON, whose parser needs less stack.
pub const MAX_YAML_DEPTH: usize = 64;
/// The most values (scalars, lists and structs) that one YAML text may have, aliases expanded.
pub const MAX_YAML_NODES: usize = 1_000_000;
/// The most bytes of scalars that one YAML text may have, before aliases are expanded.
pub const MAX_YAML_BYTES: usize = 64 * 1024 * 1024;

/// Why a text could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// It is not JSON, or nested too deep.
    #[error("{source}")]
    Json {
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// It is not YAML, or larger or deeper than allowed.
    #[error("yaml: line {line}, column {column}: {problem}")]
    Yaml {
        /// Line, from 1; 0 if unknown.
        line: u64,
        /// Column, from 1; 0 if unknown.
        column: u64,
        /// What is wrong.
        problem: String,
    },
}

/// Parses one JSON document.
pub fn json(body: &[u8]) -> Result<Document, TextError> {
    serde_json::from_slice(body).map_err(|source| TextError::Json { source })
}

/// Parses one YAML document. Plain `yes`, `no`, `on` and `off` are booleans and numbers with a leading 0 are octal, as
/// Kubernetes manifests have it.
pub fn yaml(text: &str) -> Result<Document, TextError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| yaml_error(&error))
}

/// Parses all documents of a YAML text; empty ones are left out.
pub fn yaml_documents(text: &str) -> Result<Vec<Document>, TextError> {
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| yaml_error(&error))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_YAML_DEPTH,
            flow_nesting_limit: MAX_YAML_DEPTH,
            max_nodes: MAX_YAML_NODES,
            max_events: MAX_YAML_NODES * 2,
            max_total_scalar_bytes: MAX_YAML_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_YAML_NODES / 10,
            max_replay_stack_depth: 16,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        emit_comments: false,
        legacy_octal_numbers: true,
    }
}

fn yaml_error(error: &serde_saphyr::Error) -> TextError {
    let error = error.without_snippet();
    let (line, column) = error.location().map_or((0, 0), |place| (place.line(), place.column()));
    TextError::Yaml { line, column, problem: error.to_string() }
}
