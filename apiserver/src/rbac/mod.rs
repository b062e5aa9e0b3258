//! What roles and their bindings allow: rules and what they cover, the compiled policy that every request is decided on,
//! and the roles that are always there. Pure: knows no store, no requests, no time.

pub mod rule;
pub mod cover;
pub mod policy;
pub mod compile;
pub mod bootstrap;

#[cfg(test)]
mod tests;
