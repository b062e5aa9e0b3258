//! Quotas: what a namespace may use, what an object uses, and which quotas it counts to. The server charges writes by
//! this, and the controller recounts by it. Pure, over JSON; knows no store.

mod scope;
mod usage;

use jiff::Timestamp;
use serde_json::Value;

pub use self::scope::Scope;
pub use self::usage::usage;
use crate::amounts::{Amounts, amounts};
use crate::resource::{GroupResource, ResourceType, builtin};

/// What a name without `count/` and without rules of its own counts: objects of these types.
const PLAIN: [&ResourceType; 5] = [
    &builtin::CONFIG_MAP,
    &builtin::SECRET,
    &builtin::REPLICATION_CONTROLLER,
    &builtin::RESOURCE_QUOTA,
    &builtin::SERVICE,
];
/// What stands in the names of storage by class.
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";

/// The type whose objects a resource name of a quota counts; `None` for names that nothing counts.
pub fn counted(name: &str) -> Option<GroupResource> {
    if let Some(plural) = name.strip_prefix("count/") {
        let (resource, group) = plural.split_once('.').unwrap_or((plural, ""));
        return Some(GroupResource { group: group.to_owned().into(), resource: resource.to_owned().into() });
    }
    if name == "requests.storage"
        || name.contains(BY_CLASS)
        || name == builtin::PERSISTENT_VOLUME_CLAIM.id.resource
    {
        return Some(builtin::PERSISTENT_VOLUME_CLAIM.id.clone());
    }
    if name.starts_with("services.") {
        return Some(builtin::SERVICE.id.clone());
    }
    let compute = ["requests.", "limits.", "hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    if compute || ["pods", "cpu", "memory", "ephemeral-storage"].contains(&name) {
        return Some(builtin::POD.id.clone());
    }
    PLAIN.iter().find(|resource| resource.id.resource == name).map(|resource| resource.id.clone())
}

/// The name under which objects of a type are counted.
pub fn count_name(id: &GroupResource) -> String {
    format!("count/{id}")
}

/// A quota: how much of what, for which objects.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    /// Its name.
    pub name: String,
    /// The most of each resource.
    pub hard: Amounts,
    /// What is used, as it says.
    pub used: Amounts,
    /// Which objects it is about; empty is all of them.
    pub scopes: Vec<Scope>,
}

impl Quota {
    /// Reads a ResourceQuota.
    pub fn read(object: &Value) -> Self {
        Self {
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            hard: amounts(&object["spec"]["hard"]),
            used: amounts(&object["status"]["used"]),
            scopes: scope::all(&object["spec"]),
        }
    }

    /// The resources that objects of a type count to.
    pub fn names_of<'q>(&'q self, id: &'q GroupResource) -> impl Iterator<Item = &'q str> {
        self.hard.keys().map(String::as_str).filter(move |name| counted(name).as_ref() == Some(id))
    }

    /// Whether an object of a type counts to it.
    pub fn is_about(&self, id: &GroupResource, object: &Value) -> bool {
        self.scopes.iter().all(|scope| scope.holds(id, object))
    }

