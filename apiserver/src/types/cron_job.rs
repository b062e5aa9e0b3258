//! Cron jobs: defaults, checks of the schedule and the template, row.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, number, wide};
use super::{check, job, print};
use crate::value::{at, child, default, flag, list, text};

/// Longest name: the time of each run comes behind it.
const NAME_MAX: usize = 52;

const COLUMNS: &[Column] = &[
    NAME,
    column("Schedule", "When it runs."),
    column("Timezone", "Where that time counts."),
    column("Suspend", "Whether it rests."),
    number("Active", "How many of its jobs run."),
    column("Last Schedule", "How long ago it ran."),
    AGE,
    wide("Containers", "Names of the containers of the template."),
    wide("Images", "Images of the containers of the template."),
    wide("Selector", "Which pods belong to its jobs."),
];

/// Rules of cron jobs.
pub static CRON_JOB: Rules = Rules {
    name: |name| {
        let long = name.len() > NAME_MAX;
        long.then(|| format!("must be no more than {NAME_MAX} characters"))
            .or_else(|| names::dns_subdomain(name))
    },
    defaults,
    create: |cron| super::workload::reset_status(cron, json!({})),
    validate,
    columns: COLUMNS,
    row,
    ..PLAIN
};

fn defaults(cron: &mut Value) {
    let spec = child(cron, "spec");
    default(spec, "concurrencyPolicy", "Allow");
    default(spec, "suspend", false);
    default(spec, "successfulJobsHistoryLimit", 3);
    default(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = spec.get_mut("jobTemplate") {
        child(template, "metadata").remove("creationTimestamp");
        job::template_defaults(child(template, "spec"));
    }
}

fn validate(cron: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(cron, &["spec"]).unwrap_or(&Value::Null));
    let schedule = check::required(spec, "schedule", &path, faults);
    if schedule.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        faults.push(FieldError::invalid(path.child("schedule"), schedule, detail));
    } else if !schedule.is_empty()
        && let Some(fault) = schedule_fault(schedule)
    {
        faults.push(FieldError::invalid(path.child("schedule"), schedule, fault));
    }
    if let Some(zone) = at(spec, &["timeZone"]).and_then(Value::as_str) {
        let fault = match zone {
            "" => Some("timeZone must be nil or non-empty string".to_owned()),
            zone if zone.eq_ignore_ascii_case("local") => {
                Some("timeZone must be an explicit time zone".to_owned())
            }
            zone => TimeZone::get(zone).is_err().then(|| format!("unknown time zone {zone}")),
        };
        if let Some(fault) = fault {
            faults.push(FieldError::invalid(path.child("timeZone"), zone, fault));
        }
    }
    let counts = ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    check::not_negative(spec, &counts, &path, faults);
    check::known(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], &path, faults);
    let path = path.child("jobTemplate").child("spec");
    let template = at(spec, &["jobTemplate", "spec"]).unwrap_or(&Value::Null);
    job::validate_spec(template, &path, faults);
    if let Some(selector) = at(template, &["selector"]) {
        let detail = "`selector` will be auto-generated";
        faults.push(FieldError::invalid(path.child("selector"), selector, detail));
    }
    if flag(template, &["manualSelector"]) {
        faults.push(FieldError::not_supported(path.child("manualSelector"), true, &["nil", "false"]));
    }
}

const DESCRIPTORS: &[&str] =
    &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The fields of a schedule: lowest and highest number, and names of numbers from the lowest on.
const PARTS: [(u32, u32, &[&str]); 5] =
    [(0, 59, &[]), (0, 23, &[]), (1, 31, &[]), (1, 12, MONTHS), (0, 6, DAYS)];

