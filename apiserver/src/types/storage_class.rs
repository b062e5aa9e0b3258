//! Classes of storage, and what drivers tell of themselves and of nodes.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, number, truth};
use super::{check, print};
use crate::value::{at, child, default, flag, list, object, text};

/// What makes a class that of claims which name none.
pub const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Rules of storage classes.
pub static STORAGE_CLASS: Rules = Rules {
    defaults: |class| {
        let class = object(class);
        default(class, "reclaimPolicy", "Delete");
        default(class, "volumeBindingMode", "Immediate");
    },
    validate: |class, faults| {
        let root = FieldPath::new("");
        check::required(class, "provisioner", &root, faults);
        check::known(class, "reclaimPolicy", &["Delete", "Retain"], &root, faults);
        check::known(class, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], &root, faults);
    },
    validate_update: |new, old, faults| {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            if at(new, &[field]) != at(old, &[field]) {
                let detail = format!("updates to {field} are forbidden.");
                faults.push(FieldError::forbidden(FieldPath::new(field), detail));
            }
        }
    },
    columns: const {
        &[
            NAME,
            column("Provisioner", "What makes its volumes."),
            column("ReclaimPolicy", "What becomes of a volume when its claim goes."),
            column("VolumeBindingMode", "When a claim gets its volume."),
            truth("AllowVolumeExpansion", "Whether volumes may grow."),
            AGE,
        ] as &[Column]
    },
    row: |class, now| {
        let name = text(class, &["metadata", "name"]);
        let mark = text(class, &["metadata", "annotations", DEFAULT_CLASS]) == "true";
        vec![
            json!(if mark { format!("{name} (default)") } else { name.to_owned() }),
            json!(text(class, &["provisioner"])),
            json!(text(class, &["reclaimPolicy"])),
            json!(text(class, &["volumeBindingMode"])),
            json!(flag(class, &["allowVolumeExpansion"])),
            print::created(class, now),
        ]
    },
    ..PLAIN
};

/// Rules of volume attachments.
pub static VOLUME_ATTACHMENT: Rules = Rules {
    create: |attachment| drop(object(attachment).insert("status".to_owned(), json!({"attached": false}))),
    validate: |attachment, faults| {
        let path = FieldPath::new("spec");
        let spec = at(attachment, &["spec"]).unwrap_or(&Value::Null);
        for field in ["attacher", "nodeName"] {
            check::required(spec, field, &path, faults);
        }
        let path = path.child("source");
        let named = !text(spec, &["source", "persistentVolumeName"]).is_empty();
        match (named, at(spec, &["source", "inlineVolumeSpec"]).is_some()) {
            (false, false) => {
                let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
                faults.push(FieldError::required(path, detail));
            }
            (true, true) => {
                let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
                faults.push(FieldError::forbidden(path, detail));
            }
            _ => {}
        }
    },
    validate_update: |new, old, faults| check::unchanged(new, old, &[&["spec"]], faults),
    columns: const {
        &[
            NAME,
            column("Attacher", "The driver that attaches it."),
            column("PV", "The volume."),
            column("Node", "The node."),
            truth("Attached", "Whether it is attached."),
            AGE,
        ] as &[Column]
    },
    row: |attachment, now| {
        let spec = |path: &[&str]| json!(text(attachment, path));
        vec![
            print::name(attachment),
            spec(&["spec", "attacher"]),
            spec(&["spec", "source", "persistentVolumeName"]),
            spec(&["spec", "nodeName"]),
            json!(flag(attachment, &["status", "attached"])),
            print::created(attachment, now),
        ]
    },
    revision_required: true,
    ..PLAIN
};

const SWITCHES: [(&str, bool); 5] = [
    ("attachRequired", true),
    ("podInfoOnMount", false),
    ("storageCapacity", false),
    ("requiresRepublish", false),
    ("seLinuxMount", false),
];

