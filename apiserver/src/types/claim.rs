//! Claims of volumes, and volumes: what they default, check and print. They get no finalizer that keeps them while they are in
//! use: nothing would ever take it away.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;
use strata_model::quantity::Quantity;
use strata_model::resource::builtin;

use super::rules::{AGE, Around, Column, Faults, NAME, PLAIN, Rules, Unsettled, column, wide};
use super::{check, meta, pod_spec, print, storage_class};
use crate::value::{at, child, default, list, members, object, text};

/// How a volume may be used, and its short word.
const ACCESS: &[(&str, &str)] = &[
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOnce", "RWO"),
    ("ReadWriteOncePod", "RWOP"),
];
/// The order in which short words are printed.
const PRINTED: &[&str] = &["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
const MODES: &[&str] = &["Block", "Filesystem"];

/// Rules of claims.
pub static CLAIM: Rules = Rules {
    defaults,
    create: |claim| drop(object(claim).insert("status".to_owned(), json!({"phase": "Pending"}))),
    validate: |claim, faults| {
        validate_spec(at(claim, &["spec"]).unwrap_or(&Value::Null), &FieldPath::new("spec"), faults);
    },
    validate_update,
    settle: Some(class_of),
    columns: const {
        &[
            NAME,
            column("Status", "Pending, Bound or Lost."),
            column("Volume", "The volume it is bound to."),
            column("Capacity", "Size of that volume."),
            column("Access Modes", "How it may be used."),
            column("StorageClass", "Class that its volume is of."),
            column("VolumeAttributesClass", "Class of attributes of its volume."),
            AGE,
            wide("VolumeMode", "Files or blocks."),
        ] as &[Column]
    },
    row: claim_row,
    ..PLAIN
};

/// Rules of volumes.
pub static VOLUME: Rules = Rules {
    defaults: |volume| {
        let spec = child(volume, "spec");
        default(spec, "volumeMode", "Filesystem");
        default(spec, "persistentVolumeReclaimPolicy", "Retain");
        if let Some(path) = spec.get_mut("hostPath").and_then(Value::as_object_mut) {
            default(path, "type", "");
        }
        pod_spec::amounts(spec.get_mut("capacity"));
        default(child(volume, "status"), "phase", "Pending");
    },
    create: |volume| drop(object(volume).insert("status".to_owned(), json!({"phase": "Pending"}))),
    validate: validate_volume,
    validate_update: |new, old, faults| {
        let source = |volume: &Value| -> Map<String, Value> {
            let mut spec = members(volume, &["spec"]).cloned().unwrap_or_default();
            spec.retain(|name, _| !VOLUME_MEMBERS.contains(&name.as_str()));
            spec
        };
        if source(new) != source(old) {
            let detail = "spec.persistentvolumesource is immutable after creation";
            faults
                .push(FieldError::forbidden(FieldPath::new("spec").child("persistentvolumesource"), detail));
        }
        meta::immutable(new, old, &["spec", "volumeMode"], faults);
        if at(old, &["spec", "nodeAffinity"]).is_some() {
            meta::immutable(new, old, &["spec", "nodeAffinity"], faults);
        }
    },
    columns: const {
        &[
            NAME,
            column("Capacity", "Its size."),
            column("Access Modes", "How it may be used."),
            column("Reclaim Policy", "What becomes of it when its claim goes."),
            column("Status", "Pending, Available, Bound, Released or Failed."),
            column("Claim", "The claim it is bound to."),
            column("StorageClass", "Its class."),
            column("VolumeAttributesClass", "Class of its attributes."),
            column("Reason", "Why it is in its state."),
            AGE,
            wide("VolumeMode", "Files or blocks."),
        ] as &[Column]
    },
    row: volume_row,
    ..PLAIN
};

/// Members of a volume's spec that are not its source.
const VOLUME_MEMBERS: &[&str] = &[
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// A new claim that names no class gets the default one.
fn class_of(claim: &mut Value, old: Option<&Value>, around: &dyn Around) -> Result<(), Unsettled> {
    let named = at(claim, &["spec", "storageClassName"]).is_some() || !class(claim).is_empty();
    if named || old.is_some() {
        return Ok(());
    }
    let classes = around.all(&builtin::STORAGE_CLASS.id);
    if let Some(name) = print::default_of(&classes, storage_class::DEFAULT_CLASS) {
        child(claim, "spec").insert("storageClassName".to_owned(), json!(name));
    }
    Ok(())
}

/// Fills a claim, or the template of one.
pub fn defaults(claim: &mut Value) {
    let spec = child(claim, "spec");
    default(spec, "volumeMode", "Filesystem");
    if let Some(resources) = spec.get_mut("resources").and_then(Value::as_object_mut) {
        pod_spec::amounts(resources.get_mut("requests"));
        pod_spec::amounts(resources.get_mut("limits"));
    }
    // Either form of a data source tells the other, within the namespace.
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => drop(spec.insert("dataSourceRef".to_owned(), source)),
        (None, Some(source)) if source.get("namespace").is_none() => {
            drop(spec.insert("dataSource".to_owned(), source));
        }
        _ => {}
    }
    default(child(claim, "status"), "phase", "Pending");
}

/// Checks the spec of a claim.
pub fn validate_spec(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    if list(spec, &["accessModes"]).is_empty() {
        faults.push(FieldError::required(path.child("accessModes"), "at least 1 access mode is required"));
    }
    access(spec, path, faults);
    let storage = path.child("resources").child("requests").key("storage");
    match check::quantity(spec, &["resources", "requests", "storage"]) {
        None => faults.push(FieldError::required(storage, "")),
        Some(amount) if amount <= Quantity::ZERO => {
            let shown = text(spec, &["resources", "requests", "storage"]);
            faults.push(FieldError::invalid(storage, shown, "must be greater than zero"));
        }
        Some(_) => {}
    }
    check::selector(at(spec, &["selector"]), &path.child("selector"), faults);
    check::optional_name(spec, "storageClassName", names::dns_subdomain, path, faults);
    check::one_of(spec, "volumeMode", MODES, path, faults);
}

fn access(spec: &Value, path: &FieldPath, faults: &mut Faults) {
    let modes = list(spec, &["accessModes"]);
    let known: Vec<&str> = ACCESS.iter().map(|(name, _)| *name).collect();
    for (index, mode) in modes.iter().enumerate() {
        let mode = mode.as_str().unwrap_or_default();
        if !known.contains(&mode) {
            faults.push(FieldError::not_supported(path.child("accessModes").index(index), mode, &known));
        }
    }
    if modes.len() > 1 && modes.contains(&json!("ReadWriteOncePod")) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        faults.push(FieldError::forbidden(path.child("accessModes"), detail));
    }
}

