//! Logs of containers: found through the pod's node, fetched from the agent there, handed on as they come.

use std::net::IpAddr;

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt};
use serde_json::Value;
use strata_model::resource::{Verb, builtin};
use strata_model::status::{Reason, Status};
use strata_wire::convert;
use strata_wire::v1::LogsRequest;
use strata_wire::v1::node_client::NodeClient;

use super::api::{Api, record_of};
use super::request::{Caller, Target};
use crate::refusal::{Outcome, Refusal, bad_request, internal};
use crate::storage;
use crate::value::{at, int, list, text};

/// The annotation that names the container people mean.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Chunks of a log.
pub type LogStream = std::pin::Pin<Box<dyn Stream<Item = Result<Bytes, Refusal>> + Send>>;

impl Api {
    /// The log of one container of a pod.
    pub async fn logs(&self, caller: &Caller, target: &Target, mut asked: LogsRequest) -> Outcome<LogStream> {
        target.admit(caller, Verb::Get)?;
        let snapshot = self.latest().await?;
        let pod = storage::parse(&*record_of(&snapshot, target)?)?;
        asked.namespace.clone_from(&target.namespace);
        asked.name.clone_from(&target.name);
        asked.container = container(&pod, &asked.container)?;
        text(&pod, &["metadata", "uid"]).clone_into(&mut asked.pod_uid);
        let node = text(&pod, &["spec", "nodeName"]);
        if node.is_empty() {
            return Err(bad_request(format!("pod {} does not have a host assigned", target.name)));
        }
        started(&pod, &asked)?;
        let key = storage::key(&builtin::NODE.id, "", node);
        let Some(record) = snapshot.get(&key) else {
            return Err(unreachable(node, "there is no such node any more"));
        };
        let address = address(&storage::parse(&record)?).ok_or_else(|| {
            unreachable(node, "it has not told where its agent listens (status.daemonEndpoints, InternalIP)")
        })?;
        let channel = self.nodes.connect(address).map_err(|why| unreachable(node, &why))?;
        let answer = NodeClient::new(channel).logs(asked).await.map_err(|error| of_node(node, &error))?;
        let node = node.to_owned();
        let chunks = answer.into_inner().map(move |chunk| match chunk {
            Ok(chunk) => Ok(chunk.data),
            Err(error) => Err(of_node(&node, &error)),
        });
        Ok(Box::pin(chunks))
    }
}

/// The container that is meant: the one named, else the one of the annotation, else the only one.
fn container(pod: &Value, named: &str) -> Outcome<String> {
    let name = text(pod, &["metadata", "name"]);
    let of = |lists: &str| list(pod, &["spec", lists]).iter().map(|c| text(c, &["name"])).collect::<Vec<_>>();
    let (containers, init) = (of("containers"), of("initContainers"));
    if !named.is_empty() {
        if containers.contains(&named) || init.contains(&named) {
            return Ok(named.to_owned());
        }
        return Err(bad_request(format!("container {named} is not valid for pod {name}")));
    }
    let preferred = text(pod, &["metadata", "annotations", DEFAULT_CONTAINER]);
    if containers.contains(&preferred) {
        return Ok(preferred.to_owned());
    }
    match containers.as_slice() {
        [only] => Ok((*only).to_owned()),
        several => Err(bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            several.join(" ")
        ))),
    }
}

/// Refuses where the container has not started, as far as the pod's status tells.
fn started(pod: &Value, asked: &LogsRequest) -> Outcome<()> {
    let statuses = ["containerStatuses", "initContainerStatuses"].map(|s| list(pod, &["status", s]));
    let status = statuses.into_iter().flatten().find(|s| text(s, &["name"]) == asked.container);
    let name = text(pod, &["metadata", "name"]);
    let Some(status) = status else { return Ok(()) };
    let ended_before = at(status, &["lastState", "terminated"]).is_some();
    if asked.previous && !ended_before {
        let message =
            format!("previous terminated container \"{}\" in pod \"{name}\" not found", asked.container);
        return Err(bad_request(message));
    }
    let waiting = text(status, &["state", "waiting", "reason"]);
    if !waiting.is_empty() && !ended_before {
        let message =
            format!("container \"{}\" in pod \"{name}\" is waiting to start: {waiting}", asked.container);
        return Err(bad_request(message));
    }
    Ok(())
}

fn address(node: &Value) -> Option<(IpAddr, u16)> {
    let port = int(node, &["status", "daemonEndpoints", "kubeletEndpoint", "Port"])?;
    let internal =
        list(node, &["status", "addresses"]).iter().find(|a| text(a, &["type"]) == "InternalIP")?;
    Some((text(internal, &["address"]).parse().ok()?, u16::try_from(port).ok()?))
}

fn unreachable(node: &str, why: &str) -> Refusal {
    let message = format!("the agent of node \"{node}\" cannot be asked for the log: {why}");
    Box::new(Status::failure(Reason::ServiceUnavailable, message))
}

/// What a node's error means for the client: its own refusal, or that it cannot be reached.
fn of_node(node: &str, error: &tonic::Status) -> Refusal {
    if let Some(status) = convert::from_rpc(error) {
        return Box::new(status);
    }
    match error.code() {
        tonic::Code::NotFound => Box::new(Status::failure(Reason::NotFound, error.message())),
        tonic::Code::InvalidArgument | tonic::Code::FailedPrecondition => bad_request(error.message()),
        tonic::Code::Unavailable | tonic::Code::DeadlineExceeded | tonic::Code::Unknown => {
            let cause = std::error::Error::source(error).map_or_else(|| error.message().to_owned(), root);
            unreachable(node, &cause)
        }
        _ => internal(format!("the agent of node \"{node}\" answered: {}", error.message())),
    }
}

/// The innermost cause, which is what a person can act on.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
