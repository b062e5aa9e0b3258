//! Group: all children, in the stages in which they are stopped. Starts them at once, since each waits for what it
//! needs. Knows no role.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::telemetry::Format;
use super::child::{self, News, Order, Spec};

/// News that may wait to be read.
const NEWS: usize = 64;
/// How long a killed process may take to be gone.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// A stage: children that are stopped together.
struct Stage {
    orders: watch::Sender<Order>,
    tasks: JoinSet<()>,
}

/// The children of a supervisor.
pub struct Group {
    stages: Vec<Stage>,
    news: mpsc::Receiver<(String, News)>,
}

/// How stopping went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopping {
    /// Some process had to be killed.
    pub killed: bool,
}

impl Group {
    /// Starts all children, in whatever order the machine likes. `stages` are given in the order of stopping.
    pub fn start(stages: Vec<Vec<Spec>>, format: Format) -> Group {
        let (sender, news) = mpsc::channel(NEWS);
        let stages = stages.into_iter().map(|specs| {
            let orders = watch::Sender::new(Order::Run);
            let mut tasks = JoinSet::new();
            for spec in specs {
                tasks.spawn(child::run(spec, format, orders.subscribe(), sender.clone()));
            }
            Stage { orders, tasks }
        });
        Group { stages: stages.collect(), news }
    }

    /// What happens to a child next; `None` when all have ended for good.
    pub async fn news(&mut self) -> Option<(String, News)> {
        self.news.recv().await
    }

    /// Stops all children, stage after stage, within `grace`: who is late for its stage is killed. All are killed as
    /// soon as `force` resolves. News that come meanwhile go to `hear`.
    pub async fn stop(
        mut self,
        grace: Duration,
        force: impl Future<Output = ()>,
        mut hear: impl FnMut(&str, &News),
    ) -> Stopping {
        let began = Instant::now();
        let count = self.stages.len();
        let mut outcome = Stopping::default();
        tokio::pin!(force);
        let mut forced = false;
        for index in 0..count {
            let limit = if forced { Duration::ZERO } else { stage_limit(grace, index, count) };
            let deadline = began + limit;
            let stage = &mut self.stages[index];
            stage.orders.send_replace(if forced { Order::Kill } else { Order::Stop });
            let mut killed = forced;
            let mut deadline = if forced { Instant::now() + KILL_WAIT } else { deadline };
            while !stage.tasks.is_empty() {
                tokio::select! {
                    ended = stage.tasks.join_next() => if let Some(Err(error)) = ended {
                        tracing::error!(%error, "the keeper of a child failed");
                    },
                    Some((name, news)) = self.news.recv() => hear(&name, &news),
                    () = &mut force, if !forced => {
                        forced = true;
                        killed = true;
                        stage.orders.send_replace(Order::Kill);
                        deadline = Instant::now() + KILL_WAIT;
                    }
                    () = tokio::time::sleep_until(deadline) => {
                        if killed {
                            tracing::error!("a killed process does not go away; it is left behind");
                            break;
                        }
                        killed = true;
                        stage.orders.send_replace(Order::Kill);
                        deadline = Instant::now() + KILL_WAIT;
                    }
                }
            }
            outcome.killed |= killed;
        }
        while let Ok((name, news)) = self.news.try_recv() {
            hear(&name, &news);
        }
        outcome
    }
}

/// When, counted from the beginning of the stop, a stage is to be over: the first gets all but a tenth of the grace
/// period for each later one.
fn stage_limit(grace: Duration, index: usize, count: usize) -> Duration {
    let later = u32::try_from(count.saturating_sub(index + 1)).unwrap_or(u32::MAX);
    grace.saturating_sub((grace / 10).saturating_mul(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_stages_keep_a_part_of_the_grace_period() {
        let limits: Vec<u64> =
            (0..3).map(|index| stage_limit(Duration::from_secs(30), index, 3).as_secs()).collect();
        assert_eq!(limits, [24, 27, 30]);
        assert_eq!(stage_limit(Duration::ZERO, 0, 3), Duration::ZERO);
    }
}
