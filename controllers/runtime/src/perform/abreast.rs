//! Runs calls side by side, bounded, until the first that fails. Knows nothing of what they do.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

/// Most calls of one plan under way.
pub const AT_ONCE: usize = 32;

/// How calls begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// As many as are allowed.
    AtOnce,
    /// With one; each success makes room for one more, so that what is refused is not tried many times.
    Slowly,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All calls were made, and succeeded.
    Done,
    /// One failed; those under way with it were waited for, the others not begun.
    Failed,
    /// The deadline came before the last was begun.
    Late,
}

/// Makes calls, each begun when there is room for it and not after the deadline, at most [`AT_ONCE`] at a time. `over`
/// gets each result with the call's place in the sequence, in the order in which they come.
pub async fn run<F, T, E>(
    calls: impl IntoIterator<Item = F>,
    begin: Begin,
    deadline: Instant,
    mut over: impl FnMut(usize, Result<T, E>),
) -> Ended
where
    F: Future<Output = Result<T, E>>,
{
    let mut calls = calls.into_iter().enumerate();
    let mut running = FuturesUnordered::new();
    let mut room = if begin == Begin::Slowly { 1 } else { AT_ONCE };
    let mut ended = Ended::Done;
    loop {
        while ended == Ended::Done && running.len() < room {
            let Some((place, call)) = calls.next() else { break };
            if Instant::now() >= deadline {
                ended = Ended::Late;
                break;
            }
            running.push(async move { (place, call.await) });
        }
        let Some((place, result)) = running.next().await else { return ended };
        if result.is_err() {
            ended = Ended::Failed;
        }
        room = (room + 1).min(AT_ONCE);
        over(place, result);
    }
}
