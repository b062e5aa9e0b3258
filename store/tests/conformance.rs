//! One suite of what every engine must do, run over each engine with usual and with tiny settings.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use strata_store::config::{Clock as _, Config};
use strata_store::error::{CommitError, ReadError, WatchError};
use strata_store::key::{Key, KeyRange};
use strata_store::past::{Moment, Which};
use strata_store::revision::Revision;
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::Store;
use strata_store::txn::{Condition, Transaction, Txn, Value};
use strata_store::watch::{From, Watch, WatchItem};

use support::promises::{Seen, resumable};
use support::{LIMIT, Numbers, Site, commit, next, plain, put, tiny};

type Check = fn(Arc<Site>) -> Pin<Box<dyn Future<Output = ()>>>;

fn checks() -> Vec<(&'static str, Check)> {
    vec![
        ("revisions rise by one", |site| Box::pin(revisions_rise_by_one(site))),
        ("conditions decide", |site| Box::pin(conditions_decide(site))),
        ("malformed is refused", |site| Box::pin(malformed_is_refused(site))),
        ("the stamp is spliced in", |site| Box::pin(the_stamp_is_spliced_in(site))),
        ("pages are of one snapshot", |site| Box::pin(pages_are_of_one_snapshot(site))),
        ("old revisions are exact", |site| Box::pin(old_revisions_are_exact(site))),
        ("moments are found", |site| Box::pin(moments_are_found(site))),
        ("watches keep their promises", |site| Box::pin(watches_keep_their_promises(site))),
        ("promises hold while history goes", |site| Box::pin(promises_hold_while_history_goes(site))),
        ("a watch waits and is woken", |site| Box::pin(a_watch_waits_and_is_woken(site))),
        ("compaction refuses what it took", |site| Box::pin(compaction_refuses_what_it_took(site))),
        ("history goes by age and count", |site| Box::pin(history_goes_by_age_and_count(site))),
        ("a held revision outlives the history", |site| Box::pin(a_held_revision_outlives_the_history(site))),
        ("a restart changes nothing", |site| Box::pin(a_restart_changes_nothing(site))),
        ("close is orderly", |site| Box::pin(close_is_orderly(site))),
        ("many writers make one line", |site| Box::pin(many_writers_make_one_line(site))),
    ]
}

async fn run(site: impl Fn() -> Site) {
    for (name, check) in checks() {
        let site = site();
        println!("{}: {name}", site.name);
        check(Arc::new(site)).await;
    }
}

#[tokio::test]
async fn memory_usual() {
    run(|| Site::memory("memory, usual", Config::default())).await;
}

#[tokio::test]
async fn memory_tiny() {
    run(|| Site::memory("memory, tiny", tiny())).await;
}

#[tokio::test]
async fn sled_usual() {
    run(|| Site::sled("sled, usual", Config::default())).await;
}

#[tokio::test]
async fn sled_tiny() {
    run(|| Site::sled("sled, tiny", tiny())).await;
}

#[cfg(feature = "etcd")]
#[tokio::test]
async fn etcd_usual() {
    if support::etcd::is_there() {
        let cluster = support::etcd::Cluster::start(1);
        run(|| Site::etcd("etcd, usual", Config::default(), &cluster)).await;
    }
}

#[cfg(feature = "etcd")]
#[tokio::test]
async fn etcd_tiny() {
    if support::etcd::is_there() {
        let cluster = support::etcd::Cluster::start(1);
        run(|| Site::etcd("etcd, tiny", tiny(), &cluster)).await;
    }
}

async fn latest(store: &Store) -> Snapshot {
    store.snapshot(ReadAt::Latest).await.unwrap()
}

