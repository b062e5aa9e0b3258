//! Tables: which node a pod may have, in which words it is refused, and which of several it gets.

use std::sync::Arc;

use serde_json::{Value, json};
use strata_model::object::Object;

use super::*;

fn node(name: &str, more: Value) -> Place {
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": "a", "n": "5"}},
        "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3"},
            "conditions": [{"type": "Ready", "status": "True"}]}});
    strata_model::merge::apply(&mut node, &more);
    Place::new(Typed::new(Arc::new(Object::from_value(&node).unwrap())).unwrap())
}

fn choose(places: &[Place], spec: &PodSpec, owner: Option<&str>) -> Result<usize, String> {
    super::choose(places, &Request::new(spec, owner), &mut 0)
}

fn spec(more: Value) -> PodSpec {
    let mut spec =
        json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}]});
    strata_model::merge::apply(&mut spec, &more);
    serde_json::from_value(spec).unwrap()
}

fn affinity(terms: Value) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": terms}}}})
}

fn expression(key: &str, operator: &str, values: Value) -> Value {
    json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}])
}

#[test]
fn each_rule_refuses_in_its_words() {
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": effect}]}});
    let tolerate = |t: Value| json!({"tolerations": [t]});
    let no_match = "node(s) didn't match Pod's node affinity/selector";
    let tainted = "node(s) had untolerated taint {k: v}";
    let silent = "node(s) had untolerated taint {node.kubernetes.io/not-ready: }";
    let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let closed = json!({"spec": {"unschedulable": true}});
    let big =
        |what: &str, n: &str| json!({"containers": [{"name": "c", "resources": {"requests": {what: n}}}]});
    let cases = [
        (json!({}), json!({}), ""),
        (closed.clone(), json!({}), "node(s) were unschedulable"),
        (closed, tolerate(json!({"operator": "Exists"})), ""),
        (not_ready.clone(), json!({}), silent),
        (json!({"status": {"conditions": null}}), json!({}), silent),
        (not_ready, tolerate(json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists"})), ""),
        (taint("NoSchedule"), json!({}), tainted),
        (taint("NoExecute"), json!({}), tainted),
        (taint("PreferNoSchedule"), json!({}), ""),
        (taint("NoSchedule"), tolerate(json!({"key": "k", "value": "v"})), ""),
        (taint("NoSchedule"), tolerate(json!({"key": "k", "value": "w"})), tainted),
        (
            taint("NoSchedule"),
            tolerate(json!({"key": "k", "operator": "Exists", "effect": "NoExecute"})),
            tainted,
        ),
        (taint("NoSchedule"), tolerate(json!({"value": "v"})), tainted),
        (json!({}), json!({"nodeSelector": {"zone": "a"}}), ""),
        (json!({}), json!({"nodeSelector": {"zone": "b"}}), no_match),
        (json!({}), affinity(expression("zone", "In", json!(["a", "b"]))), ""),
        (json!({}), affinity(expression("zone", "In", json!(["b"]))), no_match),
        (json!({}), affinity(expression("zone", "NotIn", json!(["a"]))), no_match),
        (json!({}), affinity(expression("other", "NotIn", json!(["a"]))), ""),
        (json!({}), affinity(expression("zone", "Exists", json!(null))), ""),
        (json!({}), affinity(expression("zone", "DoesNotExist", json!(null))), no_match),
        (json!({}), affinity(expression("n", "Gt", json!(["4"]))), ""),
        (json!({}), affinity(expression("n", "Gt", json!(["5"]))), no_match),
        (json!({}), affinity(expression("n", "Lt", json!(["6"]))), ""),
        (json!({}), affinity(expression("zone", "Lt", json!(["6"]))), no_match),
        (json!({}), affinity(json!([{}])), no_match),
        (json!({}), affinity(json!([{}, expression("zone", "Exists", json!([]))[0]])), ""),
        (
            json!({}),
            affinity(json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}])),
            "",
        ),
        (
            json!({}),
            affinity(json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["y"]}]}])),
            no_match,
        ),
        (json!({}), big("cpu", "2"), ""),
        (json!({}), big("cpu", "2001m"), "Insufficient cpu"),
        (json!({}), big("memory", "2Gi"), "Insufficient memory"),
        (json!({}), big("example.org/gpu", "1"), "Insufficient example.org/gpu"),
        (json!({"status": {"allocatable": {"pods": "0"}}}), json!({}), "Too many pods"),
    ];
    for (node_more, spec_more, refused) in cases {
        let places = [node("x", node_more.clone())];
        let expected = match refused {
            "" => Ok(0),
            reason => Err(format!("0/1 nodes are available: 1 {reason}.")),
        };
        assert_eq!(choose(&places, &spec(spec_more.clone()), None), expected, "{node_more} {spec_more}");
    }
}