/// What is wrong with a schedule, if anything.
fn schedule_fault(schedule: &str) -> Option<String> {
    if let Some(span) = schedule.strip_prefix("@every ") {
        let fine = span.parse::<jiff::SignedDuration>().is_ok();
        return (!fine).then(|| format!("failed to parse duration {schedule}"));
    }
    if schedule.starts_with('@') {
        return (!DESCRIPTORS.contains(&schedule)).then(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != PARTS.len() {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields
        .iter()
        .zip(PARTS)
        .find_map(|(field, part)| field.split(',').find_map(|range| range_fault(range, part)))
}

fn range_fault(range: &str, (low, high, names): (u32, u32, &[&str])) -> Option<String> {
    let number = |word: &str| -> Result<u32, String> {
        let named = names.iter().position(|name| word.eq_ignore_ascii_case(name));
        match named {
            Some(at) => Ok(low + u32::try_from(at).unwrap_or_default()),
            None => word.parse().map_err(|_| format!("failed to parse int from {word}")),
        }
    };
    let (span, step) = range.split_once('/').map_or((range, None), |(span, step)| (span, Some(step)));
    let (start, end) = match span.split_once('-') {
        _ if matches!(span, "*" | "?") => (Ok(low), Ok(high)),
        Some((start, end)) => (number(start), number(end)),
        None => {
            let start = number(span);
            let end = if step.is_some() { Ok(high) } else { start.clone() };
            (start, end)
        }
    };
    let (start, end) = match (start, end) {
        (Ok(start), Ok(end)) => (start, end),
        (Err(fault), _) | (_, Err(fault)) => return Some(fault),
    };
    if start < low {
        return Some(format!("beginning of range ({start}) below minimum ({low}): {range}"));
    }
    if end > high {
        return Some(format!("end of range ({end}) above maximum ({high}): {range}"));
    }
    if start > end {
        return Some(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
    }
    match step.map(str::parse::<u32>) {
        Some(Ok(0)) => Some(format!("step of range should be a positive number: {range}")),
        Some(Err(_)) => Some(format!("failed to parse int from {}", step.unwrap_or_default())),
        _ => None,
    }
}

fn row(cron: &Value, now: Timestamp) -> Vec<Value> {
    let zone = text(cron, &["spec", "timeZone"]);
    let last = text(cron, &["status", "lastScheduleTime"]);
    let pod = at(cron, &["spec", "jobTemplate", "spec", "template", "spec"]);
    let [names, images] = print::containers(pod);
    vec![
        print::name(cron),
        json!(text(cron, &["spec", "schedule"])),
        print::or_none(zone),
        json!(if flag(cron, &["spec", "suspend"]) { "True" } else { "False" }),
        json!(list(cron, &["status", "active"]).len()),
        json!(if last.is_empty() { "<none>".to_owned() } else { print::age(last, now) }),
        print::created(cron, now),
        names,
        images,
        print::selector(at(cron, &["spec", "jobTemplate", "spec", "selector"])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        for fine in ["* * * * *", "*/5 0-6 1,15 jan-mar MON", "@daily", "0 22 * * 1-5", "@every 5m"] {
            assert_eq!(schedule_fault(fine), None, "{fine}");
        }
        for (wrong, why) in [
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(schedule_fault(wrong).as_deref(), Some(why), "{wrong}");
        }
    }

    #[test]
    fn a_cron_job_is_filled_and_checked() {
        let mut cron = json!({"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "timeZone": "Mars/Base",
            "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure",
                "containers": [{"name": "c", "image": "i"}]}}}}}});
        defaults(&mut cron);
        assert_eq!(cron["spec"]["concurrencyPolicy"], "Allow");
        let once = cron.clone();
        defaults(&mut cron);
        assert_eq!(cron, once);
        let mut faults = Vec::new();
        validate(&cron, &mut faults);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].to_string().contains("unknown time zone Mars/Base"));
        assert_eq!(
            row(&cron, Timestamp::UNIX_EPOCH)[1..6],
            [json!("* * * * *"), json!("Mars/Base"), json!("False"), json!(0), json!("<none>")]
        );
    }
}
