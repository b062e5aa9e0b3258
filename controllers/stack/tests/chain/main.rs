//! The controllers against a real API server, all in this process: layers meet only in objects. The node is played by a
//! few lines here, so that nothing depends on what a machine can run.

mod world;

use serde_json::json;
use strata_client::options::DeleteOptions;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_stack::process::Name;

use world::{World, deployment, key};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_becomes_pods_that_come_back_and_go_with_it() {
    let world = World::start().await;
    world.run_all();
    world.create(&builtin::DEPLOYMENT, "default", deployment("web", 3)).await;
    world
        .until("3 available replicas", |w| async move {
            let web = w.get(&builtin::DEPLOYMENT, &key("web")).await?;
            (web["status"]["availableReplicas"] == 3).then_some(())
        })
        .await;
    let before = world.names(&builtin::POD, "default").await;
    assert_eq!(before.len(), 3, "{before:?}");
    world
        .until("everybody said what they did", |w| async move {
            let told = w.told().await;
            ["ScalingReplicaSet", "SuccessfulCreate", "Scheduled"]
                .iter()
                .all(|reason| told.iter().any(|t| t == reason))
                .then_some(())
        })
        .await;
    let gone = before[0].as_str();
    world.delete(&builtin::POD, &key(gone)).await;
    world
        .until("the deleted pod is replaced", |w| async move {
            let now = w.names(&builtin::POD, "default").await;
            (now.len() == 3 && now.iter().all(|name| name != gone)).then_some(())
        })
        .await;
    world.delete(&builtin::DEPLOYMENT, &key("web")).await;
    world
        .until("replica sets and pods are collected", |w| async move {
            let sets = w.names(&builtin::REPLICA_SET, "default").await;
            let pods = w.names(&builtin::POD, "default").await;
            (sets.is_empty() && pods.is_empty()).then_some(())
        })
        .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let world = World::start().await;
    world.run_all();
    world.create(&builtin::NAMESPACE, "", json!({"metadata": {"name": "play"}})).await;
    world.create(&builtin::DEPLOYMENT, "play", deployment("web", 2)).await;
    world.create(&builtin::CONFIG_MAP, "play", json!({"metadata": {"name": "c"}, "data": {"a": "b"}})).await;
    world.until_count(&builtin::POD, "play", 2).await;
    world.delete(&builtin::NAMESPACE, &ObjectKey::new("", "play")).await;
    world
        .until("the namespace is gone", |w| async move {
            w.get(&builtin::NAMESPACE, &ObjectKey::new("", "play")).await.is_none().then_some(())
        })
        .await;
    for resource in [&builtin::POD, &builtin::REPLICA_SET, &builtin::DEPLOYMENT, &builtin::CONFIG_MAP] {
        assert!(world.names(resource, "play").await.is_empty(), "{}", resource.id);
    }
    world.stop().await;
}