#[test]
fn refusals_are_counted_and_ordered() {
    let tainted = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let mut full = node("a", json!({}));
    full.take(&spec(json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1900m", "memory": "1Gi"}}}]})), None);
    let places = [full, node("b", tainted.clone()), node("c", tainted)];
    let said = choose(&places, &spec(json!({})), None).unwrap_err();
    assert_eq!(
        said,
        "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 2 node(s) had untolerated taint {k: }."
    );
    assert_eq!(choose(&[], &spec(json!({})), None).unwrap_err(), "no nodes available to schedule pods");
}

#[test]
fn ports_of_the_host_are_taken_once() {
    let with_port =
        spec(json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}));
    let mut places = [node("a", json!({}))];
    assert_eq!(choose(&places, &with_port, None), Ok(0));
    places[0].take(&with_port, None);
    assert!(choose(&places, &with_port, None).unwrap_err().contains("free ports"));
}

#[test]
fn what_a_pod_asks_for() {
    let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let sidecar =
        |cpu: &str| json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
    let cases = [
        (json!({"containers": [container("1"), container("500m")]}), 1500),
        (json!({"containers": [container("1")], "initContainers": [container("3")]}), 3000),
        (json!({"containers": [container("1")], "initContainers": [sidecar("1"), container("3")]}), 4000),
        (json!({"containers": [container("3")], "initContainers": [container("3"), sidecar("1")]}), 4000),
        (json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}), 1250),
        (json!({"containers": [container("1")], "resources": {"requests": {"cpu": "2"}}}), 2000),
        (json!({"containers": [{"name": "c"}]}), 0),
    ];
    for (body, cpu) in cases {
        let asked = serde_json::from_value::<PodSpec>(body.clone()).unwrap().requests();
        assert_eq!((asked.get(CPU), asked.get(PODS)), (cpu, 1000), "{body}");
    }
}

#[test]
fn the_best_node_is_the_emptiest_then_the_one_with_fewest_siblings() {
    let mut places = vec![node("a", json!({})), node("b", json!({})), node("c", json!({}))];
    let pod = spec(json!({}));
    let mut got = Vec::new();
    for _ in 0..6 {
        let at = choose(&places, &pod, Some("owner")).unwrap();
        places[at].take(&pod, Some("owner"));
        got.push(at);
    }
    assert_eq!(got, [0, 1, 2, 0, 1, 2]);
    let mut places = vec![
        node("a", json!({})),
        node("b", json!({"status": {"allocatable": {"cpu": "8", "memory": "4Gi"}}})),
    ];
    assert_eq!(choose(&places, &pod, Some("owner")), Ok(1));
    places[1].take(&pod, Some("owner"));
    assert_eq!(choose(&places, &pod, Some("owner")), Ok(0), "siblings weigh more");
    let preferred = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 10, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}}]}}});
    let fresh =
        [node("a", json!({})), node("b", json!({"status": {"allocatable": {"cpu": "8", "memory": "4Gi"}}}))];
    assert_eq!(choose(&fresh, &spec(preferred), None), Ok(0));
    let soft = json!({"spec": {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}});
    assert_eq!(choose(&[node("a", soft), node("b", json!({}))], &pod, None), Ok(1));
}
