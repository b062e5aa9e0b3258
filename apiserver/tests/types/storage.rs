//! What lies below pods: volumes, their claims and classes, drivers, runtimes and nodes.

use serde_json::{Value, json};

use crate::case::{Case, run};
use crate::common::rest::Rest;
use crate::common::server::TestServer;

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

fn claim() -> Case {
    Case {
        path: CLAIMS,
        minimal: json!({"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}),
        filled: json!({ "status": {"phase": "Pending"},
            "spec": {"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}}}),
        refused: vec![
            (spec(json!({"accessModes": null})), "at least 1 access mode is required"),
            (spec(json!({"accessModes": ["Odd"]})), "supported values: \"ReadOnlyMany\""),
            (spec(json!({"resources": null})), "spec.resources.requests[storage]: Required value"),
            (spec(json!({"resources": {"requests": {"storage": "0"}}})), "must be greater than zero"),
        ],
        fixed: vec![
            (
                spec(json!({"accessModes": ["ReadOnlyMany"]})),
                "spec is immutable after creation except resources.requests",
            ),
            (
                spec(json!({"resources": {"requests": {"storage": "2Gi"}}})),
                "spec is immutable after creation",
            ),
        ],
        status: Some(json!({"phase": "Bound", "capacity": {"storage": "1Gi"}})),
        cells: json!(["a", "Bound", "", "", "", "", "<unset>", "*", "Filesystem"]),
    }
}

fn volume() -> Case {
    Case {
        path: "/api/v1/persistentvolumes",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "capacity": {"storage": "5Gi"}, "hostPath": {"path": "/x"}}}),
        filled: json!({ "status": {"phase": "Pending"},
            "spec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem", "hostPath": {"type": ""}}}),
        refused: vec![
            (spec(json!({"hostPath": null})), "must specify a volume type"),
            (spec(json!({"capacity": null})), "spec.capacity: Required value"),
            (spec(json!({"nfs": {"server": "s", "path": "/"}})), "may not specify more than 1 volume type"),
            (
                spec(json!({"persistentVolumeReclaimPolicy": "Odd"})),
                "supported values: \"Delete\", \"Recycle\", \"Retain\"",
            ),
        ],
        fixed: vec![(
            spec(json!({"hostPath": {"path": "/y"}})),
            "spec.persistentvolumesource is immutable after creation",
        )],
        status: Some(json!({"phase": "Available"})),
        cells: json!([
            "a",
            "5Gi",
            "RWO,ROX",
            "Retain",
            "Available",
            "",
            "",
            "<unset>",
            "",
            "*",
            "Filesystem"
        ]),
    }
}

fn class() -> Case {
    Case {
        path: CLASSES,
        minimal: json!({"metadata": {"name": "a"}, "provisioner": "x.io/p"}),
        filled: json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
        refused: vec![
            (json!({"provisioner": ""}), "provisioner: Required value"),
            (
                json!({"volumeBindingMode": "Odd"}),
                "supported values: \"Immediate\", \"WaitForFirstConsumer\"",
            ),
        ],
        fixed: vec![(
            json!({"parameters": {"a": "b"}}),
            "parameters: Forbidden: updates to parameters are forbidden.",
        )],
        status: None,
        cells: json!(["a", "x.io/p", "Delete", "Immediate", false, "*"]),
    }
}

fn attachment() -> Case {
    Case {
        path: "/apis/storage.k8s.io/v1/volumeattachments",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"attacher": "x.io", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
        filled: json!({"status": {"attached": false}}),
        refused: vec![
            (spec(json!({"attacher": ""})), "spec.attacher: Required value"),
            (
                spec(json!({"source": {"persistentVolumeName": null}})),
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ),
        ],
        fixed: vec![(spec(json!({"nodeName": "m"})), "spec: Invalid value")],
        status: Some(json!({"attached": true})),
        cells: json!(["a", "x.io", "v", "n", true, "*"]),
    }
}

fn driver() -> Case {
    Case {
        path: "/apis/storage.k8s.io/v1/csidrivers",
        minimal: json!({"metadata": {"name": "a"}, "spec": {}}),
        filled: json!({"spec": {"attachRequired": true, "podInfoOnMount": false, "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"]}}),
        refused: vec![(
            spec(json!({"fsGroupPolicy": "Odd"})),
            "supported values: \"File\", \"None\", \"ReadWriteOnceWithFSType\"",
        )],
        fixed: vec![(spec(json!({"attachRequired": false})), "field is immutable")],
        status: None,
        cells: json!(["a", true, false, false, "<unset>", false, "Persistent", "*"]),
    }
}