fn definition(plural: &str, kind: &str) -> serde_json::Value {
    json!({"metadata": {"name": format!("{plural}.example.com")}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_types_leave_with_their_namespace_and_own_from_the_moment_they_are_served() {
    let world = World::start().await;
    let known = async |kind: &str| {
        let types = world.admin.types().await.expect("types");
        types.into_iter().find(|t| t.kind == kind).expect("the type is served")
    };
    world.create(&builtin::CUSTOM_RESOURCE_DEFINITION, "", definition("gears", "Gear")).await;
    world.run_all();
    let gears = known("Gear").await;
    world.create(&builtin::NAMESPACE, "", json!({"metadata": {"name": "play"}})).await;
    world.create(&gears, "play", json!({"metadata": {"name": "g"}, "spec": {"teeth": 12}})).await;
    world.delete(&builtin::NAMESPACE, &ObjectKey::new("", "play")).await;
    world
        .until("the namespace is gone", |w| async move {
            w.get(&builtin::NAMESPACE, &ObjectKey::new("", "play")).await.is_none().then_some(())
        })
        .await;
    assert!(world.names(&gears, "play").await.is_empty());
    // A type that comes while the controllers run.
    world.create(&builtin::CUSTOM_RESOURCE_DEFINITION, "", definition("levers", "Lever")).await;
    let levers = known("Lever").await;
    world.create(&levers, "default", json!({"metadata": {"name": "l"}})).await;
    let uid = world.get(&levers, &key("l")).await.expect("the lever")["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "example.com/v1", "kind": "Lever", "name": "l", "uid": uid});
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": [owner]}});
    world.create(&builtin::CONFIG_MAP, "default", owned).await;
    world.delete(&levers, &key("l")).await;
    world
        .until("what the lever owned is collected", |w| async move {
            w.get(&builtin::CONFIG_MAP, &key("owned")).await.is_none().then_some(())
        })
        .await;
    world.stop().await;
}

/// Stopping the server breaks answers off in the middle of writes; nothing may be made twice for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_goes_and_comes_and_nothing_is_lost_or_doubled() {
    let mut world = World::start().await;
    world.run_all();
    for round in 0..3 {
        let name = format!("web{round}");
        world.create(&builtin::DEPLOYMENT, "default", deployment(&name, 12)).await;
        world.until_some(&builtin::POD, "default").await;
        world.restart_server().await;
    }
    world
        .until("all replicas are available", |w| async move {
            for round in 0..3 {
                let web = w.get(&builtin::DEPLOYMENT, &key(&format!("web{round}"))).await?;
                if web["status"]["availableReplicas"] != 12 {
                    return None;
                }
            }
            Some(())
        })
        .await;
    assert_eq!(world.names(&builtin::POD, "default").await.len(), 36);
    let created = world.created_pods();
    assert_eq!(created, 36, "every pod was made once");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_copies_one_works_and_the_other_takes_over() {
    let world = World::start().await;
    let first = world.run_as(Name::ReplicaSet, "first");
    world
        .until("the first leads", |w| async move { (w.holder("replicaset").await? == "first").then_some(()) })
        .await;
    let second = world.run_as(Name::ReplicaSet, "second");
    world.until_ready(&second).await;
    world.create(&builtin::REPLICA_SET, "default", world::replica_set("one", 4)).await;
    world.until_count(&builtin::POD, "default", 4).await;
    assert_eq!(world.holder("replicaset").await.as_deref(), Some("first"));
    // In order: the lease is given back, and nobody waits for it to run out.
    first.stop().await;
    world
        .until(
            "the second leads",
            |w| async move { (w.holder("replicaset").await? == "second").then_some(()) },
        )
        .await;
    world.create(&builtin::REPLICA_SET, "default", world::replica_set("two", 3)).await;
    world.until_count(&builtin::POD, "default", 7).await;
    // Killed: the same identity takes its own lease back at once.
    second.kill().await;
    let third = world.run_as(Name::ReplicaSet, "second");
    world.create(&builtin::REPLICA_SET, "default", world::replica_set("three", 2)).await;
    world.until_count(&builtin::POD, "default", 9).await;
    third.stop().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_as_declared_is_not_written() {
    let world = World::start().await;
    world.run_all();
    world.create(&builtin::DEPLOYMENT, "default", deployment("web", 3)).await;
    world
        .until("3 available replicas", |w| async move {
            let web = w.get(&builtin::DEPLOYMENT, &key("web")).await?;
            (web["status"]["availableReplicas"] == 3).then_some(())
        })
        .await;
    world.until_quiet().await;
    let before = world.revisions().await;
    // New processes look at everything anew, and find nothing to do.
    world.restart_controllers().await;
    world.until_quiet().await;
    let after = world.revisions().await;
    assert_eq!(before, after, "no object but leases was written");
    // Deletion with a uid that is not the pod's is refused, whoever asks.
    let pod = world.names(&builtin::POD, "default").await[0].clone();
    let options = DeleteOptions { uid: "another".into(), ..DeleteOptions::default() };
    assert!(world.admin.delete(&builtin::POD, &key(&pod), &options).await.is_err());
    world.stop().await;
}
