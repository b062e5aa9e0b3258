//! A store whose connection to etcd is cut at the worst moments: before a request arrives, and after it was
//! done but before the answer. Each write happens once, and its writer is told. And connections with TLS.

#![cfg(feature = "etcd")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use strata_store::config::Config;
use strata_store::engine::etcd::{EtcdConfig, EtcdIdentity};
use strata_store::error::CommitError;
use strata_store::key::KeyRange;
use strata_store::snapshot::ReadAt;
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Txn, Value};
use strata_store::watch::{From, WatchItem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use support::etcd::{Cluster, is_there};
use support::promises::Seen;
use support::{LIMIT, commit, next, plain, put, tiny};

/// Which direction a wire holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Requests,
    Answers,
}

/// What the wire does now: what it holds back, and how often it was cut.
#[derive(Clone, Copy, Debug, Default)]
struct Mode {
    held: Option<Side>,
    cuts: u64,
}

/// A wire between a store and etcd.
struct Wire {
    address: SocketAddr,
    mode: Arc<watch::Sender<Mode>>,
    /// How many pieces were held back.
    held: watch::Receiver<u64>,
}

impl Wire {
    async fn to(server: &str) -> Wire {
        let target: SocketAddr = server.strip_prefix("http://").unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mode, _) = watch::channel(Mode::default());
        let (mode, (count, held)) = (Arc::new(mode), watch::channel(0));
        let (modes, count) = (mode.clone(), Arc::new(count));
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(target).await else { continue };
                let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
                let pump =
                    |from, to, side| tokio::spawn(pump(from, to, side, modes.subscribe(), count.clone()));
                pump(from_near, to_far, Side::Requests);
                pump(from_far, to_near, Side::Answers);
            }
        });
        Wire { address, mode, held }
    }

    fn hold(&self, side: Side) {
        self.mode.send_modify(|mode| mode.held = Some(side));
    }

    fn cut(&self) {
        self.mode.send_modify(|mode| *mode = Mode { held: None, cuts: mode.cuts + 1 });
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    side: Side,
    mut mode: watch::Receiver<Mode>,
    count: Arc<watch::Sender<u64>>,
) {
    let cuts = mode.borrow().cuts;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read.unwrap_or(0),
            _ = mode.wait_for(|mode| mode.cuts != cuts) => return,
        };
        if mode.borrow().held == Some(side) {
            count.send_modify(|count| *count += 1);
        }
        let goes_on = mode.wait_for(|mode| mode.cuts != cuts || mode.held != Some(side)).await.is_ok();
        if read == 0 || !goes_on || mode.borrow().cuts != cuts {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

fn open(etcd: &EtcdConfig) -> Store {
    Store::open(Config { history_transactions: u64::MAX, ..tiny() }, EngineChoice::Etcd(etcd.clone()))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_connection_is_cut_happens_once() {
    if !is_there() {
        return;
    }
    let cluster = Cluster::start(1);
    let direct = cluster.store();
    let near = open(&direct);
    let mut wire = Wire::to(&direct.servers[0]).await;
    let far = open(&EtcdConfig { servers: vec![format!("http://{}", wire.address)], ..direct });
    let start = near.current_revision();
    let mut watch = near.watch(KeyRange::all(), From::Now).unwrap();
    let mut written = Vec::new();
    for round in 0..12 {
        let side = if round % 2 == 0 { Side::Answers } else { Side::Requests };
        wire.held.mark_unchanged();
        wire.hold(side);
        let key = format!("k{round}");
        // Had it happened before, this would not hold when it is sent again.
        let txn = Txn::new().when(key.as_str(), Condition::Absent).put(key.as_str(), plain("x"));
        let store = far.clone();
        let writer = tokio::spawn(async move { store.commit(txn).await });
        let seen = match side {
            Side::Answers => Some(next(&mut watch).await),
            Side::Requests => {
                tokio::time::timeout(LIMIT, wire.held.changed()).await.unwrap().unwrap();
                None
            }
        };
        wire.cut();
        let done = tokio::time::timeout(LIMIT, writer).await.unwrap().unwrap().unwrap();
        let seen = match seen {
            Some(seen) => seen,
            None => next(&mut watch).await,
        };
        assert!(matches!(seen, WatchItem::Transaction(t) if t.revision == done.revision), "{side:?}");
        written.push(done.revision);
    }
    let end = near.snapshot(ReadAt::Latest).await.unwrap().revision();
    let mut watch = far.watch(KeyRange::all(), From::After(start)).unwrap();
    let mut seen = Seen::new(KeyRange::all(), start);
    seen.read_to(&mut watch, end).await;
    let happened: Vec<_> = seen.transactions.iter().map(|transaction| transaction.revision).collect();
    assert_eq!(happened, written);
    near.close().await;
    far.close().await;
}

#[tokio::test]
async fn certificates_on_both_sides() {
    if !is_there() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let pair = |hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(hosts).unwrap().signed_by(&key, &authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let file = |name: &str, pem: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = pair(&["127.0.0.1"]);
    let flags = [
        ("cert-file", file("server.crt", &certificate)),
        ("key-file", file("server.key", &key)),
        ("trusted-ca-file", file("ca.crt", &authority.pem())),
        ("client-cert-auth", "true".to_owned()),
    ];
    let cluster = Cluster::start_with(1, "https", &flags);
    let (certificate, key) = pair(&["client"]);
    let mut etcd = cluster.store();
    etcd.authority_pem = Some(authority.pem().into_bytes());
    etcd.identity =
        Some(EtcdIdentity { certificate_pem: certificate.into_bytes(), key_pem: key.into_bytes() });
    let store = open(&etcd);
    let revision = put(&store, "a", "1").await;
    assert_eq!(store.snapshot(ReadAt::Latest).await.unwrap().revision(), revision);
    store.close().await;
    // Without a certificate of its own nobody is let in; the opening tries for a while.
    let stranger = EtcdConfig { identity: None, ..etcd };
    assert!(Store::open(tiny(), EngineChoice::Etcd(stranger)).is_err());
}

#[tokio::test]
async fn a_full_etcd_refuses_puts_and_takes_deletes() {
    if !is_there() {
        return;
    }
    let quota = ("quota-backend-bytes", (6 << 20).to_string());
    let cluster = Cluster::start_with(1, "http", &[quota]);
    let etcd = cluster.store();
    let (store, other) = (open(&etcd), open(&etcd));
    let mut written = 0;
    let refused = loop {
        let key = format!("k{written}");
        match store.commit(Txn::new().put(key.as_str(), Value::plain(vec![b'x'; 256 << 10]))).await {
            Ok(_) => written += 1,
            Err(refused) => break refused,
        }
        assert!(written < 100, "it never fills");
    };
    assert!(
        matches!(refused, CommitError::NoSpace { needed, missing: None } if needed > 256 << 10),
        "{refused:?}"
    );
    let snapshot = other.snapshot(ReadAt::Latest).await.unwrap();
    assert_eq!(snapshot.count(&KeyRange::all()), written);
    let before = snapshot.get(&"k0".into()).unwrap();
    let delete = || Txn::new().when("k0", Condition::At(before.modified)).delete("k0");
    let mut watch = other.watch(KeyRange::all(), From::Now).unwrap();
    let gone = commit(&store, delete()).await;
    assert_eq!(gone.records, [Some(before.clone())]);
    let again = store.commit(delete()).await;
    assert!(matches!(again, Err(CommitError::Failed { actual: None, .. })));
    let WatchItem::Transaction(seen) = next(&mut watch).await else { panic!("no transaction") };
    assert_eq!((seen.revision, &seen.changes[0].previous), (gone.revision, &Some(before)));
    assert_eq!(store.snapshot(ReadAt::Latest).await.unwrap().count(&KeyRange::all()), written - 1);
    store.close().await;
    other.close().await;
}
