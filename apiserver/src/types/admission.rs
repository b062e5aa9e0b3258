//! Who else has a say in writes: webhooks and policies. Checked here, their expressions too; asked elsewhere.

use serde_json::{Map, Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, number};
use super::{check, print};
use crate::expression::program::Expression;
use crate::value::{at, child, default, int, list, object, text};

/// What conditions of webhooks may name.
pub const OF_REQUESTS: [&str; 3] = ["object", "oldObject", "request"];
/// What expressions of policies may name.
pub const OF_POLICIES: [&str; 6] =
    ["object", "oldObject", "request", "params", "namespaceObject", "variables"];
/// Most conditions of a policy or webhook.
const MAX_CONDITIONS: usize = 64;

const FAILURES: &[&str] = &["Fail", "Ignore"];
const MATCHES: &[&str] = &["Equivalent", "Exact"];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
const WEBHOOK_COLUMNS: &[Column] = &[NAME, number("Webhooks", "How many webhooks it has."), AGE];

/// Rules of validating webhooks.
pub static VALIDATING_WEBHOOKS: Rules = Rules {
    defaults: |hooks| webhook_defaults(hooks, false),
    validate: validate_webhooks,
    columns: WEBHOOK_COLUMNS,
    row: |hooks, now| {
        vec![print::name(hooks), json!(list(hooks, &["webhooks"]).len()), print::created(hooks, now)]
    },
    revision_required: true,
    ..PLAIN
};

/// Rules of mutating webhooks.
pub static MUTATING_WEBHOOKS: Rules =
    Rules { defaults: |hooks| webhook_defaults(hooks, true), ..VALIDATING_WEBHOOKS };

fn webhook_defaults(hooks: &mut Value, mutating: bool) {
    for hook in hooks.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let hook = object(hook);
        default(hook, "failurePolicy", "Fail");
        default(hook, "matchPolicy", "Equivalent");
        default(hook, "namespaceSelector", json!({}));
        default(hook, "objectSelector", json!({}));
        default(hook, "timeoutSeconds", 10);
        if mutating {
            default(hook, "reinvocationPolicy", "Never");
        }
        scope_defaults(hook.get_mut("rules"));
        let service = hook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            default(service, "port", 443);
        }
    }
}

fn scope_defaults(rules: Option<&mut Value>) {
    for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
        default(object(rule), "scope", "*");
    }
}

fn validate_webhooks(hooks: &Value, faults: &mut Faults) {
    let mut seen = std::collections::BTreeSet::new();
    for (index, hook) in list(hooks, &["webhooks"]).iter().enumerate() {
        let path = FieldPath::new("webhooks").index(index);
        let name = text(hook, &["name"]);
        if name.is_empty() {
            faults.push(FieldError::required(path.child("name"), ""));
        } else if let Some(fault) = names::dns_subdomain(name) {
            faults.push(FieldError::invalid(path.child("name"), name, fault));
        } else if name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            faults.push(FieldError::invalid(path.child("name"), name, detail));
        }
        if !name.is_empty() && !seen.insert(name) {
            faults.push(FieldError::duplicate(path.child("name"), name));
        }
        validate_webhook(hook, &path, faults);
    }
}

fn validate_webhook(hook: &Value, path: &FieldPath, faults: &mut Faults) {
    match text(hook, &["sideEffects"]) {
        "" => {
            let detail = "must specify one of None, NoneOnDryRun";
            faults.push(FieldError::required(path.child("sideEffects"), detail));
        }
        _ => check::one_of(hook, "sideEffects", &["None", "NoneOnDryRun"], path, faults),
    }
    let versions = list(hook, &["admissionReviewVersions"]);
    let place = path.child("admissionReviewVersions");
    if versions.is_empty() {
        faults.push(FieldError::required(place, "must specify one of v1, v1beta1"));
    } else if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        faults.push(FieldError::invalid(place, versions, detail));
    }
    check::one_of(hook, "failurePolicy", FAILURES, path, faults);
    check::one_of(hook, "matchPolicy", MATCHES, path, faults);
    check::one_of(hook, "reinvocationPolicy", &["IfNeeded", "Never"], path, faults);
    if let Some(seconds) = int(hook, &["timeoutSeconds"]).filter(|n| !(1..=30).contains(n)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        faults.push(FieldError::invalid(path.child("timeoutSeconds"), seconds, detail));
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        check::selector(at(hook, &[selector]), &path.child(selector), faults);
    }
    for (index, rule) in list(hook, &["rules"]).iter().enumerate() {
        validate_rule(rule, &path.child("rules").index(index), faults);
    }
    conditions(hook, &OF_REQUESTS, path, faults);
    let config = at(hook, &["clientConfig"]).unwrap_or(&Value::Null);
    let path = path.child("clientConfig");
    let (url, service) = (at(config, &["url"]), at(config, &["service"]));
    if url.is_some() == service.is_some() {
        faults.push(FieldError::required(path.clone(), "exactly one of url or service is required"));
    }
    if let Some(url) = url.and_then(Value::as_str)
        && !url.starts_with("https://")
    {
        let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        faults.push(FieldError::invalid(path.child("url"), url, detail));
    }
    if let Some(service) = service {
        for field in ["namespace", "name"] {
            check::required(service, field, &path.child("service"), faults);
        }
        if let Some(port) = int(service, &["port"]) {
            check::port(port, path.child("service").child("port"), faults);
        }
    }
}

