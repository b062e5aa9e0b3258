//! Pods: what a create sets, what an update may change, how a pod is selected and printed.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::quantity::Quantity;
use strata_model::resource::builtin;

use super::rules::{Around, Faults, Field, Need, PLAIN, Rules, Unsettled, field, switch};
use super::{meta, pod_checks, pod_row, pod_spec};
use crate::value::{at, child, default, flag, int, list, list_mut, object, text};

/// Seconds for which a pod stays on a node that does not answer, where it does not say so itself.
const UNREACHABLE_SECONDS: i64 = 300;

const FIELDS: &[Field] = &[
    field("spec.nodeName", &["/spec/nodeName"]),
    field("spec.restartPolicy", &["/spec/restartPolicy"]),
    field("spec.schedulerName", &["/spec/schedulerName"]),
    field("spec.serviceAccountName", &["/spec/serviceAccountName"]),
    switch("spec.hostNetwork", &["/spec/hostNetwork"]),
    field("status.phase", &["/status/phase"]),
    field("status.podIP", &["/status/podIP"]),
    field("status.podIPs", &["/status/podIP"]),
    field("status.nominatedNodeName", &["/status/nominatedNodeName"]),
];

/// Rules of pods.
pub static POD: Rules = Rules {
    defaults,
    create,
    validate,
    update: |new, old| {
        for given in ["priority", "preemptionPolicy", "priorityClassName", "ephemeralContainers"] {
            if let Some(was) = at(old, &["spec", given]).cloned() {
                default(child(new, "spec"), given, was);
            }
        }
    },
    validate_update,
    validate_added,
    settle: Some(settle),
    needs: Some(needs),
    warnings: meta::warn_of_dots,
    columns: pod_row::COLUMNS,
    row: pod_row::row,
    fields: FIELDS,
    status_labels: true,
    graceful: true,
    ..PLAIN
};

fn defaults(pod: &mut Value) {
    let spec = child(pod, "spec");
    pod_spec::defaults(spec);
    pod_spec::limits_into_requests(spec);
    default(spec, "enableServiceLinks", true);
}

/// What holds for new pods alone.
fn settle(pod: &mut Value, old: Option<&Value>, around: &dyn Around) -> Result<(), Unsettled> {
    if old.is_some() {
        return Ok(());
    }
    if !list(pod, &["spec", "ephemeralContainers"]).is_empty() {
        let path = FieldPath::new("spec").child("ephemeralContainers");
        return Err(Unsettled::Faults(vec![FieldError::forbidden(path, "cannot be set on create")]));
    }
    account(pod, around)?;
    priority(pod, around)
}

/// The account of pods that name none. Every namespace has it.
const DEFAULT_ACCOUNT: &str = "default";

/// A new pod needs its account, and pulls images with the secrets of that unless it has its own.
fn account(pod: &mut Value, around: &dyn Around) -> Result<(), Unsettled> {
    let name = text(pod, &["spec", "serviceAccountName"]).to_owned();
    let namespace = text(pod, &["metadata", "namespace"]).to_owned();
    match around.get(&builtin::SERVICE_ACCOUNT.id, &namespace, &name) {
        Some(mut account) => {
            let own = !list(pod, &["spec", "imagePullSecrets"]).is_empty();
            let secrets = object(&mut account).remove("imagePullSecrets");
            let secrets = secrets.filter(|s| s.as_array().is_some_and(|s| !s.is_empty()));
            if let Some(secrets) = secrets.filter(|_| !own) {
                child(pod, "spec").insert("imagePullSecrets".to_owned(), secrets);
            }
            Ok(())
        }
        None if name == DEFAULT_ACCOUNT => Ok(()),
        None => Err(Unsettled::Forbidden(format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        ))),
    }
}

fn needs(pod: &Value) -> Vec<Need> {
    let name = text(pod, &["spec", "serviceAccountName"]).to_owned();
    let made = name == DEFAULT_ACCOUNT;
    vec![Need { id: &builtin::SERVICE_ACCOUNT.id, name, made }]
}

