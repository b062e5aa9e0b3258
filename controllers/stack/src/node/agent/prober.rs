//! Runs the probes that the pod plan wants, one small task each, and keeps what they find. It must never decide
//! what a finding means for a container.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use strata_plan::pod::observed::{ContainerKey, ContainerState, ObservedContainer, address};
use strata_plan::pod::probe::{Machine, ProbeKind};
use strata_plan::pod::verdict::Findings;
use tokio::task::AbortHandle;

use super::ask::Question;
use crate::node::runtime::Runtime;

/// A probe: of which attempt, and which.
type Place = (ContainerKey, ProbeKind);

/// All probes of all pods.
pub struct Prober {
    runtime: Arc<dyn Runtime>,
    host_ip: String,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    probes: BTreeMap<Place, Entry>,
}

struct Entry {
    machine: Machine,
    question: Question,
    task: Option<AbortHandle>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Prober {
    /// A prober of containers of `runtime`, on the node at `host_ip`. What is found marks pods in the runtime's changes.
    pub fn new(runtime: Arc<dyn Runtime>, host_ip: &str) -> Self {
        Self { runtime, host_ip: host_ip.to_owned(), book: Arc::default() }
    }

    /// Makes a state machine for each probe of each running attempt, and forgets those of attempts that are not
    /// there any more. An attempt that the pod's status knows is adopted with what the status remembers of it.
    pub fn prepare(&self, pod: &Pod, containers: &[ObservedContainer]) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let address = address(pod, &self.host_ip);
        let mut book = self.book();
        let there: BTreeSet<&ContainerKey> = containers.iter().map(|container| &container.key).collect();
        book.probes.retain(|(key, _), _| key.pod() != uid || there.contains(key));
        for observed in containers {
            let ContainerState::Running { started_at } = observed.state else { continue };
            let Some(container) = spec_of(pod, observed.key.container()) else { continue };
            let told = status_of(pod, observed);
            for kind in ProbeKind::ALL {
                let Some(probe) = kind.of(container) else { continue };
                book.probes.entry((observed.key.clone(), kind)).or_insert_with(|| Entry {
                    machine: Machine::new(kind, probe, started_at, remembered(kind, told)),
                    question: Question::new(probe, container, &address),
                    task: None,
                });
            }
        }
    }

    /// What is known of a pod's containers.
    pub fn findings(&self, pod: &str) -> Findings {
        let book = self.book();
        let of_pod = book.probes.iter().filter(|((key, _), _)| key.pod() == pod);
        of_pod.filter_map(|(place, entry)| Some((place.clone(), entry.machine.finding()?.clone()))).collect()
    }

    /// Runs exactly these probes of a pod from now on.
    pub fn run(&self, pod: &str, wanted: &BTreeSet<Place>) {
        let mut book = self.book();
        for (place, entry) in book.probes.iter_mut().filter(|((key, _), _)| key.pod() == pod) {
            let running = entry.task.as_ref().is_some_and(|task| !task.is_finished());
            match (wanted.contains(place), running) {
                (true, false) => entry.task = Some(self.begin(place.clone(), entry.question.clone())),
                (false, true) => {
                    if let Some(task) = entry.task.take() {
                        task.abort();
                    }
                }
                _ => {}
            }
        }
    }

    /// Forgets a pod.
    pub fn forget(&self, pod: &str) {
        self.book().probes.retain(|(key, _), _| key.pod() != pod);
    }

    /// Asks one probe again and again, until it has nothing more to ask or is aborted.
    fn begin(&self, place: Place, question: Question) -> AbortHandle {
        let (book, runtime) = (Arc::clone(&self.book), Arc::clone(&self.runtime));
        let task = tokio::spawn(async move {
            loop {
                let next = lock(&book).probes.get(&place).and_then(|entry| entry.machine.next());
                let Some(next) = next else { return };
                let wait = Duration::try_from(next.duration_since(Timestamp::now())).unwrap_or_default();
                tokio::time::sleep(wait).await;
                let answer = question.ask(&*runtime, &place.0).await;
                let mut book = lock(&book);
                let Some(entry) = book.probes.get_mut(&place) else { return };
                if entry.machine.answer(answer.success, &answer.message, Timestamp::now()) {
                    runtime.changes().mark(place.0.pod());
                }
            }
        });
        task.abort_handle()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spec_of<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    spec.init_containers.iter().flatten().chain(&spec.containers).find(|container| container.name == name)
}

/// What the pod's status says of exactly this attempt.
fn status_of<'a>(pod: &'a Pod, observed: &ObservedContainer) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all =
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    all.into_iter().find(|told| told.container_id.as_ref() == Some(&observed.id))
}

/// Only good findings are remembered; a bad one has to be found again.
fn remembered(kind: ProbeKind, told: Option<&ContainerStatus>) -> Option<bool> {
    let told = told?;
    let passed = match kind {
        ProbeKind::Startup => told.started == Some(true),
        ProbeKind::Readiness => told.ready,
        ProbeKind::Liveness => false,
    };
    passed.then_some(true)
}
