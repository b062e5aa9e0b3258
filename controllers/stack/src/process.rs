//! Process: a controller by its name, run whole. The one place that knows which controllers there are.

use std::fmt;
use std::str::FromStr;

use strata_client::client::Client;
use strata_plan::deployment::Deployments;
use strata_plan::replicaset::ReplicaSets;
use strata_plan::scheduler::Scheduler;
use strata_runtime::run::{self, Options, RunError};

/// The controllers, in the order of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// Rolls Deployments out through ReplicaSets.
    Deployment,
    /// Holds ReplicaSets to their count of pods.
    ReplicaSet,
    /// Gives pods a node.
    Scheduler,
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::ReplicaSet, Self::Scheduler];

    /// The name on the command line, of the process, of the lease.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::ReplicaSet => "replicaset",
            Self::Scheduler => "scheduler",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no controller's.
#[derive(Debug, thiserror::Error)]
#[error("there is no controller \"{0}\" (there are: {known})", known = Name::ALL.map(Name::as_str).join(", "))]
pub struct UnknownController(String);

impl FromStr for Name {
    type Err = UnknownController;

    fn from_str(name: &str) -> Result<Self, UnknownController> {
        let found = Self::ALL.into_iter().find(|n| n.as_str() == name);
        found.ok_or_else(|| UnknownController(name.to_owned()))
    }
}

/// Runs a controller until `shutdown` completes.
pub async fn run(
    name: Name,
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    match name {
        Name::Deployment => run::controller(Deployments, client, options, shutdown).await,
        Name::ReplicaSet => run::controller(ReplicaSets, client, options, shutdown).await,
        Name::Scheduler => run::controller(Scheduler, client, options, shutdown).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_controllers_and_back() {
        for name in Name::ALL {
            assert_eq!(name.as_str().parse::<Name>().unwrap(), name);
        }
        let error = "cron".parse::<Name>().unwrap_err().to_string();
        assert_eq!(error, "there is no controller \"cron\" (there are: deployment, replicaset, scheduler)");
    }
}
