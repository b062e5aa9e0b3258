//! The platform's own certificates: one authority in the data directory, and a short-lived leaf for each identity.
//! Knows files and identities; never what a server does with them.

pub mod leaf;
pub mod store;

#[cfg(test)]
mod tests;
