//! Holds pods and nodes: gathers what is observed, lets it be planned, carries the plan out. It must never
//! decide anything beyond the order of these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use strata_client::error::Class;
use strata_model::object::{Object, ObjectError, ObjectKey};
use strata_model::resource::builtin;
use strata_plan::controller::{Action, Key, MapTo, View, Watched};
use strata_plan::node::{self, NodeDescription};
use strata_plan::pod::observed::{NodeFacts, ObservedContainer, StopCause};
use strata_plan::pod::plan::{self, Effect, Observed, PodPlan};
use strata_runtime::perform::Performer;
use strata_runtime::queue::Job;
use strata_runtime::reconcile::{Context, Outcome, Reconcile, ReconcileError};
use tokio::sync::Notify;
use tracing::{debug, warn};

use super::NAME;
use super::index::Index;
use super::prober::Prober;
use super::sources;
use crate::node::runtime::{Runtime, RuntimeError};

/// How often all pods are looked at without a reason: a check, not the mechanism.
const LOOK: Duration = Duration::from_secs(60);
/// How often the agent looks again at a pod that is held by the want of a ConfigMap or Secret.
const SOURCE_PAUSE: Duration = Duration::from_secs(5);

/// The agent's reconciler.
pub struct Holder {
    runtime: Arc<dyn Runtime>,
    facts: NodeFacts,
    nodes: BTreeMap<String, NodeDescription>,
    index: Arc<Index>,
    prober: Prober,
    /// Nodes that are not known to be registered yet.
    unregistered: Mutex<BTreeSet<String>>,
    all_registered: Notify,
    context: OnceLock<Context>,
    begun: Notify,
}

impl Holder {
    /// A holder for these nodes, of what `runtime` runs.
    pub fn new(runtime: Arc<dyn Runtime>, facts: NodeFacts, nodes: Vec<NodeDescription>) -> Self {
        let nodes: BTreeMap<String, NodeDescription> =
            nodes.into_iter().map(|node| (node.name.clone(), node)).collect();
        Self {
            prober: Prober::new(Arc::clone(&runtime), &facts.host_ip),
            unregistered: Mutex::new(nodes.keys().cloned().collect()),
            runtime,
            facts,
            nodes,
            index: Arc::default(),
            all_registered: Notify::new(),
            context: OnceLock::new(),
            begun: Notify::new(),
        }
    }

