//! Who owns which field of an object, and server-side apply on it: pure functions over values, with time passed in.
//!
//! A field set is kept in the very form it is stored in (`fieldsV1`), so that a write touches only the parts of the
//! sets that it changes, and a set that it does not change is neither parsed nor printed anew. Knows schemas; must
//! never know requests, storage or HTTP.

pub mod path;

pub mod fields;

pub mod shape;

pub mod collect;

pub mod compare;

pub mod merge;

pub mod prune;

pub mod entries;

pub mod track;

pub mod apply;

pub mod migrate;

#[cfg(test)]
mod tests;
