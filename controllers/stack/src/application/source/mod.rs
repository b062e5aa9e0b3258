//! Reading repositories: fetching, caching, and rendering of what is at a commit. Everything is within named bounds, every
//! fault is a value with words for people, and no repository holds up another. Knows nothing of what is done with objects.
//!
//! [`git::Git`] answers what the loop asks; [`render::Sources`] is the same without a server for credentials.

pub mod bounds;
pub mod address;
pub mod access;
pub mod revision;
pub mod tree;
pub mod manifests;
pub mod reads;
pub mod directory;
pub mod transport;
pub mod tls;
pub mod http;
pub mod ssh;
pub mod remote;
pub mod cache;
pub mod program;
pub mod export;
pub mod job;
pub mod kustomize;
pub mod helm;
pub mod render;
pub mod listing;
pub mod webhook;
pub mod git;
