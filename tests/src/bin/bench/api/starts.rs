//! From the start of the process until it is ready, empty and with 100,000 objects; and the memory that they take.

use crate::api::pods::{self, POD_BYTES};
use crate::context::{Context, Outcome};
use crate::grpc;
use crate::host::Served;
use crate::report::{median, ms, number};

/// Starts of an empty server.
const STARTS: usize = 5;
/// Bytes of a mebibyte.
const MIB: f64 = 1024.0 * 1024.0;

/// An empty server.
pub async fn empty(context: &mut Context) -> Outcome<()> {
    let mut times = Vec::new();
    for _ in 0..STARTS * context.rounds {
        let directory = context.path("shipped");
        times.push(ms(Served::shipped(&directory).await?.started_in));
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let detail = format!("{} starts, slowest {} ms", times.len(), number(slowest));
    context.report.figure("start_ms", median(times), "ms", detail);
    Ok(())
}

/// A server with 100,000 pods.
pub async fn full(context: &mut Context) -> Outcome<()> {
    let count = context.size(100_000, 2_000);
    let directory = context.path("shipped");
    let served = Served::shipped(&directory).await?;
    let before = served.usage()?.resident;
    pods::fill(&grpc::Client::connect(&served.access).await?, count).await?;
    let after = served.usage()?.resident;
    drop(served);
    let (mut times, mut again) = (Vec::new(), 0);
    for _ in 0..context.rounds {
        let served = Served::shipped(&directory).await?;
        times.push(ms(served.started_in));
        again = served.usage()?.resident;
    }
    let mib = |bytes: u64| number(bytes as f64 / MIB);
    let detail = format!(
        "{} MiB empty, {} MiB with {count} pods, {} MiB after a restart",
        mib(before),
        mib(after),
        mib(again)
    );
    let each = after.saturating_sub(before) as f64 / count as f64 / POD_BYTES as f64;
    context.report.ratio("memory_per_object", each, detail);
    context.report.figure("start100k_ms", median(times), "ms", format!("{count} pods, after a kill"));
    Ok(())
}