/// Checks an expression; an empty one is another fault.
fn expression(holder: &Value, field: &str, variables: &[&str], path: &FieldPath, faults: &mut Faults) {
    let source = text(holder, &[field]);
    if source.trim().is_empty() {
        return;
    }
    if let Err(error) = Expression::compile(source, variables) {
        faults.push(FieldError::invalid(path.child(field), source, error.to_string()));
    }
}

/// Checks the conditions under which a policy or webhook is asked.
fn conditions(holder: &Value, variables: &[&str], path: &FieldPath, faults: &mut Faults) {
    let all = list(holder, &["matchConditions"]);
    if all.len() > MAX_CONDITIONS {
        faults.push(FieldError::too_many(path.child("matchConditions"), all.len(), MAX_CONDITIONS));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, condition) in all.iter().enumerate() {
        let path = path.child("matchConditions").index(index);
        let name = check::required(condition, "name", &path, faults);
        if !name.is_empty() && !seen.insert(name) {
            faults.push(FieldError::duplicate(path.child("name"), name));
        }
        check::required(condition, "expression", &path, faults);
        expression(condition, "expression", variables, &path, faults);
    }
}

/// Checks which writes a webhook or policy is about.
fn validate_rule(rule: &Value, path: &FieldPath, faults: &mut Faults) {
    for field in ["apiGroups", "apiVersions", "operations", "resources"] {
        let words = list(rule, &[field]);
        if words.is_empty() {
            faults.push(FieldError::required(path.child(field), ""));
        }
        if field != "resources" && words.len() > 1 && words.contains(&json!("*")) {
            let detail = format!("if '*' is present, must not specify other {field}");
            faults.push(FieldError::invalid(path.child(field), words, detail));
        }
    }
    for (index, word) in list(rule, &["operations"]).iter().filter_map(Value::as_str).enumerate() {
        if !OPERATIONS.contains(&word) {
            faults.push(FieldError::not_supported(path.child("operations").index(index), word, OPERATIONS));
        }
    }
    check::one_of(rule, "scope", SCOPES, path, faults);
}

/// Rules of admission policies.
pub static ADMISSION_POLICY: Rules = Rules {
    defaults: |policy| {
        let spec = child(policy, "spec");
        default(spec, "failurePolicy", "Fail");
        if let Some(matched) = spec.get_mut("matchConstraints").and_then(Value::as_object_mut) {
            match_defaults(matched);
        }
    },
    create: |policy| drop(object(policy).insert("status".to_owned(), json!({}))),
    validate: validate_policy,
    columns: const {
        &[
            NAME,
            number("Validations", "How many rules it has."),
            column("ParamKind", "The type of its parameters."),
            AGE,
        ] as &[Column]
    },
    row: |policy, now| {
        let kind = match text(policy, &["spec", "paramKind", "kind"]) {
            "" => "<unset>".to_owned(),
            kind => format!("{}/{kind}", text(policy, &["spec", "paramKind", "apiVersion"])),
        };
        let rules = list(policy, &["spec", "validations"]).len();
        vec![print::name(policy), json!(rules), json!(kind), print::created(policy, now)]
    },
    revision_required: true,
    ..PLAIN
};

fn match_defaults(matched: &mut Map<String, Value>) {
    default(matched, "matchPolicy", "Equivalent");
    default(matched, "namespaceSelector", json!({}));
    default(matched, "objectSelector", json!({}));
    scope_defaults(matched.get_mut("resourceRules"));
    scope_defaults(matched.get_mut("excludeResourceRules"));
}

