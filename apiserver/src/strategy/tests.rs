//! Creates and updates of values, as clients would see them.

use super::*;
use strata_model::resource::builtin;
use strata_model::status::Reason;

use crate::types::{config, deployment, namespace, pod};

fn moment() -> Moment {
    Moment {
        now: Timestamp::from_second(1_700_000_000).unwrap(),
        uid: "u-1".to_owned(),
        random: [1, 2, 3, 4, 5],
    }
}

fn deployments() -> Served {
    Served { resource: builtin::DEPLOYMENT.clone(), rules: &deployment::DEPLOYMENT, form: None, custom: None }
}

fn maps() -> Served {
    Served { resource: builtin::CONFIG_MAP.clone(), rules: &config::CONFIG_MAP, form: None, custom: None }
}

fn web() -> Value {
    json!({"metadata": {"name": "web", "uid": "mine", "creationTimestamp": null, "deletionTimestamp": "2020-01-01T00:00:00Z"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}}, "status": {"replicas": 9}})
}

#[test]
fn a_create_sets_what_the_server_owns() {
    let mut body = web();
    create(&deployments(), &mut body, "n", &moment()).unwrap();
    assert_eq!(body["apiVersion"], "apps/v1");
    assert_eq!(
        body["metadata"],
        json!({"name": "web", "namespace": "n", "uid": "u-1", "generation": 1, "creationTimestamp": "2023-11-14T22:13:20Z"})
    );
    assert_eq!(body["status"], json!({}));
}

#[test]
fn names_are_generated_or_asked_for() {
    let mut body = json!({"metadata": {"generateName": "x-"}});
    create(&maps(), &mut body, "n", &moment()).unwrap();
    assert!(text(&body, &["metadata", "name"]).starts_with("x-"));
    let refusal = create(&maps(), &mut json!({}), "n", &moment()).unwrap_err();
    assert_eq!(refusal.reason, Some(Reason::Invalid));
    assert!(refusal.message.contains("name or generateName is required"), "{}", refusal.message);
}

#[test]
fn bodies_of_another_type_or_namespace_are_refused() {
    for body in [
        json!({"kind": "Secret", "metadata": {"name": "a"}}),
        json!({"apiVersion": "v2", "metadata": {"name": "a"}}),
        json!({"metadata": {"name": "a", "namespace": "other"}}),
        json!({"metadata": {"name": "a", "resourceVersion": "5"}}),
        json!({"metadata": []}),
        json!([]),
    ] {
        let refusal = create(&maps(), &mut body.clone(), "n", &moment()).unwrap_err();
        assert_eq!(refusal.reason, Some(Reason::BadRequest), "{body}");
    }
}

#[test]
fn generation_counts_changes_of_spec_alone() {
    let served = deployments();
    let mut old = web();
    create(&served, &mut old, "n", &moment()).unwrap();
    let change = |change: &dyn Fn(&mut Value), part| {
        let mut new = old.clone();
        change(&mut new);
        update(&served, &mut new, &old, part).map(|()| new)
    };
    let same = change(&|_| {}, Part::Main).unwrap();
    assert_eq!(same, old, "an update that changes nothing makes the same object");
    let labelled = change(&|d| d["metadata"]["labels"] = json!({"x": "y"}), Part::Main).unwrap();
    assert_eq!(labelled["metadata"]["generation"], 1);
    let scaled = change(&|d| d["spec"]["replicas"] = json!(5), Part::Main).unwrap();
    assert_eq!(scaled["metadata"]["generation"], 2);
    let reset = change(&|d| d["spec"]["replicas"] = Value::Null, Part::Main).unwrap();
    assert_eq!(reset["spec"]["replicas"], 1, "null brings the default back");
    let reported = change(
        &|d| {
            d["status"] = json!({"replicas": 3});
            d["spec"]["replicas"] = json!(7);
        },
        Part::Status,
    )
    .unwrap();
    assert_eq!((&reported["status"]["replicas"], &reported["spec"]["replicas"]), (&json!(3), &json!(1)));
    assert_eq!(reported["metadata"]["generation"], 1);
    let refused =
        change(&|d| d["spec"]["selector"] = json!({"matchLabels": {"c": "d"}}), Part::Main).unwrap_err();
    assert!(refused.message.contains("spec.selector: Invalid value"), "{}", refused.message);
}

#[test]
fn identity_does_not_change() {
    let served = maps();
    let mut old = json!({"metadata": {"name": "a"}});
    create(&served, &mut old, "n", &moment()).unwrap();
    let attempt = |field: &str, value: &str| {
        let mut new = old.clone();
        new["metadata"][field] = json!(value);
        update(&served, &mut new, &old, Part::Main).map(|()| new)
    };
    assert_eq!(attempt("name", "b").unwrap_err().reason, Some(Reason::BadRequest));
    assert_eq!(attempt("namespace", "m").unwrap_err().reason, Some(Reason::BadRequest));
    assert_eq!(attempt("uid", "other").unwrap_err().reason, Some(Reason::Conflict));
    assert_eq!(
        attempt("deletionTimestamp", "2020-01-01T00:00:00Z").unwrap_err().reason,
        Some(Reason::Invalid)
    );
    assert_eq!(attempt("creationTimestamp", "2020-01-01T00:00:00Z").unwrap(), old, "ignored");
}

#[test]
fn only_finalize_empties_the_finalizers_of_a_namespace() {
    let served = Served {
        resource: builtin::NAMESPACE.clone(),
        rules: &namespace::NAMESPACE,
        form: None,
        custom: None,
    };
    let mut old = json!({"metadata": {"name": "a"}});
    create(&served, &mut old, "", &moment()).unwrap();
    assert_eq!(old["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(old["metadata"]["labels"]["kubernetes.io/metadata.name"], "a");
    let attempt = |part| {
        let mut new = old.clone();
        new["spec"]["finalizers"] = json!([]);
        update(&served, &mut new, &old, part).map(|()| new["spec"].clone())
    };
    assert_eq!(attempt(Part::Main).unwrap(), json!({"finalizers": ["kubernetes"]}));
    assert_eq!(attempt(Part::Finalize).unwrap(), json!({}));
}

#[test]
fn pods_take_labels_with_their_status() {
    let served = Served { resource: builtin::POD.clone(), rules: &pod::POD, form: None, custom: None };
    let mut old = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    create(&served, &mut old, "n", &moment()).unwrap();
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    new["status"] = json!({"phase": "Running"});
    update(&served, &mut new, &old, Part::Status).unwrap();
    assert_eq!((&new["metadata"]["labels"]["a"], &new["status"]["phase"]), (&json!("b"), &json!("Running")));
    let mut again = old.clone();
    update(&served, &mut again, &old, Part::Main).unwrap();
    assert_eq!(again, old);
}