    /// What an object of a type takes of it.
    pub fn taken(&self, id: &GroupResource, object: &Value, now: Timestamp) -> Amounts {
        if !self.is_about(id, object) {
            return Amounts::new();
        }
        let mut used = usage(id, object, now);
        used.retain(|name, _| self.hard.contains_key(name));
        used
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(spec: Value) -> Quota {
        Quota::read(&json!({"metadata": {"name": "q"}, "spec": spec}))
    }

    fn taken(quota: &Quota, resource: &ResourceType, object: &Value) -> Vec<String> {
        let taken = quota.taken(&resource.id, object, Timestamp::UNIX_EPOCH);
        taken.iter().map(|(name, amount)| format!("{name}={amount}")).collect()
    }

    #[test]
    fn each_name_counts_one_type() {
        for (name, id) in [
            ("pods", Some("pods")),
            ("requests.cpu", Some("pods")),
            ("requests.nvidia.com/gpu", Some("pods")),
            ("requests.storage", Some("persistentvolumeclaims")),
            ("gold.storageclass.storage.k8s.io/requests.storage", Some("persistentvolumeclaims")),
            ("services.nodeports", Some("services")),
            ("services", Some("services")),
            ("secrets", Some("secrets")),
            ("count/deployments.apps", Some("deployments.apps")),
            ("count/widgets.example.com", Some("widgets.example.com")),
            ("novel", None),
        ] {
            assert_eq!(counted(name).map(|id| id.to_string()).as_deref(), id, "{name}");
        }
        assert_eq!(count_name(&builtin::DEPLOYMENT.id), "count/deployments.apps");
    }

    #[test]
    fn pods_take_compute_until_they_end_and_are_counted_as_long_as_they_are_there() {
        let quota = quota(json!({"hard": {"pods": "5", "count/pods": "9", "cpu": "4", "requests.cpu": "4",
            "limits.memory": "4Gi", "requests.example.com/gpu": "2"}}));
        let mut pod = json!({"spec": {"containers": [{"resources": {
            "requests": {"cpu": "500m", "example.com/gpu": "1"}, "limits": {"memory": "1Gi", "example.com/gpu": "1"}}}]}});
        assert_eq!(
            taken(&quota, &builtin::POD, &pod),
            [
                "count/pods=1",
                "cpu=500m",
                "limits.memory=1Gi",
                "pods=1",
                "requests.cpu=500m",
                "requests.example.com/gpu=1"
            ]
        );
        pod["status"]["phase"] = json!("Succeeded");
        assert_eq!(taken(&quota, &builtin::POD, &pod), ["count/pods=1"]);
    }

    #[test]
    fn services_and_claims_take_what_they_hold() {
        let quota =
            quota(json!({"hard": {"services": "1", "services.nodeports": "3", "services.loadbalancers": "1",
            "requests.storage": "10Gi", "persistentvolumeclaims": "2",
            "gold.storageclass.storage.k8s.io/requests.storage": "5Gi"}}));
        let service = |type_: &str| json!({"spec": {"type": type_, "ports": [{}, {}]}});
        assert_eq!(taken(&quota, &builtin::SERVICE, &service("ClusterIP")), ["services=1"]);
        assert_eq!(
            taken(&quota, &builtin::SERVICE, &service("NodePort")),
            ["services=1", "services.nodeports=2"]
        );
        assert_eq!(
            taken(&quota, &builtin::SERVICE, &service("LoadBalancer")),
            ["services=1", "services.loadbalancers=1", "services.nodeports=2"]
        );
        let claim =
            json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "2Gi"}}}});
        assert_eq!(
            taken(&quota, &builtin::PERSISTENT_VOLUME_CLAIM, &claim),
            [
                "gold.storageclass.storage.k8s.io/requests.storage=2Gi",
                "persistentvolumeclaims=1",
                "requests.storage=2Gi"
            ]
        );
    }

    #[test]
    fn scopes_choose_pods_and_nothing_else() {
        let pod = json!({"spec": {"priorityClassName": "high", "activeDeadlineSeconds": 5}, "status": {"qosClass": "Burstable"}});
        let about = |spec: Value, object: &Value| quota(spec).is_about(&builtin::POD.id, object);
        for (scope, holds) in [
            ("Terminating", true),
            ("NotTerminating", false),
            ("BestEffort", false),
            ("NotBestEffort", true),
            ("PriorityClass", true),
            ("CrossNamespacePodAffinity", false),
        ] {
            assert_eq!(about(json!({"scopes": [scope]}), &pod), holds, "{scope}");
        }
        let selector = |operator: &str, values: Value| json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}});
        for (operator, values, holds) in [
            ("In", json!(["high"]), true),
            ("In", json!(["low"]), false),
            ("NotIn", json!(["low"]), true),
            ("Exists", json!([]), true),
            ("DoesNotExist", json!([]), false),
        ] {
            assert_eq!(about(selector(operator, values), &pod), holds, "{operator}");
        }
        let scoped = quota(json!({"scopes": ["NotTerminating"]}));
        assert!(!scoped.is_about(&builtin::SECRET.id, &json!({})));
        let affine = json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"namespaces": ["x"]}]}}}});
        assert!(about(json!({"scopes": ["CrossNamespacePodAffinity"]}), &affine));
    }
}
