//! Jobs: defaults, the selector that is made for them, checks, row.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use strata_model::age::human;
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, Field, NAME, PLAIN, Rules, column, wide};
use super::{check, meta, pod_checks, print, workload};
use crate::value::{at, child, default, flag, int, list, members, object, text};

/// The label that tells the pods of a job, by its uid.
const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
/// The label that names the job.
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
/// Their older forms.
const OLD_LABELS: [&str; 2] = ["controller-uid", "job-name"];

/// Retries of a job that says nothing.
const BACKOFF_LIMIT: i64 = 6;

const COLUMNS: &[Column] = &[
    NAME,
    column("Status", "Running, Complete, Failed, or what it waits for."),
    column("Completions", "How many pods succeeded, of how many."),
    column("Duration", "How long it ran."),
    AGE,
    wide("Containers", "Names of the containers of the template."),
    wide("Images", "Images of the containers of the template."),
    wide("Selector", "Which pods belong to it."),
];

/// Rules of jobs.
pub static JOB: Rules = Rules {
    defaults,
    create,
    update: keep_generated,
    validate,
    validate_update,
    warnings: meta::warn_of_dots,
    orphans: true,
    columns: COLUMNS,
    row,
    fields: const { &[Field { name: "status.successful", pointers: &["/status/succeeded"], absent: "0" }] },
    ..PLAIN
};

fn defaults(job: &mut Value) {
    spec_defaults(child(job, "spec"));
    let labels = at(job, &["spec", "template", "metadata", "labels"]).cloned();
    if let Some(labels) = labels.filter(|l| l.as_object().is_some_and(|l| !l.is_empty())) {
        let metadata = child(job, "metadata");
        if metadata.get("labels").and_then(Value::as_object).is_none_or(Map::is_empty) {
            metadata.insert("labels".to_owned(), labels);
        }
    }
}

/// Fills the template of a job's pods.
pub fn template_defaults(spec: &mut Map<String, Value>) {
    if let Some(template) = spec.get_mut("template") {
        super::pod_spec::defaults(child(template, "spec"));
        child(template, "metadata").remove("creationTimestamp");
    }
}

fn spec_defaults(spec: &mut Map<String, Value>) {
    template_defaults(spec);
    if spec.get("completions").is_none_or(Value::is_null)
        && spec.get("parallelism").is_none_or(Value::is_null)
    {
        spec.insert("completions".to_owned(), json!(1));
    }
    default(spec, "parallelism", 1);
    let by_index = spec.get("backoffLimitPerIndex").is_some_and(|l| !l.is_null());
    default(spec, "backoffLimit", if by_index { i64::from(i32::MAX) } else { BACKOFF_LIMIT });
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    let policy = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    default(spec, "podReplacementPolicy", policy);
    default(spec, "manualSelector", false);
}

fn create(job: &mut Value) {
    object(job).insert("status".to_owned(), json!({}));
    if flag(job, &["spec", "manualSelector"]) {
        return;
    }
    let uid = text(job, &["metadata", "uid"]).to_owned();
    let name = text(job, &["metadata", "name"]).to_owned();
    let label = |labels: &mut Map<String, Value>| {
        for (key, value) in
            [(UID_LABEL, &uid), (NAME_LABEL, &name), (OLD_LABELS[0], &uid), (OLD_LABELS[1], &name)]
        {
            labels.insert(key.to_owned(), json!(value));
        }
    };
    if let Some(template) = child(job, "spec").get_mut("template") {
        label(object(child(template, "metadata").entry("labels").or_insert(Value::Null)));
    }
    label(object(child(job, "metadata").entry("labels").or_insert(Value::Null)));
    let selector = object(child(job, "spec").entry("selector").or_insert(Value::Null));
    let wanted = object(selector.entry("matchLabels").or_insert(Value::Null));
    wanted.entry(UID_LABEL).or_insert(json!(uid));
}

/// An update that says nothing of the selector and the labels made for it keeps them.
fn keep_generated(new: &mut Value, old: &Value) {
    if flag(old, &["spec", "manualSelector"]) {
        return;
    }
    if at(new, &["spec", "selector"]).is_none() {
        let selector = at(old, &["spec", "selector"]).cloned();
        crate::value::put(child(new, "spec"), "selector", selector);
    }
    let had = members(old, &["spec", "template", "metadata", "labels"]).cloned().unwrap_or_default();
    let Some(template) = child(new, "spec").get_mut("template") else { return };
    let labels = object(child(template, "metadata").entry("labels").or_insert(Value::Null));
    for key in [UID_LABEL, NAME_LABEL].into_iter().chain(OLD_LABELS) {
        if let Some(value) = had.get(key) {
            labels.entry(key).or_insert(value.clone());
        }
    }
}

