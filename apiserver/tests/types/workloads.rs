//! What runs pods: `apps`, `batch`, `policy`, `scheduling.k8s.io`, and their older forms.

use serde_json::{Value, json};

use crate::case::{Case, run};

fn template() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}})
}

fn job_template() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}})
}

fn controlled(more: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template()});
    strata_model::merge::apply(&mut spec, &more);
    json!({"metadata": {"name": "a"}, "spec": spec})
}

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

fn stateful() -> Case {
    Case {
        path: "/apis/apps/v1/namespaces/default/statefulsets",
        minimal: controlled(
            json!({"serviceName": "s", "volumeClaimTemplates": [{"metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}],
            "template": {"spec": {"containers": [{"name": "c", "image": "i:1",
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}}}),
        ),
        filled: json!({"metadata": {"generation": 1}, "spec": {"replicas": 1, "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"},
                "spec": {"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}}}]},
            "status": {"availableReplicas": 0, "replicas": 0}}),
        refused: vec![
            (json!({"metadata": {"name": "a.b"}}), "metadata.name: Invalid value: \"a.b\""),
            (spec(json!({"selector": null})), "spec.selector: Required value"),
            (spec(json!({"podManagementPolicy": "Odd"})), "must be 'OrderedReady' or 'Parallel'"),
            (
                spec(json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}})),
                "only allowed for updateStrategy",
            ),
            (
                spec(json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]})),
                "at least 1 access mode is required",
            ),
        ],
        fixed: vec![
            (spec(json!({"serviceName": "t"})), "updates to statefulset spec for fields other than"),
            (
                spec(json!({"podManagementPolicy": "Parallel"})),
                "updates to statefulset spec for fields other than",
            ),
        ],
        status: Some(json!({"readyReplicas": 1})),
        cells: json!(["a", "1/1", "*", "c", "i:1"]),
    }
}

fn daemon() -> Case {
    Case {
        path: "/apis/apps/v1/namespaces/default/daemonsets",
        minimal: controlled(json!({})),
        filled: json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "1"}},
            "spec": {"revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
            "status": {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0}}),
        refused: vec![
            (
                spec(json!({"template": {"metadata": {"labels": {"a": "c"}}}})),
                "`selector` does not match template `labels`",
            ),
            (
                spec(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}})),
                "cannot be 0 when maxSurge is 0",
            ),
            (
                spec(json!({"updateStrategy": {"rollingUpdate": {"maxSurge": "10%"}}})),
                "may not be set when maxUnavailable is non-zero",
            ),
            (
                spec(json!({"updateStrategy": {"type": "Odd"}})),
                "supported values: \"OnDelete\", \"RollingUpdate\"",
            ),
        ],
        fixed: vec![(spec(json!({"selector": {"matchLabels": {"a": "c"}}})), "field is immutable")],
        status: Some(json!({"desiredNumberScheduled": 3, "numberReady": 2})),
        cells: json!(["a", 3, 0, 2, 0, 0, "<none>", "*", "c", "i:1", "a=b"]),
    }
}

fn controller() -> Case {
    Case {
        path: "/api/v1/namespaces/default/replicationcontrollers",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"template": template()}}),
        filled: json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1, "selector": {"a": "b"}}, "status": {"replicas": 0}}),
        refused: vec![
            (spec(json!({"selector": {"x": "y"}})), "`selector` does not match template `labels`"),
            (spec(json!({"template": null})), "spec.template: Required value"),
            (spec(json!({"replicas": -1})), "spec.replicas: Invalid value: -1"),
        ],
        fixed: vec![],
        status: Some(json!({"replicas": 1})),
        cells: json!(["a", 1, 1, 0, "*", "c", "i:1", "a=b"]),
    }
}

