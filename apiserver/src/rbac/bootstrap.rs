//! The roles and bindings that are always there, as Kubernetes has them for users; controllers and nodes have rules of
//! the server instead. Also what is missing of one that is there already. Knows no store.

use serde_json::{Value, json};

use super::cover;
use super::rule::Rule;
use crate::authn::{AUTHENTICATED, SERVICE_ACCOUNTS, UNAUTHENTICATED};
use crate::authz::MASTERS;
use crate::value::{at, child, list, object, text};

/// Set to `false` on a role or binding, this keeps the server from changing it at its start.
pub const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
/// What shows that a role or binding comes from the server.
const LABEL: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");
const GROUP: &str = "rbac.authorization.k8s.io";

/// Words of a rule.
type Words = &'static [&'static str];

/// One rule of a role that is always there.
struct Of {
    groups: Words,
    resources: Words,
    names: Words,
    urls: Words,
    verbs: Words,
}

const fn on(group: &'static [&'static str], resources: Words, verbs: Words) -> Of {
    Of { groups: group, resources, names: &[], urls: &[], verbs }
}

const fn named(group: &'static [&'static str], resources: Words, names: Words, verbs: Words) -> Of {
    Of { groups: group, resources, names, urls: &[], verbs }
}

const fn paths(urls: Words, verbs: Words) -> Of {
    Of { groups: &[], resources: &[], names: &[], urls, verbs }
}

/// A cluster role that is always there, to whom it is bound, and what it gathers and is gathered by.
struct Standing {
    name: &'static str,
    rules: &'static [Of],
    /// Groups that it is bound to.
    groups: Words,
    /// The role whose rules it is part of: `admin`, `edit`, `view`, or none.
    part_of: &'static str,
    /// Whether its rules are those of its parts.
    gathers: bool,
}

const fn standing(name: &'static str, rules: &'static [Of], groups: Words) -> Standing {
    Standing { name, rules, groups, part_of: "", gathers: false }
}

const fn gathering(name: &'static str, part_of: &'static str) -> Standing {
    Standing { name, rules: &[], groups: &[], part_of, gathers: true }
}

const fn part(name: &'static str, part_of: &'static str, rules: &'static [Of]) -> Standing {
    Standing { name, rules, groups: &[], part_of, gathers: false }
}

const CORE: Words = &[""];
const READ: Words = &["get", "list", "watch"];
const WRITE: Words = &["create", "delete", "deletecollection", "patch", "update"];
const READ_WRITE: Words =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CREATE: Words = &["create"];
const GET: Words = &["get"];
const APPROVE: Words = &["approve"];
const CERTIFICATES: Words = &["certificates.k8s.io"];

const CAN_CONNECT: Words = &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy"];

