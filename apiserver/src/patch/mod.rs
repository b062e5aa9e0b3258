//! Patches as functions over values: apply one, or compute one from two or three versions of an object. The server and
//! the command line share them, so that what a client computes is what the server does. Knows schemas; knows no types,
//! requests or storage. JSON merge patches are `strata_model::merge`.

pub mod json;

pub mod directive;

pub mod strategic;

pub mod three_way;

#[cfg(test)]
mod tests;
