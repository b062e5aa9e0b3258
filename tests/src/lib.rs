//! What suites over more than one crate share: whole platforms as processes, the clients that nobody here wrote, and
//! waiting for a state. Holds no test itself.

pub mod platform;
pub mod tools;
pub mod wait;
