//! OpenAPI v3 documents, one per group version, for clients that ask what the server takes: `kubectl` validates, applies
//! and explains from them. They are made of the schemas and of a list of published resources, when first asked for, and
//! kept as bytes. Knows no requests beyond their path; must never know types by name.

pub mod published;

pub mod operation;

pub mod schemas;

pub mod documents;

#[cfg(test)]
mod tests;