const EDIT: &[Of] = &[
    on(
        CORE,
        &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"],
        READ,
    ),
    on(CORE, &["serviceaccounts"], &["impersonate"]),
    on(CORE, CAN_CONNECT, WRITE),
    on(CORE, &["pods"], WRITE),
    on(CORE, &["pods/eviction", "serviceaccounts/token"], CREATE),
    on(
        CORE,
        &[
            "configmaps",
            "events",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "secrets",
            "serviceaccounts",
            "services",
            "services/proxy",
        ],
        WRITE,
    ),
    on(
        &["apps"],
        &[
            "daemonsets",
            "deployments",
            "deployments/rollback",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
        WRITE,
    ),
    on(&["autoscaling"], &["horizontalpodautoscalers"], WRITE),
    on(&["batch"], &["cronjobs", "jobs"], WRITE),
    on(&["policy"], &["poddisruptionbudgets"], WRITE),
    on(&["networking.k8s.io"], &["ingresses", "networkpolicies"], WRITE),
    on(&["coordination.k8s.io"], &["leases"], READ_WRITE),
];

const VIEW: &[Of] = &[
    on(
        CORE,
        &[
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/status",
        ],
        READ,
    ),
    on(
        CORE,
        &[
            "bindings",
            "events",
            "limitranges",
            "namespaces/status",
            "pods/log",
            "pods/status",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
        ],
        READ,
    ),
    on(CORE, &["namespaces"], READ),
    on(&["discovery.k8s.io"], &["endpointslices"], READ),
    on(
        &["apps"],
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
        READ,
    ),
    on(&["autoscaling"], &["horizontalpodautoscalers", "horizontalpodautoscalers/status"], READ),
    on(&["batch"], &["cronjobs", "cronjobs/status", "jobs", "jobs/status"], READ),
    on(&["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"], READ),
    on(&["networking.k8s.io"], &["ingresses", "ingresses/status", "networkpolicies"], READ),
];

static CLUSTER_ROLES: &[Standing] = &[
    standing("cluster-admin", &[on(&["*"], &["*"], &["*"]), paths(&["*"], &["*"])], &[MASTERS]),
    standing(
        "system:discovery",
        &[paths(
            &[
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
                "/version/",
            ],
            GET,
        )],
        &[AUTHENTICATED],
    ),
    standing(
        "system:basic-user",
        &[
            on(&["authorization.k8s.io"], &["selfsubjectaccessreviews", "selfsubjectrulesreviews"], CREATE),
            on(&["authentication.k8s.io"], &["selfsubjectreviews"], CREATE),
        ],
        &[AUTHENTICATED],
    ),
    standing(
        "system:public-info-viewer",
        &[paths(&["/healthz", "/livez", "/readyz", "/version", "/version/"], GET)],
        &[AUTHENTICATED, UNAUTHENTICATED],
    ),
    standing(
        "system:monitoring",
        &[paths(
            &[
                "/healthz",
                "/healthz/*",
                "/livez",
                "/livez/*",
                "/metrics",
                "/metrics/slis",
                "/readyz",
                "/readyz/*",
            ],
            GET,
        )],
        &["system:monitoring"],
    ),
    standing(
        "system:service-account-issuer-discovery",
        &[paths(
            &["/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks"],
            GET,
        )],
        &[SERVICE_ACCOUNTS],
    ),
    standing(
        "system:auth-delegator",
        &[
            on(&["authentication.k8s.io"], &["tokenreviews"], CREATE),
            on(&["authorization.k8s.io"], &["subjectaccessreviews"], CREATE),
        ],
        &[],
    ),
    standing(
        "system:kubelet-api-admin",
        &[
            on(CORE, &["nodes"], &["get", "list", "proxy", "watch"]),
            on(CORE, &["nodes/log", "nodes/metrics", "nodes/proxy", "nodes/stats"], &["*"]),
        ],
        &[],
    ),
    standing(
        "system:persistent-volume-provisioner",
        &[
            on(CORE, &["persistentvolumes"], &["create", "delete", "get", "list", "watch"]),
            on(CORE, &["persistentvolumeclaims"], &["get", "list", "update", "watch"]),
            on(&["storage.k8s.io"], &["storageclasses"], READ),
            on(CORE, &["events"], &["create", "patch", "update", "watch"]),
        ],
        &[],
    ),
    standing(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        &[named(CERTIFICATES, &["signers"], &["kubernetes.io/kube-apiserver-client"], APPROVE)],
        &[],
    ),
    standing(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        &[named(CERTIFICATES, &["signers"], &["kubernetes.io/kube-apiserver-client-kubelet"], APPROVE)],
        &[],
    ),
    standing(
        "system:certificates.k8s.io:kubelet-serving-approver",
        &[named(CERTIFICATES, &["signers"], &["kubernetes.io/kubelet-serving"], APPROVE)],
        &[],
    ),
    standing(
        "system:certificates.k8s.io:legacy-unknown-approver",
        &[named(CERTIFICATES, &["signers"], &["kubernetes.io/legacy-unknown"], APPROVE)],
        &[],
    ),
    gathering("admin", ""),
    gathering("edit", "admin"),
    gathering("view", "edit"),
    part(
        "system:aggregate-to-admin",
        "admin",
        &[
            on(&["authorization.k8s.io"], &["localsubjectaccessreviews"], CREATE),
            on(&[GROUP], &["rolebindings", "roles"], READ_WRITE),
        ],
    ),
    part("system:aggregate-to-edit", "edit", EDIT),
    part("system:aggregate-to-view", "view", VIEW),
];

/// Kinds of objects that are always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A role or cluster role.
    Role,
    /// A binding of either.
    Binding,
}

