//! 1,000 watchers over REST, beside 1,000 of etcd.

use crate::context::{Context, Outcome};
use crate::etcd::Etcd;
use crate::host::Served;
use crate::report::{median, number};
use crate::rest;
use crate::store::creates::{New, PATH};
use crate::watching::{Events, Write, etcd_writes, rate};

/// Watchers.
const WATCHERS: usize = 1_000;

/// Events a second in all.
pub async fn throughput(context: &mut Context) -> Outcome<()> {
    let served = Served::shipped(&context.path("shipped")).await?;
    let (strata, writer) =
        (rest::Client::connect(&served.access).await?, rest::Client::connect(&served.access).await?);
    let server = Etcd::start(&context.path("etcd")).await?;
    let (etcd, other) = (server.client().await?, server.client().await?);
    let writes = context.size(500, 20);
    let new = New::default();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        let watchers = etcd.watch("/bench/", WATCHERS).await?.into_iter().map(Events::Etcd).collect();
        theirs.push(rate(watchers, writes, etcd_writes(&other)).await?);
        let watchers = strata.watch(PATH, WATCHERS).await?.into_iter().map(Events::Rest).collect();
        let (writer, new) = (writer.clone(), new.clone());
        let write = move |_| -> Write {
            let (writer, object) = (writer.clone(), new.next());
            Box::pin(async move { writer.create(PATH, object).await.map(|()| 0) })
        };
        ours.push(rate(watchers, writes, write).await?);
    }
    let ratio = median(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs));
    let detail =
        format!("strata {} events/s; etcd {} events/s", number(median(ours)), number(median(theirs)));
    context.report.ratio("watch1000_rest_vs_etcd", ratio, detail);
    Ok(())
}