/// A new pod gets the priority of its class, or of the default class.
fn priority(pod: &mut Value, around: &dyn Around) -> Result<(), Unsettled> {
    let named = text(pod, &["spec", "priorityClassName"]).to_owned();
    let class = if named.is_empty() {
        let classes = around.all(&builtin::PRIORITY_CLASS.id).into_iter();
        classes.filter(|class| flag(class, &["globalDefault"])).min_by_key(|class| int(class, &["value"]))
    } else {
        let Some(class) = around.get(&builtin::PRIORITY_CLASS.id, "", &named) else {
            return Err(Unsettled::Forbidden(format!("no PriorityClass with name {named} was found")));
        };
        Some(class)
    };
    let value = class.as_ref().and_then(|class| int(class, &["value"])).unwrap_or(0);
    let policy = class.as_ref().map_or("", |class| text(class, &["preemptionPolicy"]));
    let policy = if policy.is_empty() { "PreemptLowerPriority" } else { policy };
    let from = "must not be provided in pod spec; priority admission controller computed";
    let given = int(pod, &["spec", "priority"]);
    if let Some(given) = given.filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) {from} {value} from the given PriorityClass name"
        );
        return Err(Unsettled::Forbidden(why));
    }
    let given = text(pod, &["spec", "preemptionPolicy"]);
    if !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) {from} {policy} from the given PriorityClass name"
        );
        return Err(Unsettled::Forbidden(why));
    }
    let spec = child(pod, "spec");
    if let Some(class) = &class {
        spec.insert("priorityClassName".to_owned(), json!(text(class, &["metadata", "name"])));
    }
    spec.insert("priority".to_owned(), json!(value));
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

/// What may be added through `ephemeralcontainers`: containers, and nothing else.
fn validate_added(new: &Value, old: &Value, faults: &mut Faults) {
    let path = FieldPath::new("spec").child("ephemeralContainers");
    for had in list(old, &["spec", "ephemeralContainers"]) {
        let name = text(had, &["name"]);
        let found = list(new, &["spec", "ephemeralContainers"]).iter().find(|c| text(c, &["name"]) == name);
        let detail = match found {
            None => format!("existing ephemeral containers \"{name}\" may not be removed"),
            Some(found) if found != had => {
                format!("existing ephemeral containers \"{name}\" may not be changed")
            }
            Some(_) => continue,
        };
        faults.push(FieldError::forbidden(path.clone(), detail));
    }
}

fn create(pod: &mut Value) {
    let class = qos_class(pod);
    let spec = child(pod, "spec");
    default(spec, "serviceAccountName", "default");
    let account = spec.get("serviceAccountName").cloned().unwrap_or_default();
    default(spec, "serviceAccount", account);
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(tolerations) = tolerations.as_array_mut() {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let covered = tolerations.iter().any(|t| {
                let (own, effect) = (text(t, &["key"]), text(t, &["effect"]));
                (own == key || own.is_empty()) && (effect == "NoExecute" || effect.is_empty())
            });
            if !covered {
                tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": UNREACHABLE_SECONDS}));
            }
        }
    }
    object(pod).insert("status".to_owned(), json!({"phase": "Pending", "qosClass": class}));
}

