//! SIGKILL of a writing process at any moment: under load, in checkpoints, while it opens. What it said
//! was acknowledged is there, whole, and a write that was under way is there whole or not at all.
//!
//! The test starts itself again as the writer. `STRATA_KILL_ROUNDS` sets the number of kills.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use strata_store::config::Config;
use strata_store::key::Key;
use strata_store::revision::Revision;
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Txn, Value};

use support::{Numbers, tiny};

const TEST: &str = "a_kill_at_any_moment_loses_nothing_acknowledged";
const DIRECTORY: &str = "STRATA_KILL_DIRECTORY";
const ROUNDS: &str = "STRATA_KILL_ROUNDS";
const DEFAULT_ROUNDS: u64 = 10;
const WRITERS: u64 = 8;

fn config() -> Config {
    Config { history_transactions: 200, segment_bytes: 64 << 10, checkpoint_bytes: 48 << 10, ..tiny() }
}

fn open(directory: &Path) -> Store {
    Store::open(config(), EngineChoice::Sled { directory: directory.to_owned() }).unwrap()
}

fn last_key(writer: u64) -> Key {
    Key::from(format!("{writer}/last"))
}

fn number(snapshot: &Snapshot, key: &Key) -> u64 {
    snapshot
        .get(key)
        .map_or(0, |record| std::str::from_utf8(&record.value[..8]).unwrap().trim().parse().unwrap())
}

fn value(number: u64) -> Value {
    Value::plain(format!("{number:8}{}", ".".repeat(number as usize * 37 % 900)))
}

/// Writes until it is killed, and says what was acknowledged.
async fn write(directory: PathBuf) {
    println!("\nopening");
    let store = open(&directory);
    println!("open");
    let snapshot = store.snapshot(ReadAt::Latest).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (store, from) = (store.clone(), number(&snapshot, &last_key(writer)) + 1);
        writers.spawn(async move {
            for number in from.. {
                let other = format!("{writer}/{}", number % 40);
                let txn = Txn::new().put(last_key(writer), value(number)).put(other, value(number));
                let done = store.commit(txn).await.unwrap();
                println!("acknowledged {writer} {number} {}", done.revision);
            }
        });
    }
    // History is given back all the time, so that segments go and checkpoints are needed.
    loop {
        let below = Revision::new(store.current_revision().get().saturating_sub(100));
        store.compact(below).await.unwrap();
        tokio::task::yield_now().await;
    }
}

/// What the parent knows of the writers.
#[derive(Default)]
struct Acknowledged {
    numbers: HashMap<u64, u64>,
    revision: u64,
    lines: u64,
}

impl Acknowledged {
    /// Takes note of one line of the writer.
    fn note(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("acknowledged ") else { return };
        let [writer, number, revision] =
            rest.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<u64>>()[..]
        else {
            return;
        };
        self.numbers.insert(writer, number);
        self.revision = self.revision.max(revision);
        self.lines += 1;
    }
}

fn start(directory: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// One life of the writer, ended after some acknowledged writes or some time into its opening.
fn live_and_die(directory: &Path, numbers: &mut Numbers, acknowledged: &mut Acknowledged) {
    let (mut child, mut lines) = start(directory);
    let in_opening = numbers.below(4) == 0;
    let enough = acknowledged.lines + 1 + numbers.below(1500);
    for line in lines.by_ref() {
        let line = line.unwrap();
        acknowledged.note(&line);
        if in_opening && line == "opening" {
            (0..numbers.below(20_000)).for_each(|_| std::thread::yield_now());
            break;
        }
        if acknowledged.lines >= enough {
            break;
        }
    }
    child.kill().unwrap();
    // What it said before it died counts.
    lines.map_while(Result::ok).for_each(|line| acknowledged.note(&line));
    assert!(!child.wait().unwrap().success(), "the writer ended by itself");
}

async fn check(directory: &Path, acknowledged: &Acknowledged, round: u64) {
    let store = open(directory);
    assert!(store.current_revision().get() >= acknowledged.revision, "round {round}: revisions are lost");
    let snapshot = store.snapshot(ReadAt::Latest).await.unwrap();
    for writer in 0..WRITERS {
        let said = acknowledged.numbers.get(&writer).copied().unwrap_or(0);
        let last = number(&snapshot, &last_key(writer));
        assert!(last >= said, "round {round}: write {said} of writer {writer} is lost, {last} is there");
        for back in 0..last.min(40) {
            let key = Key::from(format!("{writer}/{}", (last - back) % 40));
            let record = snapshot.get(&key).unwrap();
            assert_eq!(number(&snapshot, &key), last - back, "round {round}: {key} is of another write");
            assert_eq!(record.value, value(last - back).bytes, "round {round}: {key}");
        }
    }
    store.close().await;
}

#[test]
fn a_kill_at_any_moment_loses_nothing_acknowledged() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return runtime.block_on(write(directory.into()));
    }
    let rounds = std::env::var(ROUNDS).ok().and_then(|n| n.parse().ok()).unwrap_or(DEFAULT_ROUNDS);
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("store");
    let mut acknowledged = Acknowledged::default();
    let mut numbers = Numbers(0x5eed);
    for round in 1..=rounds {
        live_and_die(&directory, &mut numbers, &mut acknowledged);
        runtime.block_on(check(&directory, &acknowledged, round));
    }
    assert!(acknowledged.lines > rounds * 50, "only {} writes in {rounds} rounds", acknowledged.lines);
}