fn validate_update(new: &Value, old: &Value, faults: &mut Faults) {
    let fixed = |claim: &Value| -> Value {
        let mut spec = at(claim, &["spec"]).cloned().unwrap_or_default();
        if text(old, &["spec", "volumeName"]).is_empty() {
            object(&mut spec).remove("volumeName");
        }
        if text(old, &["status", "phase"]) == "Bound" {
            object(&mut spec).remove("volumeAttributesClassName");
            child(&mut spec, "resources").remove("requests");
        }
        // A class may still be given to a claim that has none.
        if at(old, &["spec", "storageClassName"]).is_none() {
            object(&mut spec).remove("storageClassName");
        }
        spec
    };
    let path = FieldPath::new("spec");
    if fixed(new) != fixed(old) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName \
            for bound claims";
        faults.push(FieldError::forbidden(path.clone(), detail));
    }
    let storage = ["spec", "resources", "requests", "storage"];
    if check::quantity(new, &storage) < check::quantity(old, &storage) {
        let path = path.child("resources").child("requests").child("storage");
        faults.push(FieldError::forbidden(path, "field can not be less than previous value"));
    }
}

fn validate_volume(volume: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(volume, &["spec"]).unwrap_or(&Value::Null));
    if list(spec, &["accessModes"]).is_empty() {
        faults.push(FieldError::required(path.child("accessModes"), ""));
    }
    access(spec, &path, faults);
    let capacity = path.child("capacity");
    match members(spec, &["capacity"]) {
        None => faults.push(FieldError::required(capacity, "")),
        Some(amounts) if amounts.len() != 1 || !amounts.contains_key("storage") => {
            let shown = amounts.keys().cloned().collect::<Vec<_>>().join(",");
            faults.push(FieldError::not_supported(capacity, shown, &["storage"]));
        }
        Some(amounts) => {
            if check::quantity(spec, &["capacity", "storage"]).is_some_and(|q| q <= Quantity::ZERO) {
                let shown = amounts.get("storage");
                let path = capacity.key("storage");
                faults.push(FieldError::invalid(path, shown, "must be greater than zero"));
            }
        }
    }
    let sources: Vec<&String> = members(spec, &[])
        .into_iter()
        .flat_map(|m| m.keys())
        .filter(|name| !VOLUME_MEMBERS.contains(&name.as_str()))
        .collect();
    match sources.as_slice() {
        [] => faults.push(FieldError::required(path.clone(), "must specify a volume type")),
        [_] => {}
        [_, second, ..] => {
            let detail = "may not specify more than 1 volume type";
            faults.push(FieldError::forbidden(path.child(second), detail));
        }
    }
    let policies = &["Delete", "Recycle", "Retain"];
    check::one_of(spec, "persistentVolumeReclaimPolicy", policies, &path, faults);
    check::optional_name(spec, "storageClassName", names::dns_subdomain, &path, faults);
    check::one_of(spec, "volumeMode", MODES, &path, faults);
    if at(spec, &["hostPath"]).is_some() && text(spec, &["hostPath", "path"]).is_empty() {
        faults.push(FieldError::required(path.child("hostPath").child("path"), ""));
    }
    if at(spec, &["local"]).is_some() {
        check::required(&spec["local"], "path", &path.child("local"), faults);
        if at(spec, &["nodeAffinity"]).is_none() {
            let detail = "Local volume requires node affinity";
            faults.push(FieldError::required(path.child("nodeAffinity"), detail));
        }
    }
}

