//! Process: a controller by its name, run whole. The one place that knows which controllers there are.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use strata_client::client::Client;
use strata_plan::certificates::{Authority, CertificateSigning};
use strata_plan::cronjob::CronJobs;
use strata_plan::daemonset::DaemonSets;
use strata_plan::deployment::Deployments;
use strata_plan::disruption::Disruptions;
use strata_plan::endpoints::{EndpointSlices, EndpointsObjects, Mirrors};
use strata_plan::garbage::Garbage;
use strata_plan::job::Jobs;
use strata_plan::namespace::Namespaces;
use strata_plan::nodelifecycle::{self, NodeLifecycle};
use strata_plan::replicaset::{ReplicaSets, ReplicationControllers};
use strata_plan::resourcequota::ResourceQuotas;
use strata_plan::scheduler::Scheduler;
use strata_plan::serviceaccount::{RootCertificates, ServiceAccounts};
use strata_plan::statefulset::StatefulSets;
use strata_runtime::planned::Planned;
use strata_runtime::run::{self, Options, RunError};

use crate::application::process as application;
use crate::types::every_type;

/// The process of the controllers whose work is little.
const TOGETHER: &str = "controllers";

/// What can be set about single controllers.
#[derive(Clone)]
pub struct Settings {
    /// How long a node may be silent before it counts as lost.
    pub node_grace: Duration,
    /// The authority of the API server's certificate, PEM, for what runs in namespaces; `None`: it is not published.
    pub root_ca: Option<Arc<str>>,
    /// Where what is fetched from repositories is kept; `None`: a folder of its own among the temporary files.
    pub cache: Option<PathBuf>,
    /// Where hosts of repositories tell of pushes; `None`: nowhere.
    pub webhooks: Option<SocketAddr>,
    /// Who signs certificates; `None`: nothing is signed.
    pub signing: Option<Arc<dyn Authority>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { node_grace: nodelifecycle::GRACE, root_ca: None, cache: None, webhooks: None, signing: None }
    }
}

