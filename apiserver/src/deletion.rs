//! What a delete does to an object: removes it, or marks it and leaves the rest to whoever still has work to do.
//! Pure functions over values with the time passed in; knows types only by their rules.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::status::Status;

use crate::refusal::{Outcome, about, invalid_options};
use crate::strategy::stamp;
use crate::types::catalogue::Served;
use crate::value::{at, child, flag, int, list, put, text};

/// Finalizer of a deletion that waits for dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of a deletion that lets dependents live.
pub const ORPHAN: &str = "orphan";

/// Grace of a pod that does not say its own, in seconds.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// What becomes of the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They go after the owner.
    Background,
    /// They go before the owner.
    Foreground,
    /// They stay.
    Orphan,
}

/// How a client wants an object deleted.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seconds between the mark and the removal; `None` is what the object asks for.
    pub grace_seconds: Option<i64>,
    /// What becomes of the dependents; `None` is the default.
    pub propagation: Option<Propagation>,
    /// Only if the object has this uid; empty for any.
    pub uid: String,
    /// Only if the object is at this revision; empty for any.
    pub resource_version: String,
    /// Everything but the deleting.
    pub dry_run: bool,
    /// Why, in the client's words.
    pub cause: String,
}

impl Propagation {
    /// Reads the word of a request; empty is `None`.
    pub fn parse(word: &str) -> Outcome<Option<Self>> {
        match word {
            "" => Ok(None),
            "Background" => Ok(Some(Self::Background)),
            "Foreground" => Ok(Some(Self::Foreground)),
            "Orphan" => Ok(Some(Self::Orphan)),
            other => {
                let path = FieldPath::new("propagationPolicy");
                let fault = FieldError::not_supported(path, other, &["Foreground", "Background", "Orphan"]);
                Err(invalid_options("DeleteOptions", &[fault]))
            }
        }
    }
}

impl Propagation {
    /// The policy, from its new or its old option.
    pub fn either(new: Option<Self>, orphan: Option<bool>) -> Outcome<Option<Self>> {
        match (new, orphan) {
            (Some(_), Some(_)) => {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                let fault = FieldError::invalid(FieldPath::new("propagationPolicy"), "", detail);
                Err(invalid_options("DeleteOptions", &[fault]))
            }
            (None, Some(true)) => Ok(Some(Self::Orphan)),
            (None, Some(false)) => Ok(Some(Self::Background)),
            (new, None) => Ok(new),
        }
    }
}

impl Options {
    /// Reads `DeleteOptions` as an object says them.
    pub fn of(value: &Value) -> Outcome<Self> {
        let dry_run = list(value, &["dryRun"]);
        if let Some(other) = dry_run.iter().find(|d| d.as_str() != Some("All")) {
            let fault = FieldError::not_supported(FieldPath::new("dryRun"), other, &["All"]);
            return Err(invalid_options("DeleteOptions", &[fault]));
        }
        let orphan = at(value, &["orphanDependents"]).map(|_| flag(value, &["orphanDependents"]));
        Ok(Self {
            grace_seconds: int(value, &["gracePeriodSeconds"]),
            propagation: Propagation::either(
                Propagation::parse(text(value, &["propagationPolicy"]))?,
                orphan,
            )?,
            uid: text(value, &["preconditions", "uid"]).to_owned(),
            resource_version: text(value, &["preconditions", "resourceVersion"]).to_owned(),
            dry_run: !dry_run.is_empty(),
            cause: String::new(),
        })
    }
}

/// What a delete comes to.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// The object goes now.
    Remove,
    /// The object stays, changed to this.
    Mark(Value),
    /// The object is being deleted already, and nothing changes.
    Unchanged,
}

/// Decides a delete.
pub fn decide(served: &Served, old: &Value, options: &Options, now: Timestamp) -> Outcome<Verdict> {
    check_preconditions(served, old, options)?;
    let mut new = old.clone();
    set_policy(&mut new, options.propagation.or_else(|| unsaid(served, old)));
    let marked = at(old, &["metadata", "deletionTimestamp"]).is_some();
    let grace = grace_of(served, old, options);
    let holds = (served.rules.holds)(&new);
    if !holds && grace == 0 {
        return Ok(Verdict::Remove);
    }
    if marked {
        shorten(&mut new, old, grace, options.grace_seconds.is_some());
    } else {
        mark(served, &mut new, grace, now);
    }
    if !(served.rules.holds)(&new) && int(&new, &["metadata", "deletionGracePeriodSeconds"]) == Some(0) {
        return Ok(Verdict::Remove);
    }
    Ok(if new == *old { Verdict::Unchanged } else { Verdict::Mark(new) })
}

