//! Space and its reclaiming: how much of the disk a much overwritten store takes once its history is given back, and
//! what giving back costs those who commit meanwhile.

use std::path::Path;
use std::time::Duration;

use strata_store::config::Config;
use strata_store::revision::Revision;
use strata_store::store::{EngineChoice, Store};

use crate::context::{Context, Outcome};
use crate::host;
use crate::load::{Load, VALUE_BYTES};
use crate::report::{median, ms, number};
use crate::store::puts;
use crate::store::reads::fill;

/// How often every key is overwritten.
const TIMES: usize = 10;
/// Commits that are kept while history is given back, and how often it is.
const KEPT: u64 = 1_000;
const COMPACT_EVERY: Duration = Duration::from_millis(100);
/// Bytes of a block as the file system counts them.
const BLOCK: u64 = 512;
/// Callers whose commits are timed.
const CALLERS: usize = 64;

/// Bytes that a directory takes of its disk.
fn on_disk(directory: &Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { on_disk(&entry.path())? } else { metadata.blocks() * BLOCK };
    }
    Ok(bytes)
}

/// Bytes on disk through live bytes.
pub async fn amplification(context: &mut Context) -> Outcome<()> {
    let keys = context.size(100_000, 20_000);
    let directory = context.path("store");
    let store = host::open(&directory)?;
    for _ in 0..TIMES {
        fill(&store, 0..keys, VALUE_BYTES).await?;
    }
    store.compact(store.current_revision()).await?;
    let live = store.stats().bytes;
    let bytes = on_disk(&directory)?;
    let detail = format!("{} MB on disk, {} MB live", number(bytes as f64 / 1e6), number(live as f64 / 1e6));
    context.report.ratio("space_amplification", bytes as f64 / live as f64, detail);
    store.close().await;
    Ok(())
}

/// Commits while history is given back all the time, until dropped.
async fn compacting(store: &Store) -> Outcome<()> {
    let mut pace = tokio::time::interval(COMPACT_EVERY);
    loop {
        pace.tick().await;
        let below = store.current_revision().get().saturating_sub(KEPT);
        store.compact(Revision::new(below)).await?;
    }
}

/// Commit latency while compacting through that without.
pub async fn stalls(context: &mut Context) -> Outcome<()> {
    let config = Config { history: Duration::from_secs(3600), ..Config::default() };
    let store = Store::open(config, EngineChoice::Sled { directory: context.path("store") })?;
    let time = context.time();
    let (mut calm, mut busy): (Vec<Load>, Vec<Load>) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        calm.push(puts::embedded(&store, CALLERS, time).await?);
        let load = puts::embedded(&store, CALLERS, time);
        busy.push(tokio::select! {
            load = load => load?,
            Err(error) = compacting(&store) => return Err(error),
        });
    }
    let detail = format!("{}; {}", puts::words("compacting", &busy), puts::words("without", &calm));
    let ratio = median(busy.iter().zip(&calm).map(|(busy, calm)| ms(busy.p99) / ms(calm.p99)));
    context.report.ratio("compaction_stall_p99", ratio, detail);
    store.close().await;
    Ok(())
}