fn modes(spec: &Value, field: &str) -> Value {
    let modes = list(spec, &[field]);
    let words = PRINTED.iter().filter(|name| modes.contains(&json!(name)));
    let words: Vec<&str> = words
        .filter_map(|name| ACCESS.iter().find(|(known, _)| known == name).map(|(_, short)| *short))
        .collect();
    json!(words.join(","))
}

fn or_unset(text: &str) -> Value {
    json!(if text.is_empty() { "<unset>" } else { text })
}

/// The class of a claim or volume: the older annotation counts first.
fn class(object: &Value) -> &str {
    match text(object, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]) {
        "" => text(object, &["spec", "storageClassName"]),
        named => named,
    }
}

fn claim_row(claim: &Value, now: Timestamp) -> Vec<Value> {
    let bound = !text(claim, &["spec", "volumeName"]).is_empty();
    let status = at(claim, &["status"]).unwrap_or(&Value::Null);
    let phase = match at(claim, &["metadata", "deletionTimestamp"]) {
        Some(_) => "Terminating",
        None => text(status, &["phase"]),
    };
    vec![
        print::name(claim),
        json!(phase),
        json!(text(claim, &["spec", "volumeName"])),
        json!(if bound { text(status, &["capacity", "storage"]) } else { "" }),
        if bound { modes(status, "accessModes") } else { json!("") },
        json!(class(claim)),
        or_unset(text(claim, &["spec", "volumeAttributesClassName"])),
        print::created(claim, now),
        or_unset(text(claim, &["spec", "volumeMode"])),
    ]
}

fn volume_row(volume: &Value, now: Timestamp) -> Vec<Value> {
    let spec = at(volume, &["spec"]).unwrap_or(&Value::Null);
    let phase = match at(volume, &["metadata", "deletionTimestamp"]) {
        Some(_) => "Terminating",
        None => text(volume, &["status", "phase"]),
    };
    let claim = match text(spec, &["claimRef", "name"]) {
        "" => String::new(),
        name => format!("{}/{name}", text(spec, &["claimRef", "namespace"])),
    };
    vec![
        print::name(volume),
        json!(text(spec, &["capacity", "storage"])),
        modes(spec, "accessModes"),
        json!(text(spec, &["persistentVolumeReclaimPolicy"])),
        json!(phase),
        json!(claim),
        json!(class(volume)),
        or_unset(text(spec, &["volumeAttributesClassName"])),
        json!(text(volume, &["status", "reason"])),
        print::created(volume, now),
        or_unset(text(spec, &["volumeMode"])),
    ]
}
