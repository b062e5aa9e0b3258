//! Which pods changed since somebody asked: a set, so that a thousand changes of one pod are one wake-up and
//! its size is bounded by the number of pods. It must never carry what changed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A set of pod uids that can be waited for. Any number may mark; one takes.
#[derive(Debug, Default)]
pub struct Changes {
    pods: Mutex<BTreeSet<String>>,
    marked: Notify,
}

impl Changes {
    /// Notes that something about the pod changed.
    pub fn mark(&self, pod: &str) {
        self.set().insert(pod.to_owned());
        self.marked.notify_one();
    }

    /// Waits until at least one pod is marked and takes all that are. Cancelling loses nothing.
    pub async fn take(&self) -> BTreeSet<String> {
        loop {
            let pods = std::mem::take(&mut *self.set());
            if !pods.is_empty() {
                return pods;
            }
            self.marked.notified().await;
        }
    }

    fn set(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Changes;

    #[tokio::test]
    async fn marks_coalesce_and_none_is_lost() {
        let changes = Changes::default();
        changes.mark("a");
        changes.mark("b");
        changes.mark("a");
        assert_eq!(changes.take().await.into_iter().collect::<Vec<_>>(), ["a", "b"]);
        let (taken, ()) = tokio::join!(changes.take(), async { changes.mark("c") });
        assert_eq!(taken.into_iter().collect::<Vec<_>>(), ["c"]);
    }
}
