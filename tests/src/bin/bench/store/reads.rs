//! A range of 10,000 values of 2 KiB, read in one piece from one revision.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use strata_store::key::KeyRange;
use strata_store::record::Record;
use strata_store::snapshot::ReadAt;
use strata_store::store::Store;
use strata_store::txn::{Txn, Value};

use crate::context::{Context, Outcome};
use crate::etcd::Etcd;
use crate::host;
use crate::load::{key, value};
use crate::report::{median, ms, number};

/// Bytes of a value.
const BYTES: usize = 2048;
/// Puts of one transaction while filling.
const BATCH: usize = 128;
/// Reads of one side in a round.
const READS: usize = 5;
/// What all keys begin with.
pub const PREFIX: &str = "/bench/";

/// Puts values `from..to` into a store.
pub async fn fill(store: &Store, numbers: std::ops::Range<u64>, bytes: usize) -> Outcome<()> {
    let all: Vec<u64> = numbers.collect();
    for batch in all.chunks(BATCH) {
        let put = |txn: Txn, at: &u64| txn.put(key(*at), Value::plain(value(*at, bytes)));
        store.commit(batch.iter().fold(Txn::new(), put)).await?;
    }
    Ok(())
}

/// The values `from..to` for etcd.
pub fn pairs(numbers: std::ops::Range<u64>, bytes: usize) -> Vec<(String, Bytes)> {
    numbers.map(|at| (key(at), value(at, bytes).into())).collect()
}

async fn read(store: &Store) -> Outcome<usize> {
    let snapshot = store.snapshot(ReadAt::Latest).await?;
    let range = KeyRange::prefix(PREFIX);
    let records: Vec<Arc<Record>> = snapshot.range(&range, None).cloned().collect();
    Ok(records.len())
}

/// Embedded and in etcd.
pub async fn range(context: &mut Context) -> Outcome<()> {
    let count = context.size(10_000, 1_000);
    let store = host::open(&context.path("store"))?;
    let etcd = Etcd::start(&context.path("etcd")).await?;
    let client = etcd.client().await?;
    fill(&store, 0..count, BYTES).await?;
    client.fill(pairs(0..count, BYTES)).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..READS {
            let start = Instant::now();
            let read = client.range(PREFIX).await?;
            other.push(ms(start.elapsed()));
            let start = Instant::now();
            let same = self::read(&store).await? == read && read as u64 == count;
            own.push(ms(start.elapsed()));
            if !same {
                return Err("the two sides do not hold the same keys".into());
            }
        }
        ours.push(median(own));
        theirs.push(median(other));
    }
    let ratio = median(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs));
    let detail = format!("strata {} ms; etcd {} ms", number(median(ours)), number(median(theirs)));
    context.report.ratio("range10k_vs_etcd", ratio, detail);
    store.close().await;
    Ok(())
}
