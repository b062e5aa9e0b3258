//! The API server of Strata: one request pipeline over the store, and two facades (REST and gRPC) on it.

pub mod schema;

pub mod decode;

pub mod protobuf;

pub mod patch;

pub mod openapi;
