//! The Kubernetes REST form of the API. Only this module knows HTTP; what requests mean is the pipeline's affair.

pub mod path;
pub mod query;
pub mod negotiate;
pub mod respond;
pub mod discovery;
pub mod documents;
pub mod health;
pub mod listing;
pub mod watch;
pub mod facade;
pub mod resources;
pub mod router;
