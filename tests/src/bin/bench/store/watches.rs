//! Watches over gRPC without TLS: what reaches 1,000 watchers a second, and how soon after its commit 100 of them have an
//! event.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::context::{Context, Outcome};
use crate::etcd::{self, Etcd};
use crate::grpc;
use crate::host::Served;
use crate::load::summary;
use crate::report::{median, ms, number};
use crate::store::creates::New;
use crate::watching::{Events, WRITERS, Write, etcd_writes, rate, take};

/// Watchers whose rate is measured, and those whose delay is.
const MANY: usize = 1_000;
const FEW: usize = 100;
/// Pause of a writer between two writes while delays are measured: below what either side can do.
const PACE: Duration = Duration::from_millis(20);

/// Both sides, and clients of them.
struct Sides {
    _served: Served,
    strata: grpc::Client,
    strata_writer: grpc::Client,
    new: New,
    _etcd: Etcd,
    etcd: etcd::Client,
    etcd_writer: etcd::Client,
}

impl Sides {
    async fn start(context: &mut Context) -> Outcome<Self> {
        let served = Served::plain(&context.path("plain"))?;
        let server = Etcd::start(&context.path("etcd")).await?;
        Ok(Self {
            strata: grpc::Client::connect(&served.access).await?,
            strata_writer: grpc::Client::connect(&served.access).await?,
            new: New::default(),
            etcd: server.client().await?,
            etcd_writer: server.client().await?,
            _served: served,
            _etcd: server,
        })
    }

    async fn strata_watchers(&self, count: usize) -> Outcome<Vec<Events>> {
        Ok(self.strata.watch(count).await?.into_iter().map(Events::Grpc).collect())
    }

    async fn etcd_watchers(&self, count: usize) -> Outcome<Vec<Events>> {
        Ok(self.etcd.watch("/bench/", count).await?.into_iter().map(Events::Etcd).collect())
    }

    fn strata_writes(&self) -> impl Fn(usize) -> Write + Clone + Send + 'static {
        let (client, new) = (self.strata_writer.clone(), self.new.clone());
        move |_| {
            let (client, object) = (client.clone(), new.next());
            Box::pin(async move { revision_of(&client.create(grpc::config_maps(), object).await?) })
        }
    }
}

/// The revision in an object's metadata.
fn revision_of(object: &[u8]) -> Outcome<u64> {
    let object: serde_json::Value = serde_json::from_slice(object)?;
    let revision = object["metadata"]["resourceVersion"].as_str().ok_or("an object without revision")?;
    Ok(revision.parse()?)
}

/// 1,000 watchers.
pub async fn throughput(context: &mut Context) -> Outcome<()> {
    let sides = Sides::start(context).await?;
    let writes = context.size(500, 20);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        theirs.push(rate(sides.etcd_watchers(MANY).await?, writes, etcd_writes(&sides.etcd_writer)).await?);
        ours.push(rate(sides.strata_watchers(MANY).await?, writes, sides.strata_writes()).await?);
    }
    let ratio = median(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs));
    let detail =
        format!("strata {} events/s; etcd {} events/s", number(median(ours)), number(median(theirs)));
    context.report.ratio("watch1000_vs_etcd", ratio, detail);
    Ok(())
}

/// The 99th percentile, in milliseconds, of the time from a writer's answer to an event's arrival; an event that came
/// before its writer was answered counts as none.
async fn p99<W>(watchers: Vec<Events>, time: Duration, write: W) -> Outcome<f64>
where
    W: Fn(usize) -> Write + Clone + Send + 'static,
{
    let per_writer = (time.as_millis() / PACE.as_millis()).max(1) as usize;
    let writes = per_writer * WRITERS;
    let taking = tokio::spawn(take(watchers, writes));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let write = write.clone();
        writers.spawn(async move {
            let mut answered = Vec::new();
            let mut pace = tokio::time::interval(PACE);
            for turn in 0..per_writer {
                pace.tick().await;
                let revision = write(writer * per_writer + turn).await?;
                answered.push((revision, Instant::now()));
            }
            Outcome::Ok(answered)
        });
    }
    let mut answered = HashMap::new();
    while let Some(writer) = writers.join_next().await {
        answered.extend(writer??);
    }
    let taken = taking.await??;
    let late = |(at, revision): &(Instant, u64)| Some(at.saturating_duration_since(*answered.get(revision)?));
    Ok(ms(summary(taken.iter().filter_map(late).collect(), time).p99))
}

/// 100 watchers.
pub async fn delay(context: &mut Context) -> Outcome<()> {
    let sides = Sides::start(context).await?;
    let time = context.time();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        theirs.push(p99(sides.etcd_watchers(FEW).await?, time, etcd_writes(&sides.etcd_writer)).await?);
        ours.push(p99(sides.strata_watchers(FEW).await?, time, sides.strata_writes()).await?);
    }
    let ratio = median(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs));
    let detail = format!("strata {} ms; etcd {} ms", number(median(ours)), number(median(theirs)));
    context.report.ratio("watch_p99_vs_etcd", ratio, detail);
    Ok(())
}
