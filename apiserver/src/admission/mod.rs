//! What others have a say in before a write happens: limits, quotas, budgets of disruption. Pure functions over values;
//! what is read of the store and what goes into the transaction is the pipeline's.

pub mod operation;
pub mod eviction;
pub mod limits;
pub mod quota;
pub mod table;
