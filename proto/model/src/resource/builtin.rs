//! The built-in resource types, one constant each. Facts of the Kubernetes API; order is that of discovery.

use std::borrow::Cow;

use super::{
    ALL_VERBS, CREATE_ONLY, GET_ONLY, GroupResource, NO_COLLECTION, READ_WRITE, ResourceType, Scope,
    Subresource, Text, UPDATE_ONLY,
};

const fn text(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

const fn part(name: &'static str, verbs: &'static [super::Verb]) -> Subresource {
    Subresource { name: text(name), body: None, verbs }
}

const fn part_as(
    name: &'static str,
    verbs: &'static [super::Verb],
    group: &'static str,
    version: &'static str,
    kind: &'static str,
) -> Subresource {
    Subresource { name: text(name), body: Some((text(group), text(version), text(kind))), verbs }
}

const STATUS: Subresource = part("status", READ_WRITE);
const SCALE: Subresource = part_as("scale", READ_WRITE, "autoscaling", "v1", "Scale");

/// Where a type differs from the plain one. Holds references alone, so that constants can be built from it.
#[derive(Clone, Copy)]
struct Traits {
    short_names: &'static [Text],
    categories: &'static [Text],
    scope: Scope,
    verbs: &'static [super::Verb],
    subresources: &'static [Subresource],
    counts_generation: bool,
}

/// Namespaced, all verbs, nothing else.
const PLAIN: Traits = Traits {
    short_names: &[],
    categories: &[],
    scope: Scope::Namespaced,
    verbs: ALL_VERBS,
    subresources: &[],
    counts_generation: false,
};

const fn describe(
    (group, version, plural): (&'static str, &'static str, &'static str),
    singular: &'static str,
    kind: &'static str,
    traits: Traits,
) -> ResourceType {
    ResourceType {
        id: GroupResource::constant(group, plural),
        version: text(version),
        kind: text(kind),
        singular: text(singular),
        short_names: Cow::Borrowed(traits.short_names),
        categories: Cow::Borrowed(traits.categories),
        scope: traits.scope,
        verbs: traits.verbs,
        subresources: Cow::Borrowed(traits.subresources),
        counts_generation: traits.counts_generation,
    }
}

/// `v1` Namespace.
pub static NAMESPACE: ResourceType = describe(
    ("", "v1", "namespaces"),
    "namespace",
    "Namespace",
    Traits {
        short_names: const { &[text("ns")] },
        scope: Scope::Cluster,
        verbs: NO_COLLECTION,
        subresources: const { &[part("finalize", UPDATE_ONLY), STATUS] },
        ..PLAIN
    },
);

/// `v1` Node.
pub static NODE: ResourceType = describe(
    ("", "v1", "nodes"),
    "node",
    "Node",
    Traits {
        short_names: const { &[text("no")] },
        scope: Scope::Cluster,
        subresources: const { &[STATUS] },
        ..PLAIN
    },
);

/// `v1` Pod.
pub static POD: ResourceType = describe(
    ("", "v1", "pods"),
    "pod",
    "Pod",
    Traits {
        short_names: const { &[text("po")] },
        categories: const { &[text("all")] },
        subresources: const {
            &[part_as("binding", CREATE_ONLY, "", "v1", "Binding"), part("log", GET_ONLY), STATUS]
        },
        ..PLAIN
    },
);

/// `v1` ConfigMap.
pub static CONFIG_MAP: ResourceType = describe(
    ("", "v1", "configmaps"),
    "configmap",
    "ConfigMap",
    Traits { short_names: const { &[text("cm")] }, ..PLAIN },
);

/// `v1` Secret.
pub static SECRET: ResourceType = describe(("", "v1", "secrets"), "secret", "Secret", PLAIN);

/// `v1` ServiceAccount.
pub static SERVICE_ACCOUNT: ResourceType = describe(
    ("", "v1", "serviceaccounts"),
    "serviceaccount",
    "ServiceAccount",
    Traits { short_names: const { &[text("sa")] }, ..PLAIN },
);

/// `v1` Event. `events.k8s.io/v1` is another form of the same objects.
pub static EVENT: ResourceType = describe(
    ("", "v1", "events"),
    "event",
    "Event",
    Traits { short_names: const { &[text("ev")] }, ..PLAIN },
);

/// `apps/v1` Deployment.
pub static DEPLOYMENT: ResourceType = describe(
    ("apps", "v1", "deployments"),
    "deployment",
    "Deployment",
    Traits {
        short_names: const { &[text("deploy")] },
        categories: const { &[text("all")] },
        subresources: const { &[SCALE, STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `apps/v1` ReplicaSet.
pub static REPLICA_SET: ResourceType = describe(
    ("apps", "v1", "replicasets"),
    "replicaset",
    "ReplicaSet",
    Traits {
        short_names: const { &[text("rs")] },
        categories: const { &[text("all")] },
        subresources: const { &[SCALE, STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `coordination.k8s.io/v1` Lease.
pub static LEASE: ResourceType = describe(("coordination.k8s.io", "v1", "leases"), "lease", "Lease", PLAIN);

/// All built-in types, in the order of discovery.
pub static ALL: &[&ResourceType] = &[
    &CONFIG_MAP,
    &EVENT,
    &NAMESPACE,
    &NODE,
    &POD,
    &SECRET,
    &SERVICE_ACCOUNT,
    &DEPLOYMENT,
    &REPLICA_SET,
    &LEASE,
];