/// Rules of storage drivers.
pub static CSI_DRIVER: Rules = Rules {
    defaults: |driver| {
        let spec = child(driver, "spec");
        for (name, value) in SWITCHES {
            default(spec, name, value);
        }
        default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if spec.get("volumeLifecycleModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
        }
    },
    validate: |driver, faults| {
        let path = FieldPath::new("spec");
        let spec = at(driver, &["spec"]).unwrap_or(&Value::Null);
        let policies = &["File", "None", "ReadWriteOnceWithFSType"];
        check::one_of(spec, "fsGroupPolicy", policies, &path, faults);
        for mode in list(spec, &["volumeLifecycleModes"]).iter().filter_map(Value::as_str) {
            if !matches!(mode, "Ephemeral" | "Persistent") {
                let path = path.child("volumeLifecycleModes");
                faults.push(FieldError::not_supported(path, mode, &["Ephemeral", "Persistent"]));
            }
        }
    },
    validate_update: |new, old, faults| {
        check::unchanged(new, old, &[&["spec", "attachRequired"], &["spec", "volumeLifecycleModes"]], faults);
    },
    columns: const {
        &[
            NAME,
            truth("AttachRequired", "Whether volumes are attached to nodes."),
            truth("PodInfoOnMount", "Whether it is told of the pod."),
            truth("StorageCapacity", "Whether it tells how much it has left."),
            column("TokenRequests", "Audiences of the tokens it gets."),
            truth("RequiresRepublish", "Whether it is called again and again."),
            column("Modes", "How long its volumes live."),
            AGE,
        ] as &[Column]
    },
    row: |driver, now| {
        let on = |name: &str| json!(flag(driver, &["spec", name]));
        let audiences: Vec<&str> =
            list(driver, &["spec", "tokenRequests"]).iter().map(|r| text(r, &["audience"])).collect();
        let modes: Vec<&str> =
            list(driver, &["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str).collect();
        vec![
            print::name(driver),
            on("attachRequired"),
            on("podInfoOnMount"),
            on("storageCapacity"),
            json!(if audiences.is_empty() { "<unset>".to_owned() } else { audiences.join(",") }),
            on("requiresRepublish"),
            print::or_none(&modes.join(",")),
            print::created(driver, now),
        ]
    },
    revision_required: true,
    ..PLAIN
};

/// Rules of what drivers are on a node.
pub static CSI_NODE: Rules = Rules {
    defaults: |node| default(child(node, "spec"), "drivers", json!([])),
    validate: |node, faults| {
        let mut seen = std::collections::BTreeSet::new();
        for (index, driver) in list(node, &["spec", "drivers"]).iter().enumerate() {
            let path = FieldPath::new("spec").child("drivers").index(index);
            let name = text(driver, &["name"]);
            check::name(driver, "name", names::dns_subdomain, &path, faults);
            check::required(driver, "nodeID", &path, faults);
            if !name.is_empty() && !seen.insert(name) {
                faults.push(FieldError::duplicate(path.child("name"), name));
            }
        }
    },
    columns: const { &[NAME, number("Drivers", "How many drivers the node has."), AGE] as &[Column] },
    row: |node, now| {
        let drivers = list(node, &["spec", "drivers"]).len();
        vec![print::name(node), json!(drivers), print::created(node, now)]
    },
    revision_required: true,
    ..PLAIN
};

/// Rules of what storage a class has left somewhere.
pub static CSI_STORAGE_CAPACITY: Rules = Rules {
    defaults: |capacity| {
        for name in ["capacity", "maximumVolumeSize"] {
            let mut one = json!({});
            if let Some(amount) = object(capacity).remove(name) {
                one[name] = amount;
                super::pod_spec::amounts(Some(&mut one));
                object(capacity).insert(name.to_owned(), one[name].take());
            }
        }
    },
    validate: |capacity, faults| {
        check::required(capacity, "storageClassName", &FieldPath::new(""), faults);
        check::selector(at(capacity, &["nodeTopology"]), &FieldPath::new("nodeTopology"), faults);
    },
    validate_update: |new, old, faults| {
        check::unchanged(new, old, &[&["nodeTopology"], &["storageClassName"]], faults);
    },
    columns: const {
        &[NAME, column("StorageClassName", "The class."), column("Capacity", "How much it has left.")]
            as &[Column]
    },
    row: |capacity, _| {
        vec![
            print::name(capacity),
            json!(text(capacity, &["storageClassName"])),
            json!(text(capacity, &["capacity"])),
        ]
    },
    revision_required: true,
    ..PLAIN
};

/// Rules of classes of container runtimes.
pub static RUNTIME_CLASS: Rules = Rules {
    validate: |class: &Value, faults: &mut Faults| {
        check::name(class, "handler", names::dns_label, &FieldPath::new(""), faults);
    },
    validate_update: |new, old, faults| check::unchanged(new, old, &[&["handler"]], faults),
    columns: const { &[NAME, column("Handler", "What runs its pods."), AGE] as &[Column] },
    row: |class, now| vec![print::name(class), json!(text(class, &["handler"])), print::created(class, now)],
    revision_required: true,
    create_on_update: true,
    ..PLAIN
};
