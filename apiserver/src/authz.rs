//! What the platform's own users may do, whatever roles say: one readable table of rules by group and name. Pure; knows
//! no requests beyond their attributes. What everybody else may do is in roles (`rbac`).

use serde_json::Value;
use strata_model::resource::{GroupResource, builtin};
use strata_model::status::{About, Reason, Status};

use crate::authn::User;
use crate::refusal::Refusal;
use crate::value::text;

/// Group that may do everything.
pub const MASTERS: &str = "system:masters";
/// Group of the node agents; the common name is `system:node:<name>`.
pub const NODES: &str = "system:nodes";
/// Group of the controllers; the common name is `system:controller:<name>`.
pub const CONTROLLERS: &str = "system:controllers";

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// `get`, `list`, ...
    pub verb: &'a str,
    /// API group; empty for core.
    pub group: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Subresource, or empty.
    pub subresource: &'a str,
    /// Namespace, or empty for all or none.
    pub namespace: &'a str,
    /// Name, or empty.
    pub name: &'a str,
}

/// Whom a rule is for.
enum Who {
    Group(&'static str),
    User(&'static str),
}

/// One rule: who may use which verbs on which `resource[/subresource]`, in one namespace or (empty) everywhere.
/// `*` stands for all verbs, or for all resources including their subresources.
struct Rule {
    who: Who,
    verbs: &'static [&'static str],
    resources: &'static [&'static str],
    namespace: &'static str,
    which: Which,
}

/// Which objects a rule is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// All, alone or as a list.
    All,
    /// All, one at a time: the request must name the one.
    Named,
    /// Those named like the node that asks, or like one of the simulated nodes that its agent holds.
    Own,
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
const CHANGE: &[&str] = &["get", "list", "watch", "update", "patch"];
const STATUS: &[&str] = &["get", "update", "patch"];

const fn group(
    name: &'static str,
    verbs: &'static [&'static str],
    resources: &'static [&'static str],
) -> Rule {
    Rule { who: Who::Group(name), verbs, resources, namespace: "", which: Which::All }
}

const fn user(
    name: &'static str,
    verbs: &'static [&'static str],
    resources: &'static [&'static str],
) -> Rule {
    Rule { who: Who::User(name), verbs, resources, namespace: "", which: Which::All }
}

const fn own(
    verbs: &'static [&'static str],
    resources: &'static [&'static str],
    namespace: &'static str,
) -> Rule {
    Rule { who: Who::Group(NODES), verbs, resources, namespace, which: Which::Own }
}

const fn named(verbs: &'static [&'static str], resources: &'static [&'static str]) -> Rule {
    Rule { who: Who::Group(NODES), verbs, resources, namespace: "", which: Which::Named }
}

/// What the names of node identities begin with.
const NODE_PREFIX: &str = "system:node:";

const DEPLOYMENT: &str = "system:controller:deployment";
const REPLICASET: &str = "system:controller:replicaset";
const SCHEDULER: &str = "system:controller:scheduler";
const GARBAGE: &str = "system:controller:garbage";
const NAMESPACE: &str = "system:controller:namespace";
const NODE_LIFECYCLE: &str = "system:controller:nodelifecycle";
const STATEFULSET: &str = "system:controller:statefulset";
const DAEMONSET: &str = "system:controller:daemonset";
const REPLICATION: &str = "system:controller:replicationcontroller";
const JOB: &str = "system:controller:job";
const CRON_JOB: &str = "system:controller:cronjob";
const DISRUPTION: &str = "system:controller:disruption";
const RESOURCE_QUOTA: &str = "system:controller:resourcequota";
const ENDPOINT_SLICE: &str = "system:controller:endpointslice";
const ENDPOINTS: &str = "system:controller:endpoints";
const MIRRORING: &str = "system:controller:endpointslicemirroring";
const SERVICE_ACCOUNT: &str = "system:controller:serviceaccount";
const APPLICATION: &str = "system:controller:application";
const CERTIFICATE_SIGNING: &str = "system:controller:certificatesigning";
const ROOT_CA: &str = "system:controller:root-ca-certificate-publisher";

