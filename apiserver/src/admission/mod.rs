//! What others have a say in before a write happens: budgets of disruption. Pure functions over values; what is read of
//! the store and what goes into the transaction is the pipeline's.

pub mod eviction;
