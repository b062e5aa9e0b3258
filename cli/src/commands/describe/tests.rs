//! Pages as they are read.

use serde_json::json;

use super::*;

fn page(describe: Describe, object: &Value, related: Vec<Value>) -> String {
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let mut page = Page::default();
    describe(&mut page, &Subject { object, related, now });
    page.finish().unwrap()
}

#[test]
fn a_deployment_reads_as_in_kubectl() {
    let object = json!({"kind": "Deployment", "metadata": {"name": "web", "namespace": "d", "labels": {"app": "web"},
        "annotations": {"deployment.kubernetes.io/revision": "2"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}}},
        "status": {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 2, "unavailableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]}});
    let set = json!({"metadata": {"name": "web-2", "annotations": {"deployment.kubernetes.io/revision": "2"}},
        "spec": {"replicas": 3}, "status": {"replicas": 3}});
    let text = page(workload::deployment, &object, vec![set]);
    for part in [
        "Name:                   web\nNamespace:              d\nCreationTimestamp:      Thu, 01 Jan 2026 00:00:00 +0000\n",
        "Replicas:               3 desired | 3 updated | 3 total | 2 available | 1 unavailable\n",
        "RollingUpdateStrategy:  25% max unavailable, 25% max surge\n",
        "Pod Template:\n  Labels:  app=web\n  Containers:\n   nginx:\n    Image:",
        "NewReplicaSet:   web-2 (3/3 replicas created)\n",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
}

#[test]
fn a_secret_keeps_its_values() {
    let object =
        json!({"metadata": {"name": "s", "namespace": "d"}, "type": "Opaque", "data": {"key": "aGVsbG8="}});
    let text = page(cluster::secret, &object, vec![]);
    assert!(text.contains("key:  5 bytes") && !text.contains("aGVsbG8"), "{text}");
}

#[test]
fn a_pod_shows_the_states_of_its_containers() {
    let object = json!({"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": "n",
        "containers": [{"name": "main", "image": "host", "command": ["sleep", "1"]}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": false, "restartCount": 2,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}});
    let text = page(pod::describe, &object, vec![]);
    for part in
        ["State:", "Waiting", "CrashLoopBackOff", "Last State:", "Exit Code:", "Restart Count:", "sleep"]
    {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
}

#[test]
fn any_object_gets_a_page() {
    let object = json!({"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "t", "uid": "u"},
        "spec": {"leaseDurationSeconds": 15, "list": [{"a": 1}, {"a": 2}], "texts": ["x", "y"], "none": {}}});
    let text = page(generic::describe, &object, vec![]);
    for part in ["API Version:  x/v1", "Lease Duration Seconds:  15", "Texts:\n    x\n    y\n", "Uid:"] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
}

#[test]
fn a_job_reads_as_in_kubectl() {
    let object = json!({"kind": "Job", "metadata": {"name": "pi", "namespace": "d", "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "u", "controller": true}]},
        "spec": {"parallelism": 2, "completions": 3, "completionMode": "Indexed", "suspend": false, "backoffLimit": 6,
            "selector": {"matchLabels": {"job": "pi"}},
            "template": {"metadata": {"labels": {"job": "pi"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
        "status": {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:05Z", "ready": 0,
            "succeeded": 3, "completedIndexes": "0-2"}});
    let text = page(jobs::job, &object, Vec::new());
    let heads: Vec<&str> =
        text.lines().filter_map(|line| line.split_once(':')).map(|(head, _)| head).collect();
    let wanted = [
        "Name",
        "Namespace",
        "Selector",
        "Labels",
        "Annotations",
        "Controlled By",
        "Parallelism",
        "Completions",
        "Completion Mode",
        "Suspend",
        "Backoff Limit",
        "Start Time",
        "Completed At",
        "Duration",
        "Pods Statuses",
        "Completed Indexes",
        "Pod Template",
    ];
    assert_eq!(heads[..wanted.len()], wanted, "{text}");
    for part in ["65s\n", "0 Active (0 Ready) / 3 Succeeded / 0 Failed\n", "CronJob/tick\n"] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
}

#[test]
fn a_cron_job_reads_as_in_kubectl() {
    let object = json!({"kind": "CronJob", "metadata": {"name": "tick", "namespace": "d"},
        "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "suspend": false, "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1, "jobTemplate": {"spec": {"template":
                {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}},
        "status": {"lastScheduleTime": "2026-01-01T00:00:00Z", "active": [{"name": "tick-1"}, {"name": "tick-2"}]}});
    let text = page(jobs::cron_job, &object, Vec::new());
    for part in [
        "* * * * *\n",
        "Suspend: ",
        "False\n",
        "Starting Deadline Seconds:     <unset>\n",
        "Selector: ",
        "Thu, 01 Jan 2026 00:00:00 +0000\n",
        "tick-1, tick-2\n",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
}
