//! A pipeline of container images in layers: a `ReleaseTrack` wishes that every upstream version is built and published, an
//! `Entitlement` that a customer has all that is published.
//!
//! ```text
//! ReleaseTrack → ImageBuild (expensive: a queue of its own, few at a time)
//!              → Publication
//! Entitlement  → Delivery
//! ```
//!
//! Each layer knows the one below it and nothing else. Read it in this order: what the types are ([`api`]), what an image
//! on disk is ([`layout`], [`pack`]), what the layers decide ([`track`], [`entitlement`], [`held`]), and how they act
//! ([`place`], [`run`]).

pub mod api;
pub mod layout;
pub mod pack;
pub mod track;
pub mod entitlement;
pub mod held;
pub mod place;
pub mod run;
