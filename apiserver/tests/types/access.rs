//! Who may do what, who else has a say, and what shapes the API.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::case::{Case, run};
use crate::common::rest::Rest;
use crate::common::server::TestServer;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC: &str = "rbac.authorization.k8s.io";

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

fn role() -> Case {
    let rule = |rule: Value| json!({"rules": [rule]});
    Case {
        path: "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        minimal: json!({"metadata": {"name": "a"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        filled: json!({}),
        refused: vec![
            (
                rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": []})),
                "rules[0].verbs: Required value: verbs must contain at least one value",
            ),
            (
                rule(json!({"resources": ["pods"], "verbs": ["get"]})),
                "resource rules must supply at least one api group",
            ),
            (
                rule(json!({"nonResourceURLs": ["/x"], "verbs": ["get"]})),
                "namespaced rules cannot apply to non-resource URLs",
            ),
        ],
        fixed: vec![],
        status: None,
        cells: json!(["a", "*"]),
    }
}

fn binding() -> Case {
    Case {
        path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        minimal: json!({"metadata": {"name": "system:a"}, "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": [
            {"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
        filled: json!({"roleRef": {"apiGroup": RBAC}, "subjects": [{"apiGroup": RBAC}, {"name": "s"}]}),
        refused: vec![
            (
                json!({"roleRef": {"kind": "Role"}}),
                "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
            ),
            (
                json!({"subjects": [{"kind": "ServiceAccount", "name": "s"}]}),
                "subjects[0].namespace: Required value",
            ),
            (
                json!({"subjects": [{"kind": "Odd", "name": "s"}]}),
                "supported values: \"ServiceAccount\", \"User\", \"Group\"",
            ),
        ],
        fixed: vec![(json!({"roleRef": {"name": "view"}}), "cannot change roleRef")],
        status: None,
        cells: json!(["system:a", "ClusterRole/admin", "*", "u", "", "n/s"]),
    }
}

fn hook(more: Value) -> Value {
    let mut hook = json!({"name": "a.x.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "n", "name": "s"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]});
    strata_model::merge::apply(&mut hook, &more);
    json!({"webhooks": [hook]})
}

fn webhooks() -> Case {
    let mut minimal = hook(json!({}));
    minimal["metadata"] = json!({"name": "a"});
    Case {
        path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        minimal,
        filled: json!({"metadata": {"generation": 1}, "webhooks": [{"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
            "reinvocationPolicy": "Never", "rules": [{"scope": "*"}], "clientConfig": {"service": {"port": 443}}}]}),
        refused: vec![
            (hook(json!({"name": "a"})), "should be a domain with at least three segments separated by dots"),
            (hook(json!({"sideEffects": null})), "must specify one of None, NoneOnDryRun"),
            (hook(json!({"timeoutSeconds": 60})), "the timeout value must be between 1 and 30 seconds"),
            (
                hook(json!({"clientConfig": {"url": "https://x"}})),
                "exactly one of url or service is required",
            ),
        ],
        fixed: vec![],
        status: None,
        cells: json!(["a", 1, "*"]),
    }
}

fn policy() -> Case {
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
    Case {
        path: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}}),
        filled: json!({"spec": {"failurePolicy": "Fail", "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [{"scope": "*"}]}}}),
        refused: vec![
            (spec(json!({"validations": null})), "validations or auditAnnotations must be non-empty"),
            (spec(json!({"matchConstraints": null})), "spec.matchConstraints: Required value"),
        ],
        fixed: vec![],
        status: None,
        cells: json!(["a", 1, "<unset>", "*"]),
    }
}

fn policy_binding() -> Case {
    Case {
        path: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}),
        filled: json!({"metadata": {"generation": 1}}),
        refused: vec![
            (spec(json!({"policyName": ""})), "spec.policyName: Required value"),
            (spec(json!({"validationActions": ["Deny", "Warn"]})), "must not contain both Deny and Warn"),
            (spec(json!({"validationActions": ["Odd"]})), "supported values: \"Audit\", \"Deny\", \"Warn\""),
        ],
        fixed: vec![],
        status: None,
        cells: json!(["a", "p", "<unset>", "*"]),
    }
}

fn api() -> Case {
    Case {
        path: "/apis/apiregistration.k8s.io/v1/apiservices",
        minimal: json!({"metadata": {"name": "v1.x.io"}, "spec": {"group": "x.io", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
            "service": {"namespace": "n", "name": "s"}}}),
        filled: json!({"spec": {"service": {"port": 443}}}),
        refused: vec![
            (
                json!({"metadata": {"name": "v1.y.io"}}),
                "metadata.name: Invalid value: \"v1.y.io\": must be `spec.version+\".\"+spec.group`",
            ),
            (spec(json!({"versionPriority": 0})), "must be positive and less than 1000"),
        ],
        fixed: vec![],
        status: Some(
            json!({"conditions": [{"type": "Available", "status": "False", "reason": "Missing", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
        ),
        cells: json!(["v1.x.io", "n/s", "False (Missing)", "*"]),
    }
}

fn flow() -> Case {
    Case {
        path: "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"priorityLevelConfiguration": {"name": "p"}}}),
        filled: json!({"metadata": {"generation": 1}, "spec": {"matchingPrecedence": 1000}}),
        refused: vec![(spec(json!({"priorityLevelConfiguration": null})), "must reference a priority level")],
        fixed: vec![],
        status: None,
        cells: json!(["a", "p", 1000, "<none>", "*", "?"]),
    }
}

fn level() -> Case {
    Case {
        path: "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}}),
        filled: json!({"spec": {"limited": {"nominalConcurrencyShares": 30, "limitResponse": {"queuing": {"queues": 64}}}}}),
        refused: vec![(spec(json!({"limited": null})), "must not be empty when type is Limited")],
        fixed: vec![],
        status: None,
        cells: json!(["a", "Limited", "30", "64", "8", "50", "*"]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn access_and_admission_are_filled_and_checked() {
    run(vec![role(), binding(), webhooks(), policy(), policy_binding(), api(), flow(), level()]).await;
}

/// A request for a certificate of somebody in a group.
fn request_of(name: &str, group: &str) -> String {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
    let request = params.serialize_request(&rcgen::KeyPair::generate().unwrap()).unwrap();
    base64::engine::general_purpose::STANDARD.encode(request.pem().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_approved_and_signed_by_whom_their_signer_allows() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let parts = json!([
        "certificatesigningrequests",
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status"
    ]);
    let rules = json!([{"apiGroups": ["certificates.k8s.io"], "resources": parts, "verbs": ["*"]}]);
    admin
        .post(&format!("{rbac}/clusterroles"), &json!({"metadata": {"name": "requests"}, "rules": rules}))
        .await;
    let bind = async |role: &str, user: &str| {
        let binding = json!({"metadata": {"generateName": "b-"}, "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": user}]});
        let made = admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await;
        assert_eq!(made.code, 201, "{}", made.text);
    };
    bind("requests", "olga").await;
    let olga = Rest::new(&server, Some(("olga", "people")));
    let client = "kubernetes.io/kube-apiserver-client";
    let request = |name: &str, group: &str| json!({"metadata": {"name": name}, "spec": {"request": request_of("ann", group), "signerName": client, "usages": ["client auth"]}});
    assert_eq!(olga.post(REQUESTS, &request("a", "people")).await.code, 201);
    let masters = olga.post(REQUESTS, &request("m", "system:masters")).await;
    assert!(masters.text.contains("signer with system:masters group is not allowed"), "{}", masters.text);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "r", "message": ""});
    let approved = json!({"status": {"conditions": [condition("Approved")]}});
    let refused = olga.merge(&format!("{REQUESTS}/a/approval"), &approved).await;
    assert_eq!(refused.code, 403);
    assert!(
        refused.text.contains("user not permitted to approve requests with signerName"),
        "{}",
        refused.text
    );
    bind("system:certificates.k8s.io:kube-apiserver-client-approver", "olga").await;
    let both = json!({"status": {"conditions": [condition("Approved"), condition("Denied")]}});
    let refused = olga.merge(&format!("{REQUESTS}/a/approval"), &both).await;
    assert!(refused.code == 422 && refused.text.contains("mutually exclusive"), "{}", refused.text);
    assert_eq!(olga.merge(&format!("{REQUESTS}/a/approval"), &approved).await.code, 200);
    let undone = olga.merge(&format!("{REQUESTS}/a/approval"), &json!({"status": {"conditions": []}})).await;
    assert!(undone.text.contains("may not remove a condition of type"), "{}", undone.text);
    let signed = json!({"status": {"certificate": "AAAA"}});
    let refused = olga.merge(&format!("{REQUESTS}/a/status"), &signed).await;
    assert!(refused.text.contains("user not permitted to sign requests with signerName"), "{}", refused.text);
    let signer = Rest::new(&server, Some(("system:controller:certificatesigning", "system:controllers")));
    let written = signer.merge(&format!("{REQUESTS}/a/status"), &signed).await;
    assert_eq!(written.code, 200, "{}", written.text);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_a_certificate_tells_who_asks_and_is_approved_apart() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let pem = request_of("ann", "people");
    let request = json!({"metadata": {"name": "a"}, "spec": {"request": pem, "signerName": "x.io/s", "usages": ["client auth"], "username": "other"}});
    let made = admin.post(REQUESTS, &request).await;
    assert_eq!((made.code, &made.json()["spec"]["username"]), (201, &json!("admin")), "{}", made.text);
    let kept = admin.merge(&format!("{REQUESTS}/a"), &spec(json!({"username": "other"}))).await.json();
    assert_eq!(kept["spec"]["username"], "admin");
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": ""}], "certificate": "AAAA"}});
    let written = admin.merge(&format!("{REQUESTS}/a/approval"), &approved).await;
    assert_eq!(written.json()["status"]["conditions"][0]["type"], "Approved", "{}", written.text);
    assert!(written.json()["status"].get("certificate").is_none());
    let table = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let row = admin.send("GET", &format!("{REQUESTS}/a"), &[table], "").await.json();
    assert_eq!(row["rows"][0]["cells"][5], "Approved");
    let refused = admin
        .post(REQUESTS, &json!({"metadata": {"name": "b"}, "spec": {"request": "AAAA", "usages": ["odd"]}}))
        .await
        .json();
    for part in [
        "PEM block type must be CERTIFICATE REQUEST",
        "spec.signerName: Required value",
        "spec.usages[0]: Unsupported value",
    ] {
        assert!(refused["message"].as_str().unwrap().contains(part), "{part} in {refused}");
    }
    server.stop().await;
}