async fn revisions_rise_by_one(site: Arc<Site>) {
    let store = site.open();
    if !site.is_shared() {
        assert_eq!(store.current_revision(), Revision::ZERO);
    }
    assert_eq!(put(&store, "a", "1").await, site.at(1));
    let both = commit(&store, Txn::new().put("a", plain("2")).put("b", plain("1"))).await;
    assert_eq!(both.revision, site.at(2));
    let [Some(a), Some(b)] = &both.records[..] else { panic!("two records") };
    assert_eq!((a.created, a.modified), (site.at(1), site.at(2)));
    assert_eq!((b.created, b.modified), (site.at(2), site.at(2)));
    let nothing = commit(&store, Txn::new().delete("absent").when("a", Condition::Present)).await;
    assert_eq!((nothing.revision, nothing.records), (site.at(2), vec![None]));
    let deleted = commit(&store, Txn::new().delete("a")).await;
    assert_eq!(deleted.records, vec![Some(a.clone())]);
    put(&store, "a", "3").await;
    let record = latest(&store).await.get(&"a".into()).unwrap();
    assert_eq!((record.created, record.modified), (site.at(4), site.at(4)));
    let stats = store.stats();
    assert_eq!((stats.keys, stats.bytes, stats.current), (2, 4, site.at(4)));
    store.close().await;
}

async fn conditions_decide(site: Arc<Site>) {
    let store = site.open();
    let at = put(&store, "a", "1").await;
    for (condition, key, holds) in [
        (Condition::Absent, "a", false),
        (Condition::Absent, "b", true),
        (Condition::Present, "a", true),
        (Condition::Present, "b", false),
        (Condition::At(at), "a", true),
        (Condition::At(at.next()), "a", false),
        (Condition::At(at), "b", false),
    ] {
        let outcome = store.commit(Txn::new().when(key, condition)).await;
        match outcome {
            Ok(committed) => assert!(holds && committed.revision == at, "{condition:?} of {key}"),
            Err(CommitError::Failed { key: failed, condition: of, actual }) => {
                assert!(!holds && failed == key.into() && of == condition);
                assert_eq!(actual.map(|record| record.modified), (key == "a").then_some(at));
            }
            Err(other) => panic!("{other}"),
        }
    }
    let all_or_nothing = Txn::new().when("a", Condition::Absent).put("c", plain("x")).delete("a");
    assert!(store.commit(all_or_nothing).await.is_err());
    assert_eq!(latest(&store).await.count(&KeyRange::all()), 1);
    store.close().await;
}

async fn malformed_is_refused(site: Arc<Site>) {
    let store = site.open();
    for txn in [
        Txn::new().put("a", plain("1")).delete("a"),
        Txn::new().put("a", Value::stamped("abc", 4)),
        Txn::new().put(vec![b'k'; 5000], plain("1")),
        Txn::new().put("a", Value::plain(vec![0; (8 << 20) + 1])),
    ] {
        assert!(matches!(store.commit(txn).await, Err(CommitError::Invalid { .. })));
    }
    let large = commit(&store, Txn::new().put("large", Value::plain(vec![7; (8 << 20) - 5]))).await;
    let again = commit(&store, Txn::new().put("large", Value::plain(vec![8; (8 << 20) - 5]))).await;
    assert_eq!(again.revision, large.revision.next());
    store.close().await;
}

async fn the_stamp_is_spliced_in(site: Arc<Site>) {
    let store = site.open();
    for (transactions, offset, before, after) in [(1, 0, "", "ab"), (2, 1, "a", "b"), (3, 2, "ab", "")] {
        let done = commit(&store, Txn::new().put("a", Value::stamped("ab", offset))).await;
        let revision = site.at(transactions);
        assert_eq!(done.revision, revision);
        assert_eq!(done.records[0].as_ref().unwrap().value, format!("{before}{revision}{after}"));
    }
    store.close().await;
    let store = site.open();
    let want = format!("ab{}", site.at(3));
    assert_eq!(latest(&store).await.get(&"a".into()).unwrap().value, want);
    store.close().await;
}

async fn pages_are_of_one_snapshot(site: Arc<Site>) {
    let store = site.open();
    for at in 0..10 {
        put(&store, &format!("p/{at}"), "x").await;
    }
    put(&store, "q", "x").await;
    let snapshot = latest(&store).await;
    let range = KeyRange::prefix("p/");
    let mut after: Option<Key> = None;
    let mut keys = Vec::new();
    loop {
        let page: Vec<_> = snapshot.range(&range, after.as_ref()).take(3).cloned().collect();
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        keys.extend(page.iter().map(|record| record.key.to_string()));
        commit(&store, Txn::new().delete(last.key.clone())).await;
    }
    assert_eq!(keys, (0..10).map(|at| format!("p/{at}")).collect::<Vec<_>>());
    assert_eq!(snapshot.count(&range), 10);
    assert_eq!(latest(&store).await.count(&range), 6);
    let inverted = KeyRange::new("z", Some("a".into()));
    assert_eq!(snapshot.range(&inverted, Some(&"b".into())).count(), 0);
    store.close().await;
}