/// The controllers, in the order of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// Rolls Deployments out through ReplicaSets.
    Deployment,
    /// Holds ReplicaSets to their count of pods.
    ReplicaSet,
    /// Gives pods a node.
    Scheduler,
    /// Collects what nobody owns any more.
    Garbage,
    /// Empties namespaces on their way out.
    Namespace,
    /// Tells which nodes are lost, and drives their pods off.
    NodeLifecycle,
    /// Gives namespaces their default ServiceAccount.
    ServiceAccount,
    /// Gives namespaces the authority of the API server's certificate.
    RootCertificates,
    /// Holds StatefulSets to their numbered pods.
    StatefulSet,
    /// Holds DaemonSets to a pod a node.
    DaemonSet,
    /// Holds ReplicationControllers to their count of pods.
    ReplicationController,
    /// Runs pods until enough have succeeded.
    Job,
    /// Makes Jobs by schedules.
    CronJob,
    /// Holds the platform to what repositories say.
    Application,
    /// Signs approved requests for certificates, and removes old ones.
    CertificateSigning,
    /// Counts what disruption budgets allow.
    Disruption,
    /// Counts what quotas bound.
    ResourceQuota,
    /// Writes down where services lead, in slices.
    EndpointSlice,
    /// The same in one object a service.
    Endpoints,
    /// Shows endpoints that people write as slices.
    EndpointSliceMirroring,
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Deployment,
        Self::ReplicaSet,
        Self::Scheduler,
        Self::Garbage,
        Self::Namespace,
        Self::NodeLifecycle,
        Self::ServiceAccount,
        Self::RootCertificates,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::ReplicationController,
        Self::Job,
        Self::CronJob,
        Self::CertificateSigning,
        Self::Disruption,
        Self::ResourceQuota,
        Self::EndpointSlice,
        Self::Endpoints,
        Self::EndpointSliceMirroring,
        Self::Application,
    ];

    /// The process of `strata up` that it runs in: its own, or one that it shares with others whose work is little.
    pub fn home(self) -> &'static str {
        match self {
            Self::Deployment
            | Self::ReplicaSet
            | Self::Scheduler
            | Self::Garbage
            | Self::Namespace
            | Self::Application => self.as_str(),
            Self::NodeLifecycle
            | Self::ServiceAccount
            | Self::RootCertificates
            | Self::StatefulSet
            | Self::DaemonSet
            | Self::ReplicationController
            | Self::Job
            | Self::CronJob
            | Self::Disruption
            | Self::ResourceQuota
            | Self::EndpointSlice
            | Self::Endpoints
            | Self::CertificateSigning
            | Self::EndpointSliceMirroring => TOGETHER,
        }
    }

    /// The name on the command line, of the lease, of the identity.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::ReplicaSet => "replicaset",
            Self::Scheduler => "scheduler",
            Self::Garbage => "garbage",
            Self::Namespace => "namespace",
            Self::NodeLifecycle => "nodelifecycle",
            Self::ServiceAccount => "serviceaccount",
            Self::RootCertificates => "root-ca-certificate-publisher",
            Self::StatefulSet => "statefulset",
            Self::DaemonSet => "daemonset",
            Self::ReplicationController => "replicationcontroller",
            Self::Job => "job",
            Self::CronJob => "cronjob",
            Self::Application => "application",
            Self::CertificateSigning => "certificatesigning",
            Self::Disruption => "disruption",
            Self::ResourceQuota => "resourcequota",
            Self::EndpointSlice => "endpointslice",
            Self::Endpoints => "endpoints",
            Self::EndpointSliceMirroring => "endpointslicemirroring",
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
    settings: Settings,
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    match name {
        Name::Deployment => run::controller(Deployments, client, options, shutdown).await,
        Name::ReplicaSet => run::controller(ReplicaSets, client, options, shutdown).await,
        Name::Scheduler => run::controller(Scheduler, client, options, shutdown).await,
        Name::Garbage => {
            every_type(|t| Planned(Garbage::new(t.types.clone())), client, options, shutdown).await
        }
        Name::Namespace => {
            every_type(|t| Planned(Namespaces::new(t.types.clone())), client, options, shutdown).await
        }
        Name::NodeLifecycle => {
            let lifecycle = NodeLifecycle { grace: settings.node_grace, since: Timestamp::now() };
            run::controller(lifecycle, client, options, shutdown).await
        }
        Name::Job => run::controller(Jobs, client, options, shutdown).await,
        Name::CronJob => run::controller(CronJobs, client, options, shutdown).await,
        Name::CertificateSigning => {
            let signing = CertificateSigning { authority: settings.signing };
            run::controller(signing, client, options, shutdown).await
        }
        Name::Disruption => run::controller(Disruptions, client, options, shutdown).await,
        Name::ResourceQuota => {
            every_type(|t| Planned(ResourceQuotas::new(t.types.clone())), client, options, shutdown).await
        }
        Name::EndpointSlice => run::controller(EndpointSlices, client, options, shutdown).await,
        Name::Endpoints => run::controller(EndpointsObjects, client, options, shutdown).await,
        Name::EndpointSliceMirroring => run::controller(Mirrors, client, options, shutdown).await,
        Name::Application => {
            application::run(settings.cache, settings.webhooks, client, options, shutdown).await
        }
        Name::ServiceAccount => run::controller(ServiceAccounts, client, options, shutdown).await,
        Name::RootCertificates => match settings.root_ca {
            Some(authority) => {
                run::controller(RootCertificates { authority }, client, options, shutdown).await
            }
            None => {
                tracing::info!("no authority of the API server is known: kube-root-ca.crt is not published");
                options.ready.into_iter().for_each(|ready| ready());
                shutdown.await;
                Ok(())
            }
        },
        Name::StatefulSet => run::controller(StatefulSets, client, options, shutdown).await,
        Name::DaemonSet => run::controller(DaemonSets, client, options, shutdown).await,
        Name::ReplicationController => {
            run::controller(ReplicationControllers, client, options, shutdown).await
        }
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
        let error = "novel".parse::<Name>().unwrap_err().to_string();
        let start = "there is no controller \"novel\" (there are: deployment, replicaset, scheduler, ";
        assert!(error.starts_with(start), "{error}");
    }
}
