//! How pods are reached.

use serde_json::{Value, json};

use crate::case::{Case, run};
use crate::common::rest::Rest;
use crate::common::server::TestServer;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

fn service() -> Case {
    Case {
        path: SERVICES,
        minimal: json!({"metadata": {"name": "a"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
        filled: json!({"spec": {"type": "ClusterIP", "sessionAffinity": "None", "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}, "status": {"loadBalancer": {}}}),
        refused: vec![
            (json!({"metadata": {"name": "1a"}}), "metadata.name: Invalid value: \"1a\""),
            (spec(json!({"ports": null})), "spec.ports: Required value"),
            (spec(json!({"ports": [{"port": 0}]})), "must be between 1 and 65535, inclusive"),
            (spec(json!({"ports": [{"port": 1}, {"port": 2}]})), "spec.ports[0].name: Required value"),
            (
                spec(json!({"ports": [{"port": 1, "nodePort": 30001}]})),
                "may not be used when `type` is 'ClusterIP'",
            ),
            (spec(json!({"type": "ExternalName"})), "spec.externalName: Required value"),
            (
                spec(json!({"type": "Odd"})),
                "supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
            ),
            (
                spec(json!({"type": "NodePort", "clusterIP": "None"})),
                "may not be set to 'None' for NodePort services",
            ),
            (
                spec(json!({"externalTrafficPolicy": "Local"})),
                "may only be set for externally-accessible services",
            ),
            (spec(json!({"clusterIP": "1.2.3.4"})), "The range of valid IPs is 10.96.0.0/16"),
            (
                spec(json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]})),
                "The range of valid ports is 30000-32767",
            ),
            (spec(json!({"ipFamilyPolicy": "RequireDualStack"})), "not configured for dual-stack services"),
            (
                spec(json!({"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}})),
                "must not be set when session affinity is None",
            ),
        ],
        fixed: vec![(
            spec(json!({"clusterIP": "10.96.0.77", "clusterIPs": ["10.96.0.77"]})),
            "may not change once set",
        )],
        status: None,
        cells: json!(["a", "ClusterIP", "*", "<none>", "80/TCP", "*", "a=b"]),
    }
}

fn endpoints() -> Case {
    Case {
        path: "/api/v1/namespaces/default/endpoints",
        minimal: json!({"metadata": {"name": "a"}, "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]}),
        filled: json!({"subsets": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}),
        refused: vec![
            (
                json!({"subsets": [{"addresses": [{"ip": "x"}]}]}),
                "subsets[0].addresses[0].ip: Invalid value: \"x\": must be a valid IP address",
            ),
            (json!({"subsets": [{"addresses": [{"ip": "127.0.0.1"}]}]}), "may not be in the loopback range"),
            (
                json!({"subsets": [{"ports": [{"port": 80}]}]}),
                "must specify `addresses` or `notReadyAddresses`",
            ),
        ],
        fixed: vec![],
        status: None,
        cells: json!(["a", "10.0.0.1:80", "*"]),
    }
}

fn slice() -> Case {
    Case {
        path: "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        minimal: json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]}),
        filled: json!({"metadata": {"generation": 1}, "ports": [{"name": "", "protocol": "TCP"}]}),
        refused: vec![
            (json!({"addressType": "Odd"}), "supported values: \"FQDN\", \"IPv4\", \"IPv6\""),
            (json!({"endpoints": [{"addresses": ["::1:2"]}]}), "must be a valid IPv4 address"),
            (json!({"endpoints": [{"addresses": []}]}), "must contain at least 1 address"),
            (json!({"ports": [{"port": 1}, {"port": 2}]}), "ports[1].name: Duplicate value"),
        ],
        fixed: vec![(
            json!({"addressType": "FQDN"}),
            "addressType: Invalid value: \"FQDN\": field is immutable",
        )],
        status: None,
        cells: json!(["a", "IPv4", "80", "10.0.0.1", "*"]),
    }
}

fn ingress() -> Case {
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let path = |path: Value| json!({"spec": {"rules": [{"host": "x.io", "http": {"paths": [path]}}]}});
    Case {
        path: "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"rules": [{"host": "x.io", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}),
        filled: json!({"metadata": {"generation": 1}, "status": {"loadBalancer": {}}}),
        refused: vec![
            (spec(json!({"rules": null})), "either `defaultBackend` or `rules` must be specified"),
            (path(json!({"path": "/", "backend": backend})), "pathType must be specified"),
            (
                path(json!({"path": "x", "pathType": "Prefix", "backend": backend})),
                "must be an absolute path",
            ),
            (
                path(json!({"path": "/", "pathType": "Odd", "backend": backend})),
                "supported values: \"Exact\", \"ImplementationSpecific\", \"Prefix\"",
            ),
            (
                path(json!({"path": "/", "pathType": "Exact", "backend": {"service": {"name": "s"}}})),
                "port name or number is required",
            ),
            (spec(json!({"rules": [{"host": "1.2.3.4"}]})), "must be a DNS name, not an IP address"),
        ],
        fixed: vec![],
        status: Some(json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})),
        cells: json!(["a", "<none>", "x.io", "1.2.3.4", "80", "*"]),
    }
}

fn class() -> Case {
    Case {
        path: "/apis/networking.k8s.io/v1/ingressclasses",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"controller": "x.io/c", "parameters": {"kind": "P", "name": "p"}}}),
        filled: json!({"spec": {"parameters": {"scope": "Cluster"}}}),
        refused: vec![
            (spec(json!({"controller": null})), "spec.controller: Required value"),
            (spec(json!({"controller": "c"})), "must be a domain-prefixed path"),
            (
                spec(json!({"parameters": {"scope": "Namespace"}})),
                "spec.parameters.namespace: Required value",
            ),
        ],
        fixed: vec![(
            spec(json!({"controller": "y.io/c"})),
            "spec.controller: Invalid value: \"y.io/c\": field is immutable",
        )],
        status: None,
        cells: json!(["a", "x.io/c", "P/p", "*"]),
    }
}

fn policy() -> Case {
    Case {
        path: "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        minimal: json!({"metadata": {"name": "a"}, "spec": {"podSelector": {"matchLabels": {"a": "b"}}, "egress": [{"ports": [{"port": 53}]}]}}),
        filled: json!({"spec": {"policyTypes": ["Ingress", "Egress"], "egress": [{"ports": [{"protocol": "TCP"}]}]}}),
        refused: vec![
            (
                spec(json!({"ingress": [{"from": [{}]}]})),
                "spec.ingress[0].from[0]: Required value: must specify a peer",
            ),
            (
                spec(json!({"ingress": [{"from": [{"ipBlock": {"cidr": "x"}}]}]})),
                "must be a valid CIDR value",
            ),
            (
                spec(
                    json!({"ingress": [{"from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]}]}),
                ),
                "may not specify both ipBlock and another peer",
            ),
            (spec(json!({"policyTypes": ["Odd"]})), "supported values: \"Egress\", \"Ingress\""),
        ],
        fixed: vec![],
        status: None,
        cells: json!(["a", "a=b", "*"]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ways_to_pods_are_filled_and_checked() {
    run(vec![service(), endpoints(), slice(), ingress(), class(), policy()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_two_services_share_an_address_or_a_port() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let named = |name: &str, more: Value| {
        let mut body =
            json!({"metadata": {"name": name}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}});
        strata_model::merge::apply(&mut body, &spec(more));
        body
    };
    let first = admin
        .post(
            SERVICES,
            &named(
                "a",
                json!({"clusterIP": "10.96.0.10", "type": "NodePort",
        "ports": [{"port": 80, "nodePort": 30080}]}),
            ),
        )
        .await;
    assert_eq!(first.code, 201, "{}", first.text);
    let taken = admin.post(SERVICES, &named("b", json!({"clusterIP": "10.96.0.10"}))).await.json();
    assert!(
        taken["message"]
            .as_str()
            .unwrap()
            .contains("failed to allocate IP 10.96.0.10: provided IP is already allocated"),
        "{taken}"
    );
    let port = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]});
    let taken = admin.post(SERVICES, &named("b", port)).await.json();
    assert!(
        taken["message"]
            .as_str()
            .unwrap()
            .contains("spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"),
        "{taken}"
    );
    // A replace that says nothing of what was given keeps it.
    let kept = admin.put(&format!("{SERVICES}/a"), &named("a", json!({"type": "NodePort"}))).await.json();
    assert_eq!(
        (&kept["spec"]["clusterIP"], &kept["spec"]["ports"][0]["nodePort"]),
        (&json!("10.96.0.10"), &json!(30080))
    );
    // A service that opens ports no more gives them back.
    let closed = admin.merge(&format!("{SERVICES}/a"), &spec(json!({"type": "ClusterIP"}))).await.json();
    assert!(closed["spec"]["ports"][0].get("nodePort").is_none(), "{closed}");
    let port = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]});
    assert_eq!(admin.post(SERVICES, &named("c", port)).await.code, 201);
    // One without an address gives it back; deleting one gives back all.
    let gone = admin
        .merge(&format!("{SERVICES}/a"), &spec(json!({"type": "ExternalName", "externalName": "x.io"})))
        .await;
    assert!(gone.json()["spec"].get("clusterIP").is_none(), "{}", gone.text);
    assert_eq!(admin.post(SERVICES, &named("d", json!({"clusterIP": "10.96.0.10"}))).await.code, 201);
    assert_eq!(admin.delete(&format!("{SERVICES}/d")).await.code, 200);
    assert_eq!(admin.post(SERVICES, &named("e", json!({"clusterIP": "10.96.0.10"}))).await.code, 201);
    let made =
        (0..20).map(|i| {
            let (admin, body) = (&admin, named(&format!("s{i}"), json!({"type": "NodePort"})));
            async move {
                admin.post(SERVICES, &body).await.json()["spec"]["clusterIP"].as_str().unwrap().to_owned()
            }
        });
    let made: std::collections::BTreeSet<String> =
        futures_util::future::join_all(made).await.into_iter().collect();
    assert_eq!(made.len(), 20);
    server.stop().await;
}
