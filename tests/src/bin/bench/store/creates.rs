//! Creates through the whole API, beside puts into etcd: what a client of the API server gets of the store's speed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::context::{Context, Outcome};
use crate::etcd::Etcd;
use crate::grpc;
use crate::host::Served;
use crate::load::{Load, closed_loop};
use crate::rest;
use crate::store::puts::{in_etcd, ratio, words};

/// Callers.
const CALLERS: usize = 64;
/// Where config maps are created over REST.
pub const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// Config maps with names that were not there before.
#[derive(Clone, Default)]
pub struct New(Arc<AtomicU64>);

impl New {
    /// The next one.
    pub fn next(&self) -> Bytes {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        grpc::config_map(&format!("bench-{number:010}"), number)
    }
}

/// Creates over REST.
pub async fn rest(client: &rest::Client, new: &New, time: Duration) -> Outcome<Load> {
    let (client, new) = (client.clone(), new.clone());
    closed_loop(CALLERS, time, move |_, _| {
        let (client, object) = (client.clone(), new.next());
        async move { client.create(PATH, object).await }
    })
    .await
}

/// REST without TLS.
pub async fn over_http(context: &mut Context) -> Outcome<()> {
    let served = Served::plain(&context.path("plain"))?;
    let client = rest::Client::connect(&served.access).await?;
    let etcd = Etcd::start(&context.path("etcd")).await?;
    let other = etcd.client().await?;
    let (new, time) = (New::default(), context.time());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        theirs.push(in_etcd(&other, CALLERS, time).await?);
        ours.push(rest(&client, &new, time).await?);
    }
    let detail = format!("{}; {}", words("strata", &ours), words("etcd", &theirs));
    context.report.ratio("http_put64_vs_etcd", ratio(&ours, &theirs, |load| load.rate), detail);
    Ok(())
}

/// gRPC with TLS.
pub async fn over_grpc(context: &mut Context) -> Outcome<()> {
    let served = Served::shipped(&context.path("shipped")).await?;
    let client = grpc::Client::connect(&served.access).await?;
    let etcd = Etcd::start(&context.path("etcd")).await?;
    let other = etcd.client().await?;
    let (new, time) = (New::default(), context.time());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        theirs.push(in_etcd(&other, CALLERS, time).await?);
        let (client, new) = (client.clone(), new.clone());
        let load = closed_loop(CALLERS, time, move |_, _| {
            let (client, object) = (client.clone(), new.next());
            async move { client.create(grpc::config_maps(), object).await.map(drop) }
        });
        ours.push(load.await?);
    }
    let detail = format!("{}; {}", words("strata", &ours), words("etcd", &theirs));
    context.report.ratio("grpc_create64_vs_etcd", ratio(&ours, &theirs, |load| load.rate), detail);
    Ok(())
}
