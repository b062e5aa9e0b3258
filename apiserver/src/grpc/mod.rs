//! The native gRPC form of the API. Only this module knows gRPC; what requests mean is the pipeline's affair.

pub mod convert;
pub mod credit;
pub mod watch;
pub mod resources;
pub mod history;
pub mod discovery;
pub mod maintenance;
