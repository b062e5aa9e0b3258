//! The API server of Strata: one request pipeline over the store, and two facades (REST and gRPC) on it.

pub mod schema;

pub mod decode;

pub mod protobuf;

pub mod patch;

pub mod openapi;

pub mod version;

pub mod refusal;

pub mod value;

pub mod authn;

pub mod authz;

pub mod types;

pub mod storage;

pub mod selection;

pub mod strategy;

pub mod deletion;

pub mod paging;

pub mod projection;

pub mod pipeline;

pub mod telemetry;

pub mod gate;

pub mod rest;

pub mod grpc;

pub mod server;
