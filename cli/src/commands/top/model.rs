//! What `top` knows: every object that was seen, shortly, and what controllers said last; and what is to be shown of that.
//! Pure: events and answers come in, rows go out. Knows neither terminal nor connection.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde_json::Value;
use strata_model::object::{Object, ObjectKey};
use strata_model::readiness::is_ready;
use strata_model::resource::ResourceType;

/// Writes that are remembered.
const WRITES: usize = 200;
/// Longest chain of owners that is followed.
const LAYERS: usize = 16;
/// Over how many seconds the rate of writes is told.
const RATE_SECONDS: i64 = 10;

/// An object, as far as it is shown.
#[derive(Clone, Debug)]
struct Seen {
    ready: bool,
    /// Whether it says anything of itself: only then is being ready news.
    says: bool,
    owner: Option<String>,
    /// Since when it is as ready as it is.
    since: Timestamp,
    why: String,
}

/// A type, with its objects.
#[derive(Debug, Default)]
struct Kind {
    kind: String,
    objects: BTreeMap<ObjectKey, Seen>,
}

/// A write that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// When it was seen.
    pub at: Timestamp,
    /// At which revision.
    pub revision: u64,
    /// `created`, `changed` or `deleted`.
    pub what: &'static str,
    /// TYPE/NAMESPACE/NAME.
    pub object: String,
    /// Who wrote it, where that is known.
    pub by: String,
}

/// A layer: the objects of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its type.
    pub resource: String,
    /// How many owners stand above it.
    pub depth: usize,
    /// Objects.
    pub total: usize,
    /// Those that are as wished.
    pub ready: usize,
}

/// Something that is not as wished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// TYPE/NAMESPACE/NAME.
    pub object: String,
    /// For how many seconds.
    pub seconds: i64,
    /// Why, as far as it says so itself.
    pub why: String,
}

/// What a controller said of its queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Whether it leads.
    pub leads: bool,
    /// Keys that are ready, that run, that wait for a moment, and for the cache.
    pub keys: [u64; 4],
    /// Keys whose last try failed.
    pub failed: u64,
    /// How long the oldest ready key has waited, seconds.
    pub oldest: f64,
    /// Reconciles that wrote, and that found nothing to do.
    pub wrote: u64,
    /// See `wrote`.
    pub noops: u64,
    /// How often a wish came true, and how many seconds that took together.
    pub converged: (u64, f64),
}

impl Queue {
    /// Mean time from a wish to its fulfilment, in seconds; `None` where there was none yet.
    pub fn mean(&self) -> Option<f64> {
        let (count, seconds) = self.converged;
        (count > 0).then(|| seconds / count as f64)
    }
}

/// All that is known.
#[derive(Debug, Default)]
pub struct Model {
    kinds: BTreeMap<String, Kind>,
    /// Objects of a state that is being read anew, by type.
    fresh: BTreeMap<String, Vec<ObjectKey>>,
    writes: VecDeque<Write>,
    /// The queues, by name.
    pub queues: Vec<Queue>,
    /// The newest revision.
    pub revision: u64,
    /// What is wrong with the connection; empty: nothing.
    pub trouble: String,
}