fn validate_policy(policy: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(policy, &["spec"]).unwrap_or(&Value::Null));
    check::one_of(spec, "failurePolicy", FAILURES, &path, faults);
    if list(spec, &["validations"]).is_empty() && list(spec, &["auditAnnotations"]).is_empty() {
        let detail = "validations or auditAnnotations must be non-empty";
        faults.push(FieldError::required(path.child("validations"), detail));
    }
    for (index, rule) in list(spec, &["validations"]).iter().enumerate() {
        let path = path.child("validations").index(index);
        if text(rule, &["expression"]).trim().is_empty() {
            faults.push(FieldError::required(path.child("expression"), "expression is not specified"));
        }
        for field in ["expression", "messageExpression"] {
            expression(rule, field, &OF_POLICIES, &path, faults);
        }
        let reasons = &["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
        check::one_of(rule, "reason", reasons, &path, faults);
    }
    conditions(spec, &OF_POLICIES, &path, faults);
    for (place, field) in [("variables", "expression"), ("auditAnnotations", "valueExpression")] {
        for (index, entry) in list(spec, &[place]).iter().enumerate() {
            let path = path.child(place).index(index);
            check::required(entry, field, &path, faults);
            expression(entry, field, &OF_POLICIES, &path, faults);
        }
    }
    if let Some(kind) = at(spec, &["paramKind"]) {
        for field in ["apiVersion", "kind"] {
            check::required(kind, field, &path.child("paramKind"), faults);
        }
    }
    match at(spec, &["matchConstraints"]) {
        None => faults.push(FieldError::required(path.child("matchConstraints"), "")),
        Some(matched) => {
            if list(matched, &["resourceRules"]).is_empty() {
                let place = path.child("matchConstraints").child("resourceRules");
                faults.push(FieldError::required(place, ""));
            }
            validate_matched(matched, &path.child("matchConstraints"), faults);
        }
    }
}

fn validate_matched(matched: &Value, path: &FieldPath, faults: &mut Faults) {
    check::one_of(matched, "matchPolicy", MATCHES, path, faults);
    for selector in ["namespaceSelector", "objectSelector"] {
        check::selector(at(matched, &[selector]), &path.child(selector), faults);
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in list(matched, &[rules]).iter().enumerate() {
            validate_rule(rule, &path.child(rules).index(index), faults);
        }
    }
}

/// Rules of bindings of admission policies.
pub static ADMISSION_BINDING: Rules = Rules {
    defaults: |binding| {
        if let Some(matched) = child(binding, "spec").get_mut("matchResources").and_then(Value::as_object_mut)
        {
            match_defaults(matched);
        }
    },
    validate: |binding, faults| {
        let path = FieldPath::new("spec");
        let spec = at(binding, &["spec"]).unwrap_or(&Value::Null);
        check::name(spec, "policyName", names::dns_subdomain, &path, faults);
        let actions = list(spec, &["validationActions"]);
        let place = path.child("validationActions");
        if actions.is_empty() {
            faults.push(FieldError::required(place.clone(), "at least one validation action is required"));
        }
        if ["Deny", "Warn"].iter().all(|action| actions.contains(&json!(action))) {
            let detail = "must not contain both Deny and Warn (repeating the same validation failure information in \
                the API response and headers serves no purpose)";
            faults.push(FieldError::invalid(place.clone(), actions, detail));
        }
        for action in actions.iter().filter_map(Value::as_str) {
            if !matches!(action, "Audit" | "Deny" | "Warn") {
                faults.push(FieldError::not_supported(place.clone(), action, &["Audit", "Deny", "Warn"]));
            }
        }
        if let Some(parameters) = at(spec, &["paramRef"]) {
            let path = path.child("paramRef");
            let named = !text(parameters, &["name"]).is_empty();
            if named == at(parameters, &["selector"]).is_some() {
                let detail = "one of name or selector must be specified";
                faults.push(FieldError::required(path.child("name"), detail));
            }
            check::known(parameters, "parameterNotFoundAction", &["Allow", "Deny"], &path, faults);
        }
        if let Some(matched) = at(spec, &["matchResources"]) {
            validate_matched(matched, &path.child("matchResources"), faults);
        }
    },
    columns: const {
        &[NAME, column("PolicyName", "The policy that is bound."), column("ParamRef", "Its parameters."), AGE]
            as &[Column]
    },
    row: |binding, now| {
        let part = |field: &str| text(binding, &["spec", "paramRef", field]);
        let parameters = match (at(binding, &["spec", "paramRef"]), part("name"), part("namespace")) {
            (None, _, _) => "<unset>".to_owned(),
            (_, "", _) => "<selector>".to_owned(),
            (_, name, "") => format!("*/{name}"),
            (_, name, namespace) => format!("{namespace}/{name}"),
        };
        let policy = json!(text(binding, &["spec", "policyName"]));
        vec![print::name(binding), policy, json!(parameters), print::created(binding, now)]
    },
    revision_required: true,
    ..PLAIN
};
