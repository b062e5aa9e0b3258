//! The steps: 10,000 pods come up, pods are deleted and replaced, a large deployment is rolled, and everything is looked
//! at anew without a write.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use strata_client::options::DeleteOptions;
use strata_model::object::Object;
use strata_model::resource::builtin;
use strata_tests::platform::signal;

use crate::context::{Context, Outcome};
use crate::load::{each, scatter, summary};
use crate::process;
use crate::report::{ms, number};
use crate::scale::site::Site;

/// Creates at a time.
const CREATORS: usize = 16;
/// Pods of one deployment.
const REPLICAS: usize = 50;
/// Between two looks for a replacement.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long controllers must take nothing to count as at rest, what little they may take in that, and how long it may
/// take until they are.
const REST: Duration = Duration::from_secs(3);
const REST_MICROS: u64 = 60_000;
const REST_LIMIT: Duration = Duration::from_secs(300);
/// How long is looked at what they take at rest.
const IDLE: Duration = Duration::from_secs(10);
/// Bytes of a megabyte.
const MB: f64 = 1e6;

/// All of them, on one platform.
pub async fn all(context: &mut Context) -> Outcome<()> {
    let nodes = context.size(1_000, 20);
    let deployments = context.size(200, 4);
    let site = Site::start(nodes)?;
    running(context, &site, deployments).await?;
    memory(context, &site)?;
    drift(context, &site, deployments).await?;
    rollout(context, &site).await?;
    resync(context, &site).await?;
    again(context, &site).await
}

fn name(index: usize) -> String {
    format!("web-{index:04}")
}

async fn running(context: &mut Context, site: &Site, deployments: usize) -> Outcome<()> {
    let start = Instant::now();
    let client = site.client.clone();
    each(CREATORS, deployments, move |index| {
        let client = client.clone();
        async move { Site::deploy(&client, &name(index), REPLICAS).await }
    })
    .await?;
    let names: Vec<String> = (0..deployments).map(name).collect();
    let took = site.settled(&names, start).await?;
    let detail = format!("{deployments} deployments of {REPLICAS} pods");
    context.report.figure("running_s", took.as_secs_f64(), "s", detail);
    Ok(())
}

fn memory(context: &mut Context, site: &Site) -> Outcome<()> {
    let mut each = Vec::new();
    for pid in site.controllers() {
        let line = strata_tests::platform::command_line(pid);
        let name =
            line.split_whitespace().skip_while(|word| *word != "controller").nth(1).unwrap_or("?").to_owned();
        each.push((name, process::proportional(pid)? as f64 / MB));
    }
    each.sort_by(|a, b| b.1.total_cmp(&a.1));
    let detail: Vec<String> = each.iter().map(|(name, mb)| format!("{name} {}", number(*mb))).collect();
    let sum = each.iter().map(|(_, mb)| mb).sum();
    context.report.figure("controllers_mb", sum, "MB", detail.join(", "));
    Ok(())
}

fn is_running(pod: &Object) -> bool {
    let value = pod.to_value().unwrap_or_default();
    value["status"]["phase"] == "Running" && !pod.meta().is_deleting()
}

async fn drift(context: &mut Context, site: &Site, deployments: usize) -> Outcome<()> {
    let samples = context.size(100, 5);
    let mut times = Vec::new();
    for sample in 0..samples {
        let labels = format!("app={}", name((scatter(sample as u64) % deployments as u64) as usize));
        let pods = site.list(&builtin::POD, &labels).await?;
        let victim = pods.first().ok_or("a deployment without pods")?.key();
        let start = Instant::now();
        site.client.delete(&builtin::POD, &victim, &DeleteOptions::default()).await?;
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let pods = site.list(&builtin::POD, &labels).await?;
            if pods.iter().filter(|pod| pod.key() != victim && is_running(pod)).count() >= REPLICAS {
                break;
            }
        }
        times.push(start.elapsed());
    }
    let load = summary(times, Duration::from_secs(1));
    let detail = format!("{samples} pods deleted, p50 {} ms", number(ms(load.p50)));
    context.report.figure("drift_p99_ms", ms(load.p99), "ms", detail);
    Ok(())
}

