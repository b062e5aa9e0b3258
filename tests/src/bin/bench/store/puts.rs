//! Durable puts: embedded, in etcd, and on a plain log. Keys are overwritten at random, so that checkpoints and, in
//! etcd, the database behind its log are at work.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strata_store::store::Store;
use strata_store::txn::{Txn, Value};

use crate::context::{Context, Outcome};
use crate::etcd::{Client, Etcd};
use crate::floor;
use crate::host;
use crate::load::{Load, VALUE_BYTES, closed_loop, key, scatter, value};
use crate::report::{median, ms, number};

/// Keys that are overwritten.
const KEYS: u64 = 100_000;
/// Different values.
const VALUES: u64 = 64;

/// The number of the key that a caller writes in a turn.
pub fn chosen(caller: usize, turn: u64) -> u64 {
    scatter((caller as u64) << 40 ^ turn) % KEYS
}

/// Values to write, made beforehand.
pub fn values() -> Arc<[Bytes]> {
    (0..VALUES).map(|seed| Bytes::from(value(seed, VALUE_BYTES))).collect()
}

/// Puts into an embedded store.
pub async fn embedded(store: &Store, callers: usize, time: Duration) -> Outcome<Load> {
    let (store, values) = (store.clone(), values());
    closed_loop(callers, time, move |caller, turn| {
        let at = chosen(caller, turn);
        let value = Value::plain(values[(at % VALUES) as usize].clone());
        let (store, txn) = (store.clone(), Txn::new().put(key(at), value));
        async move { Ok(store.commit(txn).await.map(drop)?) }
    })
    .await
}

/// The same puts into etcd.
pub async fn in_etcd(client: &Client, callers: usize, time: Duration) -> Outcome<Load> {
    let (client, values) = (client.clone(), values());
    closed_loop(callers, time, move |caller, turn| {
        let at = chosen(caller, turn);
        let (client, value) = (client.clone(), values[(at % VALUES) as usize].clone());
        async move { client.put(key(at), value).await.map(drop) }
    })
    .await
}

/// What each side came to in each round.
#[derive(Default)]
struct Sides {
    strata: Vec<Load>,
    etcd: Vec<Load>,
    floor: Vec<Load>,
}

async fn rounds(context: &mut Context, callers: usize) -> Outcome<Sides> {
    let store = host::open(&context.path("store"))?;
    let etcd = Etcd::start(&context.path("etcd")).await?;
    let client = etcd.client().await?;
    let (time, log) = (context.time(), context.path("floor"));
    let mut sides = Sides::default();
    for _ in 0..context.rounds {
        sides.etcd.push(in_etcd(&client, callers, time).await?);
        sides.strata.push(embedded(&store, callers, time).await?);
        sides.floor.push(floor::measure(&log, callers, time / 3).await?);
    }
    store.close().await;
    Ok(sides)
}

/// The median over rounds of one side's figure through another's.
pub fn ratio(one: &[Load], other: &[Load], figure: impl Fn(&Load) -> f64) -> f64 {
    median(one.iter().zip(other).map(|(one, other)| figure(one) / figure(other)))
}

/// A side in words: its median rate and times.
pub fn words(side: &str, loads: &[Load]) -> String {
    let of = |figure: fn(&Load) -> f64| number(median(loads.iter().map(figure)));
    format!(
        "{side} {}/s p50 {} ms p99 {} ms",
        of(|load| load.rate),
        of(|load| ms(load.p50)),
        of(|load| ms(load.p99))
    )
}

/// 64 callers.
pub async fn sixty_four(context: &mut Context) -> Outcome<()> {
    let Sides { strata, etcd, floor } = rounds(context, 64).await?;
    let detail = format!("{}; {}", words("strata", &strata), words("etcd", &etcd));
    context.report.ratio("put64_vs_etcd", ratio(&strata, &etcd, |load| load.rate), detail);
    let detail = words("floor", &floor);
    context.report.ratio("put64_vs_floor", ratio(&strata, &floor, |load| load.rate), detail);
    Ok(())
}

/// 256 callers.
pub async fn many(context: &mut Context) -> Outcome<()> {
    let Sides { strata, etcd, floor } = rounds(context, 256).await?;
    let detail =
        format!("{}; {}; {}", words("strata", &strata), words("etcd", &etcd), words("floor", &floor));
    context.report.ratio("put256_vs_etcd", ratio(&strata, &etcd, |load| load.rate), detail);
    Ok(())
}

/// One caller's latency.
pub async fn one(context: &mut Context) -> Outcome<()> {
    let Sides { strata, etcd, floor } = rounds(context, 1).await?;
    let detail =
        format!("{}; {}; {}", words("strata", &strata), words("etcd", &etcd), words("floor", &floor));
    context.report.ratio("put1_latency_vs_etcd", ratio(&strata, &etcd, |load| ms(load.p50)), detail);
    Ok(())
}
