//! The expensive layer: renders of all Applications, made in a queue of its own, by repositories that may be slow or gone.
//! Those who compare ask what is known, and never wait; they are woken when there is something new.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use strata_model::object::ObjectKey;
use strata_plan::application::rendered::{Fault, RenderError, Rendered};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::repositories::{Ask, Fresh, Repositories};

/// Between looks at a repository over the network, without a cause.
pub const POLL: Duration = Duration::from_secs(180);
/// The same for one on this machine, where a look costs next to nothing.
pub const POLL_LOCAL: Duration = Duration::from_secs(10);
/// What never changes is looked at again all the same: a check.
const POLL_FIXED: Duration = Duration::from_secs(6 * 3600);
/// After the first failure; doubles up to the usual time between looks.
const RETRY: Duration = Duration::from_secs(5);
/// Renders under way.
const MOST_RUNNING: usize = 16;
/// Of those, at most so many of one host over the network: one that hangs holds up nobody else.
const MOST_OF_HOST: usize = 4;
/// The longest a render may take in all.
const LIMIT: Duration = Duration::from_secs(300);

/// What a render is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// What the Application says.
    Wish,
    /// What an operation of it says, at its own revision.
    Operation,
}

/// Which render.
pub type Place = (ObjectKey, Purpose);

/// A render that is over: which, what was asked, since when, and what came of it.
type Ended = (Place, Ask, Instant, Result<Vec<Rendered>, RenderError>);

/// The renders of all sources of a question.
pub type Renders = Arc<Vec<Arc<Rendered>>>;

/// What is known.
#[derive(Clone, Debug)]
pub struct Known {
    /// The newest answer.
    pub answer: Result<Renders, RenderError>,
    /// The newest render that worked, maybe of an older question.
    pub good: Option<Renders>,
    /// When the look for the answer began.
    pub begun: Instant,
}

struct Slot {
    ask: Ask,
    answer: Option<(Result<Renders, RenderError>, Instant)>,
    good: Option<Renders>,
    due: Instant,
    fresh: Fresh,
    running: bool,
    failures: u32,
    /// Asked for again while it ran.
    again: bool,
}

/// Who is told of news.
pub type Wake = Arc<dyn Fn(&ObjectKey) + Send + Sync>;

/// The layer.
pub struct Layer<R> {
    repositories: Arc<R>,
    slots: Mutex<BTreeMap<Place, Slot>>,
    wake: Mutex<Option<Wake>>,
    work: Notify,
}

impl<R: Repositories> Layer<R> {
    /// A layer that knows nothing. Nothing happens before [`Layer::run`].
    pub fn new(repositories: Arc<R>) -> Self {
        Self { repositories, slots: Mutex::default(), wake: Mutex::default(), work: Notify::new() }
    }

    /// Those who read repositories.
    pub fn repositories(&self) -> &Arc<R> {
        &self.repositories
    }

    /// Who is told from now on.
    pub fn tell(&self, wake: Wake) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<Place, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a question; where it is a new one, it is looked at soon.
    pub fn ask(&self, place: Place, ask: Ask) -> Option<Known> {
        let mut slots = self.slots();
        let slot = slots.entry(place).or_insert_with(|| Slot {
            ask: Ask::default(),
            answer: None,
            good: None,
            due: Instant::now(),
            fresh: Fresh::Now,
            running: false,
            failures: 0,
            again: false,
        });
        if slot.ask != ask {
            slot.ask = ask;
            slot.answer = None;
            slot.failures = 0;
            slot.due = Instant::now();
            slot.again = slot.running;
            self.work.notify_one();
        }
        let (answer, begun) = slot.answer.clone()?;
        Some(Known { answer, good: slot.good.clone(), begun })
    }

    /// Has a question looked at as soon as may be.
    pub fn refresh(&self, place: &Place, fresh: Fresh) {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(place) else { return };
        slot.due = Instant::now();
        slot.fresh = slot.fresh.max(fresh);
        slot.again = slot.running;
        self.work.notify_one();
    }

    /// Has all questions about a repository looked at as soon as may be. Answers how many there are.
    pub fn refresh_where(&self, concerns: impl Fn(&Ask) -> bool) -> usize {
        let mut slots = self.slots();
        let mut count = 0;
        for slot in slots.values_mut().filter(|slot| concerns(&slot.ask)) {
            slot.due = Instant::now();
            slot.again = slot.running;
            count += 1;
        }
        self.work.notify_one();
        count
    }

    /// A question is over.
    pub fn forget(&self, place: &Place) {
        self.slots().remove(place);
    }

