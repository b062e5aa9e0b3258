//! A process that writes until it dies and says what was acknowledged; and the check of what it leaves. The test starts
//! itself again as the writer: see [`life`].

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
use tokio::runtime::Runtime;

use super::tiny;

const DIRECTORY: &str = "STRATA_WRITER_DIRECTORY";
const WRITERS: u64 = 8;

/// A runtime for the writer and for the checks.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Where this process is to write, if it was started as the writer.
pub fn life() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// How often a test is to do what it does: what the environment says, or so many times.
pub fn rounds(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).map_or(usually, |said| said.parse().unwrap())
}

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
pub async fn write(directory: PathBuf) {
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
pub struct Acknowledged {
    pub numbers: HashMap<u64, u64>,
    pub revision: u64,
    pub lines: u64,
}

impl Acknowledged {
    /// Takes note of one line of the writer.
    pub fn note(&mut self, line: &str) {
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

/// Starts the writer: this very program, with the test of this name.
pub fn start(test: &str, directory: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// Checks what is there: everything acknowledged, whole, and nothing by halves.
pub async fn check(directory: &Path, acknowledged: &Acknowledged, round: u64) {
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
