//! The smallest controller: a `Thermostat` wishes for a temperature, the room has one, and the controller turns the
//! heating until they agree.
//!
//! Read it in this order: what a Thermostat is ([`api`]), then what its controller does about it ([`plan`]). `main.rs`
//! only connects the two to a server. The tests show that the plan comes to rest, without a server and with one.

pub mod api;
pub mod plan;
