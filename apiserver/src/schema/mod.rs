//! The shape of objects: which fields a type has, what each holds, and how lists and maps of it merge.
//!
//! A schema is a tree of [`node::Node`]s. Those of the built-in types come from the JSON schemas that `k8s-openapi`
//! carries, joined with the merge facts in `list-keys.tsv`; they are built once, when first asked for, so that a
//! server which never sees a type never pays for it. This module must never know requests, storage or HTTP.

pub mod node;

pub mod keys;

pub mod build;

pub mod registry;

#[cfg(test)]
mod tests;
