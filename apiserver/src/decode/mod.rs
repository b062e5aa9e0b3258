//! Bodies → values, and values against a schema. Knows no requests, no types beyond their schema, and no storage.

/// How deep an object may nest. Everything that walks an object recurses at most this far, so every way in (JSON, YAML,
/// protobuf, patches) holds to it.
pub const MAX_DEPTH: usize = 128;