static RULES: &[Rule] = &[
    group(MASTERS, &["*"], &["*"]),
    // A node agent holds pods to its machine and reports on them, on itself and by events.
    group(NODES, READ, &["pods", "nodes"]),
    group(NODES, &["get"], &["namespaces"]),
    // What pods name is read by name, never listed, and only if a pod of the node names it (`pipeline::node_reads`).
    named(READ, &["configmaps", "secrets"]),
    named(&["get"], &["persistentvolumeclaims", "serviceaccounts"]),
    named(&["create"], &["serviceaccounts/token"]),
    group(NODES, &["delete"], &["pods"]),
    group(NODES, STATUS, &["pods/status"]),
    group(NODES, &["create"], &["nodes"]),
    own(&["update", "patch"], &["nodes"], ""),
    own(STATUS, &["nodes/status"], ""),
    group(NODES, &["create", "get", "list", "watch"], &["certificatesigningrequests"]),
    group(NODES, &["create", "patch", "update"], &["events"]),
    Rule {
        who: Who::Group(NODES),
        verbs: &["get", "list", "watch", "create"],
        resources: &["leases"],
        namespace: "kube-node-lease",
        which: Which::All,
    },
    own(&["update", "patch", "delete"], &["leases"], "kube-node-lease"),
    // Every controller reports by events, and elects its leader in kube-system.
    group(CONTROLLERS, &["create", "patch", "update"], &["events"]),
    Rule {
        who: Who::Group(CONTROLLERS),
        verbs: WRITE,
        resources: &["leases"],
        namespace: "kube-system",
        which: Which::All,
    },
    user(DEPLOYMENT, CHANGE, &["deployments"]),
    user(DEPLOYMENT, STATUS, &["deployments/status"]),
    user(DEPLOYMENT, WRITE, &["replicasets"]),
    user(DEPLOYMENT, READ, &["pods"]),
    user(REPLICASET, CHANGE, &["replicasets"]),
    user(REPLICASET, STATUS, &["replicasets/status"]),
    user(REPLICASET, WRITE, &["pods"]),
    user(SCHEDULER, READ, &["pods", "nodes", "namespaces", "poddisruptionbudgets"]),
    user(SCHEDULER, &["delete"], &["pods"]),
    user(SCHEDULER, &["create"], &["pods/binding"]),
    user(SCHEDULER, STATUS, &["pods/status"]),
    user(GARBAGE, &["get", "list", "watch", "update", "patch", "delete"], &["*"]),
    user(NAMESPACE, &["get", "list", "watch", "update", "patch", "delete", "deletecollection"], &["*"]),
    user(NAMESPACE, &["create"], &["serviceaccounts", "configmaps"]),
    user(NODE_LIFECYCLE, CHANGE, &["nodes"]),
    user(NODE_LIFECYCLE, STATUS, &["nodes/status", "pods/status"]),
    user(NODE_LIFECYCLE, READ, &["pods", "leases"]),
    user(NODE_LIFECYCLE, &["delete"], &["pods"]),
    user(STATEFULSET, CHANGE, &["statefulsets"]),
    user(STATEFULSET, STATUS, &["statefulsets/status"]),
    user(STATEFULSET, WRITE, &["pods", "controllerrevisions", "persistentvolumeclaims"]),
    user(DAEMONSET, CHANGE, &["daemonsets"]),
    user(DAEMONSET, STATUS, &["daemonsets/status"]),
    user(DAEMONSET, WRITE, &["pods", "controllerrevisions"]),
    user(DAEMONSET, READ, &["nodes"]),
    user(REPLICATION, CHANGE, &["replicationcontrollers"]),
    user(REPLICATION, STATUS, &["replicationcontrollers/status"]),
    user(REPLICATION, WRITE, &["pods"]),
    user(JOB, WRITE, &["jobs"]),
    user(JOB, STATUS, &["jobs/status"]),
    user(JOB, WRITE, &["pods"]),
    user(CRON_JOB, CHANGE, &["cronjobs"]),
    user(CRON_JOB, STATUS, &["cronjobs/status"]),
    user(CRON_JOB, WRITE, &["jobs"]),
    user(DISRUPTION, READ, &["poddisruptionbudgets", "pods", "replicasets", "deployments", "statefulsets"]),
    user(DISRUPTION, READ, &["replicationcontrollers"]),
    user(DISRUPTION, STATUS, &["poddisruptionbudgets/status"]),
    user(RESOURCE_QUOTA, READ, &["*"]),
    user(RESOURCE_QUOTA, STATUS, &["resourcequotas/status"]),
    user(ENDPOINT_SLICE, READ, &["services", "pods"]),
    user(ENDPOINT_SLICE, WRITE, &["endpointslices"]),
    user(ENDPOINTS, READ, &["services", "pods"]),
    user(ENDPOINTS, WRITE, &["endpoints"]),
    user(MIRRORING, READ, &["services", "endpoints"]),
    user(MIRRORING, WRITE, &["endpointslices"]),
    user(SERVICE_ACCOUNT, READ, &["namespaces"]),
    user(SERVICE_ACCOUNT, WRITE, &["serviceaccounts"]),
    // What a repository may hold is what its project allows; the server cannot know more narrowly.
    user(APPLICATION, &["*"], &["*"]),
    user(CERTIFICATE_SIGNING, &["get", "list", "watch", "delete"], &["certificatesigningrequests"]),
    user(CERTIFICATE_SIGNING, STATUS, &["certificatesigningrequests/status"]),
    user(CERTIFICATE_SIGNING, &["sign"], &["signers"]),
    user(ROOT_CA, READ, &["namespaces"]),
    user(ROOT_CA, WRITE, &["configmaps"]),
];

