//! A ledger in a directory: money moves between accounts in transactions that hold or do not happen, a second task follows
//! them by a watch, and the program goes on where it ended.
//!
//!     cargo run -p strata-store --example ledger -- /tmp/ledger

use std::error::Error;
use std::path::PathBuf;

use strata_store::config::Config;
use strata_store::error::CommitError;
use strata_store::key::KeyRange;
use strata_store::snapshot::{ReadAt, Snapshot};
use strata_store::store::{EngineChoice, Store};
use strata_store::txn::{Condition, Txn, Value};
use strata_store::watch::{From, Watch, WatchItem};

const ACCOUNTS: [&str; 3] = ["accounts/ada", "accounts/bob", "accounts/eve"];
const OPENING_BALANCE: u64 = 100;
const TRANSFERS: u64 = 9;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let directory = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("ledger-data"), PathBuf::from);
    let store = Store::open(Config::default(), EngineChoice::Sled { directory })?;
    println!("open at revision {}", store.current_revision());
    open_accounts(&store).await?;

    let watch = store.watch(KeyRange::prefix("accounts/"), From::Now)?;
    let follower = tokio::spawn(follow(watch));
    for round in 0..TRANSFERS {
        let (from, to) = (round as usize % 3, (round as usize + 1) % 3);
        transfer(&store, ACCOUNTS[from], ACCOUNTS[to], 10 + round * 7).await?;
    }

    let snapshot = store.snapshot(ReadAt::Latest).await?;
    let total: u64 = ACCOUNTS.iter().map(|account| balance(&snapshot, account)).sum::<Result<u64, _>>()?;
    println!("{total} in all at revision {}", snapshot.revision());
    // Watches end when they have delivered everything.
    store.close().await;
    println!("{} transactions were followed", follower.await?);
    Ok(())
}

/// Makes the accounts, once: a second start finds them there.
async fn open_accounts(store: &Store) -> Outcome {
    let mut txn = Txn::new().cause("opening");
    for account in ACCOUNTS {
        txn = txn.when(account, Condition::Absent).put(account, Value::plain(OPENING_BALANCE.to_string()));
    }
    match store.commit(txn).await {
        Ok(done) => println!("accounts opened at revision {}", done.revision),
        Err(CommitError::Failed { key, .. }) => println!("{key} is there already"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Moves money, if there is enough; reads and tries again where somebody else was faster.
async fn transfer(store: &Store, from: &str, to: &str, amount: u64) -> Outcome {
    loop {
        let snapshot = store.snapshot(ReadAt::Latest).await?;
        let (has, gets) = (balance(&snapshot, from)?, balance(&snapshot, to)?);
        let Some(left) = has.checked_sub(amount) else {
            println!("{from} has {has}, {amount} are too many");
            return Ok(());
        };
        let at = |account: &str| {
            snapshot.get(&account.into()).map_or(Condition::Absent, |r| Condition::At(r.modified))
        };
        let txn = Txn::new()
            .when(from, at(from))
            .when(to, at(to))
            .put(from, Value::plain(left.to_string()))
            .put(to, Value::plain((gets + amount).to_string()))
            .cause(format!("transfer of {amount}"));
        match store.commit(txn).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Failed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn balance(snapshot: &Snapshot, account: &str) -> Outcome<u64> {
    let record = snapshot.get(&account.into()).ok_or_else(|| format!("there is no {account}"))?;
    Ok(std::str::from_utf8(&record.value)?.parse()?)
}

/// Tells of every transaction; gives how many there were when the store was closed.
async fn follow(mut watch: Watch) -> u64 {
    let mut count = 0;
    while let Ok(item) = watch.next().await {
        let WatchItem::Transaction(transaction) = item else { continue };
        count += 1;
        println!("revision {}: {}", transaction.revision, transaction.cause.escape_ascii());
        for change in &transaction.changes {
            let text = |record: &Option<std::sync::Arc<strata_store::record::Record>>| {
                record.as_ref().map_or_else(|| "nothing".to_owned(), |r| r.value.escape_ascii().to_string())
            };
            println!("  {}: {} -> {}", change.key, text(&change.previous), text(&change.record));
        }
    }
    count
}
