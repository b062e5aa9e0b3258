//! Pods that come up: order, conditions, reasons to wait, adoption.

use super::*;

#[test]
fn a_pod_is_seen_pending_creating_running_and_nothing_else() {
    play(one(json!({})), |scene| {
        scene.settle();
        let seen: Vec<_> = scene
            .seen
            .iter()
            .map(|status| {
                let state = &status["containerStatuses"][0]["state"];
                (
                    status["phase"].as_str().unwrap().to_owned(),
                    state.as_object().unwrap().keys().next().cloned(),
                )
            })
            .collect();
        let want =
            [("Pending".to_owned(), Some("waiting".to_owned())), ("Running".into(), Some("running".into()))];
        assert_eq!(seen, want);
        assert_eq!(scene.seen[0]["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
        assert_eq!(scene.at("/qosClass"), "BestEffort");
        assert_eq!(scene.at("/startTime"), "2026-11-30T20:00:00Z");
        assert_eq!(scene.at("/podIP"), strata_model::addresses::of_pod(&scene.uid).to_string());
        assert_eq!(scene.at("/containerStatuses/0/ready"), true);
        assert_eq!(scene.at("/containerStatuses/0/imageID"), "process://host");
        assert_eq!(scene.at("/containerStatuses/0/lastState"), json!({}));
        assert_eq!(scene.condition("Ready"), "True -");
        assert_eq!(scene.condition("PodScheduled"), "True -");
        scene.assert_told(&["Started"]);
        scene.pass(3600);
        scene.settle();
        assert_eq!(scene.seen.len(), 2, "time alone changes nothing");
    });
}

#[test]
fn nothing_starts_before_the_first_status_is_told() {
    let scene = Scene::new(one(json!({})), Pace::Whole);
    let plan = scene.plan();
    assert!(matches!(plan.before[..], [Action::Status { .. }]));
    assert!(matches!(plan.effects[..], [Effect::Start(_)]));
    assert!(plan.after.is_empty());
}

#[test]
fn a_refused_image_is_a_reason_to_wait_and_no_start() {
    play(one(json!({"image": "nginx"})), |scene| {
        scene.refused_images.insert("nginx".into(), "use image host".into());
        scene.settle();
        assert_eq!(scene.running(), [""; 0]);
        let waiting = json!({"reason": "ErrImagePull", "message": "use image host"});
        assert_eq!(scene.at("/containerStatuses/0/state/waiting"), waiting);
        assert_eq!(
            (scene.at("/phase"), scene.condition("Ready")),
            (json!("Pending"), "False ContainersNotReady".into())
        );
        assert_eq!(scene.plan().notes[0].reason, "ErrImagePull");
    });
}

#[test]
fn a_missing_source_is_named_and_its_arrival_is_enough() {
    let env = json!({"env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "x"}}}]});
    play(one(env), |scene| {
        scene.settle();
        let waiting =
            json!({"reason": "CreateContainerConfigError", "message": "configmap \"conf\" not found"});
        assert_eq!(scene.at("/containerStatuses/0/state/waiting"), waiting);
        scene.there.insert(source("conf"), Some(BTreeMap::from([("x".into(), "1".into())])));
        scene.settle();
        assert_eq!(scene.running(), ["c/0"]);
        assert_eq!(scene.at("/phase"), "Running");
    });
}

#[test]
fn init_containers_run_one_after_another_before_the_rest() {
    let spec = json!({"containers": [{"name": "c", "image": "host"}],
        "initContainers": [{"name": "a", "image": "host"}, {"name": "b", "image": "host"}]});
    play(spec, |scene| {
        scene.settle();
        assert_eq!(scene.running(), ["a/0"]);
        assert_eq!(scene.at("/containerStatuses/0/state/waiting/reason"), "PodInitializing");
        assert_eq!(scene.condition("Initialized"), "False ContainersNotInitialized");
        scene.die("a", 1);
        scene.settle();
        assert_eq!(scene.running(), ["a/1"]);
        scene.die("a", 0);
        scene.settle();
        assert_eq!(scene.running(), ["b/0"]);
        scene.die("b", 0);
        scene.settle();
        assert_eq!(scene.running(), ["c/0"]);
        assert_eq!(
            (scene.condition("Initialized"), scene.condition("Ready")),
            ("True -".into(), "True -".into())
        );
        scene.die("c", 1);
        scene.settle();
        assert_eq!(scene.running(), ["c/1"], "init containers are not run again");
    });
}

#[test]
fn a_failed_init_container_fails_a_pod_that_never_restarts() {
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "host"}],
        "initContainers": [{"name": "a", "image": "host"}]});
    play(spec, |scene| {
        scene.settle();
        scene.die("a", 2);
        scene.settle();
        assert_eq!((scene.at("/phase"), scene.running()), (json!("Failed"), vec![]));
    });
}

