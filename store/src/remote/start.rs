//! Start: opens a store over etcd and starts the thread that holds its connections.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;

use tokio::sync::{mpsc, oneshot, watch};

use crate::committer::Request;
use crate::config::Config;
use crate::engine::etcd::EtcdConfig;
use crate::engine::etcd::history::{EtcdArchive, Historian, MAX_ERRANDS};
use crate::engine::etcd::layout::Layout;
use crate::engine::etcd::load::{self, Found, Loaded};
use crate::engine::etcd::members::Members;
use crate::error::{EngineError, OpenError};
use crate::remote::follow::Follower;
use crate::remote::{Pending, Remote, Seen, serve};
use crate::ring::{Ring, RingWriter};
use crate::shared::Shared;
use crate::upkeep::{Orders, Upkeep};

/// What the thread hands out when it has opened the store.
type Opened = Result<Arc<Shared>, OpenError>;

/// Opens a store over etcd; its requests come over `requests`.
///
/// # Errors
/// As `Store::open`.
pub fn open(
    config: &Config,
    etcd: EtcdConfig,
    requests: mpsc::Receiver<Request>,
) -> Result<(Arc<Shared>, Orders), OpenError> {
    let (orders, ordered) = Orders::channel();
    let (told, opened) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(OpenError::Thread)?;
    let (own_config, own_orders) = (config.clone(), orders.clone());
    let body = move || runtime.block_on(run(own_config, etcd, requests, own_orders, told));
    thread::Builder::new().name("store-etcd".to_owned()).spawn(body).map_err(OpenError::Thread)?;
    let shared = match std::thread::scope(|scope| scope.spawn(|| opened.blocking_recv()).join()) {
        Ok(Ok(opened)) => opened?,
        Ok(Err(_)) | Err(_) => {
            let reason = "the thread that speaks with etcd ended".to_owned();
            return Err(EngineError::Stopped { reason }.into());
        }
    };
    let upkeep = Upkeep::new(shared.clone(), config);
    let body = move || upkeep.run(&ordered);
    thread::Builder::new().name("store-upkeep".to_owned()).spawn(body).map_err(OpenError::Thread)?;
    Ok((shared, orders))
}

async fn run(
    config: Config,
    etcd: EtcdConfig,
    requests: mpsc::Receiver<Request>,
    orders: Orders,
    told: oneshot::Sender<Opened>,
) {
    let layout = Layout::new(&etcd.prefix);
    let prepared = async {
        let members = Arc::new(Members::new(&etcd)?);
        let found = load::open(&members, &layout).await?;
        Ok::<_, OpenError>((members, found))
    };
    let (members, found) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => return tell(told, Err(error)),
    };
    let Found { line, loaded: Loaded { state, at, fence }, oldest } = found;
    let ring = Arc::new(Ring::new(config.ring_transactions));
    let mut writer = RingWriter::new(ring.clone(), config.ring_bytes);
    writer.follow(state.revision);
    let (errands, errand) = mpsc::channel(MAX_ERRANDS);
    let reached = Arc::new(AtomicU64::new(state.revision.get()));
    let archive = Arc::new(EtcdArchive::new(errands, oldest, reached.clone()));
    let (published, receiver) = watch::channel(state.revision);
    let shared = Arc::new(Shared::new(state.clone(), oldest, ring, archive, receiver, config.clock.clone()));
    let (seen, seeing) = watch::channel(Seen { at, fence });
    let historian =
        Historian { members: members.clone(), layout: layout.clone(), line, reached: reached.clone() };
    let remote = Arc::new(Remote {
        members,
        layout,
        line,
        shared: shared.clone(),
        clock: config.clock.clone(),
        writer: RandomState::new().build_hasher().finish(),
        pending: Pending::default(),
        seen: seeing,
        fenced: tokio::sync::Mutex::new(None),
    });
    let follower = Follower { remote: remote.clone(), state, ring: writer, published, seen, reached };
    tell(told, Ok(shared));
    let line = async {
        tokio::select! {
            () = serve(remote, requests, orders) => {}
            () = follower.run() => {}
        }
    };
    // Readers of history may outlive the store.
    tokio::join!(line, historian.run(errand));
}

fn tell(told: oneshot::Sender<Opened>, opened: Opened) {
    if told.send(opened).is_err() {
        tracing::debug!("nobody waits for the store to open any more");
    }
}
