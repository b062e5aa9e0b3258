//! Jobs and CronJobs.

use serde_json::Value;
use strata_model::age;

use super::Subject;
use super::page::{Page, instant, text, text_of};
use super::template;
use super::workload::{count, selector};

/// What is printed where nothing is set.
const UNSET: &str = "<unset>";
/// Most characters of a list of indexes.
const INDEXES: usize = 50;

/// A line of a field that may be set; `unset` is what is printed where it is not, if anything.
fn field(page: &mut Page, name: &str, value: &Value, unit: &str, unset: Option<&str>) {
    match (value.is_null(), unset) {
        (false, _) => page.line(0, &format!("{name}:\t{}{unit}", text_of(value))),
        (true, Some(unset)) => page.line(0, &format!("{name}:\t{unset}")),
        (true, None) => {}
    }
}

fn parse(at: &Value) -> Option<jiff::Timestamp> {
    at.as_str()?.parse().ok()
}

/// Describes a Job.
pub fn job(page: &mut Page, subject: &Subject<'_>) {
    let object = subject.object;
    let (spec, status) = (&object["spec"], &object["status"]);
    page.head(object);
    selector(page, object);
    page.marks(object);
    page.leaving(object, subject.now);
    page.controller(object);
    field(page, "Parallelism", &spec["parallelism"], "", None);
    field(page, "Completions", &spec["completions"], "", Some(UNSET));
    field(page, "Completion Mode", &spec["completionMode"], "", None);
    field(page, "Suspend", &spec["suspend"], "", None);
    field(page, "Backoff Limit", &spec["backoffLimit"], "", None);
    field(page, "TTL Seconds After Finished", &spec["ttlSecondsAfterFinished"], "", None);
    for (name, at) in [("Start Time", &status["startTime"]), ("Completed At", &status["completionTime"])] {
        if !at.is_null() {
            page.field(0, name, &instant(at));
        }
    }
    if let (Some(start), Some(end)) = (parse(&status["startTime"]), parse(&status["completionTime"])) {
        page.field(0, "Duration", &age::human(end.as_second() - start.as_second()));
    }
    field(page, "Active Deadline Seconds", &spec["activeDeadlineSeconds"], "s", None);
    let ready = match status["ready"].as_i64() {
        Some(ready) => format!(" ({ready} Ready)"),
        None => String::new(),
    };
    let [active, succeeded, failed] = ["active", "succeeded", "failed"].map(|name| count(&status[name]));
    page.line(
        0,
        &format!("Pods Statuses:\t{active} Active{ready} / {succeeded} Succeeded / {failed} Failed"),
    );
    if spec["completionMode"] == "Indexed" {
        page.field(0, "Completed Indexes", &capped(text(status, "completedIndexes")));
    }
    template::template(page, &spec["template"]);
}

/// A list of indexes, cut at a comma where it is too long.
fn capped(indexes: &str) -> String {
    match indexes.get(..INDEXES) {
        Some(start) if indexes.len() > INDEXES => {
            let end = start.rfind(',').map_or(start.len(), |at| at + 1);
            format!("{}...", &start[..end])
        }
        _ => indexes.to_owned(),
    }
}

/// Describes a CronJob.
pub fn cron_job(page: &mut Page, subject: &Subject<'_>) {
    let object = subject.object;
    let (spec, status) = (&object["spec"], &object["status"]);
    page.head(object);
    page.marks(object);
    page.leaving(object, subject.now);
    page.field(0, "Schedule", text(spec, "schedule"));
    field(page, "Time Zone", &spec["timeZone"], "", None);
    page.field(0, "Concurrency Policy", text(spec, "concurrencyPolicy"));
    let suspended = if spec["suspend"] == true { "True" } else { "False" };
    page.field(0, "Suspend", if spec["suspend"].is_null() { UNSET } else { suspended });
    field(page, "Successful Job History Limit", &spec["successfulJobsHistoryLimit"], "", Some(UNSET));
    field(page, "Failed Job History Limit", &spec["failedJobsHistoryLimit"], "", Some(UNSET));
    field(page, "Starting Deadline Seconds", &spec["startingDeadlineSeconds"], "s", Some(UNSET));
    let work = &spec["jobTemplate"]["spec"];
    match work["selector"].is_null() {
        true => page.line(0, &format!("Selector:\t{UNSET}")),
        false => selector(page, &spec["jobTemplate"]),
    }
    field(page, "Parallelism", &work["parallelism"], "", Some(UNSET));
    field(page, "Completions", &work["completions"], "", Some(UNSET));
    field(page, "Active Deadline Seconds", &work["activeDeadlineSeconds"], "s", None);
    template::template(page, &work["template"]);
    let last = &status["lastScheduleTime"];
    page.field(
        0,
        "Last Schedule Time",
        if last.is_null() { UNSET.to_owned() } else { instant(last) }.as_str(),
    );
    let active = status["active"].as_array().into_iter().flatten();
    page.field(0, "Active Jobs", &active.map(|job| text(job, "name")).collect::<Vec<_>>().join(", "));
}
