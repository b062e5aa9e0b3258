//! History: what happened to objects within the kept revisions, told from the store's transactions. Pure; knows
//! transactions and schemas, no requests.

pub mod cause;

pub mod changes;
