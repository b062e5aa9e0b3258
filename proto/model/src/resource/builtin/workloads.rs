//! What runs pods: `apps`, `batch`, `autoscaling`, `policy` and `scheduling.k8s.io`.

use super::super::ResourceType;
use super::describe::{ALL_CATEGORY, CLUSTER, PLAIN, SCALE, STATUS, Traits, describe, text};

/// `apps/v1` ControllerRevision.
pub static CONTROLLER_REVISION: ResourceType =
    describe(("apps", "v1", "controllerrevisions"), "controllerrevision", "ControllerRevision", PLAIN);

/// `apps/v1` DaemonSet.
pub static DAEMON_SET: ResourceType = describe(
    ("apps", "v1", "daemonsets"),
    "daemonset",
    "DaemonSet",
    Traits {
        short_names: const { &[text("ds")] },
        categories: ALL_CATEGORY,
        subresources: const { &[STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `apps/v1` Deployment.
pub static DEPLOYMENT: ResourceType = describe(
    ("apps", "v1", "deployments"),
    "deployment",
    "Deployment",
    Traits {
        short_names: const { &[text("deploy")] },
        categories: ALL_CATEGORY,
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
        categories: ALL_CATEGORY,
        subresources: const { &[SCALE, STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `apps/v1` StatefulSet.
pub static STATEFUL_SET: ResourceType = describe(
    ("apps", "v1", "statefulsets"),
    "statefulset",
    "StatefulSet",
    Traits {
        short_names: const { &[text("sts")] },
        categories: ALL_CATEGORY,
        subresources: const { &[SCALE, STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `autoscaling/v2` HorizontalPodAutoscaler.
pub static HORIZONTAL_POD_AUTOSCALER: ResourceType = describe(
    ("autoscaling", "v2", "horizontalpodautoscalers"),
    "horizontalpodautoscaler",
    "HorizontalPodAutoscaler",
    Traits {
        short_names: const { &[text("hpa")] },
        categories: ALL_CATEGORY,
        subresources: const { &[STATUS] },
        ..PLAIN
    },
);

/// `autoscaling/v1` HorizontalPodAutoscaler: another form of the same objects.
pub static HORIZONTAL_POD_AUTOSCALER_V1: ResourceType = describe(
    ("autoscaling", "v1", "horizontalpodautoscalers"),
    "horizontalpodautoscaler",
    "HorizontalPodAutoscaler",
    Traits {
        short_names: const { &[text("hpa")] },
        categories: ALL_CATEGORY,
        subresources: const { &[STATUS] },
        ..PLAIN
    },
);

/// `batch/v1` CronJob.
pub static CRON_JOB: ResourceType = describe(
    ("batch", "v1", "cronjobs"),
    "cronjob",
    "CronJob",
    Traits {
        short_names: const { &[text("cj")] },
        categories: ALL_CATEGORY,
        subresources: const { &[STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `batch/v1` Job.
pub static JOB: ResourceType = describe(
    ("batch", "v1", "jobs"),
    "job",
    "Job",
    Traits { categories: ALL_CATEGORY, subresources: const { &[STATUS] }, counts_generation: true, ..PLAIN },
);

/// `policy/v1` PodDisruptionBudget.
pub static POD_DISRUPTION_BUDGET: ResourceType = describe(
    ("policy", "v1", "poddisruptionbudgets"),
    "poddisruptionbudget",
    "PodDisruptionBudget",
    Traits {
        short_names: const { &[text("pdb")] },
        subresources: const { &[STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `scheduling.k8s.io/v1` PriorityClass.
pub static PRIORITY_CLASS: ResourceType = describe(
    ("scheduling.k8s.io", "v1", "priorityclasses"),
    "priorityclass",
    "PriorityClass",
    Traits { short_names: const { &[text("pc")] }, ..CLUSTER },
);
