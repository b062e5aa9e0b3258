//! OpenAPI documents for clients that ask what the server takes: version 3, one document per group version, which
//! `kubectl` validates, applies and explains from; and version 2, one document for all, as JSON and in the protobuf form
//! that older clients and GitOps engines read. They are made of the schemas and of a list of published resources, when first asked for, and
//! kept as bytes. Knows no requests beyond their path; must never know types by name.

pub mod published;

pub mod operation;

pub mod schemas;

pub mod custom;

pub mod version2;

pub mod gnostic;

pub mod documents;

#[cfg(test)]
mod tests;
