//! The gRPC client of Strata: where the server is and who one is (`config`), every verb (`client`), and the resumable,
//! multiplexed watch (`watch`); and the text of manifests (`manifest`). Decides nothing about objects; knows no controller and no command line.

pub mod manifest;
pub mod error;
pub mod config;
pub mod kubeconfig;
pub mod options;
pub mod connect;
pub mod fence;
pub mod client;
pub mod history;
pub mod cursor;
pub mod event;
pub mod stream;
pub mod watch;
