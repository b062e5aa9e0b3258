//! The one path of every verb: authorise, resolve, decode, default and validate, store, answer. Both facades end here;
//! nothing here knows HTTP or gRPC.

pub mod request;
pub mod body;
pub mod ownership;
pub mod nodes;
pub mod riders;
pub mod turns;
pub mod settle;
pub mod leaving;
pub mod api;
pub mod conversion_webhook;
pub mod event;
pub mod versions;
pub mod create;
pub mod update;
pub mod patch;
pub mod scale;
pub mod apply;
pub mod bind;
pub mod read;
pub mod past;
pub mod delete;
pub mod evict;
pub mod watching;
pub mod logs;
pub mod definitions;
pub mod upkeep;
