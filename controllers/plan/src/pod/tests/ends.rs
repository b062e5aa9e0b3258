//! Pods that go: graceful deletion, finalizers, pods that are gone already.

use super::*;

#[test]
fn a_deleted_pod_ends_in_its_grace_and_then_goes() {
    play(one(json!({})), |scene| {
        scene.settle();
        scene.world.delete(&builtin::POD, &scene.key, None, scene.now).unwrap();
        assert_eq!(grace_of(&scene.plan()), [Duration::from_secs(20)]);
        scene.settle();
        assert_eq!(scene.running(), ["c/0"], "it has its grace");
        assert!(scene.status().is_some());
        scene.die("c", 0);
        scene.settle();
        assert!(scene.status().is_none());
        assert!(scene.containers.is_empty());
        scene.assert_told(&["Started", "Killing"]);
    });
}

#[test]
fn a_shorter_grace_brings_the_end_nearer_and_a_longer_one_does_not() {
    play(one(json!({})), |scene| {
        scene.settle();
        scene.world.delete(&builtin::POD, &scene.key, None, scene.now).unwrap();
        scene.settle();
        scene.world.delete(&builtin::POD, &scene.key, Some(5), scene.now).unwrap();
        assert_eq!(grace_of(&scene.plan()), [Duration::from_secs(5)]);
        scene.settle();
        scene.pass(5);
        scene.settle();
        assert!(scene.status().is_none());
    });
}

#[test]
fn a_pod_deleted_before_anything_ran_goes_at_once() {
    play(one(json!({})), |scene| {
        scene.world.delete(&builtin::POD, &scene.key, None, scene.now).unwrap();
        scene.settle();
        assert!(scene.status().is_none() && scene.containers.is_empty());
    });
}

#[test]
fn nothing_is_restarted_in_a_pod_that_is_being_deleted() {
    let mut spec = one(json!({}));
    spec["containers"].as_array_mut().unwrap().push(json!({"name": "d", "image": "host"}));
    play(spec, |scene| {
        scene.settle();
        scene.world.delete(&builtin::POD, &scene.key, None, scene.now).unwrap();
        scene.settle();
        scene.die("c", 1);
        scene.settle();
        assert_eq!(scene.running(), ["d/0"]);
        assert_eq!(scene.at("/containerStatuses/0/state/terminated/exitCode"), 1);
        assert_eq!(scene.at("/phase"), "Running");
        scene.pass(20);
        scene.settle();
        assert!(scene.status().is_none());
    });
}

#[test]
fn a_finalizer_keeps_the_pod_but_not_its_containers() {
    play(one(json!({})), |scene| {
        scene.settle();
        let finalizers = json!({"metadata": {"finalizers": ["example.com/wait"]}});
        scene.world.patch(&builtin::POD, &scene.key, &finalizers).unwrap();
        scene.world.delete(&builtin::POD, &scene.key, None, scene.now).unwrap();
        scene.settle();
        scene.die("c", 0);
        scene.settle();
        assert!(scene.status().is_some());
        assert_eq!(scene.plan().notes[0].reason, "Finalizers");
        scene.world.patch(&builtin::POD, &scene.key, &json!({"metadata": {"finalizers": null}})).unwrap();
        scene.settle();
        assert!(scene.status().is_none() && scene.containers.is_empty());
    });
}

#[test]
fn containers_of_a_pod_that_is_gone_end_and_are_removed() {
    play(one(json!({})), |scene| {
        scene.settle();
        scene.world.vanish(&builtin::POD, &scene.key);
        scene.settle();
        assert_eq!(scene.running(), ["c/0"], "politely");
        scene.pass(3);
        scene.settle();
        assert!(scene.containers.is_empty());
    });
}