/// What a watch says; the part of an event that matters here.
#[derive(Clone, Debug)]
pub enum News<'a> {
    /// The whole state follows.
    Restarted,
    /// An object of it.
    Initial(&'a Object),
    /// That was all.
    Complete,
    /// A write.
    Applied(&'a Object, u64),
    /// A deletion.
    Deleted(&'a Object, u64),
}

impl Model {
    /// Takes what a watch says.
    pub fn apply(&mut self, resource: &ResourceType, news: &News<'_>, now: Timestamp) {
        let id = resource.id.to_string();
        let kind = self.kinds.entry(id.clone()).or_default();
        kind.kind = resource.kind.to_string();
        match news {
            News::Restarted => drop(self.fresh.insert(id, Vec::new())),
            News::Initial(object) => {
                kind.put(object, now);
                self.fresh.entry(id).or_default().push(object.key());
            }
            News::Complete => {
                let mut fresh = self.fresh.remove(&id).unwrap_or_default();
                fresh.sort();
                kind.objects.retain(|key, _| fresh.binary_search(key).is_ok());
            }
            News::Applied(object, revision) => {
                let new = kind.put(object, now);
                self.wrote(if new { "created" } else { "changed" }, &id, object, *revision, now);
            }
            News::Deleted(object, revision) => {
                kind.objects.remove(&object.key());
                self.wrote("deleted", &id, object, *revision, now);
            }
        }
    }

    fn wrote(&mut self, what: &'static str, id: &str, object: &Object, revision: u64, now: Timestamp) {
        self.revision = self.revision.max(revision);
        let by = if what == "deleted" { String::new() } else { writer(object) };
        let object = format!("{id}/{}", object.key());
        // Each type comes on a watch of its own, so that the order between them is that of the revisions.
        let place =
            self.writes.iter().position(|write| write.revision < revision).unwrap_or(self.writes.len());
        self.writes.insert(place, Write { at: now, revision, what, object, by });
        self.writes.truncate(WRITES);
    }

    /// The newest writes, newest first.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter()
    }

    /// Writes a second of late; what does not fit into the memory of writes is not counted.
    pub fn rate(&self, now: Timestamp) -> f64 {
        let late = self.writes.iter().filter(|write| now.as_second() - write.at.as_second() < RATE_SECONDS);
        late.count() as f64 / RATE_SECONDS as f64
    }

    /// The layers: types whose objects say how they are, the owners first.
    pub fn layers(&self) -> Vec<Layer> {
        let telling = self.kinds.iter().filter(|(_, kind)| kind.objects.values().any(|seen| seen.says));
        let mut layers: Vec<Layer> = telling
            .map(|(id, kind)| Layer {
                resource: id.clone(),
                depth: self.depth(&kind.kind),
                total: kind.objects.len(),
                ready: kind.objects.values().filter(|seen| seen.ready).count(),
            })
            .collect();
        layers.sort_by(|a, b| (a.depth, &a.resource).cmp(&(b.depth, &b.resource)));
        layers
    }

    /// How many owners stand above the objects of a kind, at most.
    fn depth(&self, kind: &str) -> usize {
        let mut above = vec![kind.to_owned()];
        for depth in 0..LAYERS {
            let owners = self.kinds.values().filter(|k| above.contains(&k.kind));
            let mut next: Vec<String> = owners
                .flat_map(|k| k.objects.values().filter_map(|seen| seen.owner.clone()))
                .filter(|owner| self.kinds.values().any(|k| k.kind == *owner))
                .collect();
            next.sort();
            next.dedup();
            if next.is_empty() {
                return depth;
            }
            above = next;
        }
        LAYERS
    }

    /// What is not as wished, for the longest time first.
    pub fn gaps(&self, now: Timestamp) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        for (id, kind) in &self.kinds {
            for (key, seen) in kind.objects.iter().filter(|(_, seen)| !seen.ready) {
                let seconds = (now.as_second() - seen.since.as_second()).max(0);
                gaps.push(Gap { object: format!("{id}/{key}"), seconds, why: seen.why.clone() });
            }
        }
        gaps.sort_by(|a, b| (b.seconds, &a.object).cmp(&(a.seconds, &b.object)));
        gaps
    }
}

