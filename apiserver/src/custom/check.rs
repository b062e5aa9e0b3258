//! Whether a definition can be one: names, versions, subresources, columns, conversion. Its schemas are checked next
//! door. Pure.

use std::collections::BTreeSet;

use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::columns;
use super::schema_check;
use crate::value::{at, flag, list, text};

type Faults = Vec<FieldError>;

/// Most selectable fields of a version.
const MAX_SELECTABLE: usize = 8;
/// The annotation that a definition in a protected group needs.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Checks a definition.
pub fn check(object: &Value, faults: &mut Faults) {
    let spec = FieldPath::new("spec");
    let (group, plural) = (text(object, &["spec", "group"]), text(object, &["spec", "names", "plural"]));
    let name = text(object, &["metadata", "name"]);
    if name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        faults.push(FieldError::invalid(FieldPath::new("metadata").child("name"), name, detail));
    }
    self::group(object, group, &spec.child("group"), faults);
    match text(object, &["spec", "scope"]) {
        "Cluster" | "Namespaced" => {}
        "" => faults.push(FieldError::required(spec.child("scope"), "")),
        other => {
            faults.push(FieldError::not_supported(spec.child("scope"), other, &["Cluster", "Namespaced"]));
        }
    }
    if flag(object, &["spec", "preserveUnknownFields"]) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        faults.push(FieldError::invalid(spec.child("preserveUnknownFields"), true, detail));
    }
    check_names(object, &spec.child("names"), faults);
    versions(object, &spec.child("versions"), faults);
    conversion(object, &spec.child("conversion"), faults);
}

fn group(object: &Value, group: &str, path: &FieldPath, faults: &mut Faults) {
    if group.is_empty() {
        faults.push(FieldError::required(path.clone(), ""));
        return;
    }
    if let Some(fault) = names::dns_subdomain(group) {
        faults.push(FieldError::invalid(path.clone(), group, fault));
    } else if !group.contains('.') {
        faults.push(FieldError::invalid(path.clone(), group, "should be a domain with at least one dot"));
    }
    let protected =
        ["k8s.io", "kubernetes.io"].iter().any(|own| group == *own || group.ends_with(&format!(".{own}")));
    if protected && at(object, &["metadata", "annotations", APPROVED]).is_none() {
        let path = FieldPath::new("metadata").child("annotations").key(APPROVED);
        let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                      https://github.com/kubernetes/enhancements/pull/1111";
        faults.push(FieldError::required(path, detail));
    }
}

fn check_names(object: &Value, path: &FieldPath, faults: &mut Faults) {
    let word = |name: &str| text(object, &["spec", "names", name]).to_owned();
    for (name, lower) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let value = word(name);
        if value.is_empty() {
            if matches!(name, "plural" | "kind") {
                faults.push(FieldError::required(path.child(name), ""));
            }
            continue;
        }
        let checked = if lower { value.to_lowercase() } else { value.clone() };
        if let Some(fault) = names::dns_1035_label(&checked) {
            let prefix = if lower { "may have mixed case, but should otherwise match: " } else { "" };
            faults.push(FieldError::invalid(path.child(name), &value, format!("{prefix}{fault}")));
        }
    }
    if !word("kind").is_empty() && word("kind") == word("listKind") {
        let detail = "kind and listKind may not be the same";
        faults.push(FieldError::invalid(path.child("listKind"), word("listKind"), detail));
    }
    for member in ["shortNames", "categories"] {
        for (index, name) in list(object, &["spec", "names", member]).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            if let Some(fault) = names::dns_1035_label(name) {
                faults.push(FieldError::invalid(path.child(member).index(index), name, fault));
            }
        }
    }
}

