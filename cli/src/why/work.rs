//! What runs pods until enough of them have succeeded: Jobs, told by their parallelism. It is as wished when it is done,
//! or rests as it was told to.

use serde_json::Value;

use super::common::{condition, idle_owner, leaving, reason_of, warning};
use super::{Line, Reason, View};

/// Whether an object is work that ends.
pub fn is_work(object: &Value) -> bool {
    object["spec"]["template"].is_object() && object["spec"]["parallelism"].is_i64()
}

/// Fills in the line of work, its children being known.
pub fn fill(line: &mut Line, object: &Value, view: &View<'_>) {
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let (succeeded, failed, active) = (count("succeeded"), count("failed"), count("active"));
    let holds = |type_: &str| condition(object, type_).filter(|c| c["status"] == "True");
    let rests = spec["suspend"] == true;
    line.desired = match spec["completions"].as_i64() {
        _ if rests => "resting".to_owned(),
        Some(wanted) => format!("{wanted} succeeded"),
        None => "done".to_owned(),
    };
    let counts = [(succeeded, "succeeded"), (active, "active"), (failed, "failed")];
    let told: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    line.actual = if told.is_empty() { "no pods".to_owned() } else { told.join(", ") };
    if let Some(reason) = leaving(object, view) {
        line.desired = "gone".to_owned();
        line.reason = Some(reason);
    } else if holds("Complete").is_some() || (rests && active == 0) {
        line.converged = true;
        // What failed on the way was made up for.
        line.children.retain(Line::settled);
    } else {
        line.reason = holds("Failed").or_else(|| holds("FailureTarget")).map(reason_of);
        line.reason = line.reason.take().or_else(|| gap(line, object, view));
    }
}

fn gap(line: &Line, object: &Value, view: &View<'_>) -> Option<Reason> {
    let below = line.children.iter().filter(|child| !child.settled()).find_map(Line::first_reason);
    let below = below.map(|(place, reason)| Reason::new(reason.word, format!("{place}: {}", reason.message)));
    // Work has no generation that its controller tells of; before it has looked there is no status at all.
    let unseen = object["status"].as_object().is_none_or(serde_json::Map::is_empty);
    let unseen = unseen.then(|| Reason::new("NotObserved", "its controller has not seen it yet"));
    below
        .or_else(|| idle_owner(object, view))
        .or(unseen)
        .or_else(|| warning(object, view))
        .or_else(|| Some(Reason::new("Progressing", format!("{} of {}", line.actual, line.desired))))
}