fn validate(job: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(job, &["spec"]).unwrap_or(&Value::Null));
    validate_spec(spec, &path, faults);
    if at(spec, &["selector"]).is_none() {
        faults.push(FieldError::required(path.child("selector"), ""));
    }
    let selector = check::selector(at(spec, &["selector"]), &path.child("selector"), faults);
    let template = at(spec, &["template"]).unwrap_or(&Value::Null);
    if selector.is_some_and(|s| !s.matches(&print::labels(template))) {
        let shown = at(template, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
        let path = path.child("template").child("metadata").child("labels");
        faults.push(FieldError::invalid(path, shown, "`selector` does not match template `labels`"));
    }
    if text(spec, &["completionMode"]) == "Indexed" {
        // The last index and a dash come behind the name of each pod's host.
        let last = int(spec, &["completions"]).unwrap_or(1).max(1) - 1;
        let name = text(job, &["metadata", "name"]);
        if let Some(fault) = names::dns_label(&format!("{name}-{last}")) {
            let detail =
                format!("will not able to create pod with invalid DNS label: {name}-{last}: {fault}");
            faults.push(FieldError::invalid(meta::path().child("name"), name, detail));
        }
    }
}

/// Checks the spec of a job, or of the template of one.
pub fn validate_spec(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    check::not_negative(spec, &counts, path, faults);
    check::one_of(spec, "completionMode", &["Indexed", "NonIndexed"], path, faults);
    let indexed = text(spec, &["completionMode"]) == "Indexed";
    if indexed && at(spec, &["completions"]).is_none() {
        faults.push(FieldError::required(path.child("completions"), "when completion mode is Indexed"));
    }
    if !indexed {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(shown) = at(spec, &[field]) {
                faults.push(FieldError::invalid(
                    path.child(field),
                    shown,
                    "requires indexed completion mode",
                ));
            }
        }
    }
    let policies = &["Failed", "TerminatingOrFailed"];
    check::one_of(spec, "podReplacementPolicy", policies, path, faults);
    let Some(template) = at(spec, &["template"]) else {
        faults.push(FieldError::required(path.child("template"), ""));
        return;
    };
    let path = path.child("template");
    if let Some(labels) = members(template, &["metadata", "labels"]) {
        meta::validate_labels(labels, &path.child("metadata").child("labels"), faults);
    }
    let pod = at(template, &["spec"]).unwrap_or(&Value::Null);
    let path = path.child("spec");
    pod_checks::validate(pod, &path, &[], faults);
    workload::no_ephemeral(pod, &path, faults);
    let restart = text(pod, &["restartPolicy"]);
    match restart {
        "OnFailure" if at(spec, &["podFailurePolicy"]).is_some() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            faults.push(FieldError::invalid(path.child("restartPolicy"), restart, detail));
        }
        "OnFailure" | "Never" => {}
        "Always" | "" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            faults.push(FieldError::required(path.child("restartPolicy"), detail));
        }
        other => faults.push(FieldError::not_supported(
            path.child("restartPolicy"),
            other,
            &["OnFailure", "Never"],
        )),
    }
}

fn validate_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (wanted, was) = (int(new, &["spec", "completions"]), int(old, &["spec", "completions"]));
    if wanted != was {
        let indexed = text(new, &["spec", "completionMode"]) == "Indexed";
        let path = FieldPath::new("spec").child("completions");
        if !indexed || wanted.is_none() || was.is_none() {
            faults.push(FieldError::invalid(path, wanted, check::IMMUTABLE));
        } else if wanted != int(new, &["spec", "parallelism"]) {
            let detail = "can only be modified in tandem with spec.parallelism";
            faults.push(FieldError::invalid(path, wanted, detail));
        }
    }
    let fixed: &[&[&str]] = &[
        &["spec", "selector"],
        &["spec", "completionMode"],
        &["spec", "podFailurePolicy"],
        &["spec", "backoffLimitPerIndex"],
        &["spec", "managedBy"],
        &["spec", "successPolicy"],
    ];
    check::unchanged(new, old, fixed, faults);
    // Where its pods may run can change while nothing has started.
    let waits = flag(old, &["spec", "suspend"]) && at(old, &["status", "startTime"]).is_none();
    if !waits || template_fixed(new) != template_fixed(old) {
        meta::immutable(new, old, &["spec", "template"], faults);
    }
}