fn versions(object: &Value, path: &FieldPath, faults: &mut Faults) {
    let versions = list(object, &["spec", "versions"]);
    if versions.is_empty() {
        faults.push(FieldError::required(path.clone(), "must have at least one version"));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = path.index(index);
        let name = text(version, &["name"]);
        if let Some(fault) = names::dns_1035_label(name) {
            faults.push(FieldError::invalid(at.child("name"), name, fault));
        }
        if !seen.insert(name) {
            faults.push(FieldError::invalid(path.clone(), name, "must contain unique version names"));
        }
        self::version(version, &at, faults);
    }
    if versions.iter().filter(|version| flag(version, &["storage"])).count() != 1 {
        let names: Vec<&str> = versions.iter().map(|version| text(version, &["name"])).collect();
        let detail = "must have exactly one version marked as storage version";
        faults.push(FieldError::invalid(path.clone(), names, detail));
    }
    let known = |stored: &Value| versions.iter().any(|version| version.get("name") == Some(stored));
    for (index, stored) in list(object, &["status", "storedVersions"]).iter().enumerate() {
        if !known(stored) {
            let at = FieldPath::new("status").child("storedVersions").index(index);
            let detail = "missing from spec.versions; must appear in spec.versions";
            faults.push(FieldError::invalid(at, stored, detail));
        }
    }
}

fn version(version: &Value, path: &FieldPath, faults: &mut Faults) {
    let schema_at = path.child("schema").child("openAPIV3Schema");
    let schema = at(version, &["schema", "openAPIV3Schema"]).filter(|schema| schema.is_object());
    match schema {
        None => faults.push(FieldError::required(schema_at, "schemas are required")),
        Some(schema) => schema_check::check(schema, &schema_at, faults),
    }
    if !text(version, &["deprecationWarning"]).is_empty() && !flag(version, &["deprecated"]) {
        let detail = "can only be set for deprecated versions";
        faults.push(FieldError::invalid(
            path.child("deprecationWarning"),
            text(version, &["deprecationWarning"]),
            detail,
        ));
    }
    scale(version, &path.child("subresources").child("scale"), faults);
    for (index, column) in list(version, &["additionalPrinterColumns"]).iter().enumerate() {
        self::column(column, &path.child("additionalPrinterColumns").index(index), faults);
    }
    selectable(version, schema, &path.child("selectableFields"), faults);
}

fn scale(version: &Value, path: &FieldPath, faults: &mut Faults) {
    let Some(scale) = at(version, &["subresources", "scale"]).filter(|scale| scale.is_object()) else {
        return;
    };
    let mut check = |name: &str, roots: &[&str], required: bool| {
        let value = text(scale, &[name]);
        if value.is_empty() {
            if required {
                faults.push(FieldError::required(path.child(name), ""));
            }
            return;
        }
        let simple =
            value.starts_with('.') && !value.contains(['[', ']', '*', '"', '\'']) && !value.contains("..");
        if !simple {
            let detail = "only simple json paths with dot notation are allowed, such as .spec.replicas";
            faults.push(FieldError::invalid(path.child(name), value, detail));
        } else if !roots.iter().any(|root| value.starts_with(root)) {
            let detail = format!("should be a json path under {}", roots.join(" or "));
            faults.push(FieldError::invalid(path.child(name), value, detail));
        }
    };
    check("specReplicasPath", &[".spec."], true);
    check("statusReplicasPath", &[".status."], true);
    check("labelSelectorPath", &[".spec.", ".status."], false);
}

fn column(column: &Value, path: &FieldPath, faults: &mut Faults) {
    if text(column, &["name"]).is_empty() {
        faults.push(FieldError::required(path.child("name"), ""));
    }
    let known = ["boolean", "date", "integer", "number", "string"];
    match text(column, &["type"]) {
        "" => {
            let detail = format!("must be one of {}", known.join(","));
            faults.push(FieldError::required(path.child("type"), detail));
        }
        kind if !known.contains(&kind) => {
            let detail = format!("must be one of {}", known.join(","));
            faults.push(FieldError::invalid(path.child("type"), kind, detail));
        }
        _ => {}
    }
    let json_path = text(column, &["jsonPath"]);
    if json_path.is_empty() {
        faults.push(FieldError::required(path.child("jsonPath"), ""));
    } else if let Err(error) = columns::parse(json_path) {
        faults.push(FieldError::invalid(path.child("jsonPath"), json_path, error));
    }
}

