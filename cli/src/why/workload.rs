//! What keeps a number of pods: Deployments, ReplicaSets, StatefulSets, DaemonSets and whatever has a pod template and
//! counts.

use serde_json::Value;

use super::common::{condition, idle_owner, leaving, reason_of, unseen, warning};
use super::{Line, Reason, View};

/// How many pods it wants. What has one for each node says itself how many those are.
fn wanted(object: &Value) -> i64 {
    match object["status"]["desiredNumberScheduled"].as_i64() {
        Some(nodes) => nodes,
        None => object["spec"]["replicas"].as_i64().unwrap_or(1),
    }
}

/// How many of the wanted pods are to be of the present template: all but those below a partition, or whose update is
/// somebody else's business.
fn wanted_updated(object: &Value, wanted: i64, updated: i64) -> i64 {
    let strategy = &object["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return updated;
    }
    (wanted - strategy["rollingUpdate"]["partition"].as_i64().unwrap_or(0)).max(0)
}

/// Whether it wants no pods, as the ReplicaSets of former revisions do.
pub fn is_retired(object: &Value) -> bool {
    object["spec"]["template"].is_object() && wanted(object) == 0
}

/// Fills in the line of a workload, its children being known.
pub fn fill(line: &mut Line, object: &Value, view: &View<'_>) {
    let status = &object["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let wanted = wanted(object);
    let by_node = !status["desiredNumberScheduled"].is_null();
    let names = match by_node {
        true => ["currentNumberScheduled", "numberAvailable", "updatedNumberScheduled"],
        false => ["replicas", "availableReplicas", "updatedReplicas"],
    };
    let (all, available) = (count(names[0]), count(names[1]));
    // Only what rolls out counts its updated pods; a ReplicaSet has one template for ever.
    let spec = &object["spec"];
    let rolls =
        !spec["strategy"].is_null() || !spec["updateStrategy"].is_null() || !status[names[2]].is_null();
    let updated = if rolls { count(names[2]) } else { all };
    line.desired = pods(wanted);
    line.actual = match (rolls && updated < all, all) {
        (_, 0) => "no pods".to_owned(),
        (true, _) => format!("{}, {updated} updated, {available} available", pods(all)),
        (false, _) => format!("{}, {available} available", pods(all)),
    };
    // Of those that a partition holds back more may be updated than must be.
    let up_to_date = updated >= wanted_updated(object, wanted, updated);
    let reached = all == wanted && up_to_date && available == wanted;
    let deleting = leaving(object, view);
    let unseen = unseen(object, view);
    line.converged = reached && deleting.is_none() && unseen.is_none();
    if line.converged {
        return;
    }
    if deleting.is_some() {
        line.desired = "gone".to_owned();
    }
    let replicas = (wanted, all, updated, available);
    line.reason = deleting.or(unseen).or_else(|| gap(line, object, view, replicas));
}

fn pods(count: i64) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}

/// Why the counts are not those that are wanted.
fn gap(
    line: &Line,
    object: &Value,
    view: &View<'_>,
    (wanted, all, updated, available): (i64, i64, i64, i64),
) -> Option<Reason> {
    if object["spec"]["paused"] == true && updated < wanted {
        let message = format!("changes wait until `strata rollout resume deployment/{}`", line.name);
        return Some(Reason::new("Paused", message));
    }
    let is =
        |type_: &str, status: &str| condition(object, type_).filter(|c| c["status"] == status).map(reason_of);
    // What a level below says is nearer to the cause than this level's own summary, but a failure to create has none below.
    let failure = is("ReplicaFailure", "True");
    let below = || line.children.iter().filter(|child| !child.settled()).find_map(Line::first_reason);
    let from_below =
        || below().map(|(place, reason)| Reason::new(reason.word, said_of(&place, &reason.message)));
    let counts = || match (all.cmp(&wanted), available < wanted) {
        (std::cmp::Ordering::Less, _) => format!("{} of {wanted} pods are there", all),
        (std::cmp::Ordering::Greater, _) => format!("{} pods are still to go", all - wanted),
        (_, true) => format!("{available} of {wanted} pods are available"),
        _ => format!("{updated} of {wanted} pods are updated"),
    };
    failure
        .or_else(from_below)
        .or_else(|| idle_owner(object, view))
        .or_else(|| is("Progressing", "False"))
        .or_else(|| warning(object, view))
        .or_else(|| Some(Reason::new("Progressing", counts())))
}

fn said_of(place: &str, message: &str) -> String {
    if message.is_empty() { place.to_owned() } else { format!("{place}: {message}") }
}