    /// Which pods there are.
    pub fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index)
    }

    /// Waits until all nodes are registered.
    pub async fn registered(&self) {
        let waited = self.all_registered.notified();
        if !self.unregistered.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            waited.await;
        }
    }

    /// Wakes the pods of which the runtime says that something changed. Does not end.
    pub async fn forward_changes(&self) {
        let begun = self.begun.notified();
        if self.context.get().is_none() {
            begun.await;
        }
        let Some(context) = self.context.get() else { return };
        loop {
            match tokio::time::timeout(LOOK, self.runtime.changes().take()).await {
                Ok(pods) => {
                    for pod in pods {
                        self.wake(context, &pod, "a container changed");
                    }
                }
                Err(_) => self.wake_all(context, "a look at everything"),
            }
        }
    }

    fn wake(&self, context: &Context, pod: &str, why: &'static str) {
        let key = self.index.key(pod).or_else(|| match self.runtime.pod_name(pod) {
            Ok(key) => key,
            Err(error) => {
                warn!(pod, error = &error as &dyn std::error::Error, "cannot read the name of a pod");
                None
            }
        });
        // A pod without a name is kept under its uid; no object can have that key.
        let key = key.unwrap_or_else(|| ObjectKey::new("", pod));
        self.index.put(pod, &key);
        context.wake(Key::new(&builtin::POD, key), why);
    }

    /// Wakes everything of which the runtime has something.
    fn wake_all(&self, context: &Context, why: &'static str) {
        match self.runtime.pods() {
            Ok(pods) => pods.iter().for_each(|pod| self.wake(context, pod, why)),
            Err(error) => warn!(error = &error as &dyn std::error::Error, "cannot list what runs"),
        }
    }

    /// Holds the object of a node.
    async fn node(&self, job: &Job, context: &Context) -> Outcome {
        let name = &job.key.object.name;
        let Some(wanted) = self.nodes.get(name) else { return Outcome::default() };
        let current = context.view(|view| view.get(&builtin::NODE.id, &job.key.object));
        let plan = match node::plan(current.as_deref(), wanted, Timestamp::now()) {
            Ok(plan) => plan,
            Err(error) => return unreadable(job, &error),
        };
        let mut outcome = Outcome::settled(plan.next);
        self.perform(plan.actions, job, context, &mut outcome).await;
        if outcome.error.is_none() && current.is_some() && outcome.writes == 0 {
            let mut unregistered = self.unregistered.lock().unwrap_or_else(PoisonError::into_inner);
            if unregistered.remove(name) && unregistered.is_empty() {
                self.all_registered.notify_waiters();
            }
        }
        outcome
    }

    /// Holds the pod of a name, and ends what is left of its predecessors.
    async fn pod(&self, job: &Job, context: &Context) -> Outcome {
        let key = &job.key.object;
        let pod = context.view(|view| view.get(&builtin::POD.id, key)).filter(|pod| self.is_ours(pod));
        let uid = pod.as_ref().map(|pod| pod.meta().uid.clone()).unwrap_or_default();
        let mut outcome = Outcome::default();
        for gone in self.index.uids(key).into_iter().filter(|other| *other != uid) {
            if let Err(error) = self.end(&gone).await {
                outcome.error = Some(error);
            }
        }
        let Some(pod) = pod else { return outcome };
        self.index.put(&uid, key);
        if let Err(error) = self.hold(pod, job, context, &mut outcome).await {
            outcome.error.get_or_insert(error);
        }
        outcome
    }

    fn is_ours(&self, pod: &Object) -> bool {
        node_of(pod).is_some_and(|node| self.nodes.contains_key(&node))
    }

    /// Ends what is left of a pod that does not exist any more.
    async fn end(&self, pod: &str) -> Result<(), ReconcileError> {
        self.prober.forget(pod);
        let containers = self.containers(pod).await?;
        let plan = plan::plan_gone(pod, &containers, |key| self.runtime.grace(key));
        self.effects(plan.effects).await?;
        if containers.iter().all(ObservedContainer::is_over) {
            self.index.remove(pod);
        }
        Ok(())
    }

    /// One turn of a pod: observe, plan, act.
    async fn hold(
        &self,
        object: Arc<Object>,
        job: &Job,
        context: &Context,
        outcome: &mut Outcome,
    ) -> Result<(), ReconcileError> {
        let pod: Pod = object.decode().map_err(|error| observe_error(job, &error))?;
        let uid = object.meta().uid.clone();
        let mut containers = self.containers(&uid).await?;
        if containers.is_empty() && self.remember(&pod) {
            containers = self.containers(&uid).await?;
        }
        self.prober.prepare(&pod, &containers);
        let mut observed = Observed {
            pod: object,
            node: self.facts.clone(),
            containers,
            findings: self.prober.findings(&uid),
            refused_images: self.refused_images(&pod),
            sources: None,
        };
        let plan = self.plan(&mut observed, job, context).await?;
        for note in &plan.notes {
            debug!(reason = note.reason, message = note.message, "held");
        }
        outcome.next = plan.next;
        if observed.sources.is_some() {
            let again = Timestamp::now().checked_add(SOURCE_PAUSE).unwrap_or(Timestamp::MAX);
            outcome.next = outcome.next.or_at(again);
        }
        self.perform(plan.before, job, context, outcome).await;
        if outcome.error.is_some() {
            return Ok(());
        }
        let acted = self.effects(plan.effects).await;
        self.prober.run(&uid, &plan.probes);
        self.perform(plan.after, job, context, outcome).await;
        acted
    }

    /// Plans, fetching what the plan needs.
    async fn plan(
        &self,
        observed: &mut Observed,
        job: &Job,
        context: &Context,
    ) -> Result<PodPlan, ReconcileError> {
        let first = plan::plan(observed, Timestamp::now()).map_err(|error| observe_error(job, &error))?;
        if first.needs.is_empty() {
            return Ok(first);
        }
        let namespace = &job.key.object.namespace;
        let fetched = sources::fetch(&context.client, namespace, &first.needs).await;
        observed.sources = Some(fetched.map_err(|error| ReconcileError::Effect {
            message: format!("cannot fetch what the pod's variables come from: {error}"),
            class: Class::Transient,
        })?);
        plan::plan(observed, Timestamp::now()).map_err(|error| observe_error(job, &error))
    }

    /// Tells a runtime without memory what the status says is running. Returns whether there was anything.
    fn remember(&self, pod: &Pod) -> bool {
        let launches = plan::remembered(pod, &self.facts);
        for (launch, started_at) in &launches {
            self.runtime.remember(launch, *started_at);
        }
        !launches.is_empty()
    }

    fn refused_images(&self, pod: &Pod) -> BTreeMap<String, String> {
        let spec = pod.spec.as_ref();
        let containers =
            spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
        let images = containers.map(|container| container.image.clone().unwrap_or_default());
        images.filter_map(|image| self.runtime.accepts_image(&image).err().map(|why| (image, why))).collect()
    }

    async fn containers(&self, pod: &str) -> Result<Vec<ObservedContainer>, ReconcileError> {
        let (runtime, pod) = (Arc::clone(&self.runtime), pod.to_owned());
        blocking(move || runtime.containers(&pod)).await
    }

    /// Carries effects out. One that fails does not keep the others from being tried.
    async fn effects(&self, effects: Vec<Effect>) -> Result<(), ReconcileError> {
        if effects.is_empty() {
            return Ok(());
        }
        let runtime = Arc::clone(&self.runtime);
        blocking(move || {
            let mut result = Ok(());
            for effect in effects {
                let done = match &effect {
                    Effect::Start(launch) => runtime.start(launch),
                    Effect::Stop { key, grace } => runtime.stop(key, *grace, StopCause::Pod),
                    Effect::Remove(key) => runtime.remove(key),
                    Effect::RemovePod(pod) => runtime.remove_pod(pod),
                };
                result = result.and(done);
            }
            result
        })
        .await
    }

    async fn perform(&self, actions: Vec<Action>, job: &Job, context: &Context, outcome: &mut Outcome) {
        if actions.is_empty() {
            return;
        }
        let performer = Performer::new(&context.client, &context.recorder, NAME, job);
        let performed = performer.all(actions, context.deadline()).await;
        // Writes of which nobody knows whether they happened are not waited for: each carries its precondition, so
        // that repeating one is harmless, and containers are not to wait for the API server.
        outcome.writes += performed.writes;
        outcome.barriers.extend(performed.barriers);
        outcome.error = outcome.error.take().or(performed.error);
    }
}