    /// Works for as long as it is polled.
    pub async fn run(&self) {
        let mut running: JoinSet<Ended> = JoinSet::new();
        let mut hosts: HashMap<String, usize> = HashMap::new();
        loop {
            let next = self.begin(&mut running, &mut hosts);
            tokio::select! {
                Some(ended) = running.join_next() => match ended {
                    Ok((place, ask, begun, result)) => {
                        leave(&mut hosts, &ask);
                        self.ended(&place, &ask, begun, result);
                    }
                    Err(error) => tracing::error!(%error, "a render ended"),
                },
                () = self.work.notified() => {}
                () = sleep_until(next) => {}
            }
        }
    }

    /// Begins what is due, as far as there is room. Answers when the next is.
    fn begin(&self, running: &mut JoinSet<Ended>, hosts: &mut HashMap<String, usize>) -> Option<Instant> {
        let now = Instant::now();
        let mut next: Option<Instant> = None;
        for (place, slot) in self.slots().iter_mut().filter(|(_, slot)| !slot.running) {
            if slot.due > now {
                next = Some(next.map_or(slot.due, |n| n.min(slot.due)));
                continue;
            }
            // What has no room is looked at when something ends.
            if running.len() >= MOST_RUNNING || !enter(hosts, &slot.ask) {
                continue;
            }
            slot.running = true;
            slot.again = false;
            let (place, ask) = (place.clone(), slot.ask.clone());
            let fresh = std::mem::take(&mut slot.fresh);
            let repositories = Arc::clone(&self.repositories);
            running.spawn(async move {
                let result = tokio::time::timeout(LIMIT, repositories.render(&ask, fresh)).await;
                let late = || {
                    let message = format!("reading the repository took longer than {} s", LIMIT.as_secs());
                    Err(RenderError::new(Fault::Unreachable, message))
                };
                let result = result.unwrap_or_else(|_| late());
                (place, ask, now, result)
            });
        }
        next
    }

    fn ended(&self, place: &Place, ask: &Ask, begun: Instant, result: Result<Vec<Rendered>, RenderError>) {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(place) else { return };
        slot.running = false;
        if slot.ask != *ask {
            slot.due = Instant::now();
            return;
        }
        let pause = match &result {
            Ok(_) => {
                slot.failures = 0;
                usual(ask)
            }
            Err(_) => {
                slot.failures += 1;
                RETRY.saturating_mul(1 << (slot.failures - 1).min(10)).min(usual(ask).min(POLL))
            }
        };
        slot.due = Instant::now() + if slot.again { Duration::ZERO } else { jittered(pause) };
        let result = result.map(|renders| kept(renders, slot.good.as_ref()));
        if let Ok(renders) = &result {
            slot.good = Some(Arc::clone(renders));
        }
        slot.answer = Some((result, begun));
        drop(slots);
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(wake) = wake {
            wake(&place.0);
        }
    }
}

/// The renders that are there already, where the new ones are the same.
fn kept(new: Vec<Rendered>, old: Option<&Renders>) -> Renders {
    let new: Vec<Arc<Rendered>> = new.into_iter().map(Arc::new).collect();
    let is_same = |old: &&Renders| {
        old.len() == new.len()
            && old.iter().zip(&new).all(|(a, b)| a.key == b.key && a.revision == b.revision)
    };
    old.filter(is_same).cloned().unwrap_or_else(|| Arc::new(new))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The host of a question, where it is over the network.
fn host(ask: &Ask) -> Option<&str> {
    let url = ask.sources.first()?.repo_url.as_str();
    if url.starts_with("file://") || url.starts_with('/') {
        return None;
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    Some(rest.split(['/', ':']).next().unwrap_or(rest))
}

fn enter(hosts: &mut HashMap<String, usize>, ask: &Ask) -> bool {
    let Some(host) = host(ask) else { return true };
    let count = hosts.entry(host.to_owned()).or_default();
    if *count >= MOST_OF_HOST {
        return false;
    }
    *count += 1;
    true
}

fn leave(hosts: &mut HashMap<String, usize>, ask: &Ask) {
    let Some(host) = host(ask) else { return };
    if let Some(count) = hosts.get_mut(host) {
        *count -= 1;
        if *count == 0 {
            hosts.remove(host);
        }
    }
}

/// The usual time between looks at what a question asks for.
fn usual(ask: &Ask) -> Duration {
    let is_commit = |r: &str| r.len() >= 40 && r.bytes().all(|b| b.is_ascii_hexdigit());
    if ask.sources.iter().all(|s| is_commit(&s.target_revision)) {
        return POLL_FIXED;
    }
    if host(ask).is_none() { POLL_LOCAL } else { POLL }
}

/// A span, a tenth longer or shorter, so that looks spread out.
fn jittered(span: Duration) -> Duration {
    span.mul_f64(0.9 + 0.2 * rand::random::<f64>())
}
