//! Expressions in CEL, over values: compiled once, evaluated within a budget. The one evaluator of the server: rules of
//! custom types and admission policies alike. Knows no requests, no schemas and no types; parsing and the standard
//! library are those of the `cel` crate.

pub mod budget;

pub mod value;

pub mod meter;

pub mod library;

pub mod program;

#[cfg(test)]
mod tests;
