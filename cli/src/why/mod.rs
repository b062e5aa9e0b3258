//! Why an object is not as declared: the tree from it down to processes, each line with what is wanted, what is, and the
//! first reason for the gap. All but `gather` is pure: fetched objects and the time in, lines out.
//!
//! Objects are told by their shape, not by their kind: what has containers is read as a pod, what has a pod template as
//! a workload, or as work that ends where it has a parallelism, anything else by its conditions.

mod common;

mod pod;

mod workload;

mod work;

pub mod gather;

pub mod render;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// What is known beside the object itself.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Objects among which its dependents are, whole.
    pub objects: Vec<Value>,
    /// Events about any of them.
    pub events: Vec<Value>,
    /// Nodes their pods are on; `None` where that is not known.
    pub nodes: Option<Vec<Value>>,
    /// Leases of controllers; `None` where they are not known.
    pub leases: Option<Vec<Value>>,
}

/// One word for programs, one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// CamelCase.
    pub word: String,
    /// The sentence; may be empty.
    pub message: String,
}

impl Reason {
    /// A reason.
    pub fn new(word: impl Into<String>, message: impl Into<String>) -> Self {
        Self { word: word.into(), message: message.into() }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.message.is_empty() {
            true => f.write_str(&self.word),
            false => write!(f, "{}: {}", self.word, self.message),
        }
    }
}

/// One line of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Kind, or `container`.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects and containers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// What is wanted, for people.
    pub desired: String,
    /// What is, for people.
    pub actual: String,
    /// Seconds since it was created; none for containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// Whether the two agree.
    pub converged: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What it is made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Line>,
}

impl Line {
    /// Whether it and everything below is as wanted.
    pub fn settled(&self) -> bool {
        self.converged && self.children.iter().all(Self::settled)
    }

    /// The reason nearest to the cause, from the first object below that has one, and where that stands. Containers speak
    /// through their pod.
    pub fn first_reason(&self) -> Option<(String, Reason)> {
        let objects = self.children.iter().filter(|child| !child.namespace.is_empty());
        let below = objects.filter(|child| !child.settled()).find_map(Self::first_reason);
        below.or_else(|| Some((format!("{} {}", self.kind, self.name), self.reason.clone()?)))
    }
}

/// Deepest tree that is looked at: owners may form a circle.
const MAX_DEPTH: usize = 8;

/// The tree of an object.
pub fn explain(root: &Value, facts: &Facts, now: Timestamp) -> Line {
    line(root, &View { facts, now }, 0)
}

/// What lines are made from.
#[derive(Clone, Copy)]
struct View<'a> {
    facts: &'a Facts,
    now: Timestamp,
}

fn line(object: &Value, view: &View<'_>, depth: usize) -> Line {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let mut line = Line {
        kind: object["kind"].as_str().unwrap_or_default().to_owned(),
        namespace: text("namespace"),
        name: text("name"),
        age_seconds: common::age(&object["metadata"]["creationTimestamp"], view.now),
        ..Line::default()
    };
    if object["spec"]["containers"].is_array() {
        pod::fill(&mut line, object, view);
        return line;
    }
    if depth < MAX_DEPTH {
        line.children = children(object, view, depth);
    }
    if work::is_work(object) {
        work::fill(&mut line, object, view);
    } else if object["spec"]["template"].is_object() {
        workload::fill(&mut line, object, view);
    } else {
        common::fill(&mut line, object, view);
    }
    line
}

/// The objects it owns, in the order of their making; those that are wished away and gone are left out.
fn children(object: &Value, view: &View<'_>, depth: usize) -> Vec<Line> {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let owned = |o: &&Value| {
        let owners = o["metadata"]["ownerReferences"].as_array();
        !uid.is_empty() && owners.into_iter().flatten().any(|owner| owner["uid"] == uid)
    };
    let mut owned: Vec<&Value> = view.facts.objects.iter().filter(owned).collect();
    let order = |o: &Value, field: &str| o["metadata"][field].as_str().unwrap_or_default().to_owned();
    owned.sort_by_cached_key(|o| (order(o, "creationTimestamp"), order(o, "name")));
    let lines = owned.into_iter().map(|o| (o, line(o, view, depth + 1)));
    lines
        .filter(|(o, line)| !(workload::is_retired(o) && line.settled() && line.children.is_empty()))
        .map(|(_, line)| line)
        .collect()
}

#[cfg(test)]
mod tests;