/// A template without what tells where its pods may run.
fn template_fixed(job: &Value) -> Value {
    let mut template = at(job, &["spec", "template"]).cloned().unwrap_or_default();
    for part in ["labels", "annotations"] {
        child(&mut template, "metadata").remove(part);
    }
    for part in ["nodeSelector", "affinity", "tolerations", "schedulingGates"] {
        child(&mut template, "spec").remove(part);
    }
    template
}

fn status(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let conditions = list(job, &["status", "conditions"]);
        conditions.iter().any(|c| text(c, &["type"]) == kind && text(c, &["status"]) == "True")
    };
    let order = ["Complete", "Failed"];
    if let Some(found) = order.into_iter().find(|kind| has(kind)) {
        return found;
    }
    if at(job, &["metadata", "deletionTimestamp"]).is_some() {
        return "Terminating";
    }
    ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
        .into_iter()
        .find(|kind| has(kind))
        .unwrap_or("Running")
}

fn row(job: &Value, now: Timestamp) -> Vec<Value> {
    let done = int(job, &["status", "succeeded"]).unwrap_or(0);
    let of = match (int(job, &["spec", "completions"]), int(job, &["spec", "parallelism"]).unwrap_or(0)) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, width) if width > 1 => format!("{done}/1 of {width}"),
        (None, _) => format!("{done}/1"),
    };
    let instant = |field: &str| text(job, &["status", field]).parse::<Timestamp>().ok();
    let duration = instant("startTime")
        .map(|start| human(instant("completionTime").unwrap_or(now).as_second() - start.as_second()));
    let mut cells = vec![
        print::name(job),
        json!(status(job)),
        json!(of),
        json!(duration.unwrap_or_default()),
        print::created(job, now),
    ];
    cells.extend(workload::wide_cells(job));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Value {
        json!({"metadata": {"name": "j", "uid": "u-1"}, "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i"}]}}}})
    }

    fn faults(check: impl Fn(&mut Faults)) -> Vec<String> {
        let mut faults = Vec::new();
        check(&mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_minimal_job_gets_a_selector_of_its_own() {
        let mut job = job();
        defaults(&mut job);
        create(&mut job);
        assert_eq!(job["spec"]["selector"]["matchLabels"], json!({UID_LABEL: "u-1"}));
        assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
        assert_eq!(job["metadata"]["labels"][NAME_LABEL], "j");
        assert_eq!((&job["spec"]["completions"], &job["spec"]["backoffLimit"]), (&json!(1), &json!(6)));
        assert!(faults(|f| validate(&job, f)).is_empty());
        let mut bare = json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i"}]}}}});
        defaults(&mut bare);
        keep_generated(&mut bare, &job);
        assert!(
            faults(|f| validate_update(&bare, &job, f)).is_empty(),
            "a plain replace keeps what was made"
        );
        bare["spec"]["template"]["spec"]["containers"][0]["image"] = json!("k");
        assert!(faults(|f| validate_update(&bare, &job, f))[0].contains("spec.template: Invalid value"));
    }

    #[test]
    fn a_job_tells_how_far_it_is() {
        let mut job = job();
        defaults(&mut job);
        job["status"] = json!({"startTime": "1970-01-01T00:00:10Z", "succeeded": 1});
        let cells = |job: &Value| row(job, Timestamp::from_second(70).unwrap());
        assert_eq!(cells(&job)[1..4], [json!("Running"), json!("1/1"), json!("60s")]);
        job["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
        job["status"]["completionTime"] = json!("1970-01-01T00:00:15Z");
        assert_eq!(cells(&job)[1..4], [json!("Complete"), json!("1/1"), json!("5s")]);
    }

    #[test]
    fn a_job_whose_pods_never_end_is_refused() {
        let mut job = job();
        job["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
        job["spec"]["parallelism"] = json!(-1);
        job["spec"]["completionMode"] = json!("Indexed");
        defaults(&mut job);
        create(&mut job);
        let found = faults(|f| validate(&job, f));
        for part in [
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
            "spec.parallelism: Invalid value: -1",
            "spec.completions: Required value: when completion mode is Indexed",
        ] {
            assert!(found.iter().any(|f| f.contains(part)), "{part} in {found:?}");
        }
    }
}
