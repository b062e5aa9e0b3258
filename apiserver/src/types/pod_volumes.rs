//! Checks of the volumes of a pod, shared by pods and templates. Knows no object around the spec.

use std::collections::BTreeSet;

use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;
use strata_model::quantity::Quantity;

use super::check::{self, name as check_name};
use super::rules::Faults;
use crate::value::{at, int, list, members, text};

/// Highest mode of a file.
const HIGHEST_MODE: i64 = 0o777;
/// What a path on the node may be said to be.
const HOST_PATHS: &[&str] =
    &["BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
/// Sources of projected volumes.
const PROJECTED: &[&str] =
    &["clusterTrustBundle", "configMap", "downwardAPI", "secret", "serviceAccountToken"];
/// Members that sources of these kinds must have.
const REQUIRED: &[(&str, &[&str])] = &[
    ("awsElasticBlockStore", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("azureFile", &["secretName", "shareName"]),
    ("configMap", &["name"]),
    ("csi", &["driver"]),
    ("flexVolume", &["driver"]),
    ("gcePersistentDisk", &["pdName"]),
    ("gitRepo", &["repository"]),
    ("glusterfs", &["endpoints", "path"]),
    ("hostPath", &["path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("nfs", &["server", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("portworxVolume", &["volumeID"]),
    ("rbd", &["image"]),
    ("secret", &["secretName"]),
    ("vsphereVolume", &["volumePath"]),
];

/// Checks the volumes of a spec; gives their names.
pub fn validate<'a>(spec: &'a Value, path: &FieldPath, faults: &mut Faults) -> BTreeSet<&'a str> {
    let path = path.child("volumes");
    let mut seen = BTreeSet::new();
    for (index, volume) in list(spec, &["volumes"]).iter().enumerate() {
        let path = path.index(index);
        check_name(volume, "name", names::dns_label, &path, faults);
        let name = text(volume, &["name"]);
        if !name.is_empty() && !seen.insert(name) {
            faults.push(FieldError::duplicate(path.child("name"), name));
        }
        let mut sources = members(volume, &[]).into_iter().flatten().filter(|(name, _)| *name != "name");
        let first = sources.next();
        if let Some((second, _)) = sources.next() {
            let detail = "may not specify more than 1 volume type";
            faults.push(FieldError::forbidden(path.child(second), detail));
        }
        if let Some((kind, source)) = first {
            validate_source(kind, source, &path.child(kind), faults);
        }
    }
    seen
}

fn validate_source(kind: &str, source: &Value, path: &FieldPath, faults: &mut Faults) {
    let required = REQUIRED.iter().find(|(known, _)| *known == kind).map_or(&[][..], |(_, fields)| fields);
    for field in required {
        check::required(source, field, path, faults);
    }
    mode(source, "defaultMode", path, faults);
    items(source, path, faults);
    match kind {
        "emptyDir" if check::quantity(source, &["sizeLimit"]).is_some_and(|limit| limit < Quantity::ZERO) => {
            let detail = "SizeLimit field must be a valid resource quantity";
            faults.push(FieldError::forbidden(path.child("sizeLimit"), detail));
        }
        "hostPath" => {
            no_way_up(text(source, &["path"]), &path.child("path"), faults);
            check::one_of(source, "type", HOST_PATHS, path, faults);
        }
        "nfs" => {
            let place = text(source, &["path"]);
            if !place.is_empty() && !place.starts_with('/') {
                faults.push(FieldError::invalid(path.child("path"), place, "must be an absolute path"));
            }
        }
        "projected" => projected(source, path, faults),
        "ephemeral" => {
            let template = at(source, &["volumeClaimTemplate", "spec"]);
            match template {
                None => faults.push(FieldError::required(path.child("volumeClaimTemplate"), "")),
                Some(spec) => {
                    let path = path.child("volumeClaimTemplate").child("spec");
                    super::claim::validate_spec(spec, &path, faults);
                }
            }
        }
        _ => {}
    }
}

fn projected(source: &Value, path: &FieldPath, faults: &mut Faults) {
    for (index, part) in list(source, &["sources"]).iter().enumerate() {
        let path = path.child("sources").index(index);
        let given: Vec<&&str> = PROJECTED.iter().filter(|kind| at(part, &[kind]).is_some()).collect();
        match given.as_slice() {
            [] => faults.push(FieldError::required(path, "must specify a projected source")),
            [kind] => {
                let (source, path) = (&part[**kind], path.child(kind));
                if matches!(**kind, "configMap" | "secret") {
                    check::required(source, "name", &path, faults);
                }
                if **kind == "serviceAccountToken" {
                    check::required(source, "path", &path, faults);
                    if let Some(seconds) = int(source, &["expirationSeconds"]).filter(|n| *n < 600) {
                        let detail = "may not specify a duration less than 10 minutes";
                        faults.push(FieldError::invalid(path.child("expirationSeconds"), seconds, detail));
                    }
                }
                items(source, &path, faults);
            }
            [_, second, ..] => {
                let detail = "may not specify more than 1 volume type";
                faults.push(FieldError::forbidden(path.child(second), detail));
            }
        }
    }
}

/// Checks which keys become which files.
fn items(source: &Value, path: &FieldPath, faults: &mut Faults) {
    for (index, item) in list(source, &["items"]).iter().enumerate() {
        let path = path.child("items").index(index);
        let from_pod = at(item, &["fieldRef"]).is_some() || at(item, &["resourceFieldRef"]).is_some();
        if !from_pod {
            check::required(item, "key", &path, faults);
        }
        let place = check::required(item, "path", &path, faults);
        if place.starts_with('/') {
            faults.push(FieldError::invalid(path.child("path"), place, "must be a relative path"));
        }
        no_way_up(place, &path.child("path"), faults);
        mode(item, "mode", &path, faults);
    }
}

fn mode(map: &Value, field: &str, path: &FieldPath, faults: &mut Faults) {
    if let Some(mode) = int(map, &[field]).filter(|mode| !(0..=HIGHEST_MODE).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        faults.push(FieldError::invalid(path.child(field), mode, detail));
    }
}

/// Checks that a path does not lead out of where it begins.
pub fn no_way_up(place: &str, path: &FieldPath, faults: &mut Faults) {
    if place.split('/').any(|part| part == "..") {
        faults.push(FieldError::invalid(path.clone(), place, "must not contain '..'"));
    }
}