fn concerns(rule: &Rule, who: &User) -> bool {
    match rule.who {
        Who::Group(group) => who.is_in(group),
        // A controller's name counts only together with the group that its certificate gives.
        Who::User(name) => who.name == name && who.is_in(CONTROLLERS),
    }
}

fn covers(rule: &Rule, asked: &Attributes<'_>) -> bool {
    let verb = rule.verbs.iter().any(|v| *v == "*" || *v == asked.verb);
    let place = rule.namespace.is_empty() || rule.namespace == asked.namespace;
    let resource = rule.resources.iter().any(|r| match r.split_once('/') {
        _ if *r == "*" => true,
        Some((resource, sub)) => resource == asked.resource && sub == asked.subresource,
        None => *r == asked.resource && asked.subresource.is_empty(),
    });
    verb && place && resource && (rule.resources.contains(&"*") || is_built_in(asked))
}

/// Whether a plural is asked for in the group that has it: a rule about `pods` says nothing of a custom type of that
/// name. Plurals that no built-in type has are those of reviews.
fn is_built_in(asked: &Attributes<'_>) -> bool {
    let mut same = builtin::ALL.iter().filter(|type_| type_.id.resource == asked.resource).peekable();
    same.peek().is_none() || same.any(|type_| type_.id.group == asked.group)
}

/// Whether a user may touch an object, as far as that hangs on the object itself: a node changes the pods that are bound
/// to it, and the node and lease of its name. What it may do at all is decided before.
pub fn owns(who: &User, type_: &GroupResource, name: &str, object: &Value) -> bool {
    if !is_node(who) {
        return true;
    }
    if *type_ == builtin::POD.id {
        return is_own(who, text(object, &["spec", "nodeName"]));
    }
    let named = [&builtin::NODE.id, &builtin::LEASE.id];
    !named.contains(&type_) || is_own(who, name)
}

/// The refusal of an object that is another node's.
pub fn not_own(who: &User, about: About<'_>, verb: &str) -> Refusal {
    let node = node_name(who);
    let what = match about.resource == builtin::POD.id.resource {
        true => "pods with spec.nodeName set to itself".to_owned(),
        false => format!("{} of its own name", about.resource),
    };
    Box::new(Status::forbidden(about, &format!("node \"{node}\" can only {verb} {what}")))
}

/// Whether the user may do it.
pub fn allows(who: &User, asked: &Attributes<'_>) -> bool {
    RULES.iter().any(|rule| concerns(rule, who) && covers(rule, asked) && means(rule, who, asked.name))
}

fn means(rule: &Rule, who: &User, name: &str) -> bool {
    match rule.which {
        Which::All => true,
        Which::Named => !name.is_empty(),
        Which::Own => is_own(who, name),
    }
}

/// Whether a user is a node, and nothing more.
pub fn is_node(who: &User) -> bool {
    who.is_in(NODES) && !who.is_in(MASTERS)
}

/// The name of the node that a user is.
pub fn node_name(who: &User) -> &str {
    who.name.strip_prefix(NODE_PREFIX).unwrap_or(&who.name)
}

/// Whether a node asks about itself: its name, or that name with a number for the nodes that one agent simulates.
pub fn is_own(who: &User, name: &str) -> bool {
    let rest = who.name.strip_prefix(NODE_PREFIX).and_then(|node| name.strip_prefix(node));
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('-').unwrap_or("");
        rest.is_empty() || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Verbs and `resource[/subresource]`s.
pub type Granted = (&'static [&'static str], &'static [&'static str]);

/// What the user may do in a namespace.
pub fn granted(who: &User, namespace: &str) -> Vec<Granted> {
    let here = |rule: &&Rule| rule.namespace.is_empty() || rule.namespace == namespace;
    let own = RULES.iter().filter(|rule| concerns(rule, who)).filter(here);
    own.map(|rule| (rule.verbs, rule.resources)).collect()
}

/// The refusal of something that is not allowed.
pub fn denied(who: &User, asked: &Attributes<'_>) -> Refusal {
    let resource = match asked.subresource {
        "" => asked.resource.to_owned(),
        sub => format!("{}/{sub}", asked.resource),
    };
    let place = match asked.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    let why = format!(
        "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\" {place}",
        who.name, asked.verb, asked.group
    );
    let about = About { group: asked.group, resource: asked.resource, kind: "", name: asked.name };
    Box::new(Status::forbidden(about, &why))
}

