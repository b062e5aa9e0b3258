//! `strata store stats`.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::options::StoreStatus;
use strata_store::config::Config;
use strata_store::past::Which;
use strata_store::store::{EngineChoice, Store};
use strata_store::target::is_store;

use super::job::{self, Where, hinted};
use crate::commands::connection::ConnectionArgs;
use crate::commands::error::{CliResult, usage};
use crate::output::format::pretty_json;
use crate::output::{stdout, yaml};

pub const EXAMPLES: &str = "\
Examples:
  strata store stats
  strata store stats -o json | jq .watchLag
  strata store stats --store ./data/store                       while nothing runs";

/// The flags of `strata store stats`.
#[derive(Clone, Debug, Args)]
pub struct StatsArgs {
    /// As yaml or json
    #[arg(short = 'o', long, value_name = "yaml|json", value_parser = ["yaml", "json"])]
    output: Option<String>,
    #[command(flatten)]
    place: Where,
}

/// Runs it.
pub fn run(before: ConnectionArgs, args: StatsArgs) -> ExitCode {
    job::run(&args.place.log(), move |at, _| {
        let status = match args.place.engine()? {
            Some(engine) => at.block_on(offline(engine))?,
            None => {
                let session = args.place.session(before, at)?;
                at.block_on(session.client.status())?
            }
        };
        let text = match args.output.as_deref() {
            Some("json") => pretty_json(&value(&status)),
            Some(_) => yaml::to_string(&value(&status)),
            None => text(&status, Timestamp::now()),
        };
        Ok(stdout::data(&text)?)
    })
}

/// Refuses a place where no store is: opening it would make one.
pub async fn existing(engine: &EngineChoice) -> CliResult {
    match is_store(engine).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(usage("there is no store at the place that --store names")),
        Err(error) => Err(hinted(error)),
    }
}

async fn offline(engine: EngineChoice) -> CliResult<StoreStatus> {
    existing(&engine).await?;
    let store = Store::open(Config::default(), engine).map_err(hinted)?;
    let stats = store.stats();
    let oldest = store.moment(Which::At(stats.oldest)).await.ok().and_then(|moment| moment.time);
    store.close().await;
    let oldest = oldest.and_then(|time| Timestamp::try_from(time).ok());
    Ok(StoreStatus {
        revision: stats.current.get(),
        oldest_revision: stats.oldest.get(),
        keys: stats.keys,
        bytes: stats.bytes,
        log_bytes: stats.log_bytes,
        watchers: 0,
        watchers_behind: 0,
        watch_lag: 0,
        disk_bytes: stats.disk_bytes.unwrap_or_default(),
        disk_available_bytes: stats.disk_available.unwrap_or_default(),
        oldest_time: oldest.map(|time| format!("{time:.6}")).unwrap_or_default(),
    })
}

/// Bytes on disk for each byte that is there; `None` where either is not known.
fn amplification(status: &StoreStatus) -> Option<f64> {
    let is_known = status.disk_bytes > 0 && status.bytes > 0;
    is_known.then(|| (status.disk_bytes as f64 / status.bytes as f64 * 100.0).round() / 100.0)
}

fn value(status: &StoreStatus) -> Value {
    let known = |number: u64| if number > 0 { json!(number) } else { Value::Null };
    let oldest = (!status.oldest_time.is_empty()).then_some(&status.oldest_time);
    json!({
        "resourceVersion": status.revision,
        "oldestResourceVersion": status.oldest_revision,
        "oldestTime": oldest,
        "historyTransactions": status.revision.saturating_sub(status.oldest_revision),
        "keys": status.keys,
        "bytes": status.bytes,
        "logBytes": status.log_bytes,
        "diskBytes": known(status.disk_bytes),
        "diskAvailableBytes": known(status.disk_available_bytes),
        "amplification": amplification(status),
        "watches": status.watchers,
        "watchesBehind": status.watchers_behind,
        "watchLag": status.watch_lag,
    })
}

fn text(status: &StoreStatus, now: Timestamp) -> String {
    let since = status.oldest_time.parse::<Timestamp>().ok().map(|then| now.duration_since(then).as_secs());
    let since = since.map(|seconds| format!(", since {}", age(seconds.unsigned_abs()))).unwrap_or_default();
    let kept = status.revision.saturating_sub(status.oldest_revision);
    let mut lines = vec![
        ("Resource version", format!("{}, the newest", status.revision)),
        ("Oldest kept", format!("{} ({kept} before the newest{since})", status.oldest_revision)),
        ("Objects", format!("{} keys, {} of keys and values", status.keys, size(status.bytes))),
    ];
    if status.log_bytes > 0 {
        lines.push(("History", format!("{} of log", size(status.log_bytes))));
    }
    if status.disk_bytes > 0 {
        let times = amplification(status).map(|times| format!(", {times} times the objects"));
        let free = size(status.disk_available_bytes);
        lines
            .push(("Disk", format!("{}{}; {free} free", size(status.disk_bytes), times.unwrap_or_default())));
    }
    let behind = match status.watchers_behind {
        0 => "none behind".to_owned(),
        late => format!("{late} behind, the slowest by {} resource versions", status.watch_lag),
    };
    lines.push(("Watches", format!("{}, {behind}", status.watchers)));
    lines.iter().map(|(name, text)| format!("{:18}{text}\n", format!("{name}:"))).collect()
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} bytes"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_left_out() {
        let status =
            StoreStatus { revision: 9, oldest_revision: 4, keys: 2, bytes: 100, ..Default::default() };
        let said = text(&status, Timestamp::UNIX_EPOCH);
        assert!(said.contains("4 (5 before the newest)") && !said.contains("Disk"), "{said}");
        assert_eq!(value(&status)["diskBytes"], Value::Null);
        let status = StoreStatus { disk_bytes: 250, watchers: 3, watchers_behind: 1, watch_lag: 7, ..status };
        let said = text(&status, Timestamp::UNIX_EPOCH);
        assert!(said.contains("2.5 times") && said.contains("1 behind, the slowest by 7"), "{said}");
        assert_eq!(value(&status)["amplification"], json!(2.5));
    }
}
