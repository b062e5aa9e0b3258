//! The API server of Strata: one request pipeline over the store, and two facades (REST and gRPC) on it.
//!
//! A request passes: who asks ([`authn`], [`jwt`], [`gate`]) → may they ([`authz`], [`rbac`]) → what it is about ([`types::catalogue`]) →
//! its body as a checked value ([`pipeline::body`], over [`schema`], [`decode`], [`protobuf`], [`patch`]) → what the write
//! may change, with defaults and validation ([`strategy`], [`deletion`], the rules in [`types`]), and what others let it
//! ([`admission`]) → the store
//! ([`storage`], under the writer's [`fence`]) → its answer; [`history`] tells what happened there. Everything that decides
//! is a pure function over values; [`pipeline`] moves the data, [`rest`] and [`grpc`] alone know HTTP and gRPC, and
//! [`server`] alone listens.
//!
//! Promises
//! * A write that changes nothing writes nothing: no revision, no event.
//! * Lists and watches hand on stored bytes; an object is parsed again only for a projection.
//! * Every refusal is a Kubernetes `Status`, over REST and (in the error's details) over gRPC.
//! * Bodies, requests, watches, connections and every wait have a named limit.
//!
//! Not here: exec and port-forward. The ServiceAccount `default` is made for the namespaces that are there at start; in
//! others by a controller, or with the first pod.

pub mod schema;

pub mod decode;

pub mod protobuf;

pub mod patch;

pub mod managed;

pub mod openapi;

pub mod version;

pub mod refusal;

pub mod value;

pub mod expression;

pub mod custom;

pub mod webhook;

pub mod authn;

pub mod jwt;

pub mod authz;

pub mod rbac;

pub mod types;

pub mod storage;

pub mod fence;

pub mod history;

pub mod selection;

pub mod strategy;

pub mod deletion;

pub mod admission;

pub mod paging;

pub mod projection;

pub mod pipeline;

pub mod telemetry;

pub mod gate;

pub mod rest;

pub mod grpc;

pub mod server;
