//! Where the compiled policy stands, for all requests to take once, and up to which revision roles are in it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use strata_store::revision::Revision;
use tokio::sync::watch;

use crate::rbac::policy::Policy;

/// How long a write of a role or binding waits until requests are decided by it, and a start until all are known.
const FOLLOW_WAIT: Duration = Duration::from_secs(2);

/// The policy as it is now.
#[derive(Debug)]
pub struct Access {
    policy: ArcSwap<Policy>,
    seen: watch::Sender<Revision>,
}

impl Default for Access {
    fn default() -> Self {
        Self { policy: ArcSwap::from_pointee(Policy::default()), seen: watch::Sender::new(Revision::ZERO) }
    }
}

impl Access {
    /// The policy that requests are decided on from now on.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    /// Puts a policy in place.
    pub fn put(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    /// Notes that the roles up to a revision are in it.
    pub fn note(&self, revision: Revision) {
        self.seen.send_if_modified(|seen| {
            let later = revision > *seen;
            if later {
                *seen = revision;
            }
            later
        });
    }

    /// Waits until requests are decided by the roles of a revision; not for ever.
    pub async fn reached(&self, revision: Revision) {
        let mut seen = self.seen.subscribe();
        let reached = seen.wait_for(|seen| *seen >= revision);
        if tokio::time::timeout(FOLLOW_WAIT, reached).await.is_err() {
            tracing::warn!(%revision, "roles are stored, and do not count yet");
        }
    }
}