#[test]
fn a_sidecar_runs_beside_the_others_and_ends_after_them() {
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "host"}],
        "initContainers": [{"name": "s", "image": "host", "restartPolicy": "Always"}]});
    play(spec, |scene| {
        scene.settle();
        assert_eq!(scene.running(), ["c/0", "s/0"]);
        scene.die("s", 1);
        scene.settle();
        assert_eq!(scene.running(), ["c/0", "s/1"]);
        scene.die("c", 0);
        scene.settle();
        assert_eq!(scene.at("/phase"), "Succeeded");
        scene.pass(31);
        scene.settle();
        assert_eq!(scene.running(), [""; 0]);
    });
}

#[test]
fn readiness_follows_its_probe_and_startup_comes_first() {
    let probes = json!({"startupProbe": {"tcpSocket": {"port": 80}}, "readinessProbe": {"httpGet": {"port": 80}},
        "livenessProbe": {"exec": {"command": ["true"]}}});
    play(one(probes), |scene| {
        scene.settle();
        let kinds = |scene: &Scene| scene.plan().probes.into_iter().map(|(_, kind)| kind).collect::<Vec<_>>();
        assert_eq!(kinds(scene), [ProbeKind::Startup]);
        assert_eq!(scene.at("/containerStatuses/0/started"), false);
        scene.find("c", ProbeKind::Startup, true);
        scene.settle();
        assert_eq!(kinds(scene), [ProbeKind::Liveness, ProbeKind::Readiness]);
        assert_eq!(
            (scene.at("/containerStatuses/0/started"), scene.condition("Ready")),
            (json!(true), "False ContainersNotReady".into())
        );
        scene.find("c", ProbeKind::Readiness, true);
        scene.settle();
        assert_eq!(scene.condition("Ready"), "True -");
        scene.find("c", ProbeKind::Readiness, false);
        scene.settle();
        assert_eq!(scene.condition("ContainersReady"), "False ContainersNotReady");
        if let Some(told) = scene.world.told.last() {
            assert_eq!(told.message, "Readiness probe failed: HTTP 500");
        }
        scene.assert_told(&["Started", "Unhealthy"]);
    });
}

#[test]
fn what_runs_is_adopted_whatever_the_status_says() {
    play(one(json!({})), |scene| {
        scene.settle();
        let before = scene.running();
        scene
            .world
            .patch(
                &builtin::POD,
                &scene.key,
                &json!({"status": {"containerStatuses": null, "phase": "Pending",
            "startTime": null}}),
            )
            .unwrap();
        scene.settle();
        assert_eq!(scene.running(), before);
        assert_eq!(scene.at("/phase"), "Running");
    });
}

#[test]
fn a_container_whose_traces_are_lost_is_a_restart() {
    play(one(json!({})), |scene| {
        scene.settle();
        scene.containers.clear();
        scene.settle();
        assert_eq!(scene.running(), ["c/1"]);
        assert_eq!(scene.at("/containerStatuses/0/restartCount"), 1);
    });
}

#[test]
fn what_a_status_says_is_running_can_be_remembered_and_nothing_else() {
    let mut scene = Scene::new(one(json!({})), Pace::Whole);
    scene.settle();
    scene.die("c", 1);
    scene.settle();
    let pod = || scene.world.get(&builtin::POD.id, &scene.key).unwrap().decode().unwrap();
    let node = |runtime: &str| NodeFacts { runtime: runtime.into(), ..node() };
    let remembered = super::super::plan::remembered(&pod(), &node("process"));
    let [(launch, started_at)] = &remembered[..] else { panic!("{remembered:?}") };
    assert_eq!((launch.key.clone(), *started_at), (scene.newest("c"), scene.now));
    assert!(super::super::plan::remembered(&pod(), &node("simulated")).is_empty());
}

#[test]
fn a_closed_readiness_gate_keeps_a_pod_from_being_ready() {
    let mut spec = one(json!({}));
    spec["readinessGates"] = json!([{"conditionType": "example.com/go"}]);
    play(spec, |scene| {
        scene.settle();
        assert_eq!(
            (scene.condition("ContainersReady"), scene.condition("Ready")),
            ("True -".into(), "False ReadinessGatesNotReady".into())
        );
        let mut conditions = scene.at("/conditions").as_array().unwrap().clone();
        conditions.push(json!({"type": "example.com/go", "status": "True", "novel": 1}));
        scene.world.patch(&builtin::POD, &scene.key, &json!({"status": {"conditions": conditions}})).unwrap();
        scene.settle();
        assert_eq!(scene.condition("Ready"), "True -");
        assert!(scene.at("/conditions").to_string().contains("novel"), "others' conditions stay as they are");
    });
}