fn selectable(version: &Value, schema: Option<&Value>, path: &FieldPath, faults: &mut Faults) {
    let fields = list(version, &["selectableFields"]);
    if fields.len() > MAX_SELECTABLE {
        let fault = strata_model::field::FieldFault::TooMany;
        let detail = format!("must have at most {MAX_SELECTABLE} items");
        faults.push(FieldError { path: path.clone(), fault, value: Some(fields.len().to_string()), detail });
    }
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = path.index(index).child("jsonPath");
        let json_path = text(field, &["jsonPath"]);
        if json_path.is_empty() {
            faults.push(FieldError::required(at, ""));
            continue;
        }
        if !seen.insert(json_path) {
            faults.push(FieldError::duplicate(at.clone(), json_path));
        }
        let parts: Vec<&str> = json_path.trim_start_matches('.').split('.').collect();
        if !json_path.starts_with('.')
            || parts.iter().any(|part| part.is_empty() || part.contains(['[', '*']))
        {
            faults.push(FieldError::invalid(
                at,
                json_path,
                "is an invalid path: must be a simple path such as .spec.color",
            ));
            continue;
        }
        if parts[0] == "metadata" {
            faults.push(FieldError::invalid(
                at,
                json_path,
                "is an invalid path: must not point to fields in metadata",
            ));
            continue;
        }
        let found = schema.and_then(|schema| {
            parts.iter().try_fold(schema, |schema, part| schema.get("properties")?.get(*part))
        });
        match found.map(|schema| text(schema, &["type"])) {
            None => faults.push(FieldError::invalid(
                at,
                json_path,
                "is an invalid path: does not refer to a valid field",
            )),
            Some("boolean" | "integer" | "string") => {}
            Some(_) => {
                let detail = "must point to a field of type string, boolean or integer";
                faults.push(FieldError::invalid(at, json_path, detail));
            }
        }
    }
}

fn conversion(object: &Value, path: &FieldPath, faults: &mut Faults) {
    match text(object, &["spec", "conversion", "strategy"]) {
        "None" => {
            if at(object, &["spec", "conversion", "webhook"]).is_some() {
                let detail = "should not be set when strategy is not set to Webhook";
                faults.push(FieldError::forbidden(path.child("webhook"), detail));
            }
        }
        "Webhook" => webhook(object, &path.child("webhook"), faults),
        other => {
            faults.push(FieldError::not_supported(path.child("strategy"), other, &["None", "Webhook"]));
        }
    }
}

fn webhook(object: &Value, path: &FieldPath, faults: &mut Faults) {
    let Some(webhook) = at(object, &["spec", "conversion", "webhook"]).filter(|webhook| webhook.is_object())
    else {
        faults.push(FieldError::required(path.clone(), "required when strategy is set to Webhook"));
        return;
    };
    let (config, at) = (webhook.get("clientConfig"), path.child("clientConfig"));
    match config.map(|config| (text(config, &["url"]), config.get("service").is_some())) {
        None => faults.push(FieldError::required(at, "required when strategy is set to Webhook")),
        Some(("", false)) | Some((_, true))
            if config.is_some_and(|c| c.get("url").is_some() == c.get("service").is_some()) =>
        {
            faults.push(FieldError::required(at, "exactly one of url or service is required"));
        }
        Some(("", _)) => {}
        Some((url, _)) => {
            let parsed = url.parse::<http::Uri>();
            if !parsed.is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some()) {
                let detail = "must be an https URL with a host";
                faults.push(FieldError::invalid(at.child("url"), url, detail));
            }
        }
    }
    let reviews = list(webhook, &["conversionReviewVersions"]);
    let reviews_at = path.child("conversionReviewVersions");
    if reviews.is_empty() {
        faults.push(FieldError::required(reviews_at, ""));
    } else if !reviews.iter().any(|version| matches!(version.as_str(), Some("v1" | "v1beta1"))) {
        let detail = "must include at least one of v1, v1beta1";
        faults.push(FieldError::invalid(reviews_at, reviews, detail));
    }
}

/// Checks what may not change of a definition once it is established.
pub fn check_update(new: &Value, old: &Value, faults: &mut Faults) {
    let established = |c: &Value| text(c, &["type"]) == "Established" && text(c, &["status"]) == "True";
    if !list(old, &["status", "conditions"]).iter().any(established) {
        return;
    }
    let fixed: [&[&str]; 4] =
        [&["spec", "group"], &["spec", "scope"], &["spec", "names", "plural"], &["spec", "names", "kind"]];
    for fields in fixed {
        if at(new, fields) != at(old, fields) {
            let path = fields.iter().fold(FieldPath::new(""), |path, part| path.child(part));
            faults.push(FieldError::invalid(path, at(new, fields), "field is immutable"));
        }
    }
}
