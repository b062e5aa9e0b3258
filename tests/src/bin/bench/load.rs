//! Load: callers that ask again as soon as they are answered, and how long their answers took.

use std::future::Future;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::context::Outcome;

/// Bytes of a value unless a measurement says otherwise.
pub const VALUE_BYTES: usize = 1024;

/// What a load came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Answers a second, over all callers.
    pub rate: f64,
    /// Median of the answers' times.
    pub p50: Duration,
    /// The time that 99 of 100 answers were faster than.
    pub p99: Duration,
}

/// Runs so many callers for a time. `ask` gets the caller's number and how often it asked before.
pub async fn closed_loop<F, Fut>(callers: usize, time: Duration, ask: F) -> Outcome<Load>
where
    F: Fn(usize, u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Outcome<()>> + Send,
{
    let start = Instant::now();
    let end = start + time;
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let ask = ask.clone();
        tasks.spawn(async move {
            let mut times = Vec::new();
            for turn in 0.. {
                let asked = Instant::now();
                if asked >= end {
                    break;
                }
                ask(caller, turn).await?;
                times.push(asked.elapsed());
            }
            Outcome::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(caller) = tasks.join_next().await {
        times.extend(caller??);
    }
    Ok(summary(times, start.elapsed()))
}

/// Does `count` pieces of work, so many at a time; gives how long all took.
pub async fn each<F, Fut>(at_once: usize, count: usize, work: F) -> Outcome<Duration>
where
    F: Fn(usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Outcome<()>> + Send,
{
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for worker in 0..at_once {
        let work = work.clone();
        tasks.spawn(async move {
            for index in (worker..count).step_by(at_once) {
                work(index).await?;
            }
            Outcome::Ok(())
        });
    }
    while let Some(worker) = tasks.join_next().await {
        worker??;
    }
    Ok(start.elapsed())
}

/// Rate, median and 99th percentile of answers that came within `time`.
pub fn summary(mut times: Vec<Duration>, time: Duration) -> Load {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    Load { rate: times.len() as f64 / time.as_secs_f64(), p50: at(0.5), p99: at(0.99) }
}

/// A number that looks random, from a number.
pub fn scatter(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Bytes that do not compress, different for each seed.
pub fn value(seed: u64, bytes: usize) -> Vec<u8> {
    let words = (0..bytes.div_ceil(8) as u64).flat_map(|word| scatter(seed ^ word << 32).to_le_bytes());
    words.take(bytes).collect()
}

/// Texts that [`text`] takes from.
const TEXTS: u64 = 64;
/// Bytes of each of them.
const TEXT_BYTES: usize = 4096;

/// Text that compresses badly, as objects carry it; made beforehand, so that making it is not what is measured.
pub fn text(seed: u64, bytes: usize) -> &'static str {
    static MADE: OnceLock<Vec<String>> = OnceLock::new();
    let hex = |seed| value(seed, TEXT_BYTES / 2).iter().map(|byte| format!("{byte:02x}")).collect();
    let made = MADE.get_or_init(|| (0..TEXTS).map(hex).collect());
    &made[(seed % TEXTS) as usize][..bytes.min(TEXT_BYTES)]
}

/// The key of a number, the same on all sides.
pub fn key(number: u64) -> String {
    format!("/bench/{number:010}")
}
