//! Containers that end: restarts, back-off, policies, failed probes.

use super::*;

#[test]
fn a_crash_loop_is_held_back_longer_each_time() {
    play(one(json!({})), |scene| {
        scene.settle();
        let mut waits = Vec::new();
        for crash in 0..8 {
            scene.die("c", 1);
            scene.settle();
            if scene.running().is_empty() {
                let waiting = scene.at("/containerStatuses/0/state/waiting");
                assert_eq!(waiting["reason"], "CrashLoopBackOff");
                assert_eq!(scene.at("/containerStatuses/0/lastState/terminated/exitCode"), 1);
                assert_eq!(scene.at("/phase"), "Running");
                let Next::At(until) = scene.plan().next else { panic!("waits for nothing") };
                let wait = until.duration_since(scene.now).as_secs();
                waits.push(wait);
                scene.pass(wait - 1);
                scene.settle();
                assert!(scene.running().is_empty());
                scene.pass(1);
                scene.settle();
            }
            assert_eq!(scene.running(), [format!("c/{}", crash + 1)]);
            assert_eq!(scene.at("/containerStatuses/0/restartCount"), crash + 1);
            assert!(scene.containers.len() <= 2, "only the last end is kept");
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
        scene.pass(600);
        scene.die("c", 1);
        scene.settle();
        assert_eq!(scene.running(), ["c/9"], "ten minutes are a clean slate");
    });
}

#[test]
fn the_words_of_a_back_off_are_the_usual_ones() {
    let mut scene = Scene::new(one(json!({})), Pace::Whole);
    scene.settle();
    for _ in 0..2 {
        scene.die("c", 1);
        scene.settle();
    }
    let message = format!("back-off 10s restarting failed container=c pod=web-0_default({})", scene.uid);
    assert_eq!(scene.at("/containerStatuses/0/state/waiting/message"), message);
    scene.assert_told(&["Started", "Started", "BackOff"]);
}

#[test]
fn a_first_crash_is_seen_before_its_restart() {
    let mut scene = Scene::new(one(json!({})), Pace::Whole);
    scene.settle();
    scene.die("c", 3);
    scene.settle();
    let states: Vec<_> =
        scene.seen.iter().map(|status| status["containerStatuses"][0]["state"].clone()).collect();
    assert_eq!(states[2]["terminated"]["reason"], "Error");
    assert!(states[3]["running"].is_object());
    assert_eq!(scene.at("/containerStatuses/0/lastState/terminated/exitCode"), 3);
    assert_eq!(scene.seen[2]["conditions"].to_string().matches("ContainersNotReady").count(), 2);
}

#[test]
fn policies_decide_how_a_pod_finishes() {
    for (policy, code, phase, attempts) in [
        ("Never", 0, "Succeeded", 0),
        ("Never", 4, "Failed", 0),
        ("OnFailure", 0, "Succeeded", 0),
        ("OnFailure", 4, "Running", 1),
        ("Always", 0, "Running", 1),
    ] {
        let mut spec = one(json!({}));
        spec["restartPolicy"] = json!(policy);
        play(spec, |scene| {
            scene.settle();
            scene.die("c", code);
            scene.settle();
            assert_eq!(scene.at("/phase"), phase, "{policy} {code}");
            assert_eq!(scene.newest("c").attempt(), attempts, "{policy} {code}");
            if phase == "Succeeded" {
                assert_eq!(scene.condition("Ready"), "False PodCompleted");
                assert_eq!(scene.at("/containerStatuses/0/state/terminated/reason"), "Completed");
            }
        });
    }
}

#[test]
fn a_finished_pod_stays_finished_even_without_traces() {
    let mut spec = one(json!({}));
    spec["restartPolicy"] = json!("OnFailure");
    spec["containers"].as_array_mut().unwrap().push(json!({"name": "d", "image": "host"}));
    play(spec, |scene| {
        scene.settle();
        scene.die("c", 0);
        scene.settle();
        scene.containers.retain(|container| container.key.container() != "c");
        scene.settle();
        assert_eq!(scene.running(), ["d/0"], "what the status remembers as completed is not run again");
        scene.die("d", 0);
        scene.settle();
        scene.containers.clear();
        scene.settle();
        assert_eq!((scene.at("/phase"), scene.running()), (json!("Succeeded"), vec![]));
    });
}

#[test]
fn a_failed_liveness_probe_ends_the_container_and_its_end_restarts_it() {
    let probe =
        json!({"livenessProbe": {"exec": {"command": ["check"]}, "terminationGracePeriodSeconds": 3}});
    play(one(probe), |scene| {
        scene.settle();
        scene.find("c", ProbeKind::Liveness, false);
        if scene.pace == Pace::Whole {
            assert_eq!(grace_of(&scene.plan()), [Duration::from_secs(3)]);
        }
        scene.settle();
        assert_eq!(scene.running(), ["c/0"]);
        assert!(scene.plan().probes.is_empty(), "nobody asks a container that is being ended");
        scene.pass(3);
        scene.settle();
        assert_eq!(scene.running(), ["c/1"]);
        assert_eq!(scene.plan().probes.len(), 1);
    });
}

#[test]
fn a_pod_past_its_own_deadline_is_ended_and_failed() {
    let mut spec = one(json!({}));
    spec["activeDeadlineSeconds"] = json!(60);
    play(spec, |scene| {
        scene.settle();
        assert_eq!(scene.plan().next, Next::At(scene.now + SignedDuration::from_secs(60)));
        scene.pass(60);
        scene.settle();
        scene.pass(20);
        scene.settle();
        assert_eq!((scene.at("/phase"), scene.at("/reason")), (json!("Failed"), json!("DeadlineExceeded")));
        assert_eq!(scene.running(), [""; 0]);
    });
}
