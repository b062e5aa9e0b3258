//! Bodies → values, and values against a schema. Knows no requests, no types beyond their schema, and no storage.

/// How deep an object may nest. Everything that walks an object recurses at most this far, so every way in (JSON, YAML,
/// protobuf, patches) holds to it.
pub const MAX_DEPTH: usize = 128;

/// How deep a value nests: 0 for a scalar, 1 for an empty list or struct.
pub fn depth_of(value: &serde_json::Value) -> usize {
    let below = match value {
        serde_json::Value::Array(items) => items.iter().map(depth_of).max(),
        serde_json::Value::Object(members) => members.values().map(depth_of).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

pub mod document;

pub mod text;

pub mod scalar;

pub mod check;

#[cfg(test)]
mod tests;