/// What becomes of what an object owns where the request does not say.
fn unsaid(served: &Served, old: &Value) -> Option<Propagation> {
    let said = list(old, &["metadata", "finalizers"]).iter().any(|f| f == FOREGROUND || f == ORPHAN);
    (served.rules.orphans && !said).then_some(Propagation::Orphan)
}

/// Whether an object that was just written has nothing left to wait for, and so goes.
pub fn is_due(served: &Served, object: &Value) -> bool {
    let marked = at(object, &["metadata", "deletionTimestamp"]).is_some();
    let graced =
        served.rules.graceful && int(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) > 0;
    marked && !graced && !(served.rules.holds)(object)
}

fn check_preconditions(served: &Served, old: &Value, options: &Options) -> Outcome<()> {
    let pairs = [
        ("UID", &options.uid, text(old, &["metadata", "uid"]), "UID"),
        (
            "ResourceVersion",
            &options.resource_version,
            text(old, &["metadata", "resourceVersion"]),
            "ResourceVersion",
        ),
    ];
    for (what, wanted, actual, meta) in pairs {
        if !wanted.is_empty() && wanted != actual {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {meta} in object meta: {actual}"
            );
            let name = text(old, &["metadata", "name"]);
            return Err(Box::new(Status::conflict(about(&served.resource, name), &why)));
        }
    }
    Ok(())
}