/// The refusal of a path that is not allowed.
pub fn denied_path(who: &User, path: &str, verb: &str) -> Refusal {
    let message = format!("forbidden: User \"{}\" cannot {verb} path \"{path}\"", who.name);
    let details = strata_model::status::Details::default();
    Box::new(Status::failure(Reason::Forbidden, message).with_details(details))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask<'a>(verb: &'a str, resource: &'a str, subresource: &'a str, namespace: &'a str) -> Attributes<'a> {
        let apps = ["deployments", "replicasets"].contains(&resource);
        let group = match resource {
            "leases" => "coordination.k8s.io",
            _ if apps => "apps",
            _ => "",
        };
        Attributes { verb, group, resource, subresource, namespace, name: "" }
    }

    #[test]
    fn everyone_may_do_what_their_layer_needs_and_no_more() {
        let of = |name: &str, group: &str| User::known(name, "", vec![group.to_owned()]);
        let scheduler = of(SCHEDULER, CONTROLLERS);
        assert!(allows(&scheduler, &ask("create", "pods", "binding", "a")));
        assert!(!allows(&scheduler, &ask("create", "pods", "", "a")));
        assert!(allows(&scheduler, &ask("update", "leases", "", "kube-system")));
        assert!(!allows(&scheduler, &ask("update", "leases", "", "default")));
        assert!(!allows(&of(SCHEDULER, "people"), &ask("create", "pods", "binding", "a")));
        let node = of("system:node:n1", NODES);
        assert!(allows(&node, &ask("patch", "pods", "status", "a")));
        assert!(!allows(&node, &ask("create", "deployments", "", "a")));
        let secret = |verb, name| allows(&node, &Attributes { name, ..ask(verb, "secrets", "", "a") });
        assert!(secret("get", "s") && secret("watch", "s") && !secret("list", "") && !secret("update", "s"));
        for (name, allowed) in
            [("n1", true), ("n1-12", true), ("n1-", false), ("n1-a", false), ("n12", false)]
        {
            let patch = |resource, subresource, namespace| Attributes {
                name,
                ..ask("patch", resource, subresource, namespace)
            };
            assert_eq!(allows(&node, &patch("nodes", "", "")), allowed, "{name}");
            assert_eq!(allows(&node, &patch("nodes", "status", "")), allowed, "{name}");
            assert_eq!(allows(&node, &patch("leases", "", "kube-node-lease")), allowed, "{name}");
        }
        assert!(allows(&of("root", MASTERS), &ask("delete", "anything", "at/all", "")));
        assert!(!allows(&of("eve", "people"), &ask("list", "pods", "", "a")));
    }

    #[test]
    fn a_rule_about_a_built_in_type_says_nothing_of_a_custom_one_of_its_plural() {
        let node = User::known("system:node:n1", "", vec![NODES.to_owned()]);
        assert!(allows(&node, &ask("list", "pods", "", "a")));
        assert!(!allows(&node, &Attributes { group: "example.com", ..ask("list", "pods", "", "a") }));
    }

    #[test]
    fn a_node_touches_its_own_pods_node_and_lease() {
        let node = User::known("system:node:n1", "", vec![NODES.to_owned()]);
        let on = |name: &str| serde_json::json!({"spec": {"nodeName": name}});
        assert!(
            owns(&node, &builtin::POD.id, "p", &on("n1")) && owns(&node, &builtin::POD.id, "p", &on("n1-3"))
        );
        assert!(
            !owns(&node, &builtin::POD.id, "n1", &on("n2")) && !owns(&node, &builtin::POD.id, "p", &on(""))
        );
        assert!(
            owns(&node, &builtin::NODE.id, "n1", &Value::Null)
                && !owns(&node, &builtin::NODE.id, "n2", &Value::Null)
        );
        assert!(!owns(&node, &builtin::LEASE.id, "n2", &Value::Null));
        let boss = User::known("root", "", vec![MASTERS.to_owned(), NODES.to_owned()]);
        assert!(owns(&boss, &builtin::POD.id, "p", &on("n2")));
    }

    #[test]
    fn denials_read_as_clients_expect() {
        let eve = User::known("eve", "", vec![]);
        let status = denied(&eve, &ask("list", "configmaps", "", "q8"));
        assert_eq!(
            status.message,
            "configmaps is forbidden: User \"eve\" cannot list resource \"configmaps\" in API group \"\" \
             in the namespace \"q8\""
        );
    }
}
