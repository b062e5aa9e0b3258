//! LIST of 10,000 pods, beside the same server stack sending one prebuilt buffer, and beside a LIST that selects 1 %.

use std::time::Instant;

use bytes::Bytes;

use crate::api::pods::{self, ONE_IN, POD_BYTES};
use crate::context::{Context, Outcome};
use crate::grpc;
use crate::host::Served;
use crate::report::{median, ms, number};
use crate::rest::Client;

/// Where the pods are.
const PATH: &str = "/api/v1/namespaces/default/pods";
/// Requests of one kind in a round.
const TURNS: usize = 5;

async fn timed(client: &Client, path: &str) -> Outcome<(f64, u64)> {
    let start = Instant::now();
    let bytes = client.ask("GET", path, "application/json", Bytes::new()).await?;
    Ok((ms(start.elapsed()), bytes))
}

/// All of it.
pub async fn lists(context: &mut Context) -> Outcome<()> {
    let count = context.size(10_000, 500);
    let directory = context.path("shipped");
    let served = Served::shipped(&directory).await?;
    pods::fill(&grpc::Client::connect(&served.access).await?, count).await?;
    let client = Client::connect(&served.access).await?;
    let (_, bytes) = timed(&client, PATH).await?;
    let fixed = Served::fixed(&directory, bytes, &served.access)?;
    let plain = Client::connect(&fixed.access).await?;
    let selected = format!("{PATH}?labelSelector=tier%3Drare");
    let (mut full, mut few, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..context.rounds {
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            a.push(timed(&client, PATH).await?.0);
            b.push(timed(&plain, "/").await?.0);
            let (time, part) = timed(&client, &selected).await?;
            c.push(time);
            let expected = (count / ONE_IN * POD_BYTES) as u64;
            if part < expected / 2 || part > expected * 2 {
                return Err(format!("the selected list has {part} bytes, not about {expected}").into());
            }
        }
        full.push(median(a));
        floor.push(median(b));
        few.push(median(c));
    }
    let [listed, sent, chosen] = [&full, &floor, &few].map(|all| number(median(all.iter().copied())));
    let through = |one: &[f64], other: &[f64]| median(one.iter().zip(other).map(|(one, other)| one / other));
    let detail = format!("list {listed} ms; one buffer {sent} ms; {} MB", number(bytes as f64 / 1e6));
    context.report.ratio("list10k_vs_static", through(&full, &floor), detail);
    let detail = format!("selected {chosen} ms; full {listed} ms");
    context.report.ratio("list_selector_vs_full", through(&few, &full), detail);
    Ok(())
}