impl Kind {
    /// Takes an object's state; answers whether it is new.
    fn put(&mut self, object: &Object, now: Timestamp) -> bool {
        let value = object.to_value().unwrap_or_default();
        let ready = is_ready(&value);
        let old = self.objects.get(&object.key());
        let since = match old {
            Some(old) if old.ready == ready => old.since,
            Some(_) => now,
            None => since(&value, ready).or(object.meta().creation_timestamp).unwrap_or(now),
        };
        let seen = Seen {
            ready,
            says: value["status"].as_object().is_some_and(|status| !status.is_empty()),
            owner: object.meta().controller().map(|owner| owner.kind.clone()),
            since,
            why: if ready { String::new() } else { why(&value) },
        };
        self.objects.insert(object.key(), seen).is_none()
    }
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

/// When the newest condition of an object that is not ready turned.
fn since(object: &Value, ready: bool) -> Option<Timestamp> {
    let turned = conditions(object).filter(|c| !ready && c["status"] != "True");
    turned.filter_map(|c| c["lastTransitionTime"].as_str()?.parse().ok()).max()
}

/// What an object that is not ready says of the cause.
fn why(object: &Value) -> String {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return "is being deleted".to_owned();
    }
    let containers = object["status"]["containerStatuses"].as_array().into_iter().flatten();
    if let Some(reason) = containers.filter_map(|c| c["state"]["waiting"]["reason"].as_str()).next() {
        return reason.to_owned();
    }
    let told = conditions(object).filter(|c| c["status"] == "False" && c["reason"].is_string());
    let mut told: Vec<&Value> = told.collect();
    told.sort_by_key(|c| c["type"] == "Progressing");
    if let Some(condition) = told.last() {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        return match text("message") {
            "" => text("reason").to_owned(),
            message => format!("{}: {message}", text("reason")),
        };
    }
    let (spec, status) = (&object["spec"], &object["status"]);
    match (status["phase"].as_str(), spec["replicas"].as_i64()) {
        (Some(phase), _) => phase.to_owned(),
        (None, Some(wanted)) if status.is_object() => {
            format!("{} of {wanted} ready", status["readyReplicas"].as_i64().unwrap_or(0))
        }
        _ => "not seen by its controller yet".to_owned(),
    }
}

/// Who wrote an object last: the manager with the newest time.
fn writer(object: &Object) -> String {
    let value = object.to_value().unwrap_or_default();
    let managers = value["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let newest = managers.iter().max_by_key(|m| m["time"].as_str().unwrap_or_default().to_owned());
    newest.and_then(|m| m["manager"].as_str()).unwrap_or_default().to_owned()
}

/// The controllers of a process, by what its admin port says of queues and (in OpenMetrics text) of time.
pub fn queues(shown: &Value, metrics: &str) -> Vec<Queue> {
    let controllers = shown["controllers"].as_array().into_iter().flatten();
    controllers
        .map(|one| {
            let name = one["name"].as_str().unwrap_or_default();
            let number = |field: &str| one[field].as_u64().unwrap_or(0);
            let keys = one["keys"].as_array().into_iter().flatten();
            let result = |result: &str| {
                sample(
                    metrics,
                    "controller_runtime_reconcile_total",
                    &[("controller", name), ("result", result)],
                )
            };
            let took = |part: &str| {
                sample(metrics, &format!("strata_time_to_converge_seconds_{part}"), &[("name", name)])
            };
            Queue {
                name: name.to_owned(),
                leads: one["leads"] == true,
                keys: [number("depth"), number("running"), number("delayed"), number("waitingForCache")],
                failed: keys.filter(|key| key["state"] == "failed").count() as u64,
                oldest: one["oldestSeconds"].as_f64().unwrap_or(0.0),
                wrote: result("wrote") as u64,
                noops: result("noop") as u64,
                converged: (took("count") as u64, took("sum")),
            }
        })
        .collect()
}

/// The value of one sample of an OpenMetrics text; zero where there is none.
fn sample(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let found = text.lines().find_map(|line| {
        let (has, value) = line.strip_prefix(name)?.strip_prefix('{')?.split_once('}')?;
        let right = labels.iter().all(|(label, value)| {
            has.split(',').any(|pair| pair.split_once('=') == Some((*label, format!("\"{value}\"").as_str())))
        });
        right.then(|| value.trim().parse().ok()).flatten()
    });
    found.unwrap_or(0.0)
}
