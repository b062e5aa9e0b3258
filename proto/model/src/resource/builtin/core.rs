//! The core group, and `events.k8s.io`, which is another form of a part of it.

use super::super::{CREATE_ONLY, GET_ONLY, NO_COLLECTION, READ_WRITE, ResourceType, UPDATE_ONLY};
use super::describe::{
    ALL_CATEGORY, BINDING, CLUSTER, EVICTION, PLAIN, SCALE, STATUS, Traits, describe, part, part_as, text,
};

/// `v1` ConfigMap.
pub static CONFIG_MAP: ResourceType = describe(
    ("", "v1", "configmaps"),
    "configmap",
    "ConfigMap",
    Traits { short_names: const { &[text("cm")] }, ..PLAIN },
);

/// `v1` Endpoints.
pub static ENDPOINTS: ResourceType = describe(
    ("", "v1", "endpoints"),
    "endpoints",
    "Endpoints",
    Traits { short_names: const { &[text("ep")] }, ..PLAIN },
);

/// `v1` Event. `events.k8s.io/v1` is another form of the same objects.
pub static EVENT: ResourceType = describe(
    ("", "v1", "events"),
    "event",
    "Event",
    Traits { short_names: const { &[text("ev")] }, ..PLAIN },
);

/// `v1` LimitRange.
pub static LIMIT_RANGE: ResourceType = describe(
    ("", "v1", "limitranges"),
    "limitrange",
    "LimitRange",
    Traits { short_names: const { &[text("limits")] }, ..PLAIN },
);

/// `v1` Namespace.
pub static NAMESPACE: ResourceType = describe(
    ("", "v1", "namespaces"),
    "namespace",
    "Namespace",
    Traits {
        short_names: const { &[text("ns")] },
        verbs: NO_COLLECTION,
        subresources: const { &[part("finalize", UPDATE_ONLY), STATUS] },
        ..CLUSTER
    },
);

/// `v1` Node.
pub static NODE: ResourceType = describe(
    ("", "v1", "nodes"),
    "node",
    "Node",
    Traits { short_names: const { &[text("no")] }, subresources: const { &[STATUS] }, ..CLUSTER },
);

/// `v1` PersistentVolumeClaim.
pub static PERSISTENT_VOLUME_CLAIM: ResourceType = describe(
    ("", "v1", "persistentvolumeclaims"),
    "persistentvolumeclaim",
    "PersistentVolumeClaim",
    Traits { short_names: const { &[text("pvc")] }, subresources: const { &[STATUS] }, ..PLAIN },
);

/// `v1` PersistentVolume.
pub static PERSISTENT_VOLUME: ResourceType = describe(
    ("", "v1", "persistentvolumes"),
    "persistentvolume",
    "PersistentVolume",
    Traits { short_names: const { &[text("pv")] }, subresources: const { &[STATUS] }, ..CLUSTER },
);

/// `v1` Pod.
pub static POD: ResourceType = describe(
    ("", "v1", "pods"),
    "pod",
    "Pod",
    Traits {
        short_names: const { &[text("po")] },
        categories: ALL_CATEGORY,
        subresources: const {
            &[BINDING, part("ephemeralcontainers", READ_WRITE), EVICTION, part("log", GET_ONLY), STATUS]
        },
        ..PLAIN
    },
);

/// `v1` PodTemplate.
pub static POD_TEMPLATE: ResourceType = describe(
    ("", "v1", "podtemplates"),
    "podtemplate",
    "PodTemplate",
    Traits { counts_generation: true, ..PLAIN },
);

/// `v1` ReplicationController.
pub static REPLICATION_CONTROLLER: ResourceType = describe(
    ("", "v1", "replicationcontrollers"),
    "replicationcontroller",
    "ReplicationController",
    Traits {
        short_names: const { &[text("rc")] },
        categories: ALL_CATEGORY,
        subresources: const { &[SCALE, STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `v1` ResourceQuota.
pub static RESOURCE_QUOTA: ResourceType = describe(
    ("", "v1", "resourcequotas"),
    "resourcequota",
    "ResourceQuota",
    Traits { short_names: const { &[text("quota")] }, subresources: const { &[STATUS] }, ..PLAIN },
);

/// `v1` Secret.
pub static SECRET: ResourceType = describe(("", "v1", "secrets"), "secret", "Secret", PLAIN);

/// `v1` ServiceAccount.
pub static SERVICE_ACCOUNT: ResourceType = describe(
    ("", "v1", "serviceaccounts"),
    "serviceaccount",
    "ServiceAccount",
    Traits {
        short_names: const { &[text("sa")] },
        subresources: const { &[part_as("token", CREATE_ONLY, ("authentication.k8s.io", "v1", "TokenRequest"))] },
        ..PLAIN
    },
);

/// `v1` Service.
pub static SERVICE: ResourceType = describe(
    ("", "v1", "services"),
    "service",
    "Service",
    Traits {
        short_names: const { &[text("svc")] },
        categories: ALL_CATEGORY,
        subresources: const { &[STATUS] },
        ..PLAIN
    },
);

/// `events.k8s.io/v1` Event: another form of the events of the core group.
pub static EVENTS_EVENT: ResourceType = describe(
    ("events.k8s.io", "v1", "events"),
    "event",
    "Event",
    Traits { short_names: const { &[text("ev")] }, ..PLAIN },
);