impl Reconcile for Holder {
    fn name(&self) -> &'static str {
        NAME
    }

    fn watches(&self) -> Vec<Watched> {
        let mut nodes = Watched::all(&builtin::NODE, MapTo::Itself);
        let mut pods = Watched::all(&builtin::POD, MapTo::Itself);
        let names: BTreeSet<String> = self.nodes.keys().cloned().collect();
        match names.first() {
            Some(only) if names.len() == 1 => {
                nodes.field_selector = format!("metadata.name={only}");
                pods.field_selector = format!("spec.nodeName={only}");
            }
            _ => {
                pods.field_selector = "spec.nodeName!=".to_owned();
                pods.map = MapTo::By(Arc::new(move |_: &dyn View, pod: &Object| {
                    let ours = node_of(pod).is_some_and(|node| names.contains(&node));
                    ours.then(|| Key::new(&builtin::POD, pod.key())).into_iter().collect()
                }));
            }
        }
        vec![nodes, pods]
    }

    fn started(&self, context: &Context) {
        for name in self.nodes.keys() {
            context.wake(Key::new(&builtin::NODE, ObjectKey::new("", name.as_str())), "the agent started");
        }
        self.wake_all(context, "the agent started");
        if self.context.set(context.clone()).is_err() {
            warn!("started twice");
        }
        self.begun.notify_waiters();
    }

    async fn reconcile(&self, job: &Job, context: &Context) -> Outcome {
        if job.key.resource == builtin::NODE.id {
            self.node(job, context).await
        } else {
            self.pod(job, context).await
        }
    }
}

/// The node that a pod is bound to, without reading the rest of it.
fn node_of(pod: &Object) -> Option<String> {
    #[derive(Deserialize)]
    struct Bound {
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        node_name: Option<String>,
    }
    pod.decode::<Bound>().ok()?.spec.node_name
}

fn observe_error(job: &Job, error: &ObjectError) -> ReconcileError {
    let message = match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    ReconcileError::Effect { message: format!("{}: {message}", job.key), class: Class::Invalid }
}

fn unreadable(job: &Job, error: &ObjectError) -> Outcome {
    Outcome::failed(observe_error(job, error))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, ReconcileError> {
    let failed = |message: String| ReconcileError::Effect { message, class: Class::Transient };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failed(match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        })),
        Err(error) => Err(failed(error.to_string())),
    }
}
