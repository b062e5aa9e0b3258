//! Watchers on either side: what reaches them, when, and how fast in all. Each watcher has a stream of its own, as each
//! client of a real server has; they share four connections.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::context::Outcome;
use crate::load::{VALUE_BYTES, each, key, value};
use crate::{etcd, grpc, rest};

/// Writers.
pub const WRITERS: usize = 4;
/// How long all events may take to arrive.
const LIMIT: Duration = Duration::from_secs(120);

/// One watcher, of any side.
pub enum Events {
    /// Strata over gRPC.
    Grpc(grpc::Events),
    /// Strata over REST; its events have no revision here.
    Rest(rest::Events),
    /// etcd.
    Etcd(etcd::Events),
}

impl Events {
    async fn next(&mut self, revisions: &mut Vec<u64>) -> Outcome<()> {
        match self {
            Events::Grpc(events) => events.next(revisions).await,
            Events::Rest(events) => events.next(revisions).await,
            Events::Etcd(events) => events.next(revisions).await,
        }
    }
}

/// A write under way; it gives its revision, zero where that is not told.
pub type Write = Pin<Box<dyn Future<Output = Outcome<u64>> + Send>>;

/// Puts into etcd.
pub fn etcd_writes(client: &etcd::Client) -> impl Fn(usize) -> Write + Clone + Send + 'static {
    let client = client.clone();
    move |index| {
        let client = client.clone();
        let bytes = value(index as u64, VALUE_BYTES).into();
        Box::pin(async move { client.put(key(index as u64), bytes).await })
    }
}

/// Takes so many events from each watcher; gives when and which.
pub async fn take(watchers: Vec<Events>, events: usize) -> Outcome<Vec<(Instant, u64)>> {
    let mut all = Vec::with_capacity(events * watchers.len());
    let mut tasks = JoinSet::new();
    for mut watcher in watchers {
        tasks.spawn(async move {
            let (mut taken, mut revisions) = (Vec::with_capacity(events), Vec::new());
            while taken.len() < events {
                watcher.next(&mut revisions).await?;
                let now = Instant::now();
                taken.extend(revisions.drain(..).map(|revision| (now, revision)));
            }
            Outcome::Ok(taken)
        });
    }
    let gather = async {
        while let Some(taken) = tasks.join_next().await {
            all.extend(taken??);
        }
        Outcome::Ok(())
    };
    tokio::time::timeout(LIMIT, gather).await.map_err(|_| "events are missing")??;
    Ok(all)
}

/// Events a second that reach all watchers while the writers write as fast as they can.
pub async fn rate<W>(watchers: Vec<Events>, writes: usize, write: W) -> Outcome<f64>
where
    W: Fn(usize) -> Write + Clone + Send + 'static,
{
    let start = Instant::now();
    let taking = tokio::spawn(take(watchers, writes));
    each(WRITERS, writes, move |index| {
        let written = write(index);
        async move { written.await.map(drop) }
    })
    .await?;
    let taken = taking.await??;
    Ok(taken.len() as f64 / start.elapsed().as_secs_f64())
}