fn job() -> Case {
    Case {
        path: "/apis/batch/v1/namespaces/default/jobs",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"template": job_template()}}),
        filled: json!({"metadata": {"labels": {"job-name": "a", "batch.kubernetes.io/job-name": "a"}}, "spec": {"parallelism": 1,
            "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false, "manualSelector": false,
            "podReplacementPolicy": "TerminatingOrFailed"}, "status": {}}),
        refused: vec![
            (
                spec(json!({"template": {"spec": {"restartPolicy": "Always"}}})),
                "valid values: \"OnFailure\", \"Never\"",
            ),
            (
                spec(json!({"template": {"spec": {"restartPolicy": "Odd"}}})),
                "supported values: \"OnFailure\", \"Never\"",
            ),
            (spec(json!({"completionMode": "Indexed", "parallelism": 2})), "when completion mode is Indexed"),
            (spec(json!({"backoffLimit": -1})), "spec.backoffLimit: Invalid value: -1"),
        ],
        fixed: vec![
            (spec(json!({"completions": 3})), "spec.completions: Invalid value: 3: field is immutable"),
            (
                spec(json!({"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}})),
                "spec.template: Invalid value",
            ),
        ],
        status: Some(json!({"succeeded": 1})),
        cells: json!(["a", "Running", "1/1", "", "*", "c", "i:1", "*"]),
    }
}

fn cron() -> Case {
    Case {
        path: "/apis/batch/v1/namespaces/default/cronjobs",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": job_template()}}}}),
        filled: json!({"spec": {"concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}}),
        refused: vec![
            (spec(json!({"schedule": "often"})), "expected exactly 5 fields, found 1: [often]"),
            (spec(json!({"schedule": ""})), "spec.schedule: Required value"),
            (spec(json!({"timeZone": "Mars/Base"})), "unknown time zone Mars/Base"),
            (
                spec(json!({"concurrencyPolicy": "Odd"})),
                "supported values: \"Allow\", \"Forbid\", \"Replace\"",
            ),
            (json!({"metadata": {"name": "a".repeat(53)}}), "must be no more than 52 characters"),
        ],
        fixed: vec![],
        status: Some(json!({"active": [{"name": "a-1"}]})),
        cells: json!(["a", "*/5 * * * *", "<none>", "False", 1, "<none>", "*", "c", "i:1", "<none>"]),
    }
}

fn budget() -> Case {
    Case {
        path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}}),
        filled: json!({"metadata": {"generation": 1}, "status": {"disruptionsAllowed": 0, "expectedPods": 0}}),
        refused: vec![
            (spec(json!({"maxUnavailable": 1})), "minAvailable and maxUnavailable cannot be both set"),
            (spec(json!({"minAvailable": "x"})), "a valid percent string"),
            (
                spec(json!({"unhealthyPodEvictionPolicy": "Odd"})),
                "supported values: \"AlwaysAllow\", \"IfHealthyBudget\"",
            ),
        ],
        fixed: vec![],
        status: Some(
            json!({"disruptionsAllowed": 2, "currentHealthy": 4, "desiredHealthy": 2, "expectedPods": 4}),
        ),
        cells: json!(["a", "50%", "N/A", 2, "*"]),
    }
}

fn class() -> Case {
    Case {
        path: "/apis/scheduling.k8s.io/v1/priorityclasses",
        minimal: json!({"metadata": {"name": "a"}, "value": 100}),
        filled: json!({"preemptionPolicy": "PreemptLowerPriority", "metadata": {"generation": 1}}),
        refused: vec![
            (
                json!({"value": 1_000_000_001}),
                "maximum allowed value of a user defined priority is 1000000000",
            ),
            (json!({"metadata": {"name": "system-x"}}), "reserved for system use only"),
            (json!({"preemptionPolicy": "Odd"}), "supported values: \"Never\", \"PreemptLowerPriority\""),
        ],
        fixed: vec![(json!({"value": 5}), "value: Forbidden: may not be changed in an update.")],
        status: None,
        cells: json!(["a", 100, false, "*", "PreemptLowerPriority"]),
    }
}

fn quota() -> Case {
    Case {
        path: "/api/v1/namespaces/default/resourcequotas",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"hard": {"pods": "5", "limits.cpu": "2000m"}}}),
        filled: json!({"spec": {"hard": {"limits.cpu": "2"}}}),
        refused: vec![
            (spec(json!({"hard": {"odd": "1"}})), "must be a standard resource for quota"),
            (spec(json!({"hard": {"pods": "0.5"}})), "must be an integer"),
            (spec(json!({"hard": {"pods": "-1"}})), "must be greater than or equal to 0"),
        ],
        fixed: vec![(spec(json!({"scopes": ["BestEffort"]})), "spec.scopes: Invalid value")],
        status: Some(json!({"hard": {"pods": "5", "limits.cpu": "2"}, "used": {"pods": "1"}})),
        cells: json!(["a", "*", "pods: 1/5", "limits.cpu: 0/2"]),
    }
}

fn range() -> Case {
    Case {
        path: "/api/v1/namespaces/default/limitranges",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
        filled: json!({"spec": {"limits": [{"default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]}}),
        refused: vec![
            (
                spec(json!({"limits": [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]})),
                "min value 2 is greater than max value 1",
            ),
            (
                spec(json!({"limits": [{"type": "Pod"}, {"type": "Pod"}]})),
                "spec.limits[1].type: Duplicate value",
            ),
        ],
        fixed: vec![],
        status: None,
        cells: json!(["a", "*"]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_hold_what_they_promise() {
    run(vec![stateful(), daemon(), controller()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_to_an_end() {
    run(vec![job(), cron()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_bound_what_runs() {
    run(vec![budget(), class(), quota(), range()]).await;
}