/// Commits random transactions; gives all that changed something, as a watch saw them.
async fn write(store: &Store, seed: u64, count: usize) -> Vec<Arc<Transaction>> {
    let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
    let mut seen = Seen::new(KeyRange::all(), store.current_revision());
    let mut numbers = Numbers(seed);
    for _ in 0..count {
        let done = commit(store, numbers.txn()).await;
        seen.read_to(&mut watch, done.revision).await;
    }
    seen.transactions
}

async fn old_revisions_are_exact(site: Arc<Site>) {
    let store = site.open();
    let mut snapshots = vec![latest(&store).await];
    let mut numbers = Numbers(7);
    for _ in 0..120 {
        commit(&store, numbers.txn()).await;
        snapshots.push(latest(&store).await);
    }
    let current = store.current_revision();
    let mut answered = 0;
    for want in &snapshots {
        match store.snapshot(ReadAt::Exact(want.revision())).await {
            Ok(have) => {
                assert_eq!(have.revision(), want.revision());
                let range = KeyRange::all();
                assert!(have.range(&range, None).eq(want.range(&range, None)), "at {}", want.revision());
                answered += 1;
            }
            Err(ReadError::Compacted { oldest }) => assert!(want.revision() < oldest),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(answered > 100, "only {answered}");
    let future = store.snapshot(ReadAt::Exact(current.next())).await;
    assert!(matches!(future, Err(ReadError::Future { current: at }) if at == current));
    let future = store.snapshot(ReadAt::NotOlderThan(current.next())).await;
    assert!(matches!(future, Err(ReadError::Future { .. })));
    assert_eq!(store.snapshot(ReadAt::NotOlderThan(Revision::ZERO)).await.unwrap().revision(), current);
    store.close().await;
}

async fn moments_are_found(site: Arc<Site>) {
    let store = site.open();
    let start = site.clock.now();
    let mut written = Vec::new();
    for at in 0..60u64 {
        site.clock.advance(Duration::from_secs(1));
        written.push((put(&store, "k", &at.to_string()).await, site.clock.now()));
    }
    let oldest = store.oldest_revision();
    let mut answered = 0;
    for (revision, time) in &written {
        let (at, before) = (Which::At(*revision), Which::Before(*time + Duration::from_millis(900)));
        if *revision < oldest {
            assert!(matches!(store.moment(at).await, Err(ReadError::Compacted { oldest: o }) if o == oldest));
            assert!(matches!(store.moment(before).await, Err(ReadError::Compacted { .. })));
            continue;
        }
        let want = Moment { revision: *revision, time: Some(*time) };
        assert_eq!(store.moment(at).await.unwrap(), want, "by revision");
        assert_eq!(store.moment(before).await.unwrap(), want, "by time");
        answered += 1;
    }
    assert!(answered > 50, "only {answered}");
    let (newest, time) = *written.last().unwrap();
    assert_eq!(store.moment(Which::Now).await.unwrap(), Moment { revision: newest, time: Some(time) });
    let future = store.moment(Which::At(newest.next())).await;
    assert!(matches!(future, Err(ReadError::Future { current }) if current == newest));
    match store.moment(Which::Before(start)).await {
        Ok(moment) => {
            assert_eq!(moment, Moment { revision: Revision::ZERO, time: None }, "nothing was there")
        }
        Err(ReadError::Compacted { oldest }) => assert!(oldest > Revision::ZERO),
        Err(other) => panic!("{other}"),
    }
    store.compact(newest).await.unwrap();
    let gone = store.moment(Which::At(written[3].0)).await;
    assert!(matches!(gone, Err(ReadError::Compacted { .. })));
    let last = store.moment(Which::At(newest)).await.unwrap();
    assert_eq!(last.revision, newest);
    store.close().await;
}

async fn watches_keep_their_promises(site: Arc<Site>) {
    let store = site.open();
    let range = KeyRange::prefix("k1");
    let mut narrow = store.watch(range.clone(), From::WithInitial).unwrap();
    let mut lagging = store.watch(KeyRange::all(), From::Now).unwrap();
    let mut history = write(&store, 11, 150).await;
    // The lagging watch reads only now, from the log where the ring has moved on.
    let mut all = Seen::new(KeyRange::all(), Revision::ZERO);
    all.read_to(&mut lagging, store.current_revision()).await;
    all.check(&history);
    assert_eq!(all.transactions, history);
    let mut some = Seen::new(range.clone(), Revision::ZERO);
    some.read_to(&mut narrow, store.current_revision()).await;
    assert_eq!(some.initial.as_ref().unwrap().revision(), site.at(0));
    some.check(&history);
    history.extend(write(&store, 12, 20).await);
    some.read_to(&mut narrow, store.current_revision()).await;
    all.read_to(&mut lagging, store.current_revision()).await;
    some.check(&history);
    all.check(&history);
    let (oldest, current) = (store.oldest_revision(), store.current_revision());
    for after in (oldest.get()..=current.get()).step_by(9).map(Revision::new) {
        for (range, whole) in [(KeyRange::all(), &all), (range.clone(), &some)] {
            let mut watch = store.watch(range.clone(), From::After(after)).unwrap();
            let mut resumed = Seen::new(range, after);
            resumed.read_to(&mut watch, current).await;
            resumed.check(&history);
            resumable(whole, &resumed);
        }
    }
    let initial = store.watch(range.clone(), From::WithInitial).unwrap().next().await.unwrap();
    let WatchItem::Initial(snapshot) = initial else { panic!("no initial item") };
    let now = latest(&store).await;
    assert!(snapshot.range(&range, None).eq(now.range(&range, None)));
    store.close().await;
}

/// Watches of several ranges read while others write and compaction runs right behind the slowest of them; one is given
/// up and resumed again and again.
async fn promises_hold_while_history_goes(site: Arc<Site>) {
    let store = site.open();
    let start = store.current_revision();
    let mut truth = store.watch(KeyRange::all(), From::After(start)).unwrap();
    let mut watches: Vec<(Seen, Watch)> = ["", "k", "k1", "k15", "other"]
        .iter()
        .map(|prefix| {
            let range = KeyRange::prefix(*prefix);
            let watch = store.watch(range.clone(), From::After(start)).unwrap();
            (Seen::new(range, start), watch)
        })
        .collect();
    let (mut history, mut numbers) = (Seen::new(KeyRange::all(), start), Numbers(61));
    let compacting = tokio::spawn(compact_behind(store.clone()));
    for round in 0..30 {
        for _ in 0..8 {
            commit(&store, numbers.txn()).await;
        }
        let current = store.current_revision();
        history.read_to(&mut truth, current).await;
        for (at, (seen, watch)) in watches.iter_mut().enumerate() {
            // The later ones lag: they read the log where the ring has moved on.
            if round % (at + 1) == 0 {
                seen.read_to(watch, current).await;
            }
            if at == 1 {
                *watch = store.watch(seen.range.clone(), From::After(watch.progress())).unwrap();
            }
        }
        store.maintain().await.unwrap();
    }
    let current = store.current_revision();
    for (seen, watch) in &mut watches {
        seen.read_to(watch, current).await;
        seen.check(&history.transactions);
    }
    history.check(&history.transactions);
    resumable(&history, &watches[0].0);
    compacting.abort();
    store.close().await;
}

/// Gives up what every watch has read, all the time.
async fn compact_behind(store: Store) {
    loop {
        let stats = store.stats();
        let read = Revision::new(stats.current.get() - stats.watch_lag);
        if store.compact(read).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn a_watch_waits_and_is_woken(site: Arc<Site>) {
    let store = site.open();
    let mut watch = store.watch(KeyRange::single("a"), From::Now).unwrap();
    assert_eq!(store.stats().watchers, 1);
    put(&store, "b", "1").await;
    // Dropping a waiting future loses nothing.
    assert!(tokio::time::timeout(Duration::ZERO, watch.next()).await.is_err());
    assert!(watch.caught_up_to(site.at(1)) && watch.try_next().unwrap().is_none());
    let (item, revision) = tokio::join!(next(&mut watch), put(&store, "a", "1"));
    assert!(matches!(item, WatchItem::Transaction(t) if t.revision == revision));
    assert_eq!(watch.progress(), revision);
    let deadline = tokio::time::Instant::now() + LIMIT;
    let (waited, _) = tokio::join!(store.wait_for(revision.next(), deadline), put(&store, "b", "2"));
    assert_eq!(waited.unwrap(), revision.next());
    let past = tokio::time::Instant::now();
    assert!(matches!(store.wait_for(site.at(99), past).await, Err(ReadError::Future { .. })));
    assert!(matches!(store.watch(KeyRange::all(), From::After(site.at(99))), Err(WatchError::Future { .. })));
    drop(watch);
    assert_eq!(store.stats().watchers, 0);
    store.close().await;
}

async fn compaction_refuses_what_it_took(site: Arc<Site>) {
    let store = site.open();
    let history = write(&store, 21, 200).await;
    let current = store.current_revision();
    let mut behind = store.watch(KeyRange::all(), From::After(store.oldest_revision())).unwrap();
    let before = store.stats().log_bytes;
    let floor = Revision::new(current.get() - 3);
    assert_eq!(store.compact(floor).await.unwrap(), floor);
    assert_eq!(store.oldest_revision(), floor);
    assert!(store.stats().log_bytes <= before);
    let below = Revision::new(floor.get() - 1);
    let refused = store.snapshot(ReadAt::Exact(below)).await;
    assert!(matches!(refused, Err(ReadError::Compacted { oldest }) if oldest == floor));
    let refused = store.watch(KeyRange::all(), From::After(below));
    assert!(matches!(refused, Err(WatchError::Compacted { oldest }) if oldest == floor));
    let mut watch = store.watch(KeyRange::all(), From::After(floor)).unwrap();
    let mut seen = Seen::new(KeyRange::all(), floor);
    seen.read_to(&mut watch, current).await;
    seen.check(&history);
    store.snapshot(ReadAt::Exact(floor)).await.unwrap();
    // A watch that was far behind either still gets everything or is told, never less.
    let mut seen = Seen::new(KeyRange::all(), behind.progress());
    let told = loop {
        match tokio::time::timeout(LIMIT, behind.next()).await.expect("a watch hangs") {
            Ok(WatchItem::Transaction(transaction)) => seen.transactions.push(transaction),
            Ok(_) => {}
            Err(WatchError::Compacted { oldest }) => break oldest == floor,
            Err(other) => panic!("{other}"),
        }
        if behind.progress() == current {
            seen.progress.push((seen.transactions.len(), current));
            seen.check(&history);
            break true;
        }
    };
    assert!(told);
    assert_eq!(store.compact(Revision::new(u64::MAX)).await.unwrap(), current);
    store.close().await;
    let store = site.open();
    assert_eq!((store.oldest_revision(), store.current_revision()), (current, current));
    store.close().await;
}

async fn history_goes_by_age_and_count(site: Arc<Site>) {
    let store = site.open();
    store.maintain().await.unwrap();
    write(&store, 31, 200).await;
    let current = store.current_revision();
    // Far enough from the marks made while writing that this moment gets its own.
    site.clock.advance(site.config.history / 10);
    store.maintain().await.unwrap();
    assert_eq!(store.oldest_revision(), site.at(0), "nothing is old yet");
    site.clock.advance(site.config.history);
    store.maintain().await.unwrap();
    let kept = site.config.history_transactions;
    let newest = Revision::new(current.get().saturating_sub(kept));
    assert_eq!(store.oldest_revision(), newest.max(site.at(0)));
    store.close().await;
}

async fn a_held_revision_outlives_the_history(site: Arc<Site>) {
    let store = site.open();
    let (history, few) = (site.config.history, Duration::from_secs(10));
    let page = put(&store, "page", "1").await;
    write(&store, 51, site.config.history_transactions as usize + 60).await;
    let want: Vec<_> =
        store.snapshot(ReadAt::Exact(page)).await.unwrap().range(&KeyRange::all(), None).cloned().collect();
    // A reader who takes a page now and then, for longer than history is kept.
    for _ in 0..4 {
        store.hold(page, history);
        site.clock.advance(history.checked_sub(few).unwrap());
        store.maintain().await.unwrap();
        write(&store, 52, 5).await;
        let snapshot = store.snapshot(ReadAt::Exact(page)).await.unwrap();
        assert!(snapshot.range(&KeyRange::all(), None).eq(want.iter()));
    }
    // It went away without a word.
    site.clock.advance(history);
    store.maintain().await.unwrap();
    let gone = store.snapshot(ReadAt::Exact(page)).await;
    assert!(matches!(gone, Err(ReadError::Compacted { .. })), "{gone:?}");
    store.close().await;
}

async fn a_restart_changes_nothing(site: Arc<Site>) {
    let mut all = Vec::new();
    for round in 0..4 {
        let store = site.open();
        assert_eq!(store.current_revision(), site.at(all.len() as u64));
        all.extend(write(&store, 41 + round, 60).await);
        let want = latest(&store).await;
        store.close().await;
        let store = site.open();
        let have = latest(&store).await;
        assert_eq!(have.revision(), want.revision());
        let range = KeyRange::all();
        assert!(have.range(&range, None).eq(want.range(&range, None)), "round {round}");
        let oldest = store.oldest_revision();
        let mut watch = store.watch(KeyRange::all(), From::After(oldest)).unwrap();
        let mut seen = Seen::new(KeyRange::all(), oldest);
        seen.read_to(&mut watch, have.revision()).await;
        seen.check(&all);
        if round % 2 == 0 {
            store.compact(have.revision()).await.unwrap();
        }
        store.close().await;
    }
}

async fn close_is_orderly(site: Arc<Site>) {
    let store = site.open();
    let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
    put(&store, "a", "1").await;
    if !site.is_shared() {
        let second = Store::open(site.config.clone(), site.engine.clone());
        assert!(matches!(second, Err(strata_store::error::OpenError::Locked { .. })));
    }
    store.close().await;
    assert!(matches!(store.commit(Txn::new().delete("a")).await, Err(CommitError::Closed)));
    assert!(matches!(next(&mut watch).await, WatchItem::Transaction(_)), "delivered before the end");
    assert!(matches!(watch.next().await, Err(WatchError::Closed)));
    assert!(matches!(watch.next().await, Err(WatchError::Closed)), "and stays so");
    let deadline = tokio::time::Instant::now() + LIMIT;
    assert!(matches!(store.wait_for(site.at(9), deadline).await, Err(ReadError::Closed)));
    assert!(matches!(store.maintain().await, Err(ReadError::Closed)));
    assert_eq!(latest(&store).await.count(&KeyRange::all()), 1, "what was read stays readable");
    store.close().await;
}

async fn many_writers_make_one_line(site: Arc<Site>) {
    let store = site.open();
    put(&store, "counter", "0").await;
    let mut watch = store.watch(KeyRange::all(), From::Now).unwrap();
    let start = store.current_revision();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let store = store.clone();
        writers.spawn(async move {
            for _ in 0..20 {
                increment(&store).await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    let current = store.current_revision();
    assert_eq!(current.get(), start.get() + 320);
    assert_eq!(latest(&store).await.get(&"counter".into()).unwrap().value, "320");
    let mut seen = Seen::new(KeyRange::all(), start);
    seen.read_to(&mut watch, current).await;
    let counts: Vec<_> = seen.transactions.iter().map(|t| t.changes[0].record.clone().unwrap()).collect();
    assert!(counts.iter().enumerate().all(|(at, record)| record.value == (at + 1).to_string()));
    store.close().await;
}

/// Adds one to the counter, trying again when another was faster.
async fn increment(store: &Store) {
    loop {
        let record = latest(store).await.get(&"counter".into()).unwrap();
        let count: u64 = std::str::from_utf8(&record.value).unwrap().parse().unwrap();
        let txn = Txn::new()
            .when("counter", Condition::At(record.modified))
            .put("counter", Value::plain((count + 1).to_string()));
        match store.commit(txn).await {
            Ok(_) => return,
            Err(CommitError::Failed { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
