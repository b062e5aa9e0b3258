//! What others have a say in before a write happens: limits, quotas, budgets of disruption, policies,
//! webhooks. Pure functions over values;
//! what is read of the store and what goes into the transaction is the pipeline's.

pub mod operation;
pub mod eviction;
pub mod limits;
pub mod quota;
pub mod asked;
pub mod matching;
pub mod terms;
pub mod policy;
pub mod hook;
pub mod review;
pub mod table;