/// All cluster roles that are always there.
pub fn cluster_roles() -> Vec<Value> {
    CLUSTER_ROLES.iter().map(cluster_role).collect()
}

fn cluster_role(standing: &Standing) -> Value {
    let label = |of: &str| format!("rbac.authorization.k8s.io/aggregate-to-{of}");
    let mut role = json!({
        "metadata": metadata(standing.name),
        "rules": standing.rules.iter().map(write).collect::<Vec<_>>(),
    });
    if !standing.part_of.is_empty() {
        role["metadata"]["labels"][label(standing.part_of)] = json!("true");
    }
    if standing.gathers {
        let mut labels = json!({});
        labels[label(standing.name)] = json!("true");
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
    }
    role
}

/// All cluster role bindings that are always there.
pub fn cluster_role_bindings() -> Vec<Value> {
    let bound = CLUSTER_ROLES.iter().filter(|standing| !standing.groups.is_empty());
    bound
        .map(|standing| {
            let subject = |group: &&str| json!({"kind": "Group", "apiGroup": GROUP, "name": group});
            json!({
                "metadata": metadata(standing.name),
                "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": standing.name},
                "subjects": standing.groups.iter().map(subject).collect::<Vec<_>>(),
            })
        })
        .collect()
}

fn metadata(name: &str) -> Value {
    let mut metadata = json!({"name": name, "labels": {}, "annotations": {}});
    metadata["labels"][LABEL.0] = json!(LABEL.1);
    metadata["annotations"][AUTOUPDATE] = json!("true");
    metadata
}

fn write(of: &Of) -> Value {
    let words = |words: Words| words.iter().map(ToString::to_string).collect();
    let rule = Rule {
        verbs: words(of.verbs),
        groups: words(of.groups),
        resources: words(of.resources),
        names: words(of.names),
        urls: words(of.urls),
    };
    rule.write()
}

/// An object that is there, with all it should have; `None` where it has that, or is not to be changed. What was added
/// to it stays.
pub fn mended(kind: Kind, found: &Value, wanted: &Value) -> Option<Value> {
    if text(found, &["metadata", "annotations", AUTOUPDATE]) == "false" {
        return None;
    }
    let mut new = found.clone();
    for part in ["labels", "annotations"] {
        let Some(Value::Object(members)) = at(wanted, &["metadata", part]) else { continue };
        let metadata = new.get_mut("metadata")?;
        for (name, value) in members {
            child(metadata, part).entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    match kind {
        Kind::Role => mend_role(&mut new, wanted),
        Kind::Binding => {
            let mut subjects = list(found, &["subjects"]).to_vec();
            let missing = list(wanted, &["subjects"]).iter().filter(|wanted| !subjects.contains(wanted));
            let missing: Vec<Value> = missing.cloned().collect();
            if !missing.is_empty() {
                subjects.extend(missing);
                object(&mut new).insert("subjects".to_owned(), json!(subjects));
            }
        }
    }
    (new != *found).then_some(new)
}

fn mend_role(new: &mut Value, wanted: &Value) {
    if let Some(rule) = at(wanted, &["aggregationRule"]) {
        let selectors = list(new, &["aggregationRule", "clusterRoleSelectors"]).to_vec();
        let lacks = |selector: &&Value| !selectors.contains(selector);
        let missing: Vec<Value> =
            list(rule, &["clusterRoleSelectors"]).iter().filter(lacks).cloned().collect();
        if !missing.is_empty() {
            let all: Vec<Value> = selectors.into_iter().chain(missing).collect();
            let all = json!({"clusterRoleSelectors": all});
            object(new).insert("aggregationRule".to_owned(), all);
        }
        return;
    }
    let held = Rule::read_all(new);
    let lacking = cover::missing(&held, &Rule::read_all(wanted));
    if !lacking.is_empty() {
        let rules: Vec<Value> = held.iter().chain(&lacking).map(Rule::write).collect();
        object(new).insert("rules".to_owned(), json!(rules));
    }
}