fn driver_node() -> Case {
    Case {
        path: "/apis/storage.k8s.io/v1/csinodes",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"drivers": [{"name": "x.io", "nodeID": "n"}]}}),
        filled: json!({}),
        refused: vec![(spec(json!({"drivers": [{"name": "x.io"}]})), "spec.drivers[0].nodeID: ")],
        fixed: vec![],
        status: None,
        cells: json!(["a", 1, "*"]),
    }
}

fn runtime() -> Case {
    Case {
        path: "/apis/node.k8s.io/v1/runtimeclasses",
        minimal: json!({"metadata": {"name": "a"}, "handler": "runc"}),
        filled: json!({}),
        refused: vec![
            (json!({"handler": ""}), "handler: Required value"),
            (json!({"handler": "A"}), "handler: Invalid value: \"A\""),
        ],
        fixed: vec![(json!({"handler": "other"}), "handler: Invalid value: \"other\": field is immutable")],
        status: None,
        cells: json!(["a", "runc", "*"]),
    }
}

fn node() -> Case {
    Case {
        path: "/api/v1/nodes",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
        filled: json!({}),
        refused: vec![
            (
                spec(json!({"taints": [{"key": "k", "effect": "Odd"}]})),
                "spec.taints[0].effect: Unsupported value: \"Odd\"",
            ),
            (spec(json!({"taints": [{"key": "k"}]})), "spec.taints[0].effect: Required value"),
            (
                spec(
                    json!({"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "value": "v", "effect": "NoSchedule"}]}),
                ),
                "spec.taints[1]: Duplicate value",
            ),
            (spec(json!({"podCIDR": "x"})), "must be a valid CIDR value"),
        ],
        fixed: vec![],
        status: Some(json!({"capacity": {"cpu": "4"}})),
        cells: json!(["a", "*", "<none>", "*", "*", "*", "*", "*", "*", "*"]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_below_pods_is_filled_and_checked() {
    run(vec![claim(), volume(), class(), attachment(), driver(), driver_node(), runtime(), node()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_no_class_get_the_default_one_and_may_grow_once_bound() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let class = json!({"metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "x.io/p"});
    assert_eq!(admin.post(CLASSES, &class).await.code, 201);
    let made = admin.post(CLAIMS, &claim().minimal).await.json();
    assert_eq!(made["spec"]["storageClassName"], "fast", "{made}");
    let bound = json!({"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}});
    assert_eq!(admin.merge(&format!("{CLAIMS}/a/status"), &bound).await.code, 200);
    let grow = |size: &str| spec(json!({"resources": {"requests": {"storage": size}}}));
    assert_eq!(admin.merge(&format!("{CLAIMS}/a"), &grow("2Gi")).await.code, 200);
    let shrunk = admin.merge(&format!("{CLAIMS}/a"), &grow("1Gi")).await.json();
    assert!(shrunk["message"].as_str().unwrap().contains("field can not be less than"), "{shrunk}");
    let negative = json!({"status": {"capacity": {"cpu": "-4"}}});
    assert_eq!(admin.post("/api/v1/nodes", &node().minimal).await.code, 201);
    let refused = admin.merge("/api/v1/nodes/a/status", &negative).await;
    assert!(
        refused.code == 422 && refused.text.contains("must be greater than or equal to 0"),
        "{}",
        refused.text
    );
    server.stop().await;
}