/// How sure a pod may be of its resources, by what its containers ask for.
fn qos_class(pod: &Value) -> &'static str {
    let amount = |container: &Value, part: &str, name: &str| -> Option<Quantity> {
        let found = at(container, &["resources", part, name])?.as_str()?.parse().ok()?;
        (found != Quantity::ZERO).then_some(found)
    };
    let containers =
        || list(pod, &["spec", "containers"]).iter().chain(list(pod, &["spec", "initContainers"]));
    let (mut any, mut all) = (false, true);
    for container in containers() {
        for name in ["cpu", "memory"] {
            let limit = amount(container, "limits", name);
            let request = amount(container, "requests", name).or(limit);
            any |= limit.is_some() || request.is_some();
            all &= limit.is_some() && limit == request;
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn validate(pod: &Value, faults: &mut Faults) {
    let spec = at(pod, &["spec"]).unwrap_or(&Value::Null);
    pod_checks::validate(spec, &FieldPath::new("spec"), &[], faults);
}

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn validate_update(new: &Value, old: &Value, faults: &mut Faults) {
    let mut masked = new.clone();
    for lists in ["containers", "initContainers"] {
        let images = list(old, &["spec", lists]);
        if let Some(containers) = list_mut(&mut masked, &["spec", lists]) {
            for (container, was) in containers.iter_mut().zip(images) {
                // The pull policy was made from the image, and stays what it was.
                object(container).insert("image".to_owned(), was["image"].clone());
            }
        }
    }
    // What holds a pod back from being scheduled may be taken away, never added.
    let gates = list(old, &["spec", "schedulingGates"]);
    if list(new, &["spec", "schedulingGates"]).iter().all(|gate| gates.contains(gate)) {
        let gates = at(old, &["spec", "schedulingGates"]).cloned();
        crate::value::put(child(&mut masked, "spec"), "schedulingGates", gates);
    }
    let had = list(old, &["spec", "tolerations"]);
    let kept = list(new, &["spec", "tolerations"]);
    if had.iter().all(|t| kept.contains(t)) {
        crate::value::put(
            child(&mut masked, "spec"),
            "tolerations",
            at(old, &["spec", "tolerations"]).cloned(),
        );
    }
    let deadline = at(old, &["spec", "activeDeadlineSeconds"]).cloned();
    crate::value::put(child(&mut masked, "spec"), "activeDeadlineSeconds", deadline);
    if at(&masked, &["spec"]) != at(old, &["spec"]) {
        faults.push(FieldError::forbidden(FieldPath::new("spec"), CHANGEABLE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(spec: Value) -> Value {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Running"}});
        defaults(&mut pod);
        create(&mut pod);
        pod
    }

    #[test]
    fn a_new_pod_is_pending_with_its_class_and_tolerations() {
        let pod = made(json!({"containers": [{"name": "c", "image": "i"}]}));
        assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
        assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 2);
        assert_eq!(pod["spec"]["serviceAccountName"], "default");
        let limits = json!({"cpu": "1", "memory": "1Gi"});
        let pod = made(json!({"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]}));
        assert_eq!(pod["status"]["qosClass"], "Guaranteed");
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1");
    }

    #[test]
    fn only_few_fields_of_a_pod_may_change() {
        let old = made(json!({"containers": [{"name": "c", "image": "i"}]}));
        let faults = |change: &dyn Fn(&mut Value)| {
            let (mut new, mut faults) = (old.clone(), Vec::new());
            change(&mut new);
            validate_update(&new, &old, &mut faults);
            faults.len()
        };
        assert_eq!(faults(&|p| p["spec"]["containers"][0]["image"] = json!("j")), 0);
        assert_eq!(faults(&|p| p["spec"]["activeDeadlineSeconds"] = json!(5)), 0);
        assert_eq!(
            faults(&|p| p["spec"]["tolerations"].as_array_mut().unwrap().push(json!({"operator": "Exists"}))),
            0
        );
        assert_eq!(faults(&|p| p["spec"]["tolerations"] = json!([])), 1);
        assert_eq!(faults(&|p| p["spec"]["nodeName"] = json!("n")), 1);
        assert_eq!(faults(&|p| p["spec"]["containers"][0]["command"] = json!(["x"])), 1);
    }

    #[test]
    fn faults_name_their_place() {
        let pod = made(json!({"restartPolicy": "Sometimes", "containers": [
            {"name": "C", "image": ""}, {"name": "d", "image": "i", "volumeMounts": [{"name": "v"}]}, {"name": "d", "image": "i"}]}));
        let mut faults = Vec::new();
        validate(&pod, &mut faults);
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        for part in [
            "spec.containers[0].name: Invalid",
            "spec.containers[0].image: Required",
            "[1].volumeMounts[0].name: Not found",
            "spec.containers[2].name: Duplicate",
            "spec.restartPolicy: Unsupported",
        ] {
            assert!(text.iter().any(|t| t.contains(part)), "{part} in {text:?}");
        }
    }
}
