//! Creates, merge patches and gets through REST, beside puts and gets of etcd: 64 callers on four connections.

use std::time::Duration;

use bytes::Bytes;

use crate::context::{Context, Outcome};
use crate::etcd::{self, Etcd};
use crate::grpc;
use crate::host::Served;
use crate::load::{Load, closed_loop, each, key, scatter};
use crate::rest;
use crate::store::creates::{self, New, PATH};
use crate::store::puts::{in_etcd, ratio, words};
use crate::store::reads::pairs;

/// Callers.
const CALLERS: usize = 64;
/// Objects that are read and patched.
const OBJECTS: usize = 10_000;

/// Both sides, and clients of them.
struct Sides {
    _served: Served,
    strata: rest::Client,
    _etcd: Etcd,
    etcd: etcd::Client,
    time: Duration,
    objects: usize,
}

impl Sides {
    async fn start(context: &mut Context) -> Outcome<Self> {
        let served = Served::shipped(&context.path("shipped")).await?;
        let etcd = Etcd::start(&context.path("etcd")).await?;
        Ok(Self {
            strata: rest::Client::connect(&served.access).await?,
            etcd: etcd.client().await?,
            _served: served,
            _etcd: etcd,
            time: context.time(),
            objects: context.size(OBJECTS, 500),
        })
    }

    /// The objects on both sides.
    async fn fill(&self) -> Outcome<()> {
        let strata = self.strata.clone();
        each(CALLERS, self.objects, move |index| {
            let (strata, object) = (strata.clone(), grpc::config_map(&name(index), index as u64));
            async move { strata.create(PATH, object).await }
        })
        .await?;
        self.etcd.fill(pairs(0..self.objects as u64, crate::load::VALUE_BYTES)).await
    }
}

fn name(index: usize) -> String {
    format!("object-{index:010}")
}

/// A number below `objects`, another for each turn of each caller.
fn chosen(caller: usize, turn: u64, objects: usize) -> usize {
    (scatter((caller as u64) << 40 ^ turn) % objects as u64) as usize
}

fn told(context: &mut Context, name: &'static str, ours: &[Load], theirs: &[Load]) {
    let detail = format!("{}; {}", words("strata", ours), words("etcd", theirs));
    context.report.ratio(name, ratio(ours, theirs, |load| load.rate), detail);
}

/// Creates, beside puts.
pub async fn creates(context: &mut Context) -> Outcome<()> {
    let sides = Sides::start(context).await?;
    let new = New::default();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        theirs.push(in_etcd(&sides.etcd, CALLERS, sides.time).await?);
        ours.push(creates::rest(&sides.strata, &new, sides.time).await?);
    }
    told(context, "create64_rest_vs_etcd", &ours, &theirs);
    Ok(())
}

/// Merge patches that change a label, beside puts.
pub async fn patches(context: &mut Context) -> Outcome<()> {
    let sides = Sides::start(context).await?;
    sides.fill().await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..context.rounds {
        theirs.push(in_etcd(&sides.etcd, CALLERS, sides.time).await?);
        let (strata, objects) = (sides.strata.clone(), sides.objects);
        let load = closed_loop(CALLERS, sides.time, move |caller, turn| {
            // A caller has objects of its own, so that no patch is in another's way.
            let own = chosen(caller, turn, objects / CALLERS) * CALLERS + caller;
            let path = format!("{PATH}/{}", name(own));
            let patch = format!(r#"{{"metadata":{{"labels":{{"turn":"{round}-{turn}"}}}}}}"#);
            let strata = strata.clone();
            async move { strata.ask("PATCH", &path, "application/merge-patch+json", patch.into()).await.map(drop) }
        });
        ours.push(load.await?);
    }
    told(context, "patch64_rest_vs_etcd", &ours, &theirs);
    Ok(())
}

/// Gets on both sides.
pub async fn gets(context: &mut Context) -> Outcome<()> {
    let sides = Sides::start(context).await?;
    sides.fill().await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        let (client, objects) = (sides.etcd.clone(), sides.objects);
        let load = closed_loop(CALLERS, sides.time, move |caller, turn| {
            let (client, key) = (client.clone(), key(chosen(caller, turn, objects) as u64));
            async move { client.get(&key).await.map(drop) }
        });
        theirs.push(load.await?);
        let client = sides.strata.clone();
        let load = closed_loop(CALLERS, sides.time, move |caller, turn| {
            let (client, path) = (client.clone(), format!("{PATH}/{}", name(chosen(caller, turn, objects))));
            async move { client.ask("GET", &path, "application/json", Bytes::new()).await.map(drop) }
        });
        ours.push(load.await?);
    }
    told(context, "get64_rest_vs_etcd", &ours, &theirs);
    Ok(())
}