/// Puts the finalizer of the asked policy, and takes those of others.
fn set_policy(object: &mut Value, policy: Option<Propagation>) {
    let Some(policy) = policy else { return };
    let wanted = match policy {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let had = list(object, &["metadata", "finalizers"]);
    let mut finalizers: Vec<Value> = had
        .iter()
        .filter(|f| f.as_str().is_none_or(|f| Some(f) == wanted || !matches!(f, FOREGROUND | ORPHAN)))
        .cloned()
        .collect();
    if let Some(wanted) = wanted
        && !finalizers.contains(&json!(wanted))
    {
        finalizers.push(json!(wanted));
    }
    put(
        child(object, "metadata"),
        "finalizers",
        (!finalizers.is_empty()).then_some(Value::Array(finalizers)),
    );
}

fn grace_of(served: &Served, object: &Value, options: &Options) -> i64 {
    if !served.rules.graceful {
        return 0;
    }
    let marked = at(object, &["metadata", "deletionTimestamp"]).is_some();
    let own = if marked {
        int(object, &["metadata", "deletionGracePeriodSeconds"])
    } else {
        int(object, &["spec", "terminationGracePeriodSeconds"])
    };
    let unbound = text(object, &["spec", "nodeName"]).is_empty();
    let ended = matches!(text(object, &["status", "phase"]), "Succeeded" | "Failed");
    match options.grace_seconds.or(own).unwrap_or(DEFAULT_GRACE_SECONDS) {
        _ if !marked && (unbound || ended) => 0,
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}

fn mark(served: &Served, object: &mut Value, grace: i64, now: Timestamp) {
    let generation = int(object, &["metadata", "generation"]).filter(|g| *g > 0);
    let metadata = child(object, "metadata");
    metadata.insert("deletionTimestamp".to_owned(), stamp(later(now, grace)));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
    if let Some(generation) = generation {
        metadata.insert("generation".to_owned(), json!(generation + 1));
    }
    (served.rules.mark)(object);
}

/// A second delete can only shorten the grace of the first.
fn shorten(new: &mut Value, old: &Value, grace: i64, asked: bool) {
    let was = int(old, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    if !asked || grace >= was {
        return;
    }
    let end = text(old, &["metadata", "deletionTimestamp"]).parse::<Timestamp>();
    let metadata = child(new, "metadata");
    if let Ok(end) = end {
        metadata.insert("deletionTimestamp".to_owned(), stamp(later(end, grace - was)));
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
}

fn later(instant: Timestamp, seconds: i64) -> Timestamp {
    instant.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_model::resource::builtin;
    use strata_model::status::Reason;

    use crate::types::{config, deployment, namespace, pod};

    fn now() -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }

    fn pods() -> Served {
        Served { resource: builtin::POD.clone(), rules: &pod::POD, form: None, custom: None }
    }

    fn bound() -> Value {
        json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30},
            "status": {"phase": "Running"}})
    }

    fn marked(verdict: Verdict) -> Value {
        let Verdict::Mark(value) = verdict else { panic!("{verdict:?}") };
        value
    }

    #[test]
    fn a_bound_pod_is_asked_first_and_removed_by_its_node() {
        let first = marked(decide(&pods(), &bound(), &Options::default(), now()).unwrap());
        assert_eq!(first["metadata"]["deletionTimestamp"], "2023-11-14T22:13:50Z");
        assert_eq!(first["metadata"]["deletionGracePeriodSeconds"], 30);
        assert!(!is_due(&pods(), &first));
        let again = |seconds| {
            decide(&pods(), &first, &Options { grace_seconds: seconds, ..Options::default() }, now()).unwrap()
        };
        assert_eq!(again(None), Verdict::Unchanged);
        assert_eq!(again(Some(40)), Verdict::Unchanged);
        let shorter = marked(again(Some(5)));
        assert_eq!(shorter["metadata"]["deletionTimestamp"], "2023-11-14T22:13:25Z");
        assert_eq!(again(Some(0)), Verdict::Remove);
    }

    #[test]
    fn pods_without_a_node_or_with_an_end_go_at_once() {
        let mut unbound = bound();
        unbound["spec"].as_object_mut().unwrap().remove("nodeName");
        assert_eq!(decide(&pods(), &unbound, &Options::default(), now()).unwrap(), Verdict::Remove);
        let mut ended = bound();
        ended["status"]["phase"] = json!("Failed");
        assert_eq!(decide(&pods(), &ended, &Options::default(), now()).unwrap(), Verdict::Remove);
    }

    #[test]
    fn policies_are_finalizers() {
        let served = Served {
            resource: builtin::DEPLOYMENT.clone(),
            rules: &deployment::DEPLOYMENT,
            form: None,
            custom: None,
        };
        let old = json!({"metadata": {"name": "d", "generation": 3}});
        let with = |object: &Value, propagation| {
            decide(&served, object, &Options { propagation, ..Options::default() }, now()).unwrap()
        };
        assert_eq!(with(&old, None), Verdict::Remove);
        assert_eq!(with(&old, Some(Propagation::Background)), Verdict::Remove);
        let foreground = marked(with(&old, Some(Propagation::Foreground)));
        assert_eq!(foreground["metadata"]["finalizers"], json!([FOREGROUND]));
        assert_eq!(foreground["metadata"]["generation"], 4);
        let orphan = marked(with(&foreground, Some(Propagation::Orphan)));
        assert_eq!(orphan["metadata"]["finalizers"], json!([ORPHAN]));
        assert_eq!(with(&foreground, Some(Propagation::Background)), Verdict::Remove);
        assert_eq!(with(&foreground, None), Verdict::Unchanged);
    }

    #[test]
    fn preconditions_hold_or_refuse() {
        let served = Served {
            resource: builtin::CONFIG_MAP.clone(),
            rules: &config::CONFIG_MAP,
            form: None,
            custom: None,
        };
        let old = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "3"}});
        let wrong = Options { uid: "v".to_owned(), ..Options::default() };
        assert_eq!(decide(&served, &old, &wrong, now()).unwrap_err().reason, Some(Reason::Conflict));
        let right = Options { uid: "u".to_owned(), resource_version: "3".to_owned(), ..Options::default() };
        assert_eq!(decide(&served, &old, &right, now()).unwrap(), Verdict::Remove);
        assert!(Propagation::parse("Sideways").is_err());
    }

    #[test]
    fn a_namespace_stays_until_it_is_finalized() {
        let served = Served {
            resource: builtin::NAMESPACE.clone(),
            rules: &namespace::NAMESPACE,
            form: None,
            custom: None,
        };
        let old = json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        let mut new = marked(decide(&served, &old, &Options::default(), now()).unwrap());
        assert_eq!(new["status"]["phase"], "Terminating");
        assert!(!is_due(&served, &new));
        new["spec"] = json!({});
        assert!(is_due(&served, &new));
    }
}
