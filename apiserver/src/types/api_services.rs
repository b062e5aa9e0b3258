//! What else shapes the API: services behind it, and its own flow control. Stored and checked; not acted on.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, number};
use super::{check, meta, print};
use crate::value::{at, child, default, flag, int, list, object, text};

/// Rules of API services.
pub static API_SERVICE: Rules = Rules {
    name: names::path_segment,
    defaults: |api| {
        if let Some(service) = child(api, "spec").get_mut("service").and_then(Value::as_object_mut) {
            default(service, "port", 443);
        }
    },
    create: |api| {
        // What the server serves itself is there.
        let local = at(api, &["spec", "service"]).is_none();
        let status = if local {
            json!({"conditions": [{"type": "Available", "status": "True", "reason": "Local",
                "message": "Local APIServices are always available",
                "lastTransitionTime": at(api, &["metadata", "creationTimestamp"])}]})
        } else {
            json!({})
        };
        object(api).insert("status".to_owned(), status);
    },
    validate: validate_api,
    columns: const {
        &[NAME, column("Service", "What answers."), column("Available", "Whether it answers."), AGE]
            as &[Column]
    },
    row: |api, now| {
        let service = match text(api, &["spec", "service", "name"]) {
            "" => "Local".to_owned(),
            name => format!("{}/{name}", text(api, &["spec", "service", "namespace"])),
        };
        let condition =
            list(api, &["status", "conditions"]).iter().find(|c| text(c, &["type"]) == "Available");
        let available = match condition.map(|c| (text(c, &["status"]), text(c, &["reason"]))) {
            None => "Unknown".to_owned(),
            Some(("True", _)) => "True".to_owned(),
            Some((status, reason)) => format!("{status} ({reason})"),
        };
        vec![print::name(api), json!(service), json!(available), print::created(api, now)]
    },
    revision_required: true,
    ..PLAIN
};

fn validate_api(api: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(api, &["spec"]).unwrap_or(&Value::Null));
    let (group, version, name) =
        (text(spec, &["group"]), text(spec, &["version"]), text(api, &["metadata", "name"]));
    let wanted = format!("{version}.{group}");
    if name != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        faults.push(FieldError::invalid(meta::path().child("name"), name, detail));
    }
    check::name(spec, "version", names::dns_1035_label, &path, faults);
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let found = int(spec, &[field]).unwrap_or(0);
        if found <= 0 || found > most {
            let detail = format!("must be positive and less than {most}");
            faults.push(FieldError::invalid(path.child(field), found, detail));
        }
    }
    match at(spec, &["service"]) {
        None => {
            if !text(spec, &["caBundle"]).is_empty() {
                let detail = "local APIServices may not have a caBundle";
                faults.push(FieldError::invalid(path.child("caBundle"), "...", detail));
            }
        }
        Some(service) => {
            for field in ["namespace", "name"] {
                check::required(service, field, &path.child("service"), faults);
            }
            if let Some(port) = int(service, &["port"]) {
                check::port(port, path.child("service").child("port"), faults);
            }
            if flag(spec, &["insecureSkipTLSVerify"]) && !text(spec, &["caBundle"]).is_empty() {
                let detail = "may not be true if caBundle is present";
                faults.push(FieldError::invalid(path.child("insecureSkipTLSVerify"), true, detail));
            }
        }
    }
}

