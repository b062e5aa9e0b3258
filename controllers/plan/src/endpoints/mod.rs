//! Where services lead: `endpointslice` and `endpoints` write down the addresses of the pods that a Service selects, and
//! `endpointslicemirroring` shows endpoints that people wrote for a Service without a selector as slices.
//!
//! What must always hold:
//! * an address is listed once, with what its pod says now: ready, serving, going;
//! * of slices only those are written in which something changed, and none holds more than [`slices::MOST`];
//! * what others wrote (slices managed by somebody else, endpoints of a service without a selector) is left alone.

pub mod offer;

pub mod slices;

mod slice;

mod classic;

mod mirror;

#[cfg(test)]
mod tests;

pub use self::classic::EndpointsObjects;
pub use self::mirror::Mirrors;
pub use self::slice::EndpointSlices;
