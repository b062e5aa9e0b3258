//! The supervisor: keeps one process per role running, and stops them in order. Knows processes, never what the roles do.

pub mod restart;

pub mod output;

pub mod child;

pub mod group;
