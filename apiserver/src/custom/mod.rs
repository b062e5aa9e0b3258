//! Custom types: their definitions, and what is made of them. Pure functions over values; knows no requests, no store
//! and no facade.

pub mod structural;

pub mod prune;

pub mod default;

pub mod formats;

pub mod validate;

pub mod columns;

pub mod nodes;

pub mod cel;

pub mod definition;

pub mod names;

pub mod schema_check;

pub mod check;

#[cfg(test)]
mod tests;
