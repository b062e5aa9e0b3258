//! A million keys: how soon a store is open again after it was killed, and how much memory it has then.

use crate::context::{Context, Outcome};
use crate::etcd::Etcd;
use crate::host::{self, Opened};
use crate::load::{VALUE_BYTES, each};
use crate::report::{median, ms, number};
use crate::store::reads::{fill, pairs};

/// Keys put by one worker at a time.
const PIECE: u64 = 1_024;
/// Workers that fill.
const WORKERS: usize = 8;
/// Bytes of a mebibyte.
const MIB: f64 = 1024.0 * 1024.0;

/// Opens and memory.
pub async fn open(context: &mut Context) -> Outcome<()> {
    let keys: u64 = context.size(1_000_000, 4_096);
    let pieces = keys.div_ceil(PIECE);
    let piece = move |index: usize| index as u64 * PIECE..((index as u64 + 1) * PIECE).min(keys);
    let directory = context.path("store");
    let store = host::open(&directory)?;
    each(WORKERS, pieces as usize, move |index| {
        let store = store.clone();
        async move { fill(&store, piece(index), VALUE_BYTES).await }
    })
    .await?;
    let etcd = Etcd::start(&context.path("etcd")).await?;
    let client = etcd.client().await?;
    each(WORKERS, pieces as usize, move |index| {
        let client = client.clone();
        async move { client.fill(pairs(piece(index), VALUE_BYTES)).await }
    })
    .await?;
    let mut data = etcd.kill()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        let start = std::time::Instant::now();
        let etcd = Etcd::start(&data).await?;
        theirs.push((ms(start.elapsed()), etcd.usage()?.resident as f64));
        data = etcd.kill()?;
        let opened = Opened::new(&directory)?;
        ours.push((ms(opened.opened_in), opened.usage()?.resident as f64));
    }
    let times = |side: &[(f64, f64)]| median(side.iter().map(|(time, _)| *time));
    let memory = |side: &[(f64, f64)]| median(side.iter().map(|(_, memory)| *memory));
    let detail = format!("strata {} ms; etcd {} ms", number(times(&ours)), number(times(&theirs)));
    let pairs = || ours.iter().zip(&theirs);
    let ratio = median(pairs().map(|(ours, theirs)| ours.0 / theirs.0));
    context.report.ratio("open1m_vs_etcd", ratio, detail);
    let detail =
        format!("strata {} MiB; etcd {} MiB", number(memory(&ours) / MIB), number(memory(&theirs) / MIB));
    let ratio = median(pairs().map(|(ours, theirs)| ours.1 / theirs.1));
    context.report.ratio("memory1m_vs_etcd", ratio, detail);
    Ok(())
}