async fn rollout(context: &mut Context, site: &Site) -> Outcome<()> {
    let replicas = context.size(1_000, 20);
    let big = "big".to_owned();
    Site::deploy(&site.client, &big, replicas).await?;
    site.settled(std::slice::from_ref(&big), Instant::now()).await?;
    let containers = json!([{"name": "main", "image": "registry.example/bench:2"}]);
    let start = Instant::now();
    site.patch(&big, json!({"spec": {"template": {"spec": {"containers": containers}}}})).await?;
    let took = site.settled(&[big], start).await?;
    context.report.figure("rollout_s", took.as_secs_f64(), "s", format!("{replicas} pods, 25 %/25 %"));
    Ok(())
}

/// Waits until controllers take no CPU; gives what they took in all.
async fn rest(site: &Site, mut known: impl FnMut(&[i32]) -> bool) -> Outcome<u64> {
    let end = Instant::now() + REST_LIMIT;
    let (mut looks, mut last) = (tokio::time::interval(REST), None);
    while Instant::now() < end {
        looks.tick().await;
        let pids = site.controllers();
        // A process that is just being replaced is looked at again.
        let Ok(cpu) = Site::cpu(&pids) else { continue };
        if known(&pids) && last.is_some_and(|last: u64| cpu.abs_diff(last) < REST_MICROS) {
            return Ok(cpu);
        }
        last = Some(cpu);
    }
    Err("the controllers do not come to rest".into())
}

/// Every controller looks at all of its keys anew, of which none has anything to do.
async fn resync(context: &mut Context, site: &Site) -> Outcome<()> {
    let cpu = |site: &Site| Site::cpu(&site.controllers());
    let before = site.revisions().await?;
    rest(site, |_| true).await?;
    let idle = Instant::now();
    let from = cpu(site)?;
    tokio::time::timeout(IDLE, std::future::pending::<()>()).await.unwrap_or_default();
    let idle = (cpu(site)? - from) as f64 / idle.elapsed().as_secs_f64();
    let (start, from) = (Instant::now(), cpu(site)?);
    let keys = site.resync()?;
    let end = rest(site, |_| true).await?;
    // What they take in any case is not the work of these keys.
    let took = (end - from) as f64 - idle * start.elapsed().as_secs_f64();
    let after = site.revisions().await?;
    let writes = after.iter().filter(|(key, revision)| before.get(*key) != Some(*revision)).count();
    let detail = format!("{keys} keys of all controllers, {} s of CPU", number(took / 1e6));
    context.report.figure("noop_us_per_key", took.max(0.0) / keys.max(1) as f64, "µs", detail);
    context.report.figure("noop_writes", writes as f64, "writes", "deployments, replica sets, pods, events");
    Ok(())
}

/// Every controller is ended and started anew by the supervisor: it reads everything and plans every key.
async fn again(context: &mut Context, site: &Site) -> Outcome<()> {
    rest(site, |_| true).await?;
    let before = site.revisions().await?;
    let old = site.controllers();
    old.iter().for_each(|pid| signal(*pid, Signal::KILL));
    let count = old.len();
    let cpu =
        rest(site, move |pids| pids.len() == count && pids.iter().all(|pid| !old.contains(pid))).await?;
    let after = site.revisions().await?;
    let writes = after.iter().filter(|(key, revision)| before.get(*key) != Some(*revision)).count();
    let objects = before.len();
    let detail = format!(
        "{count} processes started anew over {objects} objects, {} s of CPU with the reading, {writes} writes",
        number(cpu as f64 / 1e6)
    );
    context.report.figure("restart_us_per_object", cpu as f64 / objects as f64, "µs", detail);
    Ok(())
}