/// Rules of flow schemas.
pub static FLOW_SCHEMA: Rules = Rules {
    defaults: |schema| default(child(schema, "spec"), "matchingPrecedence", 1000),
    create: |schema| drop(object(schema).insert("status".to_owned(), json!({}))),
    validate: |schema, faults| {
        let path = FieldPath::new("spec");
        let spec = at(schema, &["spec"]).unwrap_or(&Value::Null);
        let precedence = int(spec, &["matchingPrecedence"]).unwrap_or(0);
        if !(1..=10_000).contains(&precedence) {
            let detail =
                if precedence < 1 { "must be a positive value" } else { "must not be greater than 10000" };
            faults.push(FieldError::invalid(path.child("matchingPrecedence"), precedence, detail));
        }
        let place = path.child("priorityLevelConfiguration");
        let level = at(spec, &["priorityLevelConfiguration"]).unwrap_or(&Value::Null);
        if text(level, &["name"]).is_empty() {
            let detail = "must reference a priority level";
            faults.push(FieldError::required(place.child("name"), detail));
        }
        if let Some(method) = at(spec, &["distinguisherMethod"]) {
            let kinds = &["ByNamespace", "ByUser"];
            check::known(method, "type", kinds, &path.child("distinguisherMethod"), faults);
        }
        for (index, rule) in list(spec, &["rules"]).iter().enumerate() {
            let path = path.child("rules").index(index);
            if list(rule, &["subjects"]).is_empty() {
                faults.push(FieldError::required(
                    path.child("subjects"),
                    "subjects must contain at least one value",
                ));
            }
            if list(rule, &["resourceRules"]).is_empty() && list(rule, &["nonResourceRules"]).is_empty() {
                let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
                faults.push(FieldError::required(path, detail));
            }
        }
    },
    columns: const {
        &[
            NAME,
            column("PriorityLevel", "The level that its requests get."),
            number("MatchingPrecedence", "Its place among the schemas."),
            column("DistinguisherMethod", "How flows are told apart."),
            AGE,
            column("MissingPL", "Whether its level is missing."),
        ] as &[Column]
    },
    row: |schema, now| {
        let conditions = list(schema, &["status", "conditions"]);
        let dangling = conditions.iter().find(|c| text(c, &["type"]) == "Dangling");
        vec![
            print::name(schema),
            json!(text(schema, &["spec", "priorityLevelConfiguration", "name"])),
            json!(int(schema, &["spec", "matchingPrecedence"]).unwrap_or(0)),
            print::or_none(text(schema, &["spec", "distinguisherMethod", "type"])),
            print::created(schema, now),
            json!(dangling.map_or("?", |c| text(c, &["status"]))),
        ]
    },
    ..PLAIN
};

/// Rules of priority levels.
pub static PRIORITY_LEVEL: Rules = Rules {
    defaults: |level| {
        let Some(limited) = child(level, "spec").get_mut("limited").and_then(Value::as_object_mut) else {
            return;
        };
        default(limited, "nominalConcurrencyShares", 30);
        default(limited, "lendablePercent", 0);
        let response = object(limited.entry("limitResponse").or_insert(Value::Null));
        if response.get("type").is_some_and(|kind| kind == "Queue") {
            let queuing = object(response.entry("queuing").or_insert(Value::Null));
            default(queuing, "queues", 64);
            default(queuing, "handSize", 8);
            default(queuing, "queueLengthLimit", 50);
        }
    },
    create: |level| drop(object(level).insert("status".to_owned(), json!({}))),
    validate: |level, faults| {
        let path = FieldPath::new("spec");
        let spec = at(level, &["spec"]).unwrap_or(&Value::Null);
        check::known(spec, "type", &["Exempt", "Limited"], &path, faults);
        let kind = text(spec, &["type"]);
        let limited = at(spec, &["limited"]);
        match (kind, limited) {
            ("Limited", None) => {
                let detail = "must not be empty when type is Limited";
                faults.push(FieldError::required(path.child("limited"), detail));
            }
            ("Exempt", Some(_)) => {
                let detail = "must be nil if the type is not Limited";
                faults.push(FieldError::forbidden(path.child("limited"), detail));
            }
            ("Limited", Some(limited)) => {
                let path = path.child("limited").child("limitResponse");
                let response = at(limited, &["limitResponse"]).unwrap_or(&Value::Null);
                check::known(response, "type", &["Queue", "Reject"], &path, faults);
            }
            _ => {}
        }
    },
    columns: const {
        &[
            NAME,
            column("Type", "Limited or exempt."),
            column("NominalConcurrencyShares", "Its share of the requests under way."),
            column("Queues", "How many queues it has."),
            column("HandSize", "How many queues a flow may use."),
            column("QueueLengthLimit", "How many requests wait in one."),
            AGE,
        ] as &[Column]
    },
    row: |level, now| {
        let shown = |path: &[&str]| match int(level, path) {
            Some(number) => json!(number.to_string()),
            None => json!("<none>"),
        };
        let queuing = |field: &str| shown(&["spec", "limited", "limitResponse", "queuing", field]);
        vec![
            print::name(level),
            json!(text(level, &["spec", "type"])),
            shown(&["spec", "limited", "nominalConcurrencyShares"]),
            queuing("queues"),
            queuing("handSize"),
            queuing("queueLengthLimit"),
            print::created(level, now),
        ]
    },
    ..PLAIN
};
