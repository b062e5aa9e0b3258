//! Tokens of service accounts: the keys that sign and check them, and what they claim. Pure but for the randomness of
//! signatures; knows no requests and no store.

pub mod provider;
pub mod keys;
pub mod claims;

#[cfg(test)]
mod tests;
